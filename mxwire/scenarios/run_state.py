"""State of a run, and its handling of frames that the scenario does not mention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final

from mxwire.scenarios.actions import Action, Transmission
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.description import packet_of
from mxwire.scenarios.frame_builder import build_frame
from mxwire.scenarios.outcome import FieldDifference, Remark
from mxwire.scenarios.scope import RunScope
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import CheckStep, ExpectationLevel, ExpectStep, ScenarioStep, SendStep, SilenceStep
from mxwire.scenarios.tester import Tester
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


class ReceivedFrame:
    """A frame received from the host."""

    __slots__ = ("frame", "packet", "place", "time")

    def __init__(self, time: int, place: int, frame: Frame | Malformed) -> None:
        self.time = time
        self.place = place
        """Its index among all frames of the run."""
        self.frame = frame
        self.packet = packet_of(frame)


class ExpectationFailure(Exception):
    """An expectation that was not met ends the scenario."""

    def __init__(
        self,
        step: ScenarioStep,
        reason: str,
        *,
        expected: str = "",
        found: str = "",
        wrong: Sequence[FieldDifference] = (),
        arrival: ReceivedFrame | None = None,
    ) -> None:
        super().__init__(reason)
        self.step = step
        self.reason = reason
        self.expected = expected
        self.found = found
        self.wrong = tuple(wrong)
        self.frame = None if arrival is None else arrival.place


class RunState(ABC):
    """The state of a run."""

    def __init__(self, script: Script, cast: Cast, now: int, patience: int, foreign: frozenset[str]) -> None:
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
        """Number of frames received from the host."""
        self.expecting = False
        """True if the scenario has expected an answer so far."""
        self._codec = codec_of(cast.dialect)
        self._mark = now
        self._queue: deque[ReceivedFrame] = deque()
        self._unspoken = frozenset(_MANNERLY) - script.packets - script.ignored
        self._ignored = script.ignored | ((PASSED_OVER | foreign) - script.packets)
        self._quietly = self._ignored | (_UNASKED - script.packets)

    @property
    def _mark(self) -> int:
        """Time from which the limits of the next expectation count: that of the last event."""
        return self._happened

    @_mark.setter
    def _mark(self, time: int) -> None:
        self._happened = self._earliest = time

    def scope(self, tester: Tester | None = None) -> RunScope:
        """Return the scope for the names of a step."""
        return RunScope(self.bound, self.cast.tester("") if tester is None else tester)

    @abstractmethod
    def _steps(self, steps: Sequence[ScenarioStep]) -> Steps:
        """Play steps in sequence."""

    def _miss(self, step: ExpectStep | SilenceStep | CheckStep, failure: ExpectationFailure) -> None:
        """Handle an expectation that was not met: fail, or add a remark, depending on its level."""
        if step.level is ExpectationLevel.MUST:
            raise failure
        text = failure.reason + (f": {failure.found}" if failure.found else "")
        (self.remarks if step.level is ExpectationLevel.SHOULD else self.notes).append(Remark(step.place.line, text))

    def _next(
        self, step: ScenarioStep, wanted_steps: Sequence[ExpectStep], limit: int
    ) -> Generator[Any, Any, ReceivedFrame | None]:
        """Return the next frame that is not ignored; None if none arrives before ``limit``."""
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

    def _passes(self, arrival: ReceivedFrame, ignored: frozenset[str]) -> Generator[Any, Any, bool]:
        """Return whether the scenario does not mention a frame; answer queries and connects by default."""
        frame = arrival.frame
        if isinstance(frame, Malformed):
            return False
        tester = self.cast.addressed(frame)
        if arrival.packet in self._unspoken and tester is not None:
            tester.learn(frame)
            place = self.script.steps[0].place
            reply = SendStep(place, _MANNERLY[arrival.packet], {})
            yield Transmission((build_frame(reply, tester, self.scope(tester), self._codec)[1],))
            return True
        if arrival.packet in ignored and tester is not None:
            tester.learn(frame)
        return arrival.packet in ignored
