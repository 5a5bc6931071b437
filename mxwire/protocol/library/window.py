"""The receive window: what becomes of a numbered packet (behaviour, section 8)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mxwire.protocol.corridor import Arrival, Fragments
from mxwire.protocol.library import incoming
from mxwire.protocol.library.acks import AckEvent
from mxwire.protocol.profile import Defect
from mxwire.protocol.sequence import JUST_BEFORE, distance, successor
from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_MASK
from mxwire.wire.packets import Medium

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import Partner

_FRAGMENTS_KEPT: Final = 256
"""Most early fragments of one message: there are no more numbers for them."""
_PACKET_SIZE: Final = 64
"""Bytes that an early packet takes at least."""


class Verdict(StrEnum):
    """Where a number lies (R-ORD-03)."""

    NEXT = "next"
    BEHIND = "behind"
    EARLY = "early"
    OBSOLETE = "obsolete"
    JUST_BEFORE = "just before"


class Window:
    """The receive window of one partner, and the early packets that it keeps: once and in order (R-ORD-05)."""

    __slots__ = ("_bytes", "early", "partner")

    def __init__(self, partner: Partner) -> None:
        self.partner = partner
        self.early: dict[int, list[Arrival | Fragments]] = {}
        """Early packets by number, in order of arrival."""
        self._bytes = 0

    def clear(self) -> None:
        """Throw the early packets away."""
        self.early.clear()
        self._hold(-self._bytes)

    def _hold(self, size: int) -> None:
        """Account for the memory of early packets."""
        self._bytes += size
        self.partner.endpoint.early_bytes += size

    def _release(self, number: int) -> list[Arrival | Fragments]:
        """Take out the early packets with a number."""
        kept = self.early.pop(number & NUMBER_MASK, [])
        self._hold(-sum(map(_size, kept)))
        return kept

    def arrive(self, arrival: Arrival | Fragments) -> None:
        """Take a numbered packet that the card has accepted (R-ORD-02, R-SEQ-07)."""
        partner = self.partner
        frame = arrival.frame
        if ((frame.lib_seqnum ^ partner.rx_done) | (frame.lib_piggyack ^ partner.tx_next)) & SESSION_NUMBER_MASK:
            # Another session number, of either direction.
            return
        partner.acknowledge(frame.lib_piggyack)
        self._place(arrival)

    def verdict(self, sequence: int) -> Verdict:
        """Where a number lies (R-ORD-03)."""
        partner = self.partner
        if sequence == partner.rx_next:
            return Verdict.NEXT
        ahead = distance(sequence, partner.rx_done)
        width = distance(partner.rx_next, partner.rx_done)
        if ahead < width:
            return Verdict.BEHIND
        if ahead <= width + partner.endpoint.profile.early_window:
            return Verdict.EARLY
        return Verdict.JUST_BEFORE if ahead == JUST_BEFORE else Verdict.OBSOLETE

    def _place(self, arrival: Arrival | Fragments) -> None:
        verdict = self.verdict(arrival.frame.lib_seqnum)
        if verdict is Verdict.NEXT:
            if self.early and type(arrival) is Fragments and len(arrival.numbers) > 1:
                # Early packets come right behind the first fragment, before the others (R-ORD-04).
                for each in arrival:
                    self._place(each)
                return
            if self._next(arrival) and self.early:
                self._drop_stale(arrival)
                self._drain()
        elif verdict is Verdict.BEHIND:
            self._behind(arrival)
        elif verdict is Verdict.EARLY:
            self._keep(arrival)
        if type(arrival) is Fragments and arrival.surplus:
            # For what it is when the message is complete, a fragment is a duplicate.
            verdict = self.verdict(arrival.frame.lib_seqnum)
        if verdict is Verdict.JUST_BEFORE:
            # The ack of what was received last may have been lost.
            self.partner.acks.fire(AckEvent.AT_ONCE)

    def _next(self, arrival: Arrival | Fragments) -> bool:
        """Handle the packet that is expected next; False where there is no memory: as if it had been lost.

        So is one that would take the last of the 2^14 numbers while a medium is incomplete: after it nobody could
        tell the oldest number from the newest (R-SEQ-02).
        """
        partner = self.partner
        if distance(partner.rx_next, partner.rx_done) == NUMBER_MASK or not incoming.handle(partner, arrival):
            return False
        partner.rx_next = successor(partner.rx_next)
        partner.advance()
        incoming.handled(partner, arrival)
        return True

    def _behind(self, arrival: Arrival | Fragments) -> None:
        """A further fragment of an incomplete medium, or a duplicate (R-MED-05); no ack is owed for the latter."""
        reassembly = self.partner.incomplete.get(arrival.frame.lib_seqnum)
        if reassembly is not None and isinstance(arrival.frame, Medium):
            reassembly.add(arrival)
            self.partner.advance()

    def _keep(self, arrival: Arrival | Fragments) -> None:
        """Keep an early packet; not acked, and duplicates are dropped. So is what there is no memory for."""
        endpoint, size = self.partner.endpoint, _size(arrival)
        if endpoint.early_bytes + size > endpoint.profile.early_bytes_maximum:
            return
        kept = self.early.setdefault(arrival.frame.lib_seqnum & NUMBER_MASK, [])
        if kept and not (isinstance(arrival.frame, Medium) and isinstance(kept[0].frame, Medium)):
            return
        if isinstance(arrival, Fragments):
            arrival.detach()
        if sum(map(_count, kept)) < _FRAGMENTS_KEPT and not _is_duplicate(arrival, kept):
            kept.append(arrival)
            self._hold(size)

    def _drop_stale(self, arrival: Arrival | Fragments) -> None:
        """Process what was early under the number that has just come again (R-ORD-04)."""
        epoch = self.partner.epoch
        for kept in self._release(arrival.frame.lib_seqnum):
            if self.partner.epoch == epoch:
                self._behind(kept)

    def _drain(self) -> None:
        """Process early packets whose turn has come; with D-5 one number only (R-ORD-04)."""
        one_only = self.partner.endpoint.profile.has(Defect.EARLY_DRAINED_BY_ONE)
        while self.early:
            kept = self._release(self.partner.rx_next)
            if not kept:
                return
            epoch = self.partner.epoch
            if not self._next(kept[0]):
                return
            for arrival in kept[1:]:
                if self.partner.epoch == epoch:
                    self._behind(arrival)
            if one_only:
                return


def _size(arrival: Any) -> int:
    """Bytes of memory that an early packet takes."""
    data = sum(arrival.lengths) if isinstance(arrival, Fragments) else len(getattr(arrival.frame, "data", b""))
    return _PACKET_SIZE + data


def _count(arrival: Arrival | Fragments) -> int:
    return len(arrival.numbers) if isinstance(arrival, Fragments) else 1


def _numbers(arrival: Any) -> list[int]:
    return arrival.numbers if isinstance(arrival, Fragments) else [arrival.frame.frag_seqnum]


def _is_duplicate(arrival: Arrival | Fragments, kept: list[Arrival | Fragments]) -> bool:
    """Whether all fragments of an early medium are there already."""
    if not kept:
        return False
    known = {number for each in kept for number in _numbers(each)}
    return known.issuperset(_numbers(arrival))
