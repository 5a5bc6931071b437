"""The capture reader: opens a file and yields its frames batch by batch.

Theory of operation
===================

Bytes pass through three objects. A :class:`~mxwire.capture.source.ByteSource` delivers those available, unpacked if
necessary. A :class:`~mxwire.capture.source.ChunkBuffer` holds those not consumed yet in one large array. A decoder
(:class:`~mxwire.capture.pcap.PcapDecoder` or :class:`~mxwire.capture.pcapng.PcapngDecoder`) turns the complete records
of the buffer into batches, and sets ``needed`` to the number of bytes that the next record requires. The reader
alternates between decoding and filling the buffer until the source ends.

Finding the start of each record is the only step that runs record by record (:mod:`mxwire.capture.scan`); headers are
then gathered and converted by array operations. Frames are not copied: batches refer to the buffer, which is
replaced instead of overwritten. Memory is therefore a few chunks, and a consumer that drops its batches frees them.

Pipes may deliver a few bytes at a time, so each of them can stop anywhere and resume: decoders consume complete records
only, and an incomplete one stays in the buffer. Batches are yielded before the next read, so that live captures are
shown without delay.

Frames before a defect are never lost. A damaged record, or an end in the middle of one, raises
:class:`~mxwire.errors.CaptureError`, but only after all frames before it have been yielded; the end of a file that
another program is still writing is only a warning.
Callers that read ahead would lose these frames, so the error can be passed to a function instead. If damage is to be
skipped, reading continues at the next place where records follow one another (:mod:`mxwire.capture.resumption`).
Lengths in the file are never trusted further than fixed limits, so hostile input cannot exhaust memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO, Self

from mxwire.capture.metadata import describe_other
from mxwire.capture.pcap import FILE_HEADER_BYTES as PCAP_HEADER_BYTES
from mxwire.capture.pcap import PcapDecoder, is_pcap
from mxwire.capture.pcapng import FILE_HEADER_BYTES as PCAPNG_HEADER_BYTES
from mxwire.capture.pcapng import PcapngDecoder, is_pcapng
from mxwire.capture.resumption import resume
from mxwire.capture.scan import ScannerChoice
from mxwire.capture.source import (
    ByteSource,
    ChunkBuffer,
    DamagedCompression,
    RawBytes,
    UnpackedBytes,
    compression_of,
    open_raw,
)
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch
from mxwire.words import count_of

MAGIC_BYTES = 4
"""Bytes needed to recognise a format or a compression."""
HEAD_BYTES = 16
"""Bytes examined to describe a file that is not a capture."""


class CaptureReader:
    """Iterates once over the frames of a capture, in batches.

    Iteration yields all complete frames; damage and a truncated end raise ``CaptureError``.
    Memory is limited to a few chunks, whatever the size of the file.
    """

    def __init__(
        self,
        raw: RawBytes,
        chunk_bytes: int,
        scanner_choice: ScannerChoice,
        damaged: Callable[[CaptureError], None] | None = None,
        skip_damage: bool = False,
    ) -> None:
        """Read up to the file header to determine the format; use ``open_capture`` instead."""
        self.warnings: list[str] = []
        """Warnings about the file, one line each; complete after all frames are read."""
        self.name = raw.name
        """The name of the source, for messages."""
        self.total_bytes = raw.total_bytes
        """The size of the file; None for pipes and streams."""
        self._raw = raw
        self._scanner_choice = scanner_choice
        self._damaged = damaged
        self._skip_damage = skip_damage
        self._skipped_places = self._skipped_bytes = 0
        compression = compression_of(raw.peek(MAGIC_BYTES))
        self.compression = compression.name if compression else None
        """"gzip", "zstd" or None."""
        self._unpacked = UnpackedBytes(raw, compression, self.warnings) if compression else None
        source: ByteSource = self._unpacked or raw
        self._chunk = ChunkBuffer(source, chunk_bytes)
        self._decoder = decoder = self._recognize()
        self.format = decoder.format
        """ "pcap" or "pcapng"."""
        self.sections = decoder.sections
        """Metadata of the sections read so far, at most the first hundred."""
        self.interfaces = decoder.interfaces
        """Metadata of the interfaces read so far, at most the first hundred."""
        self.names = decoder.names
        """Host names by Ethernet address of 6 bytes in the name resolution blocks read so far; pcapng only."""
        self._batches = self._read()

    @property
    def frames(self) -> int:
        """Number of frames read so far, including skipped ones."""
        return self._decoder.frames

    @property
    def dropped(self) -> int:
        """Number of frames lost during capture, according to the statistics read so far."""
        return self._decoder.dropped

    @property
    def bytes_read(self) -> int:
        """Bytes of the file read so far, before decompression."""
        return self._raw.bytes_read

    @property
    def snap_length(self) -> int | None:
        """The largest snap length of the interfaces; 0 if one has no limit, None if there is no interface yet."""
        lengths = [interface.snap_length for interface in self.interfaces]
        return None if not lengths else 0 if 0 in lengths else max(lengths)

    def close(self) -> None:
        """Close the file; a stream passed by the caller stays open."""
        self._batches.close()
        self._raw.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def __iter__(self) -> Iterator[FrameBatch]:
        """Iterate over the remaining batches."""
        return self._batches

    def _recognize(self) -> PcapDecoder | PcapngDecoder:
        # Offsets in messages refer to the unpacked capture, not to the compressed file.
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
            within = f"is compressed with {self.compression}, and its contents " if self.compression else ""
            raise CaptureError(f"{self.name}: {within}{describe_other(head)}")
        what = "has no contents" if self.compression else "is empty (0 bytes)"
        raise CaptureError(f"{self.name}: {what}; record the capture again")

    def _head(self, count: int) -> bytes:
        """The first ``count`` bytes, or fewer at the end of the source."""
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
                try:
                    yield from decoder.batches(chunk, self._scanner_choice.scanner)
                    self._scanner_choice.reconsider(self._frames_to_come())
                    more = self._fill(decoder.needed, decoder.frames)
                except CaptureError as damage:
                    more = self._is_past(damage)
                else:
                    # A damaged length may reach beyond the end, over many good records.
                    more = more or (self._skip_damage and chunk.available > 0 and self._resume())
            if chunk.available:
                self._end_within(decoder.cut_off(chunk))
            decoder.check_link_types()
        finally:
            if self._skipped_places:
                self.warnings.append(
                    f"{self.name}: skipped {count_of(self._skipped_places, 'damaged place')}, "
                    f"{count_of(self._skipped_bytes, 'byte')}"
                )
            self.warnings.extend(decoder.skipped())

    def _is_past(self, damage: CaptureError) -> bool:
        """Skip the damage if possible, and return True; otherwise report it, and return False, or raise it."""
        if self._skip_damage:
            within = not isinstance(damage.__cause__, DamagedCompression)
            # Behind damaged compression, the incomplete record in the buffer has lost its end.
            if within or (self._unpacked is not None and self._unpacked.resume()):
                return self._resume()
            self._note_skipped(self._chunk.available)
            self._chunk.start = self._chunk.end
            return False
        self._chunk.start = self._chunk.end
        self._report(damage)
        return False

    def _end_within(self, text: str) -> None:
        """Report an end in the middle of a record: that is damage, unless the file is still being written."""
        if self._raw.is_being_written():
            self.warnings.append(f"{text}; it is still being written")
        else:
            self._report(CaptureError(text))

    def _report(self, damage: CaptureError) -> None:
        if self._damaged is None:
            raise damage
        self._damaged(damage)

    def _resume(self) -> bool:
        before = self._chunk.offset
        found = resume(self._decoder, self._chunk, lambda needed: self._fill(needed, self._decoder.frames))
        self._note_skipped(self._chunk.offset - before)
        return found

    def _note_skipped(self, octets: int) -> None:
        self._skipped_places += 1
        self._skipped_bytes += octets

    def _frames_to_come(self) -> float:
        """Estimate the remaining frames: by size for a file; for a pipe, as many as so far."""
        if self.total_bytes is None:
            return self._decoder.frames
        return self._decoder.frames * (self.total_bytes / self._raw.bytes_read - 1)


def open_capture(
    source: str | Path | BinaryIO,
    *,
    chunk_bytes: int = 6 << 20,
    numba: bool | None = None,
    damaged: Callable[[CaptureError], None] | None = None,
    skip_damage: bool = False,
) -> CaptureReader:
    """Open a pcap or pcapng capture, plain or compressed with gzip or zstd, for reading.

    ``source`` is a path, ``"-"`` for standard input, or a binary stream. ``chunk_bytes`` is the size of a read and
    therefore of a batch. ``numba`` selects scan loops compiled with numba, whose import takes half a second: always,
    never, or (None) if it is installed and the file is large enough to profit. Damage after the file header ends the
    frames: its error is passed to ``damaged`` if given, and raised otherwise. With ``skip_damage`` reading continues
    behind the damage, with a warning.

    Raises ``CaptureError`` if the source is not a readable capture.
    """
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
    scanner_choice = ScannerChoice(numba)
    raw = open_raw(source)
    try:
        return CaptureReader(raw, chunk_bytes, scanner_choice, damaged, skip_damage)
    except BaseException:
        raw.close()
        raise
