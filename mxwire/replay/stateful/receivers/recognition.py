"""Common part of the handlers: the pair of a frame, its recorded counterpart, and findings on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from mxwire.replay.stateful.comparison import FieldRelation, compare
from mxwire.replay.stateful.conversation import LiveConversation
from mxwire.replay.stateful.expectations import Expectation, Expectations, Key
from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.replay.stateful.pair import EndpointPair
from mxwire.wire.enums import NackType
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, NackLib, NackMcp, Notify, Pull, PullReply

_UNASKED: Final[dict[type[Frame], tuple[Cause, str, str]]] = {
    ConnectRequest: (Cause.APPLICATION, "R-CON-12", "connects to endpoint {src}"),
    ConnectReply: (Cause.PROTOCOL, "R-CON-08", "answers a connect of endpoint {src} that was not made"),
    Notify: (Cause.PROTOCOL, "R-NOT-01", "reports that a large message of endpoint {src} was pulled"),
    PullReply: (Cause.PROTOCOL, "R-PUL-12", "answers a PULL that was not sent"),
    NackLib: (Cause.PROTOCOL, "R-NAK-03", "refuses a frame of endpoint {src} (nack type {nack})"),
    NackMcp: (Cause.PROTOCOL, "R-NAK-03", "refuses a PULL (nack type {nack})"),
    Pull: (Cause.PROTOCOL, "R-PUL-02", "requests {block} bytes from frame {index} on"),
}
"""Findings on frames that the recorded host did not send: cause, rule and text."""


class Recognition:
    """Finds the recorded counterparts of live frames, and compares them.

    ``report`` is called with each finding, ``came`` with each recorded frame received.
    """

    def __init__(
        self,
        conversation: LiveConversation,
        expectations: Expectations,
        report: Callable[[ReplayFinding], None],
        came: Callable[[Expectation], None],
    ) -> None:
        self.conversation = conversation
        self.expectations = expectations
        self.report: Final = report
        self.came: Final = came

    def pair(self, frame: Any) -> EndpointPair:
        """Return the endpoints of a frame of the live host."""
        return self.conversation.pair(frame.dst_endpoint, self.conversation.recorded_endpoint(frame.src_endpoint))

    def meet(self, expectation: Expectation, frame: Any, pair: EndpointPair | None) -> None:
        """Compare a live frame with the recorded one."""
        record, script = expectation.record, self.conversation.script
        cut, where = record.cut, script.place(record)
        for each in compare(frame, record.frame, cut, where, partial(self.conversation.meaning, pair)):
            self.report(each)
        expectation.met = True
        self.came(expectation)

    def note_came(self, frame: Any, expectation: Expectation, pair: EndpointPair) -> None:
        """Record the arrival of a recorded number; not if only the session is current, no refusal follows then."""
        was: Any = expectation.record.frame
        if self.conversation.meaning(pair, FieldRelation.SESSION, was.session) == frame.session:
            self.conversation.came[pair.mine, pair.theirs, was.lib_seqnum] = frame.lib_seqnum

    def hear_once(self, key: Key, frame: Any, pair: EndpointPair | None) -> None:
        """Compare a frame with the recorded one with the same key; report it if there was never any."""
        expectation = self.expectations.take(key)
        if expectation is not None:
            self.meet(expectation, frame, pair)
        elif not self.expectations.last_known(key):
            self.unasked(frame)

    def unasked(self, frame: Any, application: bool = False) -> None:
        """Report a frame that the recorded host did not send; ``application`` if its application had ended before."""
        kind, rule, text = _UNASKED[type(frame)]
        if application:
            kind = Cause.APPLICATION
        if isinstance(frame, NackLib) and frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_ENDPT):
            kind = Cause.APPLICATION
        words = text.format(
            src=getattr(frame, "dst_endpoint", ""),
            nack=int(getattr(frame, "nack_type", 0)),
            block=getattr(frame, "block_length", 0),
            index=getattr(frame, "frame_index", 0),
        )
        self.report(
            ReplayFinding(kind, rule, "", 0, "nothing of the kind, as in the recording", f"the live host {words}")
        )

    def is_ours(self, frame: Any) -> bool:
        """Return whether a frame carries the session of the played endpoint."""
        return bool(self.conversation.present.get(frame.dst_endpoint) == frame.session)
