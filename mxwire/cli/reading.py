"""What all commands that read captures do: progress, warnings, and going on when one file of several is bad."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from mxwire.capture import CaptureReader, open_capture
from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.wire.address import mac_text
from mxwire.wire.decoder import Decoder

PROGRESS_BYTES = 32 * 1024 * 1024
"""Captures below this size are done before a progress bar is worth looking at."""


def say(text: str) -> None:
    """A note for the user that is not part of the output."""
    click.echo(f"mxwire: {text}", err=True)


def batches(reader: CaptureReader, *, show_progress: bool = True) -> Iterator[FrameBatch]:
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


class Failures:
    """Collects what went wrong with single files, so that the others are still read."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Tell an error of this block and go on."""
        try:
            yield
        except MxwireError as error:
            sys.stdout.flush()
            say(str(error))
            self.count += 1

    def end(self) -> None:
        """Exit with code 2 if anything went wrong."""
        if self.count:
            sys.exit(2)


def tell_notes(path: str, decoder: Decoder) -> None:
    """What a reader of the output has to know about how a capture was decoded."""
    if decoder.skipped:
        types = ", ".join(f"0x{each:04x}" for each in decoder.ethertypes)
        say(f"{path}: {decoder.skipped} of {decoder.skipped + decoder.decoded} frames are not MXoE (EtherType {types})")
    for host in decoder.swapped_hosts():
        say(f"{path}: {mac_text(host)} sends its integers in little-endian order (endian option off)")
    if decoder.dialect is not None or not decoder.decoded:
        return
    if all(found.dialect is None for found in decoder.detections()):
        say(f"{path}: no packet decides the dialect; all types here are alike in both (--dialect sets it)")
