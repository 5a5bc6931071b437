"""Run: a scenario as a step machine without clock or link. Its inputs are frames, times and the results of calls; its
outputs are frames, calls and a verdict.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from mxwire.protocol import LocalProtocolError
from mxwire.scenarios.actions import Action, Invocation, Query, Transmission
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.conditions import differences, wanted
from mxwire.scenarios.description import described
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expectation_run import ExpectationRun
from mxwire.scenarios.expression import Value
from mxwire.scenarios.frame_builder import build_frame
from mxwire.scenarios.outcome import Remark, ScenarioVerdict
from mxwire.scenarios.run_state import ExpectationFailure, ReceivedFrame, Steps
from mxwire.scenarios.scope import argument_of
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import (
    AnyOrderStep,
    BurstStep,
    CallStep,
    CheckStep,
    EitherStep,
    ExpectStep,
    LetStep,
    RepeatStep,
    ScenarioStep,
    SendStep,
    SilenceStep,
    WaitStep,
)
from mxwire.scenarios.vocabulary import VERBS

REPEATS: Final = 100_000
"""Maximum number of turns of all ``repeat`` blocks of a scenario together."""
_AGAIN: Final = 5_000_000
"""Nanoseconds between two queries of the application."""


class ScenarioRun(ExpectationRun):
    """A run of a scenario; times are nanoseconds of any monotonic clock.

    ``patience`` is the time in nanoseconds that a frame may be late and still be accepted, as non-strict. ``foreign``
    packets may arrive for other reasons and are ignored like announcements. If ``partial``, values that the application
    does not know are not checked.
    """

    def __init__(
        self,
        script: Script,
        cast: Cast,
        now: int,
        *,
        patience: int = 0,
        foreign: frozenset[str] = frozenset(),
        partial: bool = False,
    ) -> None:
        super().__init__(script, cast, now, patience, foreign)
        self._partial = partial
        self._play = self._steps((*cast.prelude, *script.steps))
        self._started = self.finished = False
        self._turned = 0
        self._answer: Any = None

    # Interface of the stages.

    def advance(self, now: int) -> Action | None:
        """Return the next requested action; None while the run waits, and at the end."""
        self.now = max(self.now, now)
        if self.finished or (self.deadline is not None and not self._queue and self.now < self.deadline):
            return None
        self.deadline = None
        try:
            if self._started:
                answer, self._answer = self._answer, None
                action = self._play.send(answer)
            else:
                self._started = True
                action = next(self._play)
        except StopIteration:
            self.finished = True
            self._leftovers()
            return None
        except ExpectationFailure as failure:
            self.finished, self.failure = True, failure
            return None
        if isinstance(action, Transmission):
            self.log += [(self.now, True, each) for each in action.frames]
        return action

    def give(self, answer: Any) -> None:
        """Take the result of the last requested action."""
        self._answer = answer

    def arrive(self, now: int, raw: bytes) -> None:
        """Take a frame of the host."""
        self.now = max(self.now, now)
        self.log.append((now, False, raw))
        self.heard += 1
        self._queue.append(ReceivedFrame(now, len(self.log) - 1, self._codec.parse(raw)))

    @property
    def verdict(self) -> ScenarioVerdict:
        """The verdict so far."""
        if self.failure is not None:
            return ScenarioVerdict.FAIL if self.heard or not self.expecting else ScenarioVerdict.MISSING
        if self.remarks:
            return ScenarioVerdict.NON_STRICT
        return ScenarioVerdict.INFO if self.script.info else ScenarioVerdict.PASS

    # Steps.

    def _steps(self, steps: Sequence[ScenarioStep]) -> Steps:
        for step in steps:
            yield from self._PLAYS[type(step)](self, step)

    def _send(self, step: SendStep) -> Steps:
        yield Transmission((self._made(step),))
        self._mark = self.now

    def _made(self, step: SendStep) -> bytes:
        tester = self.cast.tester(step.tester)
        frame, raw = build_frame(step, tester, self.scope(tester), self._codec)
        if step.bind:
            self.bound[step.bind] = frame
        return raw

    def _burst(self, step: BurstStep) -> Steps:
        yield Transmission(tuple(self._burst_frames(step.body)))
        self._mark = self.now

    def _burst_frames(self, body: Sequence[ScenarioStep]) -> Generator[bytes, None, None]:
        for each in body:
            if isinstance(each, SendStep):
                yield self._made(each)
            elif isinstance(each, RepeatStep):
                for _ in self._turns(each):
                    yield from self._burst_frames(each.body)

    def _repeat(self, step: RepeatStep) -> Steps:
        for _ in self._turns(step):
            yield from self._steps(step.body)

    def _turns(self, step: RepeatStep) -> Generator[None, None, None]:
        count = step.count.number(self.scope())
        self._turned += max(count, 0)
        if count < 0 or self._turned > REPEATS:
            raise ScriptError(
                f"{self._turned if count >= 0 else count} turns are not between 0 and {REPEATS}", step.place
            )
        for number in range(count):
            if step.name:
                self.bound[step.name] = number
            yield None

    def _let(self, step: LetStep) -> Steps:
        self.bound[step.name] = step.value.value(self.scope())
        yield from ()

    def _call(self, step: CallStep) -> Steps:
        tester = self.cast.tester(step.to)
        scope = self.scope(tester)
        kinds = VERBS[step.verb]
        arguments = {name: argument_of(each, scope, kinds[name]) for name, each in step.arguments.items()}
        target = self.bound.get(step.target) if step.target else None
        began = self.now
        answer = yield Invocation(step.verb, arguments, step.flags, target, tester)
        if isinstance(answer, LocalProtocolError) and not step.bind:
            raise ExpectationFailure(step, f"{step.verb} was refused: {answer}")
        if step.bind:
            self.bound[step.bind] = answer
        # The duration of a call is up to the application, so "not earlier than" counts from its beginning.
        self._mark, self._earliest = self.now, began

    def _check(self, step: CheckStep) -> Steps:
        """Query values until they meet their conditions, repeatedly while the run has patience."""
        limit = self.now + self.patience
        while True:
            failure = yield from self._asked(step)
            if failure is None:
                return
            if self.now >= limit:
                self._miss(step, failure)
                return
            again = min(limit, self.now + _AGAIN)
            while self.now < again:
                self.deadline = again
                yield None

    def _asked(self, step: CheckStep) -> Generator[Any, Any, ExpectationFailure | None]:
        tester = self.cast.tester(step.tester)
        found: Mapping[str, Value] | None
        found = yield Query(step.subject, self.bound.get(step.target), tester)
        if found is None:
            self._not_checked(step, step.conditions)
            return None
        known = {name: each for name, each in step.conditions.items() if name in found}
        missing = [name for name in step.conditions if name not in known]
        if missing and not self._partial:
            raise ScriptError(f"no value of {missing[0]} in {step.target or step.subject}", step.place)
        what = f"${step.target}" if step.target else step.subject
        if missing and isinstance(refusal := self.bound.get(step.target), LocalProtocolError):
            return ExpectationFailure(step, f"{what} was refused: {refusal}")
        scope = self.scope(tester)
        wrong = differences(known, found, scope)
        if not wrong:
            self._not_checked(step, missing)
            return None
        expected = ", ".join(f"{name} {wanted(each, scope)}" for name, each in known.items())
        text = f"{what}: {'; '.join(map(str, wrong))}"
        return ExpectationFailure(
            step, text, expected=expected, found=", ".join(each.found for each in wrong), wrong=wrong
        )

    def _not_checked(self, step: CheckStep, names: Iterable[str]) -> None:
        """Add a remark on values that the application does not know."""
        if self._partial and (unknown := ", ".join(names)):
            what = f"${step.target}" if step.target else step.subject
            self.notes.append(Remark(step.place.line, f"not checked, unknown to the driver: {what} {unknown}"))

    def _leftovers(self) -> None:
        """Fail on frames that remain at the end without having been expected."""
        left = [each for each in self._queue if each.packet not in self._quietly | self._unspoken]
        if left:
            text = f"unexpected at the end: {described(left[0].frame)}" + f", and {len(left) - 1} more" * (
                len(left) > 1
            )
            self.remarks.append(Remark(self.script.steps[-1].place.line, text))

    _PLAYS: Final[Mapping[type[ScenarioStep], Any]] = {
        SendStep: _send,
        BurstStep: _burst,
        RepeatStep: _repeat,
        LetStep: _let,
        WaitStep: ExpectationRun._wait,
        ExpectStep: ExpectationRun._expect,
        SilenceStep: ExpectationRun._silence,
        AnyOrderStep: ExpectationRun._any_order,
        EitherStep: ExpectationRun._either,
        CallStep: _call,
        CheckStep: _check,
    }
