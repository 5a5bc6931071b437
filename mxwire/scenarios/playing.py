"""Playing: what a run remembers, and how it passes over what its scenario does not speak of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final

from mxwire.scenarios.actions import Action, Transmit
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.describing import packet_of
from mxwire.scenarios.making import made
from mxwire.scenarios.outcome import Difference, Remark
from mxwire.scenarios.scope import RunScope
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import Check, Expect, Level, Send, Silence, Step
from mxwire.scenarios.tester import Tester
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import Frame

_MANNERLY: Final = {"HOST_QUERY": "HOST_REPLY", "CONNECT_REQUEST": "CONNECT_REPLY"}
"""What the tester answers by itself where a scenario does not speak of it."""
PASSED_OVER: Final = frozenset({"RAW", "RAW_OMXOED"})
"""What it passes over then."""
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


class Playing(ABC):
    """The state of a run."""

    def __init__(self, script: Script, cast: Cast, now: int, patience: int, foreign: frozenset[str]) -> None:
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
        self._queue: deque[Arrival] = deque()
        self._unspoken = frozenset(_MANNERLY) - script.packets - script.ignored
        self._ignored = script.ignored | ((PASSED_OVER | foreign) - script.packets)
        self._quietly = self._ignored | (_UNASKED - script.packets)

    @property
    def _mark(self) -> int:
        """When the last thing happened that times count from."""
        return self._happened

    @_mark.setter
    def _mark(self, time: int) -> None:
        self._happened = self._earliest = time

    def scope(self, tester: Tester | None = None) -> RunScope:
        """Where the names of a step are looked up."""
        return RunScope(self.bound, self.cast.tester("") if tester is None else tester)

    @abstractmethod
    def _steps(self, steps: Sequence[Step]) -> Play:
        """Take steps, one after the other."""

    def _miss(self, step: Expect | Silence | Check, failure: Failed) -> None:
        """An expectation was not met: the end, or a remark."""
        if step.level is Level.MUST:
            raise failure
        text = failure.reason + (f": {failure.found}" if failure.found else "")
        (self.remarks if step.level is Level.SHOULD else self.notes).append(Remark(step.place.line, text))

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
