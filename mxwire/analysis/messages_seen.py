"""Counts messages, not frames: fragments and retransmissions of one message are one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.checks import Reason
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import Block
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.text import SEQUENCE_MASK

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
_REMEMBERED: Final = 4 * _HALF
"""Numbers of a direction that are remembered before the oldest are forgotten."""


def size_class(length: int) -> str:
    """The name of the class that a length in bytes falls in."""
    return next(name for name, largest in SIZE_CLASSES if length <= largest)


@dataclass
class _Direction:
    """The sequence numbers seen of one sender towards one session of one endpoint, counted on beyond 14 bits."""

    highest: int
    fragments: dict[int, int] = field(default_factory=dict)
    """For each number the fragments seen, as bits; messages without fragments have fragment 0."""

    def see(self, number: int, fragment: int) -> tuple[bool, bool]:
        """Note a frame; returns whether its message is new and whether the frame is."""
        low = number & SEQUENCE_MASK
        ahead = (low - self.highest + _HALF) % (SEQUENCE_MASK + 1) - _HALF
        unwrapped = self.highest + ahead
        known = self.fragments.get(unwrapped, 0)
        self.fragments[unwrapped] = known | 1 << fragment
        self.highest = max(self.highest, unwrapped)
        if len(self.fragments) > _REMEMBERED:
            oldest = self.highest - _HALF
            self.fragments = {each: bits for each, bits in self.fragments.items() if each > oldest}
        return not known, not known >> fragment & 1


class MessageCounter:
    """Counts the messages of a capture by kind and size class, batch by batch."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        """Messages by kind (layout name) and size class."""
        self.bytes: Counter[tuple[str, str]] = Counter()
        """Their announced lengths added up."""
        self.repeated: Counter[str] = Counter()
        """Frames that repeat a message already seen, by kind: retransmissions and duplicates."""
        self._directions: dict[int, _Direction] = {}
        self._hosts = CodeTable()
        self._ends = CodeTable()
        self._both = CodeTable()

    def observe(self, decoded: DecodedBatch) -> None:
        """Take the messages of a batch into account."""
        found: list[tuple[int, str, int, int, int, int]] = []
        for block in decoded.columns.of(*KINDS):
            good = decoded.columns.reason[block.place] == Reason.NONE
            found += self._of_block(decoded, block, np.flatnonzero(good))
        for _, kind, direction, number, fragment, length in sorted(found):
            self._count(kind, direction, number, fragment, length)

    def _of_block(
        self, decoded: DecodedBatch, block: Block, good: NDArray[np.intp]
    ) -> list[tuple[int, str, int, int, int, int]]:
        """Place, kind, direction, number, fragment and length of each frame of a block."""
        name = block.layout.name
        fragments = block["frag_seqnum"][good] if name == "medium" else np.zeros(len(good), np.intp)
        columns = (
            block.place[good],
            self._direction(decoded, block)[good],
            block["lib_seqnum"][good],
            fragments,
            block[KINDS[name]][good],
        )
        return [
            (place, name, direction, number, fragment, length)
            for place, direction, number, fragment, length in zip(*(each.tolist() for each in columns), strict=True)
        ]

    def _direction(self, decoded: DecodedBatch, block: Block) -> NDArray[np.intp]:
        """A small number for each sender, receiver, their endpoints and the session."""
        source = decoded.assignment.source[block.place].astype(np.uint64)
        destination = decoded.assignment.destination[block.place].astype(np.uint64)
        endpoints = block["src_endpoint"].astype(np.uint64) << np.uint64(8) | block["dst_endpoint"]
        hosts = self._hosts.codes(source << np.uint64(32) | destination).astype(np.uint64)
        ends = self._ends.codes(endpoints << np.uint64(32) | block["session"]).astype(np.uint64)
        return self._both.codes(hosts << np.uint64(32) | ends)

    def _count(self, kind: str, direction: int, number: int, fragment: int, length: int) -> None:
        known = self._directions.get(direction)
        if known is None:
            known = self._directions[direction] = _Direction(number & SEQUENCE_MASK)
        new_message, new_frame = known.see(number, fragment)
        if new_message:
            key = kind, size_class(length)
            self.messages[key] += 1
            self.bytes[key] += length
        if not new_frame:
            self.repeated[kind] += 1
