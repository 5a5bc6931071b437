"""Run: a scenario as a state machine without clock or link. Its inputs are frames, times and the results of calls; its
outputs are frames, calls and a verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mxwire.protocol import LocalProtocolError
from mxwire.scenarios import steps
from mxwire.scenarios.actions import Action, Invocation, LateAnswerError, Query, Transmission
from mxwire.scenarios.cast import Cast, RunScope, argument_of
from mxwire.scenarios.conditions import described, differences, expectation_text, expected_text, field_values, packet_of
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Value
from mxwire.scenarios.frame_builder import build_frame
from mxwire.scenarios.outcome import FieldDifference, Remark, ScenarioVerdict
from mxwire.scenarios.script import Script
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import VERBS
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import Frame

_MANNERLY: Final = {"HOST_QUERY": "HOST_REPLY", "CONNECT_REQUEST": "CONNECT_REPLY"}
"""Packets that the tester answers by itself, unless the scenario mentions them."""
PASSED_OVER: Final = frozenset({"RAW", "RAW_OMXOED"})
"""Packets that are then ignored without a remark."""
_UNASKED: Final = frozenset({"TRUC"})
"""Packets that are then ignored with a remark."""

Steps = Generator[Action | None, Any, None]
"""Generator that yields requested actions, and None while it waits for a frame or the deadline."""
_ANOTHER_FRAME: Final = 99
"""Rank of a failure by the wrong packet: more than the number of wrong fields of any frame."""
REPEATS: Final = 100_000
"""Maximum total number of iterations of all ``repeat`` blocks of a scenario."""
_AGAIN: Final = 5_000_000
"""Nanoseconds between two queries of the application."""


@dataclass(slots=True, eq=False)
class ReceivedFrame:
    """A frame received from the host."""

    time: int
    place: int
    """Index of the frame among all frames of the run."""
    frame: Frame | Malformed
    packet: str
    """Name of its packet."""


@dataclass(eq=False)
class ExpectationFailure(Exception):
    """An expectation that was not met ends the scenario."""

    step: steps.ScenarioStep
    reason: str
    expected: str = ""
    found: str = ""
    wrong: Sequence[FieldDifference] = ()
    arrival: ReceivedFrame | None = None
    """The frame that came instead."""


class ScenarioRun:
    """A run of a scenario; times are nanoseconds of any monotonic clock.

    ``patience`` is the time in nanoseconds that a frame may be late and still be accepted, as non-strict. ``foreign``
    packets may arrive for other reasons and are ignored like announcements. If ``partial``, values that the application
    does not report are not checked.
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
        self.script = script
        self.cast = cast
        self.patience = patience
        self.now = now
        self.log: list[tuple[int, bool, bytes]] = []
        """All frames: time, True if sent by the tester, and bytes."""
        self.deadline: int | None = None
        """Time until which the run waits for frames; None once it has ended."""
        self.failure: ExpectationFailure | None = None
        self.remarks: list[Remark] = []
        self.notes: list[Remark] = []
        self.bound: dict[str, Any] = {}
        self.heard = 0
        """Number of frames received from the host; announcements count only if the scenario expects them."""
        self.expecting = False
        """True if the scenario has expected an answer so far."""
        self._codec = codec_of(cast.dialect)
        self._mark = now
        self._queue: deque[ReceivedFrame] = deque()
        self._unspoken = frozenset(_MANNERLY) - script.packets - script.ignored
        self._ignored = script.ignored | ((PASSED_OVER | foreign) - script.packets)
        self._quietly = self._ignored | (_UNASKED - script.packets)
        self._partial = partial
        self._play = self._steps((*cast.prelude, *script.steps))
        self._started = self.finished = False
        self._turned = 0
        self._answer: Any = None

    @property
    def _mark(self) -> int:
        """Time from which the limits of the next expectation count: that of the last event."""
        return self._happened

    @_mark.setter
    def _mark(self, time: int) -> None:
        # Only a call separates the two: its end begins "within", and its start begins "after".
        self._happened = self._earliest = time

    def scope(self, tester: Tester | None = None) -> RunScope:
        """Return the scope for the names of a step."""
        return RunScope(self.bound, self.cast.tester("") if tester is None else tester)

    # Interface of the testbeds.

    def advance(self, now: int) -> Action | None:
        """Return the next requested action; None while the run waits, and at the end."""
        self.now = max(self.now, now)
        # A waiting generator is resumed only for a reason: a frame, or its deadline.
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
        frame = self._codec.parse(raw)
        packet = packet_of(frame)
        # A daemon's announcements do not show that the endpoint under test is present.
        self.heard += packet not in PASSED_OVER - self.script.packets
        self._queue.append(ReceivedFrame(now, len(self.log) - 1, frame, packet))

    @property
    def verdict(self) -> ScenarioVerdict:
        """The verdict so far."""
        if self.failure is not None:
            return ScenarioVerdict.FAIL if self.heard or not self.expecting else ScenarioVerdict.MISSING
        if self.remarks:
            return ScenarioVerdict.NON_STRICT
        return ScenarioVerdict.INFO if self.script.info else ScenarioVerdict.PASS

    # Steps.

    def _steps(self, body: Sequence[steps.ScenarioStep]) -> Steps:
        for step in body:
            yield from self._PLAYS[type(step)](self, step)

    def _send(self, step: steps.SendStep) -> Steps:
        yield Transmission((self._made(step),))
        self._mark = self.now

    def _made(self, step: steps.SendStep) -> bytes:
        tester = self.cast.tester(step.tester)
        frame, raw = build_frame(step, tester, self.scope(tester), self._codec)
        if step.bind:
            self.bound[step.bind] = frame
        return raw

    def _burst(self, step: steps.BurstStep) -> Steps:
        yield Transmission(tuple(self._burst_frames(step.body)))
        self._mark = self.now

    def _burst_frames(self, body: Sequence[steps.ScenarioStep]) -> Generator[bytes, None, None]:
        for each in body:
            if isinstance(each, steps.SendStep):
                yield self._made(each)
            elif isinstance(each, steps.RepeatStep):
                for _ in self._turns(each):
                    yield from self._burst_frames(each.body)

    def _repeat(self, step: steps.RepeatStep) -> Steps:
        for _ in self._turns(step):
            yield from self._steps(step.body)

    def _turns(self, step: steps.RepeatStep) -> Generator[None, None, None]:
        count = step.count.number(self.scope())
        # Turns of nested blocks multiply, so the sum over the whole run is limited, not each count.
        self._turned += max(count, 0)
        if count < 0 or self._turned > REPEATS:
            raise ScriptError(
                f"{self._turned if count >= 0 else count} turns are not between 0 and {REPEATS}", step.place
            )
        for number in range(count):
            if step.name:
                self.bound[step.name] = number
            yield None

    def _let(self, step: steps.LetStep) -> Steps:
        self.bound[step.name] = step.value.value(self.scope())
        yield from ()

    def _call(self, step: steps.CallStep) -> Steps:
        tester = self.cast.tester(step.to)
        scope = self.scope(tester)
        kinds = VERBS[step.verb]
        arguments = {name: argument_of(each, scope, kinds[name]) for name, each in step.arguments.items()}
        target = self.bound.get(step.target) if step.target else None
        began = self.now
        answer = yield Invocation(step.verb, arguments, step.flags, target, tester)
        if isinstance(answer, LateAnswerError):
            raise ExpectationFailure(step, f"{step.verb}: {answer}")
        # A refusal under a name can still be checked: its status may be what the scenario is about.
        if isinstance(answer, LocalProtocolError) and not step.bind:
            raise ExpectationFailure(step, f"{step.verb} was refused: {answer}")
        if step.bind:
            self.bound[step.bind] = answer
        # The application determines the duration of a call, so "not earlier than" counts from the start of the call.
        self._mark, self._earliest = self.now, began

    def _check(self, step: steps.CheckStep) -> Steps:
        """Query values repeatedly until they meet their conditions or the patience of the run is exceeded."""
        limit = self.now + self.patience
        while True:
            failure = yield from self._check_once(step)
            if failure is None:
                return
            if self.now >= limit:
                self._miss(step, failure)
                return
            # Queries take the time of the host under test, which a pause leaves to its frames.
            again = min(limit, self.now + _AGAIN)
            while self.now < again:
                self.deadline = again
                yield None

    def _check_once(self, step: steps.CheckStep) -> Generator[Any, Any, ExpectationFailure | None]:
        tester = self.cast.tester(step.tester)
        values: Mapping[str, Value] | LateAnswerError | None
        values = yield Query(step.subject, self.bound.get(step.target), tester)
        if isinstance(values, LateAnswerError):
            raise ExpectationFailure(step, f"{step.subject}: {values}")
        if values is None:
            self._not_checked(step, step.conditions)
            return None
        known = {name: each for name, each in step.conditions.items() if name in values}
        missing = [name for name in step.conditions if name not in known]
        if missing and not self._partial:
            raise ScriptError(f"no value of {missing[0]} in {step.target or step.subject}", step.place)
        what = f"${step.target}" if step.target else step.subject
        if missing and isinstance(refusal := self.bound.get(step.target), LocalProtocolError):
            return ExpectationFailure(step, f"{what} was refused: {refusal}")
        scope = self.scope(tester)
        wrong = differences(known, values, scope)
        if not wrong:
            self._not_checked(step, missing)
            return None
        expected = ", ".join(f"{name} {expected_text(each, scope)}" for name, each in known.items())
        text = f"{what}: {'; '.join(map(str, wrong))}"
        return ExpectationFailure(
            step, text, expected=expected, found=", ".join(each.found for each in wrong), wrong=wrong
        )

    def _not_checked(self, step: steps.CheckStep, names: Iterable[str]) -> None:
        """Add a remark on values that the application does not report."""
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

    # Steps that wait for frames of the host, or for their absence.

    def _wait(self, step: steps.WaitStep) -> Steps:
        """Let time pass; frames that arrive remain queued, except those that the scenario does not mention."""
        end = self._mark + step.duration
        unmatched: deque[ReceivedFrame] = deque()
        while True:
            while self._queue:
                arrival = self._queue.popleft()
                if arrival.packet not in self._unspoken or not (yield from self._passes(arrival, frozenset())):
                    unmatched.append(arrival)
            if self.now >= end:
                break
            self.deadline = end
            yield None
        self._queue = unmatched + self._queue
        self._mark = end

    def _expect(self, step: steps.ExpectStep) -> Steps:
        self.expecting = True
        # The patience extends the wait, not the limit: what arrives in it counts as late.
        start, limit = self._earliest, self._mark + self._within(step)
        arrival = yield from self._next((step,), limit + self.patience)
        if arrival is None:
            self._miss(
                step, ExpectationFailure(step, f"{step.packet} did not arrive", expected=self._expected_text(step))
            )
            # The run has waited until here, so the next limit counts from now on; an earlier mark would shorten it.
            self._mark = max(self._mark, limit)
            return
        failure = self._judged(step, arrival, start)
        if failure is None:
            self._taken(step, arrival, limit)
            return
        # If the step is only a SHOULD, this frame may be the one of the next step.
        self._queue.appendleft(arrival)
        self._miss(step, failure)

    def _within(self, step: steps.ExpectStep) -> int:
        return max(self.script.within, step.after) if step.within is None else step.within

    def _taken(self, step: steps.ExpectStep, arrival: ReceivedFrame, limit: int) -> None:
        assert isinstance(arrival.frame, Frame)
        # Learned from frames that meet the expectation only: a wrong frame must not spoil the defaults of later ones.
        self.cast.tester(step.tester).learn(arrival.frame)
        if step.bind:
            self.bound[step.bind] = arrival.frame
        if step.level is steps.ExpectationLevel.INFO:
            self.notes.append(Remark(step.place.line, f"{step.packet} arrived: {described(arrival.frame)}"))
        if arrival.time > limit:
            late = (arrival.time - limit) / 1e6
            self.remarks.append(Remark(step.place.line, f"{step.packet} arrived {late:.1f} ms late"))
        self._mark = arrival.time

    def _judged(self, step: steps.ExpectStep, arrival: ReceivedFrame, start: int) -> ExpectationFailure | None:
        """Return the difference between a frame and the expectation of a step; None if the frame meets it."""
        frame = arrival.frame
        wrong: list[FieldDifference] = []
        if isinstance(frame, Malformed):
            text = f"the host sent a malformed frame: {frame.reason.text}"
        elif arrival.packet != step.packet:
            text = f"{arrival.packet} arrived instead of {step.packet}"
        elif not self._is_for(step, frame):
            text = f"{step.packet} is for {self.cast.named(frame)}, not for {step.tester or 'the tester'}"
        # Before the fields: comparing them binds names, which a frame rejected for its time must not do.
        elif step.after and arrival.time < start + step.after:
            text = f"{step.packet} arrived {(start + step.after - arrival.time) / 1e6:.3f} ms too early"
        else:
            scope = self.scope(self.cast.tester(step.tester))
            wrong = differences(step.fields, field_values(frame, step.fields), scope)
            if not wrong:
                return None
            text = f"{step.packet}: {'; '.join(map(str, wrong))}"
        return ExpectationFailure(
            step, text, expected=self._expected_text(step), found=described(frame), wrong=wrong, arrival=arrival
        )

    def _is_for(self, step: steps.ExpectStep, frame: Frame) -> bool:
        """Return whether a frame is addressed to the tester of a step, unless the step itself gives the addressee."""
        explicit = "dst_mac" in step.fields or step.packet in PASSED_OVER
        return explicit or self.cast.tester(step.tester).is_for(frame)

    def _expected_text(self, step: steps.ExpectStep) -> str:
        scope = self.scope(self.cast.tester(step.tester))
        return expectation_text(step, {name: expected_text(each, scope, name) for name, each in step.fields.items()})

    def _silence(self, step: steps.SilenceStep) -> Steps:
        end = self._mark + step.duration
        unmatched: deque[ReceivedFrame] = deque()
        while (arrival := (yield from self._arrival(end))) is not None:
            if (yield from self._passes(arrival, self._ignored - set(step.packets))):
                continue
            if step.packets and arrival.packet not in step.packets:
                # Silence of some packets only: the others are still due to the steps that follow.
                unmatched.append(arrival)
                continue
            what = " or ".join(step.packets) or "nothing"
            text = f"{arrival.packet} arrived during {step.duration / 1e6:g} ms of silence"
            # Back in the order of arrival, so that the run can continue if silence is only a SHOULD.
            self._queue = unmatched + deque([arrival]) + self._queue
            failed = ExpectationFailure(
                step, text, expected=f"no {what}" * bool(step.packets) or what,
                found=described(arrival.frame), arrival=arrival,
            )  # fmt: skip
            self._miss(step, failed)
            return
        self._queue = unmatched + self._queue
        self._mark = end

    def _any_order(self, step: steps.AnyOrderStep) -> Steps:
        self.expecting = True
        left = list(step.body)
        start, earliest = self._mark, self._earliest
        while left:
            limit = start + max(self._within(each) for each in left)
            arrival = yield from self._next(left, limit + self.patience)
            if arrival is None:
                # A missing SHOULD beside a missing MUST would hide the failure.
                failed = [each for each in left if each.level is steps.ExpectationLevel.MUST] or left
                text = f"{' and '.join(each.packet for each in failed)} did not arrive"
                self._miss(failed[0], ExpectationFailure(failed[0], text, expected=self._expected_text(failed[0])))
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

    def _either(self, step: steps.EitherStep) -> Steps:
        self.expecting = True
        firsts = [branch[0] for branch in step.branches if isinstance(branch[0], steps.ExpectStep)]
        start, earliest = self._mark, self._earliest
        limit = start + max(self._within(each) for each in firsts)
        arrival = yield from self._next(firsts, limit + self.patience)
        names = " or ".join(each.packet for each in firsts)
        if arrival is None:
            raise ExpectationFailure(
                step, f"neither arrived: {names}", expected=" or ".join(map(self._expected_text, firsts))
            )
        failures = []
        for branch, first in zip(step.branches, firsts, strict=True):
            failure = self._judged(first, arrival, earliest)
            if failure is None:
                self._taken(first, arrival, start + self._within(first))
                yield from self._steps(branch[1:])
                return
            failures.append(failure)
        raise _nearest(failures)

    def _miss(self, step: steps.ExpectStep | steps.SilenceStep | steps.CheckStep, failure: ExpectationFailure) -> None:
        """Handle an expectation that was not met: fail, or add a remark, depending on its level."""
        if step.level is steps.ExpectationLevel.MUST:
            raise failure
        text = failure.reason + (f": {failure.found}" if failure.found else "")
        (self.remarks if step.level is steps.ExpectationLevel.SHOULD else self.notes).append(
            Remark(step.place.line, text)
        )

    def _next(
        self, expected_steps: Sequence[steps.ExpectStep], limit: int
    ) -> Generator[Action | None, Any, ReceivedFrame | None]:
        """Return the next frame that is not ignored; None if none arrives before ``limit``."""
        names = {each.packet for each in expected_steps}
        while (arrival := (yield from self._arrival(limit))) is not None:
            # An expected packet is never ignored, even if the scenario ignores its kind elsewhere.
            if arrival.packet in names or not (yield from self._passes(arrival, self._quietly)):
                break
        return arrival

    def _arrival(self, limit: int) -> Generator[None, Any, ReceivedFrame | None]:
        """Return the next frame; None if none arrives before ``limit``."""
        while not self._queue and self.now < limit:
            self.deadline = limit
            yield None
        # A frame after the limit stays for a later step, even if it came before the run was advanced.
        return self._queue.popleft() if self._queue and self._queue[0].time <= limit else None

    def _passes(self, arrival: ReceivedFrame, ignored: frozenset[str]) -> Generator[Any, Any, bool]:
        """Return whether the scenario does not mention a frame; answer queries and connects by default."""
        frame = arrival.frame
        if isinstance(frame, Malformed):
            return False
        tester = self.cast.addressed(frame)
        if arrival.packet in self._unspoken and tester is not None:
            tester.learn(frame)
            # The reply has no line of its own in the scenario; errors in building it need one.
            place = self.script.steps[0].place
            reply = steps.SendStep(place, _MANNERLY[arrival.packet], {})
            yield Transmission((build_frame(reply, tester, self.scope(tester), self._codec)[1],))
            return True
        # Ignored frames still carry sessions, indexes and numbers that later frames of the tester need.
        if arrival.packet in ignored and tester is not None:
            tester.learn(frame)
        return arrival.packet in ignored

    _PLAYS: Final[Mapping[type[steps.ScenarioStep], Any]] = {
        steps.SendStep: _send,
        steps.BurstStep: _burst,
        steps.RepeatStep: _repeat,
        steps.LetStep: _let,
        steps.WaitStep: _wait,
        steps.ExpectStep: _expect,
        steps.SilenceStep: _silence,
        steps.AnyOrderStep: _any_order,
        steps.EitherStep: _either,
        steps.CallStep: _call,
        steps.CheckStep: _check,
    }


def _nearest(failures: Sequence[ExpectationFailure]) -> ExpectationFailure:
    """Return the most similar of several failures: the one with the fewest wrong fields."""
    return min(failures, key=lambda each: len(each.wrong) or _ANOTHER_FRAME)
