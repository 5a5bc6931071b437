"""Messages of the live host, and its acks of played messages."""

from __future__ import annotations

from typing import Any

from mxwire.replay.stateful.conversation import region_of
from mxwire.replay.stateful.expectations import RecordedMessage, length_of, match_of
from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.replay.stateful.pair import EndpointPair
from mxwire.replay.stateful.receivers.recognition import Recognition
from mxwire.wire.packets import Medium, Rndv, Truc


class MessageHandler:
    """Handles messages, their fragments and acks."""

    def __init__(self, known: Recognition) -> None:
        self._known = known
        self._with = known.conversation
        self._expected = known.expectations
        self._found: dict[tuple[int, ...], tuple[RecordedMessage | None, set[int], int]] = {}
        """Messages by pair, sessions and number: the recorded one, fragments and bytes received so far."""

    def message(self, frame: Any, now: int) -> None:
        """Take a TINY, SMALL or RNDV, or a fragment of a MEDIUM message."""
        pair = self._known.pair(frame)
        sessions = self._with.present.get(pair.mine, 0), pair.their_session or 0
        place = pair.mine, pair.theirs, *sessions, frame.lib_seqnum
        ours = self._known.is_ours(frame)
        if ours:
            pair.acknowledged(frame.lib_piggyack)
        known = self._found.get(place)
        if known is None:
            message = self._expected.message_for((pair.mine, pair.theirs), frame)
            known = self._found[place] = message, set(), 0
            if message is None:
                self._report_surplus(frame)
            else:
                self._take(message, frame, pair)
        message, fragments, size = known
        fragment = frame.frag_seqnum if isinstance(frame, Medium) else 0
        if fragment in fragments:
            return
        fragments.add(fragment)
        size += frame.frag_length if isinstance(frame, Medium) else 0
        self._found[place] = message, fragments, size
        if message is not None:
            expectation = message.frames.get(fragment)
            if expectation is not None and isinstance(frame, message.kind) and expectation.open:
                self._known.meet(expectation, frame, pair)
        complete = not isinstance(frame, Medium) or size >= frame.length
        if ours:
            pair.arrive(frame.lib_seqnum, None if message is None else message.number, now, complete)
        if message is not None:
            self._known.note_came(frame, message.first, pair)

    def _take(self, message: RecordedMessage, frame: Any, pair: EndpointPair) -> None:
        message.taken = True
        if isinstance(frame, Rndv) and message.kind is Rndv:
            region = region_of(message.first.record.frame, pair.mine, pair.theirs)
            self._with.their_regions[region] = frame
        if not isinstance(frame, message.kind):
            where = self._with.script.place(message.first.record)
            found = f"{type(frame).__name__} of {message.length} bytes"
            self._known.report(ReplayFinding(Cause.PROTOCOL, "R-SND-01", "type", where, message.kind.__name__, found))
            for each in message.frames.values():
                each.met = True
                self._known.came(each)

    def _report_surplus(self, frame: Any) -> None:
        found = f"a {type(frame).__name__} of {length_of(frame)} bytes, match information {match_of(frame):#x}"
        expected = "no such message now, as in the recording"
        self._known.report(ReplayFinding(Cause.APPLICATION, "", "message", 0, expected, found))

    def ack(self, frame: Truc, _now: int) -> None:
        """Take an ack of played messages."""
        if self._known.is_ours(frame):
            self._known.pair(frame).acknowledged(frame.liback_lib_seqnum)
