"""Decoding of a stream of batches: locates MXoE frames, detects dialects, and offers typed frames and columns.

The frame classes are imported only when a typed frame is first requested, because columns do not use them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from operator import index as as_index
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import FrameBatch
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import Columns, decode_columns
from mxwire.wire.detection import Assignment, BatchPairs, Detection, Detector, KnownDialects
from mxwire.wire.dialect import Dialect, as_dialect
from mxwire.wire.encapsulation import Located, locate
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.wire.codec import Codec, Malformed
    from mxwire.wire.packets import Frame

SETTLE_BYTES: Final = 16 << 20
"""Bytes of a capture examined before its first frames are decoded."""


@dataclass(frozen=True)
class DecodedBatch:
    """The MXoE frames of one batch, with the dialect of each."""

    located: Located
    assignment: Assignment
    hosts: CodeTable
    """The addresses indexed by ``assignment.source`` and ``assignment.destination``; grows with later batches."""

    def __len__(self) -> int:
        """The number of MXoE frames."""
        return len(self.located.batch)

    def __iter__(self) -> Iterator[Frame | Malformed]:
        """Iterate over the frames as typed values."""
        return map(self.frame, range(len(self)))

    def __getitem__(self, index: int) -> Frame | Malformed:
        """``decoded[3]`` is :meth:`frame`; raises :class:`IndexError` if out of range."""
        return self.frame(range(len(self))[as_index(index)])

    def __repr__(self) -> str:
        """The number of frames and the dialects detected."""
        decided = set(self.assignment.which[self.assignment.decided].tolist())
        names = ", ".join(sorted(self.assignment.dialects[each].name for each in decided))
        return f"<DecodedBatch of {count_of(len(self), 'MXoE frame')}, {names or 'dialect undecided'}>"

    @property
    def batch(self) -> FrameBatch:
        """The MXoE frames as captured."""
        return self.located.batch

    @cached_property
    def columns(self) -> Columns:
        """All frames as NumPy columns."""
        return decode_columns(self.located, self.assignment.dialects, self.assignment.which, self.assignment.swapped)

    def dialect(self, index: int) -> Dialect:
        """The dialect used to decode the frame at ``index``."""
        return self.assignment.dialects[int(self.assignment.which[index])]

    def dialect_name(self, index: int) -> str | None:
        """The dialect of the frame's pair of hosts, or None if undetermined."""
        return self.dialect(index).name if self.assignment.decided[index] else None

    def is_swapped(self, index: int) -> bool:
        """Return True if the sender's integers are in little-endian order."""
        return self.assignment.swapped is not None and bool(self.assignment.swapped[index])

    def codec(self, index: int) -> Codec:
        """The codec of the frame at ``index``."""
        from mxwire.wire.codec import codec_of

        return codec_of(self.dialect(index), swapped=self.is_swapped(index))

    def codecs(self) -> list[Codec]:
        """The codec of each frame, in order."""
        from mxwire.wire.codec import codec_of

        which = self.assignment.which.tolist()
        plain = [codec_of(each) for each in self.assignment.dialects]
        if self.assignment.swapped is None:
            return [plain[each] for each in which]
        little_endian = [codec_of(each, swapped=True) for each in self.assignment.dialects]
        swapped = self.assignment.swapped.tolist()
        return [(little_endian if swap else plain)[each] for each, swap in zip(which, swapped, strict=True)]

    def frame(self, index: int) -> Frame | Malformed:
        """One frame as a typed value; offsets in a :class:`Malformed` count from the start of an untagged frame."""
        return self.codec(index).parse(self.located.frame(index), int(self.located.wire_length[index]))

    def select(self, places: NDArray[np.intp]) -> DecodedBatch:
        """The frames at ``places`` as a batch of their own."""
        located, assignment = self.located, self.assignment
        return DecodedBatch(
            # Skipped frames were counted with the whole batch.
            Located(located.batch.select(places), located.rows[places], located.shift[places], located.vlan[places], 0),
            replace(
                assignment,
                which=assignment.which[places],
                decided=assignment.decided[places],
                swapped=None if assignment.swapped is None else assignment.swapped[places],
                source=assignment.source[places],
                destination=assignment.destination[places],
            ),
            self.hosts,
        )

    def vlan(self, index: int) -> list[int]:
        """VLAN ids of the frame, outermost first."""
        return [int(each) for each in self.located.vlan[index] if each >= 0]


class Decoder:
    """Decodes batches in the order of the capture, and detects the dialect of each pair of hosts.

    ``dialect`` applies to all hosts, as a :class:`~mxwire.wire.dialect.Dialect` or a name; None detects it for each
    pair. ``ethertypes`` are those of MXoE in this capture. ``known`` dialects are not detected again.
    """

    def __init__(
        self,
        dialect: Dialect | str | None = None,
        ethertypes: Collection[int] = (ETHERTYPE_MXOE,),
        known: KnownDialects | None = None,
    ) -> None:
        self.dialect = None if dialect is None else as_dialect(dialect)
        self.ethertypes = tuple(ethertypes)
        self.skipped = 0
        """Frames seen so far that are not MXoE."""
        self.decoded = 0
        """MXoE frames seen so far."""
        self.start_ns: int | None = None
        """Timestamp of the first frame, MXoE or not."""
        self.known = known
        """The dialects of the complete capture, of which this decoder decodes a part; None if they are detected."""
        self.detector = Detector(known=known)
        self.hosts = self.detector.hosts
        """The addresses seen so far, numbered in order of appearance."""

    def decode(self, batch: FrameBatch) -> DecodedBatch:
        """Decode the next batch with the dialects detected up to its end."""
        return self._decoded(*self._learn(batch))

    def decode_all(self, batches: Iterable[FrameBatch], settle_bytes: int = SETTLE_BYTES) -> Iterator[DecodedBatch]:
        """Decode a whole capture, detecting dialects in its first ``settle_bytes`` before the first batch is returned.

        Early frames are thus decoded with evidence from later ones; small captures are examined completely. Use 0 for
        live sources.
        """
        waiting: list[tuple[Located, BatchPairs]] = []
        left = settle_bytes
        for batch in batches:
            waiting.append(self._learn(batch))
            left -= batch.buffer.nbytes
            if left <= 0:
                yield from starmap(self._decoded, waiting)
                waiting = []
        yield from starmap(self._decoded, waiting)

    def _learn(self, batch: FrameBatch) -> tuple[Located, BatchPairs]:
        if self.start_ns is None and len(batch):
            self.start_ns = int(batch.timestamp_ns[0])
        located = locate(batch, self.ethertypes)
        self.skipped += located.skipped
        self.decoded += len(located.batch)
        return located, self.detector.learn(located)

    def _decoded(self, located: Located, pairs: BatchPairs) -> DecodedBatch:
        assignment = self.detector.assign(pairs)
        if self.dialect is not None:
            count = len(assignment.which)
            assignment = replace(
                assignment, dialects=(self.dialect,), which=np.zeros(count, np.intp), decided=np.ones(count, np.bool_)
            )
        return DecodedBatch(located, assignment, self.hosts)

    def detections(self) -> list[Detection]:
        """The detection for each pair of hosts so far, independent of ``dialect``."""
        return self.detector.detections()

    def swapped_hosts(self) -> list[int]:
        """Addresses of the hosts whose integers are in little-endian order."""
        return self.detector.swapped_hosts()
