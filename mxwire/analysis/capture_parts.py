"""Parts of one capture for workers: ranges of bytes to decode, pairs of hosts to follow.

Frames can be decoded by themselves once the dialect of each pair of hosts is known, so their file is divided by bytes,
and each worker reads a range. Messages can only be followed with all frames of a pair of hosts, so each worker reads
the capture, and drops the frames of the pairs that other workers follow, before anything else is done with them:
reading takes a tenth to a hundredth of the time of following. There are at most 64 such parts, however large the
capture, so that reading does not take more time than following.

Both need the dialects first, and a range also the number of frames before it. All ranges of all files are therefore
surveyed by workers at the beginning, which also verifies their boundaries (:mod:`mxwire.capture.division`). A range
that does not end with a record is surveyed once more, joined with the next one, or with more of them. If that fails up
to the end of the file, it is damaged, ends within a record, or changes on the way, and the capture remains undivided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.division import ByteRange, open_range, ranges_of
from mxwire.capture.pcapng import MOST_DESCRIBED
from mxwire.capture.ring import CaptureRing
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import Decoder
from mxwire.wire.detection import KnownDialects
from mxwire.wire.encapsulation import Located, locate
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET

_MIXERS: Final = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xC2B2_AE3D_27D4_EB4F)
"""Odd factors, so that pairs of consecutive addresses are spread evenly over the parts."""

_HALF: Final = np.uint64(32)
_MOST_RANGES: Final = 4096
_MOST_PAIR_PARTS: Final = 64


@dataclass(frozen=True, slots=True)
class RangeSurvey:
    """The frames of a range of a file."""

    frames: int
    decoded: int
    """Number of MXoE frames."""
    start_ns: int | None
    """Time of the first frame."""
    evidence: list[list[Any]]
    """As :meth:`mxwire.wire.detection.Detector.evidence` returns it."""

    @staticmethod
    def packed(found: RangeSurvey | None) -> list[Any] | None:
        """Return a survey as values of JSON."""
        return None if found is None else [found.frames, found.decoded, found.start_ns, found.evidence]

    @staticmethod
    def unpacked(values: list[Any] | None, _: ByteRange) -> RangeSurvey | None:
        """Undo :meth:`packed`."""
        return None if values is None else RangeSurvey(*values)


def survey(decoder: Decoder, bytes_: ByteRange) -> RangeSurvey | None:
    """Read a range; return None if it does not end with a record, or its interfaces differ from those of the head."""
    damage: list[CaptureError] = []
    try:
        # An empty range has only the head of the file: the interfaces and sections that every worker knows.
        with open_range(replace(bytes_, end=bytes_.start), damage.append) as reader:
            for _ in reader:
                pass
            known = len(reader.interfaces), len(reader.sections)
        with open_range(bytes_, damage.append) as reader:
            for batch in reader:
                decoder.decode(batch)
            # An interface that is described within this range would be unknown to the workers of later ones.
            if damage or known != (len(reader.interfaces), len(reader.sections)) or max(known) >= MOST_DESCRIBED:
                return None
            return RangeSurvey(reader.frames, decoder.decoded, decoder.start_ns, decoder.detector.evidence())
    except (CaptureError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class CapturePart:
    """A capture, the consecutive ``files`` of a ring, or a part of it."""

    files: tuple[str, ...]
    number: int = 0
    """From 0 to ``parts`` (exclusive)."""
    parts: int = 1
    range: ByteRange | None = None
    """The bytes of the part; None for all, of which a part of several has only some pairs of hosts."""
    before: int = 0
    """Number of frames before ``range``."""
    known: KnownDialects | None = None
    start_ns: int | None = None
    """Time of the first frame of the capture."""

    def own(self, located: Located) -> NDArray[np.bool_]:
        """Return the mask of the frames of the pairs of hosts in this part, shape (n,)."""
        # Both directions of a pair are in one part, since a message needs the frames of both.
        low: NDArray[np.uint64] = np.minimum(located.source, located.destination)
        high: NDArray[np.uint64] = np.maximum(located.source, located.destination)
        mixed: NDArray[np.uint64] = low * _MIXERS[0] + high * _MIXERS[1]
        # The upper bits depend on all bits of both.
        mixed = (mixed ^ (mixed >> _HALF)) * _MIXERS[0] >> _HALF
        own: NDArray[np.bool_] = mixed % np.uint64(self.parts) == self.number
        return own

    def unique(self, number: Any) -> Any:
        """Return a number that no other part has, for one that is counted from 1 in this part; also of an array."""
        # A range has the frame numbers of the whole capture; parts by pair count from 1 each, and their numbers
        # interleave.
        return number if self.range is not None else (number - 1) * self.parts + self.number + 1


Surveyor = Callable[[Sequence[ByteRange]], Iterable[RangeSurvey | None]]
"""Surveys ranges, and returns the results in order."""


class DividedCapture:
    """A capture that may be divided into parts of about ``octets`` bytes, or of more if they were too many.

    After :meth:`examine`, ``parts`` has its parts, and ``decoder`` its totals and dialects; if it cannot be divided, it
    is its only part.
    """

    def __init__(self, files: tuple[str, ...], octets: int, decoder: Decoder) -> None:
        self.decoder = decoder
        self.parts = [CapturePart(files)]
        self.verified = False
        """True after :meth:`examine` if the boundaries of all ranges are right, though it may be a single range."""
        self._files = files
        with suppress(OSError):  # reading the capture reports it
            octets = max(octets, sum(Path(each).stat().st_size for each in files) // _MOST_RANGES)
        found = [ranges_of(each, octets) for each in files]
        self._ranges = [*chain.from_iterable(found)] if all(found) else []

    @property
    def ranges(self) -> int:
        """Number of ranges to survey."""
        return len(self._ranges)

    def examine(self, surveyor: Surveyor, *, by_pair: bool) -> None:
        """Survey the ranges, and divide the capture into them, or ``by_pair`` of hosts."""
        found = self._verified(surveyor) if self._ranges else []
        self.verified = bool(found)
        if len(found) < 2:
            return  # notes and errors are those of a whole capture
        decoder, first_numbers, total = self.decoder, [], 0
        for _, each in found:
            first_numbers.append(total)
            total += each.frames
            decoder.decoded += each.decoded
            decoder.detector.add(each.evidence)
        if not decoder.decoded:
            return  # the whole capture has the better error
        decoder.skipped = total - decoder.decoded
        decoder.start_ns = next((each.start_ns for _, each in found if each.start_ns is not None), None)
        count = min(len(found), _MOST_PAIR_PARTS) if by_pair else len(found)
        whole = CapturePart(self._files, 0, count, known=decoder.detector.known(), start_ns=decoder.start_ns)
        self.parts = [replace(whole, number=number) for number in range(count)]
        if not by_pair:
            self.parts = [
                replace(part, range=bytes_, before=before)
                for part, (bytes_, _), before in zip(self.parts, found, first_numbers, strict=True)
            ]

    def _verified(self, surveyor: Surveyor) -> list[tuple[ByteRange, RangeSurvey]]:
        """Return the ranges with right boundaries; none if the capture cannot be divided."""
        found: list[tuple[ByteRange, RangeSurvey]] = []
        ends = {each.file: each.end for each in self._ranges}
        pending: ByteRange | None = None
        added, wanted = 0, 1
        for each, result in zip(self._ranges, surveyor(self._ranges), strict=True):
            bytes_ = each if pending is None else pending.joined(each)
            is_last = each.end == ends[each.file]
            if pending is not None:
                # The start of this range is a wrong guess, too. In a damaged file, all later joins fail: a doubled
                # number of ranges per join limits the bytes that are read again.
                added += 1
                if added >= wanted or is_last:
                    (result,) = surveyor([bytes_])
                    wanted *= 2
                else:
                    result = None
            if result is not None:
                found.append((bytes_, result))
                pending, added, wanted = None, 0, 1
            elif is_last:
                return []
            else:
                pending = bytes_
        return found


class RingPart(CaptureRing):
    """The frames of a part of a capture, with their numbers in the whole capture.

    A part of the pairs of hosts contains the HOST_REPLYs of all of them: hosts announce their names to one another, and
    messages show them.
    """

    def __init__(
        self, part: CapturePart, ethertypes: Collection[int], damaged: Callable[[CaptureError], None] | None = None
    ) -> None:
        self.part = part
        self._ethertypes = ethertypes
        super().__init__(part.files, damaged)

    def _open(self, place: int) -> None:
        bytes_ = self.part.range
        if bytes_ is None:
            super()._open(place)
        else:
            self._reader = self._stack.enter_context(open_range(bytes_, self._damaged))

    def __iter__(self) -> Iterator[FrameBatch]:
        """Iterate over the batches, once."""
        for batch in super().__iter__():
            if self.part.range is not None:
                yield replace(batch, number=batch.number + self.part.before)
                continue
            located = locate(batch, self._ethertypes)
            chosen = self.part.own(located) | (located.row_bytes[:, TYPE_OFFSET] == PacketType.HOST_REPLY)
            if chosen.any():
                yield located.batch.select(chosen)
