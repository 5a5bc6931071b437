"""What all commands that read captures do: progress, warnings, and going on when one file of several is bad."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mxwire.capture import CaptureReader, open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.cli import progress
from mxwire.cli.live_batches import LiveSource, Source
from mxwire.cli.notes import counted, note
from mxwire.errors import MxwireError, OutputError
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import SETTLE_BYTES, DecodedBatch, Decoder

Watch = Callable[[Iterable[FrameBatch]], Iterator[FrameBatch]]


def decoded_batches(
    decoder: Decoder, reader: Source, *, watched: bool = True, streams: bool = False
) -> Iterator[DecodedBatch]:
    """A capture, decoded; a live source is decoded as it comes, a file with a look ahead.

    ``watched`` is False where another bar shows how far the command is; ``streams`` says that lines are printed while
    the capture is read, as :func:`mxwire.cli.progress.bar` wants to know.
    """

    def decode(batches: Iterable[FrameBatch]) -> Iterator[DecodedBatch]:
        return decoder.decode_all(batches, _settle(reader))

    yield from _analysed(reader, decode, watched=watched, streams=streams)


def judged_batches(
    decoder: Decoder, reader: Source, watch: Watch | None = None, *, streams: bool = False
) -> Iterator[DecodedBatch]:
    """A capture, decoded, and in the order of the frames' times: for whatever asks what came before what.

    ``watch`` sees the batches as they are, with all other protocols, and hands them on. Frames of an interface come in
    order, and are not held back. ``streams`` is that of :func:`decoded_batches`.
    """

    def decode(batches: Iterable[FrameBatch]) -> Iterator[DecodedBatch]:
        if watch is not None:
            batches = watch(batches)
        if not isinstance(reader, LiveSource):
            batches = in_time_order(batches)
        return decoder.decode_all(batches, _settle(reader))

    yield from _analysed(reader, decode, streams=streams)


def _settle(reader: Source) -> int:
    """How much is looked at before the first answer: who writes into a pipe may take his time."""
    return 0 if reader.total_bytes is None else SETTLE_BYTES


def _analysed(
    reader: Source,
    decode: Callable[[Iterable[FrameBatch]], Iterator[DecodedBatch]],
    *,
    watched: bool = True,
    streams: bool = False,
) -> Iterator[DecodedBatch]:
    """The batches of a capture as ``decode`` makes them, with a progress bar where that takes long.

    The bar counts what the caller is done with: much more may have been read ahead.
    """
    total = reader.total_bytes
    read: deque[tuple[int, int]] = deque()
    """Frames and bytes of the file after each batch that was read, as long as the caller is not done with them."""

    def counted() -> Iterator[FrameBatch]:
        frames = 0
        for batch in reader:
            frames += len(batch)
            read.append((frames, reader.bytes_read))
            yield batch

    wanted = watched and total is not None and total >= progress.SHOWN_FROM_BYTES
    with progress.bar(reader.name, total, "bytes", wanted=wanted, streams=streams) as shown:
        if not shown.shown:
            yield from decode(reader)
            return
        done = 0
        for decoded in decode(counted()):
            yield decoded
            done += len(decoded) + decoded.located.skipped
            while read and read[0][0] <= done:
                shown.update(read.popleft()[1])


@contextmanager
def capture_of(path: str) -> Iterator[CaptureReader]:
    """Open a capture; its warnings are told when it is closed."""
    with open_capture(path) as reader:
        try:
            yield reader
        finally:
            for warning in reader.warnings:
                note(f"warning: {warning}")


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
            note(str(error))
            self.count += 1

    def end(self) -> None:
        """Exit with code 2 if anything went wrong."""
        if self.count:
            sys.exit(2)


def refuse_empty(source: Source, decoder: Decoder) -> None:
    """Raise where a capture, or what passed an interface, has no MXoE frame at all: nothing was found out then.

    Raises :class:`~mxwire.errors.MxwireError` with what to try, for :class:`Failures` to note.
    """
    if decoder.decoded:
        return
    types = ", ".join(f"0x{each:04x}" for each in decoder.ethertypes)
    if isinstance(source, LiveSource):
        if source.error is not None:
            return  # It is told of when the source is closed.
        raise MxwireError(
            f"{source.name}: no MXoE frame (EtherType {types}) passed within {source.seconds:.1f} s; "
            f"is anybody sending? (mxwire discover -i {source.name}, mxwire doctor -i {source.name})"
        )
    if not decoder.skipped:
        raise MxwireError(f"{source.name}: no frames; record some with mxwire capture")
    raise MxwireError(
        f"{source.name}: no MXoE frames (EtherType {types}) among {counted(decoder.skipped, 'frame')}; is it the right "
        f"capture? For another EtherType use --ethertype (mxwire diagnose finds it)"
    )


def tell_notes(path: str, decoder: Decoder) -> None:
    """What a reader of the output has to know about the frames of a capture."""
    if decoder.skipped and decoder.decoded:
        types = ", ".join(f"0x{each:04x}" for each in decoder.ethertypes)
        frames = decoder.skipped + decoder.decoded
        note(f"{path}: {decoder.skipped} of {frames} frames are not MXoE (EtherType {types})")
    for host in decoder.swapped_hosts():
        note(f"{path}: {mac_text(host)} sends its integers in little-endian order (endian option off)")


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
    note(f"{which}: no packet decides the dialect; all types there are alike in both (--dialect sets it)")
