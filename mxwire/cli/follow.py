"""``mxwire follow``: the frames of one message, as a ladder."""

from __future__ import annotations

import click

from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import Command
from mxwire.cli.message_choice import MessageChoice, follow_message
from mxwire.cli.notes import print_records
from mxwire.cli.option_class import takes
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.options import json_option


@click.command(cls=Command)
@takes(MessageChoice, name="choice")
@json_option("JSON Lines: one object per frame, or per run of replies.")
@takes(FilterOptions, "messages", name="filters")
@takes(DecodingOptions, name="decoding")
def command(choice: MessageChoice, as_json: bool, filters: FilterOptions, decoding: DecodingOptions) -> None:
    """Show every frame of one message: its role, time and contents."""
    from mxwire.report.document import Paragraph, show
    from mxwire.report.ladder import MessageLadder, ladder_lines
    from mxwire.report.pointers import SEE_FRAME
    from mxwire.report.terminal import terminal_width

    ladder = MessageLadder()
    decoder = decoding.decoder()
    number = choice.number_in(decoding, filters)
    names = filters.host_names() if filters.by_name else None
    message = follow_message(
        choice.file,
        number,
        decoder,
        lambda decoded, frames, _, marks: ladder.take(decoded, frames, marks),
        names,
        decoding.skip_damage,
    )
    if as_json:
        print_records((step.as_object(message.number) for step in ladder.steps), decoder.start_ns)
        return
    for line in ladder_lines(message, ladder, decoder.start_ns or 0, terminal_width(), names):
        click.echo(line)
    click.echo()
    show([Paragraph(SEE_FRAME)])
