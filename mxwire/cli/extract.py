"""``mxwire extract``: the bytes of one message."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import click

from mxwire.cli.conflicts import conflicts
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import Command
from mxwire.cli.message_choice import MessageChoice, follow_message
from mxwire.cli.option_class import takes
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.options import flag_option, json_option, write_option
from mxwire.cli.reading import refuse_overwriting
from mxwire.errors import MxwireError, OutputError, check_regular, check_writable
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.conversations.content import Content

NAMED = 5
"""Maximum number of gaps listed in the error if nothing is written."""
LISTED = 100
"""Maximum number of gaps listed in the note if zeros are written; --json lists all."""


@click.command(cls=Command)
@takes(MessageChoice, name="choice")
@write_option(
    "Write the bytes to FILE; - is standard output.",
    "target",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
)
@flag_option(
    "Write the message even if bytes are missing: zeros take their place, and the gaps are listed.", "--partial"
)
@json_option("Print the result as one JSON object (not with -w -).")
@takes(FilterOptions, "messages", "by_name", name="filters")
@takes(DecodingOptions, name="decoding")
@conflicts("--write -", "--json", error="--json reports what was written to a file: omit it, or name a file with -w")
def command(
    choice: MessageChoice, target: Path, partial: bool, as_json: bool, filters: FilterOptions, decoding: DecodingOptions
) -> None:
    """Reassemble a message from the frames that carried it, and write its bytes.

    Nothing is written if bytes are missing because the capture lacks or truncates frames (snap length), or because the
    receiver never requested them.
    """
    from mxwire.analysis.conversations.content import Content

    file = choice.file
    to_output = str(target) == "-"
    if not to_output:
        refuse_overwriting([file], target)
    number = choice.number_in(decoding, filters)
    with _PartialFile(None if to_output else target) as assembly:
        content = Content(assembly.write)
        message = follow_message(
            file,
            number,
            decoding.decoder(),
            lambda decoded, frames, found, _: content.take(decoded, frames, found),
            skip_damage=decoding.skip_damage,
        )
        gaps = content.gaps(message.length)
        if (gaps or message.length is None) and not partial:
            raise MxwireError(
                f"{file}: message {number}: {_missing(message, content, gaps)}; --partial writes the rest"
            )
        length = message.length if message.length is not None else max((end for _, end in content.ranges), default=0)
        assembly.finish(length, sys.stdout.buffer if to_output else None)
    _report(message, gaps, length, target, as_json, to_output)


def _missing(message: CapturedMessage, content: Content, gaps: list[tuple[int, int]]) -> str:
    missing = sum(end - start for start, end in gaps)
    if message.length is None:
        return "its announcement was not seen, so its length is unknown"
    notice = message.pull.notice if message.pull is not None else None
    if notice is not None and notice.total_length < message.length:
        why = f", as its receiver took only {notice.total_length}"
    else:
        why = ", as the capture cut its frames" if content.cut else ""
    return f"{missing} of {message.length} bytes are missing{why} ({_gaps_text(gaps, NAMED)})"


def _gaps_text(gaps: list[tuple[int, int]], most: int) -> str:
    shown = ", ".join(f"{start}-{end - 1}" for start, end in gaps[:most])
    return f"{shown} and {len(gaps) - most} more ranges" if len(gaps) > most else shown


def _report(
    message: CapturedMessage, gaps: list[tuple[int, int]], length: int, target: Path, as_json: bool, to_output: bool
) -> None:
    from mxwire.cli.notes import note, print_record

    if as_json:
        record = {"message": message.number, "file": str(target), "bytes": length, "length": message.length}
        print_record(record | {"gaps": [list(each) for each in gaps]})
        return
    if not to_output:
        click.echo(f"wrote {count_of(length, 'byte')} of message {message.number} to {target}")
    if gaps:
        missing = sum(end - start for start, end in gaps)
        verb = "is" if missing == 1 else "are"
        note(f"{count_of(missing, 'byte')} {verb} missing, zeros in their place: {_gaps_text(gaps, LISTED)}")


class _PartialFile:
    """A file that is written out of order under a temporary name, and appears at ``target`` when it is complete.

    ``target`` is None if the bytes go to a stream instead. Raises :class:`~mxwire.errors.OutputError` if it cannot be
    written.
    """

    def __init__(self, target: Path | None) -> None:
        self._target = target
        # A symbolic link remains one: the file to which it leads is replaced.
        self._place = None if target is None else target.resolve()
        if target is not None:
            check_writable(target)
            check_regular(target)
        try:
            # In the same folder, since a file is moved in one step only within a file system.
            self._folder = tempfile.TemporaryDirectory(prefix=".mxwire-", dir=self._place and self._place.parent)
            self._path = Path(self._folder.name) / "content"
            self._file = self._path.open("w+b")
        except OSError as error:
            raise self._problem(error) from None

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes at an offset."""
        try:
            self._file.seek(offset)
            self._file.write(data)
        except OSError as error:
            raise self._problem(error) from None

    def finish(self, length: int, stream: BinaryIO | None) -> None:
        """Set the length of the file in bytes, and move it to its place, or copy it to ``stream``."""
        try:
            self._file.truncate(length)
            if stream is not None:
                self._file.seek(0)
                shutil.copyfileobj(self._file, stream)
                stream.flush()
            elif self._place is not None:
                self._file.flush()
                self._path.replace(self._place)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._problem(error) from None

    def _problem(self, error: OSError) -> OutputError:
        return OutputError.of(self._target or "the output", error)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file."""
        self._file.close()
        self._folder.cleanup()
