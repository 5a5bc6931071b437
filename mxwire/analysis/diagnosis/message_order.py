"""Detect numbered messages that pass after later ones: a library sends them in numerical order (R-SEQ-04)."""

from __future__ import annotations

from typing import Final, NamedTuple

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.conversations.state import RESEND_NS
from mxwire.analysis.conversations.streams import Stream, stream_of
from mxwire.analysis.diagnosis.finding import KEPT
from mxwire.analysis.diagnosis.sequence import Disorder, LateFrame
from mxwire.analysis.first_keys import FirstKeys

_RECENT: Final = 256
WAITS: Final = 1 << 10
"""Maximum number of waits that are remembered per flow."""


class _Seen(NamedTuple):
    first_ns: int
    number: int
    """Number of its first frame."""
    is_first: bool
    """True if this was certainly the first transmission."""


class MessageOrder:
    """Comparison of the order in which messages pass with the order of their numbers."""

    def __init__(self) -> None:
        self._recent: dict[Flow, tuple[Stream, dict[int, _Seen]]] = {}
        self.found: FirstKeys[Flow, Disorder] = FirstKeys(KEPT, Disorder)
        """The messages of each flow that passed after later ones."""

    def note(self, message: CapturedMessage) -> None:
        """Process a finished message."""
        flow, stream = message.flow, stream_of(message)
        if stream is None:
            return
        known = self._recent.get(flow)
        if known is None or known[0] is not stream:
            # A sender that restarts its numbers at 1 reuses them.
            if known is None and len(self._recent) >= KEPT:
                del self._recent[next(iter(self._recent))]
            known = self._recent[flow] = stream, {}
        recent = known[1]
        connects = flow.conversation.connects
        if not connects or connects[0].time_ns > message.first_ns:
            # The capture began later: a first appearance may be a retransmission, in any order (R-RTX-02).
            return
        at = message.position
        # A message captured within a resend delay of its predecessor's first transmission was not retransmitted before
        # (R-RTX-01).
        before = recent.get(at - 1)
        if at == stream.first:
            since, is_first = message.first_ns - connects[0].time_ns, True
        elif before is not None:
            since, is_first = message.first_ns - before.first_ns, before.is_first
        else:
            since, is_first = 0, False
        recent[at] = _Seen(message.first_ns, message.run_first, is_first and since < RESEND_NS)
        self._compare(flow, recent, at)
        self._compare(flow, recent, at - 1)
        if len(recent) > _RECENT:
            del recent[next(iter(recent))]

    def _compare(self, flow: Flow, recent: dict[int, _Seen], at: int) -> None:
        """Compare a message with the one with the next number."""
        one, after = recent.get(at), recent.get(at + 1)
        if one is None or after is None or after.first_ns >= one.first_ns or not one.is_first:
            return
        passed = LateFrame(one.number, after.number, after.first_ns, one.first_ns)
        waited = after.first_ns, one.first_ns
        self.found[flow].add(Disorder(late=1, waits=[waited], samples=[passed]), WAITS)
