"""State of the live conversation, and the translation of recorded values into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mxwire.protocol.library.reliability import number
from mxwire.replay.stateful.comparison import FieldRelation
from mxwire.replay.stateful.pair import EndpointPair
from mxwire.replay.stateful.script import ReplayScript
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION
from mxwire.wire.packets import ConnectReply, ConnectRequest, Notify, Pull, Rndv

FIRST_INDEX = 1
_SESSIONS = 0xFFFF_FFFE

Region = tuple[int, int, int, int]
"""Endpoint of the played host, endpoint of the live host, and the recorded number and use counter of a region."""


@dataclass
class LiveConversation:
    """The two hosts now, mapped from the two in the recording. "Our" is the played host's, "their" the live host's."""

    script: ReplayScript
    address: bytes
    """Our Ethernet address."""
    other: bytes
    """Ethernet address of the live host."""
    rng: Random
    endpoints: Mapping[int, int] = field(default_factory=dict)
    """Endpoints of the live host by the recorded ones, where they differ."""
    keys: Mapping[int, int] = field(default_factory=dict)
    """Keys of the live host's endpoints by the recorded ones, where they differ."""

    pairs: dict[tuple[int, int], EndpointPair] = field(default_factory=dict)
    my_sessions: dict[int, int] = field(default_factory=dict)
    """Our sessions by the recorded ones."""
    present: dict[int, int] = field(default_factory=dict)
    """The present session of each of our endpoints, as sent to the live host."""
    their_sessions: dict[int, int] = field(default_factory=dict)
    """Their sessions by the recorded ones, as received."""
    their_regions: dict[Region, Rndv] = field(default_factory=dict)
    """Their announcements of large messages, by the recorded region."""
    their_handles: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Handles and magics of their pulls by the recorded ones."""
    requests: dict[tuple[int, int, int, int], ConnectRequest] = field(default_factory=dict)
    """Their connects, by the played endpoint, the live one, and the recorded session and number."""
    came: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Their sequence numbers by pair and recorded number, for messages with the recorded session."""
    their_index: int = NO_PEER_INDEX
    """Our index in their peer table, once received."""

    def __post_init__(self) -> None:
        """Find the index that the played host had assigned to the other."""
        self.index = next(
            (
                int(each.frame.src_dst_peer_index)
                for each in self.script.records
                if each.ours and hasattr(each.frame, "src_dst_peer_index")
            ),
            FIRST_INDEX,
        )

    def pair(self, mine: int, theirs: int) -> EndpointPair:
        """Return the state of two endpoints, by their recorded numbers."""
        return self.pairs.setdefault((mine, theirs), EndpointPair(mine, theirs))

    def live_endpoint(self, recorded: int) -> int:
        """Return the number of a recorded endpoint of the live host."""
        return self.endpoints.get(recorded, recorded)

    def recorded_endpoint(self, live: int) -> int:
        """Return the recorded number of an endpoint of the live host."""
        return next((old for old, new in self.endpoints.items() if new == live), live)

    def my_session(self, recorded: int) -> int:
        """Return our session for a recorded one; random per replay, lest hosts confuse it with an earlier one."""
        if recorded not in self.my_sessions:
            self.my_sessions[recorded] = self.rng.randint(1, _SESSIONS)
        return self.my_sessions[recorded]

    def recorded_session(self, live: int) -> int | None:
        """Return the recorded session for a present one of the played host."""
        return next((old for old, new in self.my_sessions.items() if new == live), None)

    def their_session(self, recorded: int) -> int | None:
        """Return their session for a recorded one; None if it has not been received."""
        return NO_SESSION if recorded == NO_SESSION else self.their_sessions.get(recorded)

    def connect_of(self, pair: EndpointPair, request: ConnectRequest | ConnectReply) -> tuple[int, ...]:
        """Return the properties shared by repetitions of a connect; its number restarts with our session."""
        present = self.present.get(pair.mine, 0)
        return pair.mine, pair.theirs, request.src_session_id, request.connect_seqnum, present

    def key(self, recorded: int) -> int:
        """Return the key for a recorded one."""
        return self.keys.get(recorded, recorded)

    def meaning(self, pair: EndpointPair | None, how: FieldRelation, value: Any) -> Any:
        """Translate a recorded value to the one required now; None if it cannot be determined."""
        if how is FieldRelation.INDEX:
            return self.index if value != NO_PEER_INDEX else None
        if how is FieldRelation.THEIRS:
            return self.live_endpoint(value)
        if how is FieldRelation.SESSION:
            return NO_SESSION if value == NO_SESSION else self.my_sessions.get(value)
        if how is FieldRelation.KEY:
            return self.key(value)
        if how is FieldRelation.NUMBER:
            if not number(value) or pair is None:
                return value
            return pair.live_number(value)
        return value


def region_of(frame: Pull | Rndv | Notify, mine: int, theirs: int) -> Region:
    """Return the region that a frame refers to."""
    return mine, theirs, int(frame.pulled_rdma_id), int(frame.pulled_rdma_seqnum)
