"""Opening a capture, and handing out its frames batch by batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from mxwire.capture.chunks import ChunkBuffer
from mxwire.capture.metadata import Interface, Section
from mxwire.capture.pcap import FILE_HEADER_BYTES as PCAP_HEADER_BYTES
from mxwire.capture.pcap import PcapDecoder, is_pcap
from mxwire.capture.pcapng import FILE_HEADER_BYTES as PCAPNG_HEADER_BYTES
from mxwire.capture.pcapng import PcapngDecoder, is_pcapng
from mxwire.capture.recognize import describe_other
from mxwire.capture.scan import ScannerChoice
from mxwire.capture.source import (
    DamagedCompression,
    RawBytes,
    Source,
    UnpackedBytes,
    compression_of,
    open_raw,
)
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch
from mxwire.words import count_of

MAGIC_BYTES = 4
"""How many bytes tell a format or a compression."""
HEAD_BYTES = 16
"""How many bytes are looked at to say what else a file may be."""


class CaptureReader:
    """The frames of a capture as batches, once, from the first to the last.

    Iterating gives all frames that are whole; a cut-off end is then told in ``warnings``, and damage raises
    ``CaptureError``. Memory stays at a few chunks, whatever the size of the file.
    """

    def __init__(self, raw: RawBytes, chunk_bytes: int, scanner_choice: ScannerChoice) -> None:
        """Reads as much as is needed to know the format; use ``open_capture``."""
        self.warnings: list[str] = []
        """What is odd about the file, one line each; complete when all frames are read."""
        self._raw = raw
        self._scanner_choice = scanner_choice
        compression = compression_of(raw.peek(MAGIC_BYTES))
        self.compression = compression.name if compression else None
        """"gzip", "zstd" or None."""
        source: Source = UnpackedBytes(raw, compression, self.warnings) if compression else raw
        self._chunk = ChunkBuffer(source, chunk_bytes)
        self._decoder = self._recognize()
        self._batches = self._read()

    @property
    def name(self) -> str:
        """What to call the source in messages."""
        return self._raw.name

    @property
    def format(self) -> str:
        """ "pcap" or "pcapng"."""
        return self._decoder.format

    @property
    def frames(self) -> int:
        """How many frames were found so far, those of link types that are skipped among them."""
        return self._decoder.frames

    @property
    def dropped(self) -> int:
        """How many frames were lost while this was captured, as far as the file has said so until now."""
        return self._decoder.dropped

    @property
    def bytes_read(self) -> int:
        """How much of the file was read so far, compressed as it is."""
        return self._raw.bytes_read

    @property
    def total_bytes(self) -> int | None:
        """The size of the file, where it is one."""
        return self._raw.total_bytes

    @property
    def sections(self) -> list[Section]:
        """What the sections read so far say about themselves, of the first hundred."""
        return self._decoder.sections

    @property
    def interfaces(self) -> list[Interface]:
        """The interfaces found so far, the first hundred of them."""
        return self._decoder.interfaces

    @property
    def snap_length(self) -> int | None:
        """The largest to which interfaces cut frames; 0 if one does not cut, None if none was found so far."""
        lengths = [interface.snap_length for interface in self.interfaces]
        return None if not lengths else 0 if 0 in lengths else max(lengths)

    def close(self) -> None:
        """Close the file; a stream that was given open stays open."""
        self._batches.close()
        self._raw.close()

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def __iter__(self) -> Iterator[FrameBatch]:
        """The batches that were not handed out yet."""
        return self._batches

    def _recognize(self) -> PcapDecoder | PcapngDecoder:
        # Places in messages are those in the capture, which are not those in a compressed file.
        name = f"{self.name} (unpacked)" if self.compression else self.name
        head = self._head(MAGIC_BYTES)
        if is_pcap(head):
            self._head(PCAP_HEADER_BYTES)
            return PcapDecoder(name, self._chunk)
        if is_pcapng(head):
            self._head(PCAPNG_HEADER_BYTES)
            return PcapngDecoder(name, self._chunk)
        head = self._head(HEAD_BYTES)
        if head:
            within = f"is compressed with {self.compression}, and what is in it " if self.compression else ""
            raise CaptureError(f"{self.name}: {within}{describe_other(head)}")
        what = "has nothing in it" if self.compression else "is empty (0 bytes)"
        raise CaptureError(f"{self.name}: {what}; record the capture again")

    def _head(self, count: int) -> bytes:
        """The first bytes, fewer only if there are not as many."""
        chunk = self._chunk
        while chunk.available < count and self._fill(count, frames=0):
            pass
        return chunk.buffer[chunk.start : chunk.start + min(count, chunk.available)].tobytes()

    def _fill(self, needed: int, frames: int) -> bool:
        try:
            return self._chunk.fill(needed)
        except DamagedCompression as damage:
            raise CaptureError(
                f"{self.name}: {damage} after {count_of(frames, 'whole frame')}; copy or record it again"
            ) from damage

    def _read(self) -> Generator[FrameBatch, None, None]:
        decoder, chunk = self._decoder, self._chunk
        try:
            more = True
            while more:
                yield from decoder.batches(chunk, self._scanner_choice.scanner)
                self._scanner_choice.reconsider(self._frames_to_come())
                more = self._fill(decoder.needed, decoder.frames)
        finally:
            self.warnings.extend(decoder.skipped())
        if chunk.available:
            self.warnings.append(decoder.cut_off(chunk))
        decoder.check_link_types()

    def _frames_to_come(self) -> float:
        """A guess: the rest of the file is like what was read, and a pipe is in the middle."""
        if self.total_bytes is None:
            return self.frames
        return self.frames * (self.total_bytes / self.bytes_read - 1)


def open_capture(
    source: str | Path | BinaryIO, *, chunk_bytes: int = 4 << 20, numba: bool | None = None
) -> CaptureReader:
    """Open a pcap or pcapng capture, plain or compressed with gzip or zstd, for reading.

    ``source`` is a path, ``"-"`` for standard input, or a binary stream. ``chunk_bytes`` is how much is read at
    once and so how large batches become. ``numba`` says whether to use loops compiled with it, which need half
    a second to import: never, always, or (None) where it is installed and the file has frames enough.

    Raises ``CaptureError`` if there is no capture that can be read.
    """
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
    scanner_choice = ScannerChoice(numba)
    raw = open_raw(source)
    try:
        return CaptureReader(raw, chunk_bytes, scanner_choice)
    except BaseException:
        raw.close()
        raise
