"""Numbers of frames between hosts, on which the diagnoses are based."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import BROADCAST
from mxwire.wire.codes import LIMIT, groups_of
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import PacketType

PAIRS: Final = 1 << 14
"""Maximum number of pairs of hosts that are remembered, each direction counted separately."""
FIRST_KEPT: Final = 4
_HOST_BITS: Final = LIMIT.bit_length()
_EVERYBODY: Final = int.from_bytes(BROADCAST, "big")


@dataclass(slots=True)
class HostDirection:
    """Traffic from one host to another."""

    source: int
    destination: int
    first_ns: int
    first_frame: int
    last_ns: int = 0
    last_frame: int = 0
    frames: int = 0
    longest: int = 0
    """Length of the longest frame on the wire, in bytes."""
    types: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))
    """Number of frames by packet type."""
    samples: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Number and time of the first frames of each packet type."""

    def count(self, *types: PacketType) -> int:
        """Return the number of frames of some types."""
        return int(sum(self.types[each] for each in types))

    def first(self, *types: PacketType) -> tuple[list[int], int | None]:
        """Return the numbers of the first frames of some types, and the time of the first."""
        frames = sorted(each for kind in types for each in self.samples.get(kind, ()))
        return [number for number, _ in frames], frames[0][1] if frames else None


class Traffic:
    """Counter of the frames between all pairs of hosts, batch by batch."""

    def __init__(self) -> None:
        self.directions: dict[tuple[int, int], HostDirection] = {}
        """By source and destination."""
        self.forgotten = 0
        """Number of frames between pairs beyond the first :data:`PAIRS`."""

    def observe(self, decoded: DecodedBatch) -> None:
        """Process a batch."""
        keys = decoded.hosts.keys
        assignment, batch = decoded.assignment, decoded.batch
        # Frames without a type count as type 0, which no packet has.
        types = np.maximum(decoded.columns.packet_type, 0)
        length = decoded.located.wire_length
        for source, destination, members in pairs_of(assignment.source, assignment.destination):
            key = keys[source], keys[destination]
            direction = self.directions.get(key)
            if direction is None:
                if len(self.directions) >= PAIRS:
                    self.forgotten += len(members)
                    continue
                first = int(members[0])
                direction = HostDirection(*key, int(batch.timestamp_ns[first]), int(batch.number[first]))
                self.directions[key] = direction
            mine = types[members]
            counts = np.bincount(mine, minlength=256)
            for kind in np.flatnonzero(counts).tolist():
                samples = direction.samples.setdefault(kind, [])
                if len(samples) < FIRST_KEPT:
                    at = members[np.flatnonzero(mine == kind)[: FIRST_KEPT - len(samples)]]
                    samples += zip(batch.number[at].tolist(), batch.timestamp_ns[at].tolist(), strict=True)
            direction.types += counts
            direction.frames += len(members)
            direction.longest = max(direction.longest, int(length[members].max()))
            direction.last_ns = max(direction.last_ns, int(batch.timestamp_ns[members[-1]]))
            direction.last_frame = int(batch.number[members[-1]])

    def direction(self, source: int, destination: int) -> HostDirection | None:
        """Return the traffic from one host to another, or None."""
        return self.directions.get((source, destination))

    def sent_by(self, source: int) -> Iterator[HostDirection]:
        """Yield all traffic sent by a host."""
        return (direction for direction in self.directions.values() if direction.source == source)

    def hosts(self) -> dict[int, int]:
        """Return the number of frames sent by each host, by address."""
        frames: Counter[int] = Counter()
        for direction in self.directions.values():
            frames[direction.source] += direction.frames
        return frames

    def pairs(self) -> Iterator[tuple[HostDirection, HostDirection]]:
        """Yield the pairs of hosts that were seen in both directions, each once."""
        for (source, destination), direction in self.directions.items():
            back = self.directions.get((destination, source))
            if back is not None and source < destination:
                yield direction, back

    def one_way(self) -> Iterator[HostDirection]:
        """Yield traffic to hosts that were never seen sending back."""
        for (source, destination), direction in self.directions.items():
            if destination != _EVERYBODY and not is_group(destination) and (destination, source) not in self.directions:
                yield direction


def is_group(address: int) -> bool:
    """Return whether an address is multicast or broadcast; 0 stands for an unknown destination."""
    return bool(address >> 40 & 1) or address == 0


def pairs_of(source: NDArray[np.intp], destination: NDArray[np.intp]) -> Iterator[tuple[int, int, NDArray[np.intp]]]:
    """Yield each pair of codes with its places, ascending; arrays of shape (n,)."""
    for value, members in groups_of(pair_key(source, destination)):
        yield *pair_at(value), members


def pair_key(source: NDArray[np.intp], destination: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the codes of two hosts in one number, which leaves room for two endpoints; arrays of shape (n,)."""
    key: NDArray[np.int64] = source.astype(np.int64) << _HOST_BITS | destination
    return key


def pair_at(key: int) -> tuple[int, int]:
    """Return the codes of the two hosts in a :func:`pair_key`."""
    return key >> _HOST_BITS, key & (1 << _HOST_BITS) - 1
