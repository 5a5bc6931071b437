"""What all commands that read captures do: progress, warnings, and going on when one file of several is bad."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from mxwire.capture import CaptureReader, open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.cli.live_batches import LiveSource, Source
from mxwire.errors import MxwireError, OutputError
from mxwire.frames import FrameBatch
from mxwire.wire.address import mac_text
from mxwire.wire.decoder import SETTLE_BYTES, DecodedBatch, Decoder

Watch = Callable[[Iterable[FrameBatch]], Iterator[FrameBatch]]
PROGRESS_BYTES = 32 * 1024 * 1024
"""Captures below this size are done before a progress bar is worth looking at."""


def say(text: str) -> None:
    """A note for the user that is not part of the output."""
    click.echo(f"mxwire: {text}", err=True)


def decoded_batches(decoder: Decoder, reader: Source, *, show_progress: bool = True) -> Iterator[DecodedBatch]:
    """A capture, decoded; a live source is decoded as it comes, a file with a look ahead."""
    yield from decoder.decode_all(_batches(reader, show_progress), _settle(reader))


def judged_batches(decoder: Decoder, reader: Source, watch: Watch | None = None) -> Iterator[DecodedBatch]:
    """A capture, decoded, and in the order of the frames' times: for whatever asks what came before what.

    ``watch`` sees the batches as they are, with all other protocols, and hands them on. Frames of an interface come in
    order, and are not held back.
    """
    batches = _batches(reader, True)
    if watch is not None:
        batches = watch(batches)
    if not isinstance(reader, LiveSource):
        batches = in_time_order(batches)
    yield from decoder.decode_all(batches, _settle(reader))


def _settle(reader: Source) -> int:
    """How much is looked at before the first answer: who writes into a pipe may take his time."""
    return 0 if reader.total_bytes is None else SETTLE_BYTES


def _batches(reader: Source, show_progress: bool) -> Iterator[FrameBatch]:
    """The batches of a capture, with a progress bar where somebody watches and it takes long."""
    total = reader.total_bytes
    watched = show_progress and sys.stderr.isatty() and total is not None and total > PROGRESS_BYTES
    if not watched:
        yield from reader
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(reader.name, total=total)
        for batch in reader:
            yield batch
            progress.update(task, completed=reader.bytes_read)


@contextmanager
def capture_of(path: str) -> Iterator[CaptureReader]:
    """Open a capture; its warnings are told when it is closed."""
    with open_capture(path) as reader:
        try:
            yield reader
        finally:
            for warning in reader.warnings:
                say(f"warning: {warning}")


def refuse_overwriting(files: Iterable[str], target: Path) -> None:
    """Raise where the file that is to be written is one of those that are read."""
    for file in files:
        if _is_same(file, target):
            raise MxwireError(f"{target}: is one of the captures; name another file for the output")


def refuse_twice(first: str, second: str, instead: str) -> None:
    """Raise where two captures that are to be compared are one; ``instead`` says what to do."""
    if _is_same(first, Path(second)):
        raise MxwireError(f"{first} and {second} are one and the same file; {instead}")


def _is_same(file: str, other: Path) -> bool:
    return other.exists() and Path(file).exists() and other.samefile(file)


class Failures:
    """Collects what went wrong with single files, so that the others are still read."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Tell an error of this block and go on."""
        try:
            yield
        except OutputError:
            raise
        except MxwireError as error:
            sys.stdout.flush()
            say(str(error))
            self.count += 1

    def end(self) -> None:
        """Exit with code 2 if anything went wrong."""
        if self.count:
            sys.exit(2)


def tell_notes(path: str, decoder: Decoder) -> None:
    """What a reader of the output has to know about the frames of a capture."""
    if decoder.skipped:
        types = ", ".join(f"0x{each:04x}" for each in decoder.ethertypes)
        say(f"{path}: {decoder.skipped} of {decoder.skipped + decoder.decoded} frames are not MXoE (EtherType {types})")
    elif not decoder.decoded:
        say(f"{path}: no frames")
    for host in decoder.swapped_hosts():
        say(f"{path}: {mac_text(host)} sends its integers in little-endian order (endian option off)")


def is_undecided(decoder: Decoder) -> bool:
    """Whether the dialect had to be found out, and no frame decides it."""
    if decoder.dialect is not None or not decoder.decoded:
        return False
    return all(found.dialect is None for found in decoder.detections())


def tell_undecided(undecided: list[str], files: int) -> None:
    """Name the captures of which no frame decides the dialect; nothing is wrong with them."""
    if not undecided:
        return
    which = undecided[0] if files == 1 else f"{len(undecided)} of {files} captures"
    say(f"{which}: no packet decides the dialect; all types there are alike in both (--dialect sets it)")
