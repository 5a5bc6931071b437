"""Counts messages, not frames: fragments and retransmissions of one message are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.checks import Reason
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import Block
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.text import SEQUENCE_MASK, SESSION_NUMBER_SHIFT

KINDS: Final = {"tiny": "length", "small": "length", "medium": "length", "rndv": "msg_length"}
"""The layouts that carry or announce a message, and the field that says how long it is."""

SIZE_CLASSES: Final = (
    ("0", 0),
    ("1..32", 32),
    ("33..128", 128),
    ("129..4096", 4096),
    ("4097..32768", 32768),
    ("32769..1048576", 1 << 20),
    ("over 1048576", 1 << 32),
)
"""Names of the size classes and their largest length in bytes; the first four bounds are the protocol's own."""

_HALF: Final = (SEQUENCE_MASK + 1) // 2
WINDOW: Final = 512
"""Numbers of a direction that are remembered: twice the receiver's early window of 255 (rule R-ORD-03)."""
_WINDOW_MASK: Final = (1 << WINDOW) - 1
FRAGMENTED: Final = 64
"""Fragmented messages of a direction whose fragments are remembered."""
DIRECTIONS: Final = 1 << 15
"""Directions that are remembered; the longest unused ones are forgotten first."""

_SESSIONS: Final = {"connect_request": "src_session_id", "connect_reply": "target_session_id"}
"""The packets that tell a sender's own session, and where."""


def size_class(length: int) -> str:
    """The name of the class that a length in bytes falls in."""
    return next(name for name, largest in SIZE_CLASSES if length <= largest)


@dataclass
class _Direction:
    """The sequence numbers seen lately from one sender to one receiver, counted on beyond 14 bits."""

    highest: int
    window: int = 0
    """Bit i: number ``highest`` - i was seen."""
    fragments: dict[int, int] = field(default_factory=dict)
    """For each of the last fragmented messages the fragments seen, as bits."""

    def see(self, number: int, fragment: int | None) -> tuple[bool, bool]:
        """Note a frame; returns whether its message is new and whether the frame is."""
        low = number & SEQUENCE_MASK
        ahead = (low - self.highest + _HALF) % (SEQUENCE_MASK + 1) - _HALF
        number = self.highest + ahead
        if ahead > 0:
            self.window = self.window << ahead & _WINDOW_MASK if ahead < WINDOW else 0
            self.highest = number
        back = self.highest - number
        if back >= WINDOW:
            return False, False
        known = bool(self.window >> back & 1)
        self.window |= 1 << back
        if fragment is None:
            return not known, not known
        return not known, self._see_fragment(number, fragment, known)

    def _see_fragment(self, number: int, fragment: int, known: bool) -> bool:
        if known and number not in self.fragments:
            return False
        before = self.fragments.get(number, 0)
        self.fragments[number] = before | 1 << fragment
        if len(self.fragments) > FRAGMENTED:
            del self.fragments[min(self.fragments)]
        return not before >> fragment & 1


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A frame that carries a message, or a connect that tells its sender's session."""

    place: int
    kind: str
    sender: int
    """The sending endpoint: its host's number and its own, in one."""
    direction: int = 0
    number: int = 0
    fragment: int | None = None
    value: int = 0
    """The length of the message, or the session."""


class MessageCounter:
    """Counts the messages of a capture by kind and size class, batch by batch."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        """Messages by kind (layout name) and size class."""
        self.bytes: Counter[tuple[str, str]] = Counter()
        """Their announced lengths added up."""
        self.repeated: Counter[str] = Counter()
        """Frames that repeat a message already seen, by kind: retransmissions and duplicates."""
        self._directions: dict[tuple[int, int | None, int], _Direction] = {}
        self._own_sessions: dict[int, int] = {}
        self._hosts = CodeTable()
        self._ends = CodeTable()
        self._both = CodeTable()

    def observe(self, decoded: DecodedBatch) -> None:
        """Take the messages of a batch into account."""
        found: list[_Sighting] = []
        for block in decoded.columns.of(*KINDS, *_SESSIONS):
            good = np.flatnonzero(decoded.columns.reason[block.place] == Reason.NONE)
            found += self._sightings(decoded, block, good)
        for sighting in sorted(found, key=lambda each: each.place):
            if sighting.kind in _SESSIONS:
                self._own_sessions[sighting.sender] = sighting.value
            else:
                self._count(sighting)

    def _sightings(self, decoded: DecodedBatch, block: Block, good: NDArray[np.intp]) -> Iterator[_Sighting]:
        """What the frames of a block tell."""
        name = block.layout.name
        sender = decoded.assignment.source[block.place] << 8 | block["src_endpoint"]
        place, sender = block.place[good].tolist(), sender[good].tolist()
        if name in _SESSIONS:
            for each in zip(place, sender, block[_SESSIONS[name]][good].tolist(), strict=True):
                yield _Sighting(each[0], name, each[1], value=each[2])
            return
        nothing = [None] * len(good)
        fragments = block["frag_seqnum"][good].tolist() if name == "medium" else nothing
        direction, number = self._direction(decoded, block)[good].tolist(), block["lib_seqnum"][good].tolist()
        lengths = block[KINDS[name]][good].tolist()
        for row in zip(place, sender, direction, number, fragments, lengths, strict=True):
            yield _Sighting(row[0], name, *row[1:])

    def _direction(self, decoded: DecodedBatch, block: Block) -> NDArray[np.intp]:
        """A small number for each sender, receiver, their endpoints and the receiver's session."""
        source = decoded.assignment.source[block.place].astype(np.uint64)
        destination = decoded.assignment.destination[block.place].astype(np.uint64)
        endpoints = block["src_endpoint"].astype(np.uint64) << np.uint64(8) | block["dst_endpoint"]
        hosts = self._hosts.codes(source << np.uint64(32) | destination).astype(np.uint64)
        ends = self._ends.codes(endpoints << np.uint64(32) | block["session"]).astype(np.uint64)
        return self._both.codes(hosts << np.uint64(32) | ends)

    def _count(self, sighting: _Sighting) -> None:
        # A sender that opens its endpoint anew, or whose peer has given it up, numbers afresh.
        own = self._own_sessions.get(sighting.sender)
        key = sighting.direction, own, sighting.number >> SESSION_NUMBER_SHIFT
        known = self._directions.pop(key, None) or _Direction(sighting.number & SEQUENCE_MASK)
        self._directions[key] = known
        if len(self._directions) > DIRECTIONS:
            del self._directions[next(iter(self._directions))]
        new_message, new_frame = known.see(sighting.number, sighting.fragment)
        if new_message:
            kind = sighting.kind, size_class(sighting.value)
            self.messages[kind] += 1
            self.bytes[kind] += sighting.value
        if not new_frame:
            self.repeated[sighting.kind] += 1
