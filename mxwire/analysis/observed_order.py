"""Verification of captures that have frames in another order than they passed.

A capture card with several queues, or a mirror of both directions of a link, may show an answer before its question.
Findings that depend on the order are therefore held back: if other frames show that the order of the capture is wrong,
such a finding is not evidence against the host and becomes a note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.verification import Verification
from mxwire.rules import Violation
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import PacketType

WITHIN_NS: Final = 1_000_000
"""Largest displacement of a frame in a capture, in nanoseconds."""
PROVEN: Final = 2
"""Frames in the wrong place that show that a capture's order cannot be trusted."""
HELD: Final = 1024
"""Findings held back at a time; further ones are reported unchanged."""
_NUMBERS: Final = 256
"""Numbers of replies, which then begin again."""

_MESSAGES: Final = (PacketType.TINY, PacketType.SMALL, PacketType.MEDIUM, PacketType.RNDV, PacketType.NOTIFY)
ORDERED: Final[dict[str, tuple[int, ...]]] = {
    "R-ACK-01": (),
    "R-CON-08": (PacketType.CONNECT,),
    "R-NAK-02": (*_MESSAGES, PacketType.CONNECT),
    "R-NOT-01": (),
    "R-PUL-02": (),
    "R-PUL-04": (PacketType.RNDV,),
    "R-PUL-13": (PacketType.PULL,),
}
"""Rules that are broken by an effect captured before its cause. Where packet types are given, the cause requests the
early frame and contains values that the sender of that frame could not guess: if it follows, the order is wrong."""
_UNSURE: Final = "but this capture has frames in the wrong order, so that it cannot be judged"


class OrderedVerification(Verification):
    """A verification that does not blame hosts for the order of a capture.

    Findings that depend on the order are reported at the end, or when they are older than ``patience_ns``, or when the
    order proves wrong; with ``disordered`` it is known to be wrong from the beginning. Nothing is held back where every
    frame is observed as it is sent.
    """

    def __init__(
        self, *arguments: Any, disordered: bool = False, patience_ns: int | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.misplaced = PROVEN if disordered else 0
        """Frames that stand before one that passed earlier, as far as that is seen."""
        self._patience_ns = patience_ns
        self._held: list[Violation] = []
        self._unexplained: list[Violation] = []
        """Those of them whose cause may still come."""

    @property
    def disordered(self) -> bool:
        """True if the order of the capture cannot be trusted."""
        return self.misplaced >= PROVEN

    def observe(self, decoded: DecodedBatch) -> Iterator[Violation]:
        """Yield findings about the next batch, and those held back before that are due."""
        yield from super().observe(decoded)
        if self._vantage.as_sent:
            return
        if not self.disordered:
            self.misplaced += _swapped_replies(decoded)
            self._look_for_causes(decoded)
        yield from super()._counted(self._due(decoded))

    def finish(self) -> Iterator[Violation]:
        """Yield findings that only the end of the capture shows, and those still held back."""
        yield from super().finish()
        yield from super()._counted(self._told(self._held))
        self._held = []

    def _counted(self, found: Collection[Violation]) -> Iterator[Violation]:
        certain = []
        for each in found:
            if each.rule not in ORDERED or each.severity == "note" or self._vantage.as_sent:
                certain.append(each)
            elif len(self._held) < HELD or self.disordered:
                self._held.append(each)
                if ORDERED[each.rule] and not self.disordered:
                    self._unexplained.append(each)
            else:
                certain.append(each)
        yield from super()._counted(certain)

    def _due(self, decoded: DecodedBatch) -> list[Violation]:
        """Return findings that need not be held back any longer."""
        times = decoded.batch.timestamp_ns
        if self.disordered:
            due, self._held = self._held, []
        elif self._patience_ns is not None and len(times):
            until = int(times.max()) - self._patience_ns
            due = [each for each in self._held if each.time_ns <= until]
            self._held = [each for each in self._held if each.time_ns > until]
        else:
            due = []
        return self._told(due)

    def _told(self, found: list[Violation]) -> list[Violation]:
        if not self.disordered:
            return found
        return [replace(each, severity="note", found=f"{each.found}; {_UNSURE}") for each in found]

    def _look_for_causes(self, decoded: DecodedBatch) -> None:
        """Count the findings whose cause follows within a moment."""
        times = decoded.batch.timestamp_ns
        latest = int(times.max()) if len(times) else 0
        waiting = []
        for each in self._unexplained:
            if _is_explained(each, decoded):
                self.misplaced += 1
            elif len(times) and latest - each.time_ns <= WITHIN_NS:
                waiting.append(each)
        self._unexplained = waiting


def _swapped_replies(decoded: DecodedBatch) -> int:
    """Count replies directly behind one that was sent later: n + 1, n, n + 2 or n + 3."""
    source, count = decoded.assignment.source, 0
    for block in decoded.columns.blocks:
        if block.layout.name != "pull_reply" or len(block) < 3:
            continue
        numbers: NDArray[np.int64] = block["frame_seqnum"].astype(np.int64)
        handles = block["dst_pull_handle"]
        steps = (numbers[1:] - numbers[:-1]) % _NUMBERS
        same = (handles[1:] == handles[:-1]) & (source[block.place][1:] == source[block.place][:-1])
        on = ((steps == 2) | (steps == 3)) & same
        back = (steps == _NUMBERS - 1) & same
        count += int((back[:-1] & on[1:]).sum() + (back[1:] & on[:-1]).sum())
    return count


def _is_explained(finding: Violation, decoded: DecodedBatch) -> bool:
    """Return whether a packet that should precede the frame of a finding follows it within ``WITHIN_NS``."""
    times, numbers = decoded.batch.timestamp_ns, decoded.batch.number
    near = (times >= finding.time_ns) & (times <= finding.time_ns + WITHIN_NS) & (numbers > finding.frames[-1])
    if not near.any():
        return False
    near &= decoded.located.destination == int.from_bytes(finding.host, "big")
    return bool((near & np.isin(decoded.columns.packet_type, ORDERED[finding.rule])).any())
