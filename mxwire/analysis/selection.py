"""Selections of frames and of messages, as users state them in filter options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.wire.enums import PacketType
from mxwire.words import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mxwire.analysis.conversations import CapturedMessage
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

    @classmethod
    def of(
        cls,
        types: Iterable[str] = (),
        hosts: Iterable[str] = (),
        frames: Sequence[FrameRange] | None = None,
        endpoint: int | None = None,
    ) -> FrameSelection:
        """Build a selection from text; raise :class:`~mxwire.errors.MxwireError` for an unknown type or address."""
        return cls(frozenset(map(_packet_type, types)) or None, addresses(hosts), frames, endpoint)

    @property
    def is_limited(self) -> bool:
        """True if there is at least one criterion."""
        return self != FrameSelection()

    def places(self, decoded: DecodedBatch) -> NDArray[np.intp]:
        """Return the indexes of the selected frames in a batch."""
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


def _packet_type(name: str) -> int:
    """Return a packet type by its name or number."""
    if name.upper() in PacketType.__members__:
        return int(PacketType[name.upper()])
    try:
        number = int(name, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFF:
        raise MxwireError(
            f"no packet type {name!r}{suggestion(name, PacketType.__members__, lister='mxwire formats', most=1)}"
        )
    return number
