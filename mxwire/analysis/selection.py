"""Selections of frames and of messages, as users state them in filter options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mxwire.analysis.conversations.marks import FLAGS, flag_bit
from mxwire.analysis.frame_expression import FrameExpression
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.units import SECOND
from mxwire.wire.enums import packet_type_number
from mxwire.words import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.conversations.marks import FrameMarks
    from mxwire.wire.decoder import DecodedBatch

FrameRange = tuple[int, int | None]
"""The first and the last frame number, both included; None for an open range."""


@dataclass(frozen=True, slots=True)
class FrameSelection:
    """The criteria that a frame must meet; None, or no host, for no limit."""

    types: frozenset[int] | None = None
    hosts: frozenset[int] | None = None
    """Addresses as integers; one of them is the frame's source or destination."""
    frames: Sequence[FrameRange] | None = None
    endpoint: int | None = None
    """Number of the source or destination endpoint."""
    flags: int | None = None
    """Bits, one of which the frame's marks have."""
    where: FrameExpression | None = None
    between: tuple[float, float] | None = None
    """Seconds since the first frame of the capture, both included."""
    pair: tuple[frozenset[int], frozenset[int]] | None = None
    """Addresses of two hosts, between which a frame passes in either direction."""

    @classmethod
    def of(
        cls,
        types: Iterable[str] = (),
        hosts: Iterable[str] = (),
        frames: Sequence[FrameRange] | None = None,
        endpoint: int | None = None,
        *,
        flags: Iterable[str] = (),
        where: str | None = None,
        between: tuple[float, float] | None = None,
    ) -> FrameSelection:
        """Build a selection from text, one of ``flags`` being enough.

        Raises :class:`~mxwire.errors.MxwireError` for an unknown type, address or flag, for a mistake in the expression
        ``where``, and if ``between`` ends before it starts.
        """
        if between is not None and between[1] < between[0]:
            raise MxwireError(f"from {between[0]:g} s to {between[1]:g} s: the end is before the start")
        return cls(
            frozenset(map(packet_type_number, types)) or None,
            addresses(hosts),
            frames,
            endpoint,
            sum({_flag(each) for each in flags}) or None,
            None if where is None else FrameExpression(where),
            between,
        )

    @property
    def is_limited(self) -> bool:
        """True if there is at least one criterion."""
        return self != FrameSelection()

    @property
    def needs_marks(self) -> bool:
        """True if a criterion depends on the marks of frames."""
        return self.flags is not None or (self.where is not None and self.where.needs_marks)

    def places(
        self, decoded: DecodedBatch, marks: FrameMarks | None = None, start_ns: int | None = None
    ) -> NDArray[np.intp]:
        """Return the indexes of the selected frames in a batch.

        ``marks`` are those of the batch, required if :attr:`needs_marks`. ``start_ns`` is the time of the capture's
        first frame, by default that of the batch.
        """
        if marks is None and self.needs_marks:
            raise ValueError("the selection needs the marks of the frames")
        if not self.is_limited:
            # The columns of a batch are decoded on first use: unfiltered output as JSON or lines does not need them.
            return np.arange(len(decoded))
        mask = np.ones(len(decoded), np.bool_)
        if self.types is not None:
            mask &= np.isin(decoded.columns.packet_type, list(self.types))
        if self.hosts is not None:
            wanted = np.array(list(self.hosts), np.uint64)
            mask &= np.isin(decoded.located.source, wanted) | np.isin(decoded.located.destination, wanted)
        if self.frames is not None:
            number = decoded.batch.number
            inside = np.zeros(len(decoded), np.bool_)
            for first, last in self.frames:
                inside |= (number >= first) & (number <= last if last is not None else True)
            mask &= inside
        if self.endpoint is not None:
            found = np.zeros(len(decoded), np.bool_)
            for name in ("src_endpoint", "dst_endpoint"):
                values, present = decoded.columns.field(name)
                found |= present & (values == self.endpoint)
            mask &= found
        if self.flags is not None and marks is not None:
            mask &= marks.flags & np.uint32(self.flags) != 0
        if self.pair is not None:
            one, other = (np.array(list(each), np.uint64) for each in self.pair)
            source, destination = decoded.located.source, decoded.located.destination
            mask &= (np.isin(source, one) & np.isin(destination, other)) | (
                np.isin(source, other) & np.isin(destination, one)
            )
        if self.between is not None and len(decoded):
            time_ns = decoded.batch.timestamp_ns
            seconds = (time_ns - (int(time_ns[0]) if start_ns is None else start_ns)) / SECOND
            mask &= (seconds >= self.between[0]) & (seconds <= self.between[1])
        if self.where is not None:
            mask &= self.where.mask(decoded, marks, start_ns)
        return np.flatnonzero(mask)

    def is_over(self, number: int) -> bool:
        """True if no frame after frame ``number`` can be selected."""
        return self.frames is not None and all(last is not None and number >= last for _, last in self.frames)


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The criteria that a message must meet; None for no limit."""

    hosts: frozenset[int] | None = None
    endpoint: int | None = None
    kinds: frozenset[str] | None = None
    match: int | None = None
    incomplete: bool = False

    @classmethod
    def of(
        cls,
        hosts: Iterable[str] = (),
        endpoint: int | None = None,
        kinds: Iterable[str] = (),
        match: int | None = None,
        incomplete: bool = False,
    ) -> MessageSelection:
        """Build a selection from text; raise :class:`~mxwire.errors.MxwireError` for a bad address."""
        return cls(
            hosts=addresses(hosts),
            endpoint=endpoint,
            kinds=frozenset(each.upper() for each in kinds) or None,
            match=match,
            incomplete=incomplete,
        )

    def takes(self, message: CapturedMessage) -> bool:
        """Return True if a message meets all criteria."""
        flows = message.flow, message.flow.back
        return (
            (self.hosts is None or not self.hosts.isdisjoint(each.address for each in flows))
            and (self.endpoint is None or self.endpoint in [each.endpoint for each in flows])
            and (self.kinds is None or message.kind in self.kinds)
            and (self.match is None or self.match == message.match)
            and (not self.incomplete or message.is_incomplete)
        )


def addresses(hosts: Iterable[str]) -> frozenset[int] | None:
    """Return Ethernet addresses as integers, None if there are none.

    Raise :class:`~mxwire.errors.MxwireError` if one is invalid.
    """
    return frozenset(int.from_bytes(mac_bytes(each), "big") for each in hosts) or None


def _flag(name: str) -> int:
    """Return the bit of a flag by its name, in which dashes and spaces may replace underscores."""
    wanted = name.strip().lower().replace("-", "_").replace(" ", "_")
    if wanted not in FLAGS:
        raise MxwireError(f"no flag {name!r}{suggestion(wanted, FLAGS) or ': ' + ', '.join(FLAGS)}")
    return flag_bit(wanted)
