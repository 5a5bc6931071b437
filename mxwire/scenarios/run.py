"""Run: a scenario as a step machine. Frames, the time and what applications return go in; frames, calls and a verdict
come out. It knows no clock and no link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from mxwire.protocol import LocalProtocolError
from mxwire.scenarios.actions import Action, Ask, Invoke, Transmit
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.conditions import differences, wanted
from mxwire.scenarios.describing import described, expectation_text, field_values, packet_of
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Expression, Scope, Value
from mxwire.scenarios.making import made
from mxwire.scenarios.outcome import Difference, Remark, Verdict
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import (
    AnyOrder,
    Burst,
    Call,
    Check,
    Either,
    Expect,
    Let,
    Level,
    Repeat,
    Send,
    Silence,
    Step,
    Wait,
)
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import VERBS, fields_of
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import Frame

REPEATS: Final = 100_000
"""Most turns of one ``repeat``."""
_MANNERLY: Final = {"HOST_QUERY": "HOST_REPLY", "CONNECT_REQUEST": "CONNECT_REPLY"}
"""What the tester answers by itself where a scenario does not speak of it."""
_PASSED_OVER: Final = frozenset({"RAW", "RAW_OMXOED"})
"""What it passes over then."""
_AGAIN: Final = 5_000_000
"""Nanoseconds between two questions."""
_UNASKED: Final = frozenset({"TRUC"})
"""What it passes over then too, but not in silence."""

Play = Generator[Action | None, Any, None]
"""Yields what it wants done, and None where it waits for a frame or the deadline."""


class Arrival:
    """A frame that has come from the host."""

    __slots__ = ("frame", "packet", "place", "time")

    def __init__(self, time: int, place: int, frame: Frame | Malformed) -> None:
        self.time = time
        self.place = place
        """Its place among all frames of the run."""
        self.frame = frame
        self.packet = packet_of(frame)


class Failed(Exception):
    """The scenario has failed."""

    def __init__(
        self,
        step: Step,
        reason: str,
        *,
        expected: str = "",
        found: str = "",
        wrong: Sequence[Difference] = (),
        arrival: Arrival | None = None,
    ) -> None:
        super().__init__(reason)
        self.step = step
        self.reason = reason
        self.expected = expected
        self.found = found
        self.wrong = tuple(wrong)
        self.frame = None if arrival is None else arrival.place


class Run:
    """Plays a scenario; times are nanoseconds on any clock that does not run backwards.

    ``patience`` is how many nanoseconds a frame may come late and is still taken, which is not strict.
    """

    def __init__(
        self, script: Script, cast: Cast, now: int, *, patience: int = 0, foreign: frozenset[str] = frozenset()
    ) -> None:
        """``foreign`` are packets that may come for reasons of their own, and are passed over like announcements."""
        self.script = script
        self.cast = cast
        self.patience = patience
        self.now = now
        self.log: list[tuple[int, bool, bytes]] = []
        """Every frame: when it passed, whether the tester has sent it, and its bytes."""
        self.deadline: int | None = None
        """Until when it waits for frames; None where it has ended."""
        self.failure: Failed | None = None
        self.remarks: list[Remark] = []
        self.notes: list[Remark] = []
        self.bound: dict[str, Any] = {}
        self.heard = 0
        """Frames that the host has sent."""
        self.expecting = False
        """Whether an answer was ever expected."""
        self._codec = codec_of(cast.dialect)
        self._mark = now
        """When the last thing happened that times count from."""
        self._queue: deque[Arrival] = deque()
        self._unspoken = frozenset(_MANNERLY) - script.packets - script.ignored
        self._ignored = script.ignored | ((_PASSED_OVER | foreign) - script.packets)
        self._quietly = self._ignored | (_UNASKED - script.packets)
        self._play = self._steps((*cast.prelude, *script.steps))
        self._started = self.finished = False
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
        if not 0 <= count <= REPEATS:
            raise ScriptError(f"{count} turns: 0 to {REPEATS} are possible", step.place)
        for number in range(count):
            if step.name:
                self.bound[step.name] = number
            yield None

    def _let(self, step: Let) -> Play:
        self.bound[step.name] = step.value.value(self.scope())
        yield from ()

    def _wait(self, step: Wait) -> Play:
        """Let time pass; what comes meanwhile waits too, but for what the scenario does not speak of."""
        end = self._mark + step.duration
        kept: deque[Arrival] = deque()
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

    def _expect(self, step: Expect) -> Play:
        self.expecting = True
        start, limit = self._mark, self._mark + self._within(step)
        while True:
            arrival = yield from self._next(step, (step,), limit + self.patience)
            if arrival is None:
                self._miss(step, Failed(step, f"{step.packet} did not come", expected=self._wanted(step)))
                self._mark = max(self._mark, limit)
                return
            failure = self._judged(step, arrival, start)
            if failure is not None:
                self._queue.appendleft(arrival)
                self._miss(step, failure)
                return
            self._taken(step, arrival, limit)
            return

    def _within(self, step: Expect) -> int:
        return max(self.script.within, step.after) if step.within is None else step.within

    def _taken(self, step: Expect, arrival: Arrival, limit: int) -> None:
        assert isinstance(arrival.frame, Frame)
        self.cast.tester(step.tester).learn(arrival.frame)
        if step.bind:
            self.bound[step.bind] = arrival.frame
        if step.level is Level.INFO:
            self.notes.append(Remark(step.place.line, f"{step.packet} came: {described(arrival.frame)}"))
        if arrival.time > limit:
            late = (arrival.time - limit) / 1e6
            self.remarks.append(Remark(step.place.line, f"{step.packet} came {late:.1f} ms late"))
        self._mark = arrival.time

    def _miss(self, step: Expect | Silence | Check, failure: Failed) -> None:
        """An expectation was not met: the end, or a remark."""
        if step.level is Level.MUST:
            raise failure
        text = failure.reason + (f": {failure.found}" if failure.found else "")
        (self.remarks if step.level is Level.SHOULD else self.notes).append(Remark(step.place.line, text))

    def _judged(self, step: Expect, arrival: Arrival, start: int) -> Failed | None:
        """What is wrong with a frame, if it is not the one that a step expects."""
        frame = arrival.frame
        wrong: list[Difference] = []
        if isinstance(frame, Malformed):
            text = f"the host sent a broken frame: {frame.reason.text}"
        elif arrival.packet != step.packet:
            text = f"{arrival.packet} came in the place of {step.packet}"
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
        return Failed(step, text, expected=self._wanted(step), found=described(frame), wrong=wrong, arrival=arrival)

    def _is_for(self, step: Expect, frame: Frame) -> bool:
        """Whether a frame is for the tester of a step, where that does not say whom it has to be for."""
        said = "dst_mac" in step.fields or step.packet in _PASSED_OVER
        return said or self.cast.tester(step.tester).is_for(frame)

    def _wanted(self, step: Expect) -> str:
        scope = self.scope(self.cast.tester(step.tester))
        return expectation_text(step, {name: wanted(each, scope) for name, each in step.fields.items()})

    def _next(self, step: Step, wanted_steps: Sequence[Expect], limit: int) -> Generator[Any, Any, Arrival | None]:
        """The next frame that is not passed over; None where none has come in time."""
        names = {each.packet for each in wanted_steps}
        while True:
            while self._queue:
                arrival = self._queue.popleft()
                if arrival.time > limit:
                    self._queue.appendleft(arrival)
                    return None
                if arrival.packet not in names and (yield from self._passes(arrival, self._quietly)):
                    continue
                return arrival
            if self.now >= limit:
                return None
            self.deadline = limit
            yield None

    def _passes(self, arrival: Arrival, ignored: frozenset[str]) -> Generator[Any, Any, bool]:
        """Whether a frame is one that the scenario does not speak of; some are answered."""
        frame = arrival.frame
        if isinstance(frame, Malformed):
            return False
        tester = self.cast.addressed(frame)
        if arrival.packet in self._unspoken and tester is not None:
            tester.learn(frame)
            place = self.script.steps[0].place
            reply = Send(place, _MANNERLY[arrival.packet], {})
            yield Transmit((made(reply, tester, self.scope(tester), self._codec)[1],))
            return True
        if arrival.packet in ignored and tester is not None:
            tester.learn(frame)
        return arrival.packet in ignored

    def _silence(self, step: Silence) -> Play:
        end = self._mark + step.duration
        kept: deque[Arrival] = deque()
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
                failed = Failed(
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

    def _any_order(self, step: AnyOrder) -> Play:
        self.expecting = True
        left = list(step.body)
        start = self._mark
        while left:
            limit = start + max(self._within(each) for each in left)
            arrival = yield from self._next(step, left, limit + self.patience)
            if arrival is None:
                failed = [each for each in left if each.level is Level.MUST] or left
                text = f"{' and '.join(each.packet for each in failed)} did not come"
                self._miss(failed[0], Failed(failed[0], text, expected=self._wanted(failed[0])))
                return
            failures = []
            for each in left:
                failure = self._judged(each, arrival, start)
                if failure is None:
                    self._taken(each, arrival, start + self._within(each))
                    left.remove(each)
                    break
                failures.append(failure)
            else:
                failures.sort(key=lambda each: len(each.wrong) or 99)
                raise failures[0]

    def _either(self, step: Either) -> Play:
        self.expecting = True
        firsts = [branch[0] for branch in step.branches if isinstance(branch[0], Expect)]
        start = self._mark
        limit = start + max(self._within(each) for each in firsts)
        arrival = yield from self._next(step, firsts, limit + self.patience)
        names = " or ".join(each.packet for each in firsts)
        if arrival is None:
            raise Failed(step, f"neither came: {names}", expected=" or ".join(map(self._wanted, firsts)))
        failures = []
        for branch, first in zip(step.branches, firsts, strict=True):
            failure = self._judged(first, arrival, start)
            if failure is None:
                self._taken(first, arrival, start + self._within(first))
                yield from self._steps(branch[1:])
                return
            failures.append(failure)
        failures.sort(key=lambda each: len(each.wrong) or 99)
        raise failures[0]

    def _call(self, step: Call) -> Play:
        tester = self.cast.tester(step.to)
        scope = self.scope(tester)
        kinds = VERBS[step.verb]
        arguments = {name: _argument(each, scope, kinds[name]) for name, each in step.arguments.items()}
        target = self.bound.get(step.target) if step.target else None
        answer = yield Invoke(step.verb, arguments, step.flags, target, tester)
        if isinstance(answer, LocalProtocolError) and not step.bind:
            raise Failed(step, f"{step.verb} was refused: {answer}")
        if step.bind:
            self.bound[step.bind] = answer
        self._mark = self.now

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
            return None
        missing = [name for name in step.conditions if name not in found]
        if missing:
            raise ScriptError(f"{step.target or step.subject} does not say {missing[0]}", step.place)
        scope = self.scope(tester)
        wrong = differences(step.conditions, found, scope)
        if not wrong:
            return None
        what = f"${step.target}" if step.target else step.subject
        expected = ", ".join(f"{name} {wanted(each, scope)}" for name, each in step.conditions.items())
        text = f"{what}: {'; '.join(map(str, wrong))}"
        return Failed(step, text, expected=expected, found=", ".join(each.found for each in wrong), wrong=wrong)

    def _leftovers(self) -> None:
        """Frames at the end that nobody has expected."""
        left = [each for each in self._queue if each.packet not in self._quietly | self._unspoken]
        if left:
            text = f"nobody expected {described(left[0].frame)}" + f", and {len(left) - 1} more" * (len(left) > 1)
            self.remarks.append(Remark(self.script.steps[-1].place.line, text))

    # Names.

    def scope(self, tester: Tester | None = None) -> _Scope:
        """Where the names of a step are looked up."""
        return _Scope(self.bound, self.cast.tester("") if tester is None else tester)

    _PLAYS: Final[Mapping[type[Step], Any]] = {
        Send: _send,
        Burst: _burst,
        Repeat: _repeat,
        Let: _let,
        Wait: _wait,
        Expect: _expect,
        Silence: _silence,
        AnyOrder: _any_order,
        Either: _either,
        Call: _call,
        Check: _check,
    }


def _argument(expression: Expression, scope: Scope, kind: str) -> Value:
    """An argument of a call, which is a number or bytes as the call wants it."""
    value = expression.value(scope)
    if isinstance(value, int) is not (kind == "n"):
        raise ScriptError(f"{'a number is' if kind == 'n' else 'bytes are'} needed here", expression.place)
    return value


class _Scope:
    def __init__(self, bound: dict[str, Any], tester: Tester) -> None:
        self._bound = bound
        self._tester = tester

    def bound(self, name: str) -> Value | None:
        name, dot, field = name.partition(".")
        value = self._bound.get(name)
        if dot and isinstance(value, Frame):
            packet = value.layout_name.upper()
            attribute = fields_of(packet).get(field, field)
            return field_values(value, [attribute]).get(attribute)
        return value if isinstance(value, int | bytes) else None

    def bind(self, name: str, value: Value) -> None:
        self._bound[name] = value

    def unbind(self, name: str) -> None:
        self._bound.pop(name, None)

    def word(self, name: str) -> Value | None:
        return self._tester.word(name)
