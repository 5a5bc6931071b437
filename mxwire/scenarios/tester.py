"""Tester: one endpoint that the scenario plays, with the state of a well-behaved implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mxwire.scenarios.expression import Value
from mxwire.wire import numbers, packets
from mxwire.wire.dialect import Dialect

FIRST_HANDLE = 0x23


def after(number: int, steps: int = 1) -> int:
    """Return the sequence number ``steps`` after ``number``, with the same session number (R-SEQ-01)."""
    return (number & numbers.SESSION_NUMBER_MASK) | ((number + steps) & numbers.NUMBER_MASK)


@dataclass(slots=True)
class TestedEndpoint:
    """The endpoint under test, as known before the first frame."""

    mac: bytes
    endpoint: int
    key: int
    closed: int
    """Number of an endpoint that is not open."""
    beyond: int = 32
    """First endpoint number beyond the host's range."""
    session: int | None = None
    """Session id of the endpoint, once any tester has learned it by connecting."""
    magic: int = numbers.HOST_QUERY_MAGIC
    """Magic of the host's last query; until one is received, that of a driver that was just loaded (R-HOST-03)."""


@dataclass(slots=True)
class Station:
    """A tester's host: the state shared by its endpoints."""

    mac: bytes
    place: int
    """Index of the host under test in its peer table."""
    name: bytes = b"tester:0"
    index: int = numbers.NO_PEER_INDEX
    """Its own index in the table of the host under test, as learned from frames."""
    query: packets.HostQuery | None = None
    """The last query received."""


@dataclass(slots=True)
class Tester:
    """An endpoint of the tester, with its side of the conversation."""

    name: str
    station: Station
    endpoint: int
    my_session: int
    target: TestedEndpoint
    dialect: Dialect
    session: int = numbers.NO_SESSION
    """Session of the host's endpoint."""
    next: int = 1
    """Sequence number of the next message."""
    expected: int = 1
    """Sequence number expected next from the host."""
    connects: int = 0
    libacks: int = 0
    region: int = 23
    """Use counter of the tester's region."""
    announced: int = 0
    """Length of the message in the tester's last RNDV."""
    content: bytes | None = None
    request: packets.ConnectRequest | None = None
    """The last connect request of the host."""
    rndv: packets.Rndv | None = None
    """The last RNDV of the host."""
    pull: packets.Pull | None = None
    """The last PULL of the host."""
    numbered: packets.Frame | None = None
    """The last numbered frame of the host."""
    medium: packets.Medium | None = None
    """The last fragment sent by the tester."""
    fragments: dict[int, dict[int, int]] = field(default_factory=dict)
    """Received fragments of the host's messages: lengths, by sequence number and fragment number."""
    whole: set[int] = field(default_factory=set)
    """Complete messages received ahead of the expected one."""

    def learn(self, frame: packets.Frame) -> None:
        """Update the state from a frame of the host to this endpoint."""
        if isinstance(frame, packets.HostQuery | packets.HostReply | packets.ConnectRequest | packets.ConnectReply):
            # The only packets with the index that the host has given the tester (W-5).
            self.station.index = frame.src_dst_peer_index
        match frame:
            case packets.HostQuery():
                self.station.query = frame
                self.target.magic = frame.magic
            case packets.ConnectReply(connect_status_code=0):
                # A repeated reply of the same session leaves the numbers alone (R-CON-05).
                if self.session != frame.target_session_id:
                    self.next = frame.target_recv_seqnum_start
                self.session = self.target.session = frame.target_session_id
            case packets.ConnectRequest():
                if self.session != frame.src_session_id:
                    self.next = frame.target_recv_seqnum_start
                    # A new session of the host begins at 1; the session number is the receiver's choice (R-CON-10,
                    # R-SEQ-03).
                    self.expected = (self.expected & numbers.SESSION_NUMBER_MASK) | 1
                self.session, self.request = frame.src_session_id, frame
                self.target.session = self.session
            case packets.Tiny() | packets.Small() | packets.Notify():
                self._arrived(frame, frame.lib_seqnum)
            case packets.Rndv():
                self.rndv = frame
                self._arrived(frame, frame.lib_seqnum)
            case packets.Medium():
                self.numbered = frame
                parts = self.fragments.setdefault(frame.lib_seqnum, {})
                parts[frame.frag_seqnum] = frame.frag_length
                # By length, not by count: the host chooses the size of its fragments.
                if sum(parts.values()) >= frame.length:
                    self._arrived(frame, frame.lib_seqnum)
            case packets.Pull():
                self.pull = frame

    def _arrived(self, frame: packets.Frame, number: int) -> None:
        self.numbered = frame
        # Half of the numbers are ahead (R-SEQ-02); those behind belong to retransmissions.
        if (number - self.expected) & numbers.NUMBER_MASK < 0x2000:
            self.whole.add(number)
        while self.expected in self.whole:
            self.whole.remove(self.expected)
            self.expected = after(self.expected)

    def sent(self, frame: packets.Frame, given: Mapping[str, object]) -> None:
        """Update the state from a frame of this tester, except for numbers that the scenario itself has given."""
        match frame:
            case packets.ConnectRequest() | packets.ConnectReply():
                self.expected = frame.target_recv_seqnum_start
                if isinstance(frame, packets.ConnectReply):
                    self.my_session = self.my_session if frame.connect_status_code else frame.target_session_id
                else:
                    self.my_session = frame.src_session_id
                    self.connects = (frame.connect_seqnum + 1) & 0xFF
            case packets.Medium():
                # The following fragments carry the number of the first.
                if frame.frag_seqnum == 0 and "lib_seqnum" not in given:
                    self.next = after(self.next)
                self.medium = frame
            case packets.Tiny() | packets.Small() | packets.Notify() if "lib_seqnum" not in given:
                self.next = after(self.next)
            case packets.Rndv():
                self.announced = frame.msg_length
                if "lib_seqnum" not in given:
                    self.next = after(self.next)
                if "pulled_rdma_seqnum" not in given and "lib_seqnum" not in given:
                    # Each message has another use of the region, so that a late pull of the last one is recognised; one
                    # byte on the wire.
                    self.region = (self.region + 1) & 0xFF

    def word(self, name: str) -> Value | None:
        """Return the value of a word of the language, or None if the tester does not know it yet."""
        target, dialect = self.target, self.dialect
        learnt: dict[str, Value | None] = {
            "session": self.target.session if self.session == numbers.NO_SESSION else self.session,
            "index": None if self.station.index == numbers.NO_PEER_INDEX else self.station.index,
        }
        if name in learnt:
            return learnt[name]
        known: dict[str, Value] = {
            "my_session": self.my_session,
            "next": self.next,
            "expected": self.expected,
            "my_index": self.station.place,
            "endpoint": target.endpoint,
            "my_endpoint": self.endpoint,
            "closed": target.closed,
            "beyond": target.beyond,
            "key": target.key,
            "host_mac": target.mac,
            "my_mac": self.station.mac,
            "broadcast": b"\xff" * 6,
            "magic": numbers.HOST_QUERY_MAGIC,
            "F": dialect.fragment_payload,
            "P": dialect.reply_payload,
            "B": dialect.frames_per_block,
            "M": dialect.frame_limit,
            "SLOT": dialect.receive_slot,
            "BLOCK": dialect.block_length,
            "HANDLE": FIRST_HANDLE,
        }
        return known[name]

    def is_for(self, frame: packets.Frame) -> bool:
        """Return whether a frame of the host is addressed to this endpoint, or to no particular one of its host."""
        if frame.dst_mac != self.station.mac:
            return False
        number = getattr(frame, "dst_endpoint", None)
        return number is None or number == self.endpoint
