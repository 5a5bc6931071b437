"""Connects of the live host, its answers to those of the played one, and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxwire.protocol.library.reliability import number
from mxwire.replay.stateful.expectations import Expectation
from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.replay.stateful.pair import EndpointPair
from mxwire.replay.stateful.receivers.recognition import Recognition
from mxwire.wire.numbers import FIRST_NUMBER, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib

SettleCallback = Callable[[tuple[Any, ...]], bool]
"""Callback for the key of an answer to a connect of the played host; returns whether there is such a connect."""
ConnectCallback = Callable[[ConnectRequest, EndpointPair, Expectation | None, bool], None]
"""Callback for each connect of the live host, with the recorded one, and whether it is a repetition."""


class ConnectHandler:
    """Handles connects, their answers, and refusals."""

    def __init__(self, known: Recognition, settled: SettleCallback, asked: ConnectCallback) -> None:
        self._known = known
        self._with = known.conversation
        self._expected = known.expectations
        self._settled = settled
        self._asked = asked
        self._requests: set[tuple[int, ...]] = set()
        """Properties shared by repetitions of each connect."""

    def reply(self, frame: ConnectReply, _now: int) -> None:
        """Take an answer to a played connect: it gives their session, and the first number that they expect."""
        state, pair = self._with, self._known.pair(frame)
        recorded = state.recorded_session(frame.src_session_id)
        key = ConnectReply, pair.mine, pair.theirs, recorded, frame.connect_seqnum
        was_made = self._settled(key)
        expectation = self._expected.take(key)
        was = None
        if expectation is not None:
            was = expectation.record.frame
            self._known.meet(expectation, frame, pair)
        elif was_made:
            expected = "no answer, as in the recording"
            self._known.report(ReplayFinding(Cause.APPLICATION, "R-CON-08", "", 0, expected, "ConnectReply"))
        elif not self._expected.last_known(key):
            self._known.unasked(frame)
            return
        if frame.connect_status_code:
            return
        session = frame.target_session_id
        if was is not None and not was.connect_status_code:
            state.their_sessions[was.target_session_id] = session
            is_new = was.target_session_id != pair.their_recorded_session
            pair.their_recorded_session = was.target_session_id
        else:
            is_new = pair.their_session is None
        if session != pair.their_session:
            start = was.target_recv_seqnum_start if was is not None else FIRST_NUMBER
            pair.begin(start, frame.target_recv_seqnum_start)
        elif is_new and was is not None:
            # In the recording the endpoint had been reopened by now; the live one has not.
            pair.begin(was.target_recv_seqnum_start, pair.next or frame.target_recv_seqnum_start)
        pair.their_session = session

    def request(self, frame: ConnectRequest, _now: int) -> None:
        """Take a connect of the live host, which may be a restart."""
        state, pair = self._with, self._known.pair(frame)
        place = state.connect_of(pair, frame)
        if place in self._requests:
            self._asked(frame, pair, None, True)
            return
        self._requests.add(place)
        if frame.src_session_id != pair.their_session:
            pair.expect_from((pair.expected & SESSION_NUMBER_MASK) | FIRST_NUMBER)
        present = state.present.get(pair.mine)
        key = ConnectRequest, pair.mine, pair.theirs
        expectation = self._expected.take_connect(key, state.my_sessions, present)
        start = FIRST_NUMBER
        if expectation is None:
            self._known.unasked(frame)
        else:
            was: Any = expectation.record.frame
            start = was.target_recv_seqnum_start
            state.their_sessions[was.src_session_id] = frame.src_session_id
            pair.their_recorded_session = was.src_session_id
            state.requests[pair.mine, pair.theirs, was.src_session_id, was.connect_seqnum] = frame
            self._known.meet(expectation, frame, pair)
        if frame.src_session_id != pair.their_session:
            pair.begin(start, frame.target_recv_seqnum_start)
            pair.their_session = frame.src_session_id
        # No longer waited for: its recorded answer has been left out.
        waited_for = expectation is not None and not expectation.missed
        self._asked(frame, pair, expectation if waited_for else None, False)

    def nack(self, frame: NackLib, _now: int) -> None:
        """Take a refusal of a played connect or message."""
        pair = self._known.pair(frame)
        recorded = 0
        if number(frame.lib_seqnum):
            recorded = pair.recorded_of.get(frame.lib_seqnum, frame.lib_seqnum)
            pair.unacked.pop(frame.lib_seqnum, None)
        else:
            self._settled((NackLib, pair.mine, pair.theirs))
        self._known.hear_once((NackLib, pair.mine, pair.theirs, recorded), frame, pair)
