"""What the recorded host sent and the live one has not: what has to be waited for, and what is said at last."""

from __future__ import annotations

from typing import Any

from mxwire.replay.stateful.conversation import Conversation
from mxwire.replay.stateful.expectations import Expectation, Expectations
from mxwire.replay.stateful.finding import Finding, Kind
from mxwire.replay.stateful.missing import acknowledged, described, is_awaited, whose
from mxwire.replay.stateful.pair import Pair
from mxwire.replay.stateful.records import Record
from mxwire.wire.packets import Notify, PullReply


class Awaited:
    """The recorded frames that have not come, and our messages that the live host has not acknowledged."""

    def __init__(self, conversation: Conversation, expectations: Expectations) -> None:
        self._with = conversation
        self._expected = expectations
        self._open = {number: each for number, each in expectations.all.items() if is_awaited(each)}
        self._acked = acknowledged(conversation.script.records)
        self._told: dict[int, Finding] = {}
        """What was said of frames that did not come, by the number of the record."""

    def before(self, record: Record) -> list[Expectation]:
        """What has not come that was there before the played host sent a frame."""
        if isinstance(record.frame, PullReply):
            return self._expected.pulls_before(record)
        found = []
        for place, each in self._open.items():
            if place >= record.number:
                break
            if not each.again or not self._has_arrived(each):
                found.append(each)
        return found

    def _has_arrived(self, expectation: Expectation) -> bool:
        """Whether we have what a message that comes again has said."""
        frame: Any = expectation.record.frame
        arrived = self._with.pair(frame.dst_endpoint, frame.src_endpoint).arrived
        return frame.lib_seqnum in arrived.values()

    def unacked(self) -> list[tuple[Pair, int]]:
        """Our messages that the recorded host has acknowledged and the live one has not, by their live numbers."""
        return [
            (pair, live)
            for pair in self._with.pairs.values()
            for live in pair.unacked
            if (pair.mine, pair.theirs, pair.recorded_of.get(live)) in self._acked
        ]

    def is_anything(self) -> bool:
        """Whether anything is still to come."""
        return bool(self.unacked()) or any(_is_lacking(each) for each in self._expected.all.values())

    def forget(self, expectation: Expectation) -> None:
        """Nobody has to wait for a recorded frame: it has come, or will not."""
        self._open.pop(expectation.record.number, None)

    def came(self, expectation: Expectation) -> Finding | None:
        """A recorded frame has come; returns what was said of it when it had not: when it comes is not compared."""
        self.forget(expectation)
        return self._told.pop(expectation.record.number, None)

    def given_up(self, expectation: Expectation) -> list[Finding]:
        """Go on without a recorded frame; returns what is to be said of that."""
        expectation.missed = True
        self.forget(expectation)
        return self._missing(expectation)

    def left(self) -> list[Finding]:
        """What is to be said in the end of all that has not come."""
        found = [told for each in self._expected.all.values() if _is_lacking(each) for told in self._missing(each)]
        for _, live in self.unacked():
            text = f"our message {live:#06x} is never acknowledged"
            found.append(Finding(Kind.PROTOCOL, "R-ACK-02", "", 0, "an ack, as recorded", text))
        return found

    def _missing(self, expectation: Expectation) -> list[Finding]:
        if expectation.again:
            return []
        frame: Any = expectation.record.frame
        kind, rule = whose(frame)
        if isinstance(frame, Notify) and not self._expected.is_pulled(frame):
            kind, rule = Kind.APPLICATION, "R-PUL-01"
        place = self._with.script.place(expectation.record)
        told = Finding(kind, rule, "", place, described(frame), "nothing comes")
        self._told[expectation.record.number] = told
        return [told]


def _is_lacking(expectation: Expectation) -> bool:
    return expectation.open and not expectation.again
