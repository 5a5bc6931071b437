"""What is known of the live conversation: how recorded values are to be read in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mxwire.protocol.sequence import number
from mxwire.replay.stateful.comparing import How
from mxwire.replay.stateful.pair import Pair
from mxwire.replay.stateful.script import Script
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION
from mxwire.wire.packets import ConnectReply, ConnectRequest, Notify, Pull, Rndv

FIRST_INDEX = 1
_SESSIONS = 0xFFFF_FFFE

Region = tuple[int, int, int, int]
"""Our endpoint, theirs, and the recorded number and use counter of a region."""


@dataclass
class Conversation:
    """The two hosts now, against the two in the recording."""

    script: Script
    address: bytes
    """Our Ethernet address."""
    other: bytes
    """That of the live host."""
    rng: Random
    endpoints: Mapping[int, int] = field(default_factory=dict)
    """The live host's endpoints by the recorded ones, where they differ."""
    keys: Mapping[int, int] = field(default_factory=dict)
    """Keys of the live host's endpoints by the recorded ones, where they differ."""

    pairs: dict[tuple[int, int], Pair] = field(default_factory=dict)
    my_sessions: dict[int, int] = field(default_factory=dict)
    """Our sessions by the recorded ones."""
    present: dict[int, int] = field(default_factory=dict)
    """The session that each of our endpoints has now, as we have told it."""
    their_sessions: dict[int, int] = field(default_factory=dict)
    """Their sessions by the recorded ones, as they have told them."""
    their_regions: dict[Region, Rndv] = field(default_factory=dict)
    """Their live announcements of large messages, by the recorded region."""
    their_handles: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Handle and magic of their pulls by the recorded ones."""
    requests: dict[tuple[int, int, int, int], ConnectRequest] = field(default_factory=dict)
    """Their live connects, by our endpoint, theirs, the recorded session and number."""
    came: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Their live numbers by pair and recorded number, where they came with the recorded session."""
    their_index: int = NO_PEER_INDEX
    """Our place in their peer table, once they have told."""

    def __post_init__(self) -> None:
        """Find the index that the played host had for the other."""
        self.index = next(
            (
                int(each.frame.src_dst_peer_index)
                for each in self.script.records
                if each.ours and hasattr(each.frame, "src_dst_peer_index")
            ),
            FIRST_INDEX,
        )

    def pair(self, mine: int, theirs: int) -> Pair:
        """Two endpoints, by their recorded numbers."""
        return self.pairs.setdefault((mine, theirs), Pair(mine, theirs))

    def live_endpoint(self, recorded: int) -> int:
        """The number of a recorded endpoint of theirs."""
        return self.endpoints.get(recorded, recorded)

    def recorded_endpoint(self, live: int) -> int:
        """The recorded number of an endpoint of theirs."""
        return next((old for old, new in self.endpoints.items() if new == live), live)

    def my_session(self, recorded: int) -> int:
        """Our session for a recorded one: a new one in each replay, so that nobody takes us for who was here before."""
        if recorded not in self.my_sessions:
            self.my_sessions[recorded] = self.rng.randint(1, _SESSIONS)
        return self.my_sessions[recorded]

    def recorded_session(self, live: int) -> int | None:
        """The recorded session that one of ours stands for."""
        return next((old for old, new in self.my_sessions.items() if new == live), None)

    def their_session(self, recorded: int) -> int | None:
        """Their session for a recorded one; None where they have not told it."""
        return NO_SESSION if recorded == NO_SESSION else self.their_sessions.get(recorded)

    def connect_of(self, pair: Pair, request: ConnectRequest | ConnectReply) -> tuple[int, ...]:
        """What all repetitions of a connect of theirs have in common: its number begins anew with our session."""
        present = self.present.get(pair.mine, 0)
        return pair.mine, pair.theirs, request.src_session_id, request.connect_seqnum, present

    def key(self, recorded: int) -> int:
        """The key for a recorded one."""
        return self.keys.get(recorded, recorded)

    def meaning(self, pair: Pair | None, how: How, value: Any) -> Any:
        """What a recorded value has to be now; None where nothing can be said."""
        if how is How.INDEX:
            return self.index if value != NO_PEER_INDEX else None
        if how is How.THEIRS:
            return self.live_endpoint(value)
        if how is How.SESSION:
            return NO_SESSION if value == NO_SESSION else self.my_sessions.get(value)
        if how is How.KEY:
            return self.key(value)
        if how is How.NUMBER:
            if not number(value) or pair is None:
                return value
            return pair.live_number(value)
        return value


def region_of(frame: Pull | Rndv | Notify, mine: int, theirs: int) -> Region:
    """The region that a frame is about."""
    return mine, theirs, int(frame.pulled_rdma_id), int(frame.pulled_rdma_seqnum)
