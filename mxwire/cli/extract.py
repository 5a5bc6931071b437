"""``mxwire extract``: the bytes of one message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli.options import FILE, dialect_option, ethertype_option, message_option
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.conversations import Message
    from mxwire.analysis.conversations.content import Content

EPILOG = """\b
Examples:
  mxwire extract --message 3 -w message.bin trace.pcap
  mxwire extract --message 3 -w - trace.pcap | xxd | head
  mxwire extract --message 3 --partial -w message.bin trace.pcap    zeros where bytes are missing
"""
NAMED = 5
"""Gaps that are named where nothing is written."""
LISTED = 100
"""Gaps that are listed where zeros are written; --json has all."""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@message_option
@click.option(
    "-w",
    "--write",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="Where the bytes go; - is standard output.",
)
@click.option("--partial", is_flag=True, help="Write even if bytes are missing: zeros there, and the gaps are listed.")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON object (not with -w -).")
@dialect_option
@ethertype_option
def command(
    file: str, number: int, target: Path, partial: bool, as_json: bool, dialect: str, ethertypes: tuple[int, ...]
) -> None:
    """Put a message together from the frames that carried it, and write its bytes.

    Nothing is written if bytes are missing: frames that the capture does not have, or that it cut (snap length), or
    that the receiver never asked for.
    """
    import sys

    from mxwire.analysis.conversations.content import Content
    from mxwire.cli.following import decoder_of, watched
    from mxwire.cli.reading import refuse_overwriting
    from mxwire.cli.writing import Assembly
    from mxwire.errors import MxwireError

    to_output = str(target) == "-"
    if to_output and as_json:
        raise MxwireError("--json says what was written to a file: it does not go with -w -")
    if not to_output:
        refuse_overwriting([file], target)
    with Assembly(None if to_output else target) as assembly:
        content = Content(assembly.write)
        message = watched(file, number, decoder_of(dialect, ethertypes), content.take)
        gaps = content.gaps(message.length)
        if (gaps or message.length is None) and not partial:
            raise MxwireError(
                f"{file}: message {number}: {_missing(message, content, gaps)}; --partial writes the rest"
            )
        length = message.length if message.length is not None else max((end for _, end in content.ranges), default=0)
        assembly.finish(length, sys.stdout.buffer if to_output else None)
    _tell(message, gaps, length, target, as_json, to_output)


def _missing(message: Message, content: Content, gaps: list[tuple[int, int]]) -> str:
    missing = sum(end - start for start, end in gaps)
    if message.length is None:
        return "its announcement was not seen, so nothing tells how long it is"
    notice = message.pull.notice if message.pull is not None else None
    if notice is not None and notice.total_length < message.length:
        why = f", as its receiver took only {notice.total_length}"
    else:
        why = ", as the capture cut its frames" if content.cut else ""
    return f"{missing} of {message.length} bytes are missing{why} ({_gaps_text(gaps, NAMED)})"


def _gaps_text(gaps: list[tuple[int, int]], most: int) -> str:
    shown = ", ".join(f"{start}-{end - 1}" for start, end in gaps[:most])
    return f"{shown} and {len(gaps) - most} more ranges" if len(gaps) > most else shown


def _tell(
    message: Message, gaps: list[tuple[int, int]], length: int, target: Path, as_json: bool, to_output: bool
) -> None:
    from mxwire.cli.notes import note
    from mxwire.report.json_line import json_line

    if as_json:
        told = {"message": message.number, "file": str(target), "bytes": length, "length": message.length}
        click.echo(json_line(told | {"gaps": [list(each) for each in gaps]}))
        return
    if not to_output:
        click.echo(f"message {message.number}: {count_of(length, 'byte')} written to {target}")
    if gaps:
        missing = sum(end - start for start, end in gaps)
        verb = "is" if missing == 1 else "are"
        note(f"{count_of(missing, 'byte')} {verb} missing, zeros in their place: {_gaps_text(gaps, LISTED)}")
