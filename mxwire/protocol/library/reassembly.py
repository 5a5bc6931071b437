"""Mediums put together again from their fragments (behaviour, section 10)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mxwire.protocol.buffers import Segments
from mxwire.protocol.corridor import Arrival, Fragments
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.matching import Unexpected
    from mxwire.protocol.library.partner import Partner
    from mxwire.protocol.library.receiving import Receiving

FRAGMENTS_MAXIMUM: Final = 256
"""Values that ``frag_seqnum`` can have; a longer message cannot be meant (R-MED-03)."""


class ReassemblyState(StrEnum):
    """Whether all of a medium is there."""

    INCOMPLETE = "incomplete"
    COMPLETE = "complete"
    FAILED = "failed"


class ReassemblyEvent(StrEnum):
    """What can happen to it."""

    FRAGMENT = "fragment"
    LAST_FRAGMENT = "last fragment"
    RESET = "partner reset"


REASSEMBLY: Final = Table(
    "medium",
    ReassemblyState.INCOMPLETE,
    (
        Row(ReassemblyState.INCOMPLETE, ReassemblyEvent.FRAGMENT, ReassemblyState.INCOMPLETE, "", ("R-MED-05",)),
        Row(
            ReassemblyState.INCOMPLETE,
            ReassemblyEvent.LAST_FRAGMENT,
            ReassemblyState.COMPLETE,
            "_complete",
            ("R-MED-04",),
        ),
        Row(ReassemblyState.INCOMPLETE, ReassemblyEvent.RESET, ReassemblyState.FAILED, "_failed", ("R-CLS-05",)),
    ),
)


class Reassembly(Machine):
    """One medium that is arriving."""

    __slots__ = ("_received", "_seen", "length", "match_info", "memory", "partner", "receive", "sequence", "unexpected")

    table = REASSEMBLY

    def __init__(self, partner: Partner, sequence: int, match_info: int, length: int) -> None:
        super().__init__()
        self.partner = partner
        self.sequence = sequence
        self.match_info = match_info
        self.length = length
        """Length of the whole message in bytes."""
        self.memory: Segments | None = None
        """Where the data goes."""
        self.receive: Receiving | None = None
        """The receive that the message belongs to, if it has been matched."""
        self.unexpected: Unexpected | None = None
        self._seen = 0
        self._received = 0

    def buffer_it(self) -> None:
        """Store the data in memory of our own, until a receive is posted (R-MAT-05)."""
        self.memory = Segments(bytearray(self.length), writable=True)

    def add(self, arrival: Arrival | Fragments) -> None:
        """Take fragments; those that are there already are ignored (R-MED-03)."""
        if isinstance(arrival, Fragments):
            buffer = arrival.buffer
            for number, start, length in zip(arrival.numbers, arrival.starts, arrival.lengths, strict=True):
                if self.state is not ReassemblyState.INCOMPLETE:
                    arrival.surplus = True
                    return
                self._fragment(arrival.frame, number, buffer[start : start + length])
        else:
            frame = arrival.frame
            self._fragment(frame, frame.frag_seqnum, np.frombuffer(frame.data, np.uint8))

    def _fragment(self, frame: Any, number: int, data: Any) -> None:
        """Any number will do, and no bytes may be all there is (R-MEA-13)."""
        bit = 1 << number
        if self._seen & bit:
            return
        self._seen |= bit
        self._received += len(data)
        if self.memory is not None:
            self.memory.put(self._place(frame, number), data)
        last = self._received == self.length
        self.fire(ReassemblyEvent.LAST_FRAGMENT if last else ReassemblyEvent.FRAGMENT)

    def _place(self, frame: Any, number: int) -> int:
        """Where a fragment belongs in the message, in bytes (R-MED-02)."""
        endpoint = self.partner.endpoint
        if frame.frag_pipeline is None or endpoint.profile.pipeline_ignored:
            return number * endpoint.card.dialect.fragment_payload
        place: int = number << frame.frag_pipeline
        return place

    def _complete(self) -> None:
        del self.partner.incomplete[self.sequence]
        if self.receive is not None:
            self.receive.filled()

    def fail(self, status: Status) -> None:
        """The partner was reset: what is missing will not come."""
        self.fire(ReassemblyEvent.RESET, status)

    def _failed(self, status: Status) -> None:
        if self.receive is not None:
            self.receive.abandoned(status)

    def hand_over(self, receive: Receiving) -> None:
        """A receive takes the message that was unexpected so far, complete or not."""
        data = self.memory
        self.memory = receive.memory
        self.receive = receive
        if data is not None:
            receive.memory.put(0, np.frombuffer(data.copy(), np.uint8))
        if self.state is ReassemblyState.COMPLETE:
            receive.filled()
