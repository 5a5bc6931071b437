"""Steps of a run that wait for frames of the host, or for their absence."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from mxwire.scenarios.conditions import differences, wanted
from mxwire.scenarios.description import described, expectation_text, field_values
from mxwire.scenarios.outcome import FieldDifference, Remark
from mxwire.scenarios.run_state import PASSED_OVER, ExpectationFailure, ReceivedFrame, RunState, Steps
from mxwire.scenarios.steps import AnyOrderStep, EitherStep, ExpectationLevel, ExpectStep, SilenceStep, WaitStep
from mxwire.wire.codec import Malformed
from mxwire.wire.packets import Frame

_ANOTHER_FRAME: Final = 99
"""Rank of a failure with another packet altogether: more than the number of wrong fields of any frame."""


class ExpectationRun(RunState):
    """The part of a run that checks expected frames and expected silence."""

    def _wait(self, step: WaitStep) -> Steps:
        """Let time pass; frames that arrive remain queued, except those that the scenario does not mention."""
        end = self._mark + step.duration
        kept: deque[ReceivedFrame] = deque()
        while True:
            while self._queue:
                arrival = self._queue.popleft()
                if arrival.packet not in self._unspoken or not (yield from self._passes(arrival, frozenset())):
                    kept.append(arrival)
            if self.now >= end:
                break
            self.deadline = end
            yield None
        self._queue = kept + self._queue
        self._mark = end

    def _expect(self, step: ExpectStep) -> Steps:
        self.expecting = True
        start, limit = self._earliest, self._mark + self._within(step)
        arrival = yield from self._next(step, (step,), limit + self.patience)
        if arrival is None:
            self._miss(step, ExpectationFailure(step, f"{step.packet} did not come", expected=self._wanted(step)))
            self._mark = max(self._mark, limit)
            return
        failure = self._judged(step, arrival, start)
        if failure is None:
            self._taken(step, arrival, limit)
            return
        self._queue.appendleft(arrival)
        self._miss(step, failure)

    def _within(self, step: ExpectStep) -> int:
        return max(self.script.within, step.after) if step.within is None else step.within

    def _taken(self, step: ExpectStep, arrival: ReceivedFrame, limit: int) -> None:
        assert isinstance(arrival.frame, Frame)
        self.cast.tester(step.tester).learn(arrival.frame)
        if step.bind:
            self.bound[step.bind] = arrival.frame
        if step.level is ExpectationLevel.INFO:
            self.notes.append(Remark(step.place.line, f"{step.packet} came: {described(arrival.frame)}"))
        if arrival.time > limit:
            late = (arrival.time - limit) / 1e6
            self.remarks.append(Remark(step.place.line, f"{step.packet} came {late:.1f} ms late"))
        self._mark = arrival.time

    def _judged(self, step: ExpectStep, arrival: ReceivedFrame, start: int) -> ExpectationFailure | None:
        """Return the difference between a frame and the expectation of a step, or None if it meets it."""
        frame = arrival.frame
        wrong: list[FieldDifference] = []
        if isinstance(frame, Malformed):
            text = f"the host sent a malformed frame: {frame.reason.text}"
        elif arrival.packet != step.packet:
            text = f"{arrival.packet} came instead of {step.packet}"
        elif not self._is_for(step, frame):
            text = f"{step.packet} is for {self.cast.named(frame)}, not for {step.tester or 'the tester'}"
        elif step.after and arrival.time < start + step.after:
            text = f"{step.packet} came {(start + step.after - arrival.time) / 1e6:.3f} ms too early"
        else:
            scope = self.scope(self.cast.tester(step.tester))
            wrong = differences(step.fields, field_values(frame, step.fields), scope)
            if not wrong:
                return None
            text = f"{step.packet}: {'; '.join(map(str, wrong))}"
        return ExpectationFailure(
            step, text, expected=self._wanted(step), found=described(frame), wrong=wrong, arrival=arrival
        )

    def _is_for(self, step: ExpectStep, frame: Frame) -> bool:
        """Return whether a frame is addressed to the tester of a step, unless the step itself gives the addressee."""
        said = "dst_mac" in step.fields or step.packet in PASSED_OVER
        return said or self.cast.tester(step.tester).is_for(frame)

    def _wanted(self, step: ExpectStep) -> str:
        scope = self.scope(self.cast.tester(step.tester))
        return expectation_text(step, {name: wanted(each, scope) for name, each in step.fields.items()})

    def _silence(self, step: SilenceStep) -> Steps:
        end = self._mark + step.duration
        kept: deque[ReceivedFrame] = deque()
        while True:
            while self._queue:
                arrival = self._queue.popleft()
                if arrival.time > end:
                    self._queue.appendleft(arrival)
                    break
                if (yield from self._passes(arrival, self._ignored - set(step.packets))):
                    continue
                if step.packets and arrival.packet not in step.packets:
                    kept.append(arrival)
                    continue
                what = " or ".join(step.packets) or "nothing"
                text = f"{arrival.packet} came in {step.duration / 1e6:g} ms of silence"
                self._queue = kept + deque([arrival]) + self._queue
                failed = ExpectationFailure(
                    step, text, expected=f"no {what}" * bool(step.packets) or what,
                    found=described(arrival.frame), arrival=arrival,
                )  # fmt: skip
                self._miss(step, failed)
                return
            if self.now >= end:
                break
            self.deadline = end
            yield None
        self._queue = kept + self._queue
        self._mark = end

    def _any_order(self, step: AnyOrderStep) -> Steps:
        self.expecting = True
        left = list(step.body)
        start, earliest = self._mark, self._earliest
        while left:
            limit = start + max(self._within(each) for each in left)
            arrival = yield from self._next(step, left, limit + self.patience)
            if arrival is None:
                failed = [each for each in left if each.level is ExpectationLevel.MUST] or left
                text = f"{' and '.join(each.packet for each in failed)} did not come"
                self._miss(failed[0], ExpectationFailure(failed[0], text, expected=self._wanted(failed[0])))
                return
            failures = []
            for each in left:
                failure = self._judged(each, arrival, earliest)
                if failure is None:
                    self._taken(each, arrival, start + self._within(each))
                    left.remove(each)
                    break
                failures.append(failure)
            else:
                raise _nearest(failures)

    def _either(self, step: EitherStep) -> Steps:
        self.expecting = True
        firsts = [branch[0] for branch in step.branches if isinstance(branch[0], ExpectStep)]
        start, earliest = self._mark, self._earliest
        limit = start + max(self._within(each) for each in firsts)
        arrival = yield from self._next(step, firsts, limit + self.patience)
        names = " or ".join(each.packet for each in firsts)
        if arrival is None:
            raise ExpectationFailure(step, f"neither came: {names}", expected=" or ".join(map(self._wanted, firsts)))
        failures = []
        for branch, first in zip(step.branches, firsts, strict=True):
            failure = self._judged(first, arrival, earliest)
            if failure is None:
                self._taken(first, arrival, start + self._within(first))
                yield from self._steps(branch[1:])
                return
            failures.append(failure)
        raise _nearest(failures)


def _nearest(failures: Sequence[ExpectationFailure]) -> ExpectationFailure:
    """Return the most similar of several failures: the one with the fewest wrong fields."""
    return min(failures, key=lambda each: len(each.wrong) or _ANOTHER_FRAME)
