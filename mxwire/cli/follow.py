"""``mxwire follow``: the frames of one message, as a ladder."""

from __future__ import annotations

import click

from mxwire.cli.options import FILE, dialect_option, ethertype_option, message_option

EPILOG = """\b
The sender of the message is on the left. Replies that follow each other without a gap share a line. Acks are shown if
they acknowledge this message (or the NOTIFY at its end); a piggybacked ack belongs to another message.

\b
Examples:
  mxwire messages trace.pcap                 first: list the messages
  mxwire follow --message 3 trace.pcap
  mxwire follow --message 3 --json trace.pcap | jq -r 'select(.role == "ack") | .frame'
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@message_option
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object per frame, or per run of replies.")
@dialect_option
@ethertype_option
def command(file: str, number: int, as_json: bool, dialect: str, ethertypes: tuple[int, ...]) -> None:
    """Show every frame of one message: its role, time and contents."""
    from mxwire.cli.reading import decoder_of, watched
    from mxwire.report.json_line import json_line
    from mxwire.report.ladder import MessageLadder, ladder_lines
    from mxwire.report.terminal import terminal_width

    ladder = MessageLadder()
    decoder = decoder_of(dialect, ethertypes)
    message = watched(file, number, decoder, lambda decoded, frames, _: ladder.take(decoded, frames))
    if as_json:
        for step in ladder.steps:
            click.echo(json_line(step.as_object(message.number), decoder.start_ns))
        return
    for line in ladder_lines(message, ladder, decoder.start_ns or 0, terminal_width()):
        click.echo(line)
