"""Periods in which the library of an endpoint was silent, and the frames that the card of its host sent at the same
time.

The library runs only while the application calls it (R-GEN-01): it sends connects, numbered messages and
acknowledgements. The card answers PULLs, retransmits its own PULLs and sends nacks without the library.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.diagnosis.traffic import pair_at, pair_key, pairs_of
from mxwire.analysis.first_keys import FirstKeys
from mxwire.wire.codes import groups_of
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import PacketType

WAYS: Final = 1 << 14
SILENCES_KEPT: Final = 64
SILENCE_NS: Final = 400_000_000
"""Minimum length of a remembered silence: about a resend delay."""
BUCKET_NS: Final = 250_000_000
BUCKETS_KEPT: Final = 4096
"""Maximum number of periods with frames from one host's card to another host: about 1000 s."""
BUCKETS_OF_ALL: Final = 1 << 19
"""Maximum number of periods for all directions together; each direction keeps at least some."""
_FEWEST: Final = 32
_LIBRARY: Final = ("connect_request", "connect_reply", "tiny", "small", "medium", "rndv", "notify", "truc")
_CARD: Final = (PacketType.PULL_REPLY, PacketType.PULL, PacketType.NACK_MCP, PacketType.NACK_LIB, PacketType.HOST_REPLY)
_IS_CARD: Final = np.isin(np.arange(256), _CARD)


class EndpointRoute(NamedTuple):
    """The way from one endpoint to another: address and number of both."""

    source: int
    source_endpoint: int
    destination: int
    destination_endpoint: int

    @property
    def back(self) -> EndpointRoute:
        """The opposite direction."""
        return EndpointRoute(self.destination, self.destination_endpoint, self.source, self.source_endpoint)


class _Silences:
    __slots__ = ("first_ns", "kept", "last_ns")

    def __init__(self, time_ns: int) -> None:
        self.first_ns = self.last_ns = time_ns
        self.kept: list[tuple[int, int]] = []


class Libraries:
    """Recorder of the silences of every endpoint towards every partner."""

    def __init__(self) -> None:
        self._directions: FirstKeys[EndpointRoute, _Silences] = FirstKeys(WAYS)
        self._cards: FirstKeys[tuple[int, int], dict[int, int]] = FirstKeys(WAYS, dict)

    def observe(self, decoded: DecodedBatch) -> None:
        """Process a batch."""
        self._observe_cards(decoded)
        blocks = [block for block in decoded.columns.blocks if block.layout.name in _LIBRARY]
        if not blocks:
            return
        places = np.concatenate([block.place for block in blocks])
        key = np.concatenate([direction_key(decoded, block, np.arange(len(block.place))) for block in blocks])
        order = np.argsort(places, kind="stable")
        times = decoded.batch.timestamp_ns[places[order]]
        for value, members in groups_of(key[order]):
            self._speaks(direction_at(value, decoded.hosts.keys), times[members])

    def _speaks(self, direction: EndpointRoute, times: NDArray[np.int64]) -> None:
        known = self._directions.setdefault(direction, _Silences(int(times[0])))
        gaps = np.diff(times, prepend=known.last_ns)
        for at in np.flatnonzero(gaps > SILENCE_NS).tolist():
            end = int(times[at])
            known.kept.append((end - int(gaps[at]), end))
        while len(known.kept) > SILENCES_KEPT:
            # The latest explain messages that still end; of the others, the longest cost most.
            del known.kept[min(range(SILENCES_KEPT // 2), key=lambda at: known.kept[at][1] - known.kept[at][0])]
        known.last_ns = max(known.last_ns, int(times[-1]))

    def _observe_cards(self, decoded: DecodedBatch) -> None:
        types = np.maximum(decoded.columns.packet_type, 0)
        which = np.flatnonzero(_IS_CARD[types])
        if not len(which):
            return
        keys = decoded.hosts.keys
        assignment = decoded.assignment
        bucket = decoded.batch.timestamp_ns[which] // BUCKET_NS
        for source, destination, members in pairs_of(assignment.source[which], assignment.destination[which]):
            counts = self._cards[keys[source], keys[destination]]
            values, numbers = np.unique(bucket[members], return_counts=True)
            for each, number in zip(values.tolist(), numbers.tolist(), strict=True):
                counts[each] = counts.get(each, 0) + number
            most = max(_FEWEST, min(BUCKETS_KEPT, BUCKETS_OF_ALL // len(self._cards)))
            while len(counts) > most:
                # The oldest one, since periods are entered in order of time.
                del counts[next(iter(counts))]

    def spoke(self, direction: EndpointRoute) -> bool:
        """Return whether the library of an endpoint ever sent a frame to another endpoint."""
        return direction in self._directions

    def last_ns(self, direction: EndpointRoute) -> int | None:
        """Return the time of the last frame from the library of one endpoint to another endpoint; None if there is
        none.
        """
        known = self._directions.get(direction)
        return None if known is None else known.last_ns

    def silence(self, direction: EndpointRoute, since_ns: int, until_ns: int) -> tuple[int, int | None] | None:
        """Return start and end (None if open) of the silence that covers a period; None if the library sent frames."""
        known = self._directions.get(direction)
        if known is None:
            return since_ns, None
        if known.last_ns <= since_ns:
            return known.last_ns, None
        if known.first_ns >= until_ns:
            return since_ns, known.first_ns
        for start, end in reversed(known.kept):
            if start <= since_ns and end >= until_ns:
                return start, end
        return None

    def card_frames(self, source: int, destination: int, since_ns: int, until_ns: int) -> int:
        """Return the number of frames from one card to another host in a period, to a quarter of a second."""
        counts = self._cards.get((source, destination), {})
        # Only whole buckets: frames of those at the edges may lie outside of the period.
        first, last = since_ns // BUCKET_NS + 1, until_ns // BUCKET_NS
        return sum(number for bucket, number in counts.items() if first <= bucket < last)


def direction_key(
    decoded: DecodedBatch, block: LayoutBlock, which: NDArray[np.intp], *, back: bool = False
) -> NDArray[np.int64]:
    """Return the source and destination endpoints of the frames at ``which`` of a block, shape (n,): one number per
    frame, for :func:`direction_at`. With ``back`` the two are swapped, as in an answer."""
    place = block.place[which]
    hosts = decoded.assignment.source[place], decoded.assignment.destination[place]
    ends = block["src_endpoint"][which].astype(np.int64), block["dst_endpoint"][which].astype(np.int64)
    (one, other), (here, there) = (hosts[::-1], ends[::-1]) if back else (hosts, ends)
    return pair_key(one, other) << 16 | here << 8 | there


def direction_at(key: int, addresses: list[int]) -> EndpointRoute:
    """Return the endpoints of a :func:`direction_key`; ``addresses`` are the hosts' Ethernet addresses by code."""
    one, other = pair_at(key >> 16)
    return EndpointRoute(addresses[one], key >> 8 & 0xFF, addresses[other], key & 0xFF)
