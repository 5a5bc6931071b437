"""Run: a scenario as a step machine. Frames, the time and what applications return go in; frames, calls and a verdict
come out. It knows no clock and no link.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from mxwire.protocol import LocalProtocolError
from mxwire.scenarios.actions import Action, Ask, Invoke, Transmit
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.conditions import differences, wanted
from mxwire.scenarios.describing import described
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expecting import Expecting
from mxwire.scenarios.expression import Value
from mxwire.scenarios.making import made
from mxwire.scenarios.outcome import Remark, Verdict
from mxwire.scenarios.playing import Arrival, Failed, Play
from mxwire.scenarios.scope import argument_of
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import (
    AnyOrder,
    Burst,
    Call,
    Check,
    Either,
    Expect,
    Let,
    Repeat,
    Send,
    Silence,
    Step,
    Wait,
)
from mxwire.scenarios.vocabulary import VERBS

REPEATS: Final = 100_000
"""Most turns of all ``repeat`` of a scenario."""
_AGAIN: Final = 5_000_000
"""Nanoseconds between two questions."""


class Run(Expecting):
    """Plays a scenario; times are nanoseconds on any clock that does not run backwards.

    ``patience`` is how many nanoseconds a frame may come late and is still taken, which is not strict. ``foreign`` are
    packets that may come for reasons of their own, and are passed over like announcements. With ``partial`` the
    application may not know all that a scenario asks for; that is not checked then.
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

    # What a stage turns.

    def advance(self, now: int) -> Action | None:
        """What is to be done next; None while it waits, and at the end."""
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
        except Failed as failure:
            self.finished, self.failure = True, failure
            return None
        if isinstance(action, Transmit):
            self.log += [(self.now, True, each) for each in action.frames]
        return action

    def give(self, answer: Any) -> None:
        """What the action that was wanted last has given."""
        self._answer = answer

    def arrive(self, now: int, raw: bytes) -> None:
        """Take a frame of the host."""
        self.now = max(self.now, now)
        self.log.append((now, False, raw))
        self.heard += 1
        self._queue.append(Arrival(now, len(self.log) - 1, self._codec.parse(raw)))

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        if self.failure is not None:
            return Verdict.FAIL if self.heard or not self.expecting else Verdict.MISSING
        if self.remarks:
            return Verdict.NON_STRICT
        return Verdict.INFO if self.script.info else Verdict.PASS

    # Steps.

    def _steps(self, steps: Sequence[Step]) -> Play:
        for step in steps:
            yield from self._PLAYS[type(step)](self, step)

    def _send(self, step: Send) -> Play:
        yield Transmit((self._made(step),))
        self._mark = self.now

    def _made(self, step: Send) -> bytes:
        tester = self.cast.tester(step.tester)
        frame, raw = made(step, tester, self.scope(tester), self._codec)
        if step.bind:
            self.bound[step.bind] = frame
        return raw

    def _burst(self, step: Burst) -> Play:
        yield Transmit(tuple(self._burst_frames(step.body)))
        self._mark = self.now

    def _burst_frames(self, body: Sequence[Step]) -> Generator[bytes, None, None]:
        for each in body:
            if isinstance(each, Send):
                yield self._made(each)
            elif isinstance(each, Repeat):
                for _ in self._turns(each):
                    yield from self._burst_frames(each.body)

    def _repeat(self, step: Repeat) -> Play:
        for _ in self._turns(step):
            yield from self._steps(step.body)

    def _turns(self, step: Repeat) -> Generator[None, None, None]:
        count = step.count.number(self.scope())
        self._turned += max(count, 0)
        if count < 0 or self._turned > REPEATS:
            raise ScriptError(f"{self._turned if count >= 0 else count} turns: 0 to {REPEATS} are possible", step.place)
        for number in range(count):
            if step.name:
                self.bound[step.name] = number
            yield None

    def _let(self, step: Let) -> Play:
        self.bound[step.name] = step.value.value(self.scope())
        yield from ()

    def _call(self, step: Call) -> Play:
        tester = self.cast.tester(step.to)
        scope = self.scope(tester)
        kinds = VERBS[step.verb]
        arguments = {name: argument_of(each, scope, kinds[name]) for name, each in step.arguments.items()}
        target = self.bound.get(step.target) if step.target else None
        began = self.now
        answer = yield Invoke(step.verb, arguments, step.flags, target, tester)
        if isinstance(answer, LocalProtocolError) and not step.bind:
            raise Failed(step, f"{step.verb} was refused: {answer}")
        if step.bind:
            self.bound[step.bind] = answer
        # How long a call takes is the application's affair: what must not come early counts from its beginning.
        self._mark, self._earliest = self.now, began

    def _check(self, step: Check) -> Play:
        """Ask, where the run has patience again and again, until it is as it should be."""
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

    def _asked(self, step: Check) -> Generator[Any, Any, Failed | None]:
        tester = self.cast.tester(step.tester)
        found: Mapping[str, Value] | None
        found = yield Ask(step.subject, self.bound.get(step.target), tester)
        if found is None:
            self._not_checked(step, step.conditions)
            return None
        known = {name: each for name, each in step.conditions.items() if name in found}
        missing = [name for name in step.conditions if name not in known]
        if missing and not self._partial:
            raise ScriptError(f"{step.target or step.subject} does not say {missing[0]}", step.place)
        what = f"${step.target}" if step.target else step.subject
        if missing and isinstance(refusal := self.bound.get(step.target), LocalProtocolError):
            return Failed(step, f"{what} was refused: {refusal}")
        scope = self.scope(tester)
        wrong = differences(known, found, scope)
        if not wrong:
            self._not_checked(step, missing)
            return None
        expected = ", ".join(f"{name} {wanted(each, scope)}" for name, each in known.items())
        text = f"{what}: {'; '.join(map(str, wrong))}"
        return Failed(step, text, expected=expected, found=", ".join(each.found for each in wrong), wrong=wrong)

    def _not_checked(self, step: Check, names: Iterable[str]) -> None:
        """Note what the application cannot say."""
        if self._partial and (unknown := ", ".join(names)):
            what = f"${step.target}" if step.target else step.subject
            self.notes.append(Remark(step.place.line, f"not checked, unknown to the driver: {what} {unknown}"))

    def _leftovers(self) -> None:
        """Frames at the end that nobody has expected."""
        left = [each for each in self._queue if each.packet not in self._quietly | self._unspoken]
        if left:
            text = f"nobody expected {described(left[0].frame)}" + f", and {len(left) - 1} more" * (len(left) > 1)
            self.remarks.append(Remark(self.script.steps[-1].place.line, text))

    _PLAYS: Final[Mapping[type[Step], Any]] = {
        Send: _send,
        Burst: _burst,
        Repeat: _repeat,
        Let: _let,
        Wait: Expecting._wait,
        Expect: Expecting._expect,
        Silence: Expecting._silence,
        AnyOrder: Expecting._any_order,
        Either: Expecting._either,
        Call: _call,
        Check: _check,
    }
