"""LineTester: RFC 2544 tests with a generator on this side and a sink on the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.linerate.generator import GeneratorPlan
from mxwire.linerate.generator_run import GeneratorRun, RunResult
from mxwire.linerate.rates import line_rate
from mxwire.linerate.search import decide, search_count, search_rate, step_down
from mxwire.linerate.template import FrameTemplate

_REACHED: Final = 0.99
"""Share of its rate that a generator must reach for a trial to count."""
_ATTEMPTS: Final = 3
"""Trials at a rate that the generator does not reach, before the rate counts as beyond it: another program may have
had the CPU for a moment."""
_NEAR: Final = 0.9
"""Share of the tester's own limit from which a result describes the tester, not the network."""
_BURST_SECONDS: Final = 2.0
"""Maximum duration of a burst of the back-to-back test at the tester's limit (RFC 2544, section 26.4)."""
_LOADS: Final = (0.1, 0.5, 0.9, 1.0)
"""Shares of the throughput at which latency is measured."""


@dataclass(frozen=True, slots=True)
class LineTesterOptions:
    """Settings of all tests. Times are in seconds, shares from 0 to 1."""

    trial: float = 1.0
    """Duration of each trial."""
    resolution: float = 0.01
    accepted_loss: float = 0.0
    repetitions: int = 3
    settle: float = 0.2
    """Time to wait for late frames after a trial."""
    cool_down: float = 0.2
    """Pause before the next trial."""
    streams: int = 1


@dataclass
class TesterLimit:
    """Rates that the tester itself can reach on this path, measured without a pace."""

    sent: float
    """Frames per second that the generator sends."""
    received: float
    """Frames per second that reached the sink in the same trial."""
    dropped: int
    """Frames that the sink's ring dropped in it."""

    def record(self) -> dict[str, Any]:
        """The limit as an object for JSON."""
        return {
            "frames_per_second": round(self.sent, 1),
            "received_per_second": round(self.received, 1),
            "ring_drops": self.dropped,
        }


@dataclass
class SizeMeasurement:
    """State of the tests of one frame length."""

    size: int
    templates: tuple[FrameTemplate, ...]
    megabits: int | None
    limit: TesterLimit
    trials: list[dict[str, Any]] = field(default_factory=list)
    limited_by: str | None = None
    """Part of the tester that failed in the last failed trial; None if it was the network."""
    carried: float = 0.0
    """Highest rate actually sent in a trial without more than the accepted loss."""

    @property
    def line(self) -> float | None:
        """Frames per second of the line; None if its speed is unknown."""
        return None if self.megabits is None else line_rate(self.megabits, self.size)

    @property
    def top(self) -> float:
        """Highest rate to try: that of the line, or of the tester if it is lower."""
        return self.limit.sent if self.line is None else min(self.line, self.limit.sent)

    def result(self, test: str, rate: float, **more: Any) -> dict[str, Any]:
        """The record of a result at a rate, with its relation to the limits of line and tester."""
        near = rate >= _NEAR * self.limit.sent
        by = self.limited_by or ("generator" if near else None)
        return {
            "test": test,
            "size": self.size,
            "frame": self.templates[0].name,
            "frames_per_second": round(rate, 1),
            "bits_per_second": round(rate * 8 * self.size, 1),
            "percent": None if self.line is None else round(100 * rate / self.line, 3),
            "line_frames_per_second": None if self.line is None else round(self.line, 1),
            "tester": self.limit.record(),
            "tester_limited": by is not None,
            "limited_by": by,
            **more,
            "trials": self.trials,
        }


class LineTester:
    """Tests of one path. ``progress`` is called with a line about each trial before it."""

    def __init__(
        self,
        run: GeneratorRun,
        options: LineTesterOptions,
        *,
        megabits: int | None,
        progress: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._run = run
        self._options = options
        self._megabits = megabits
        self._progress = progress
        self._rested = True

    # Trials

    def _trial(self, templates: tuple[FrameTemplate, ...], plan: GeneratorPlan) -> RunResult:
        """Run one trial. Raises :class:`~mxwire.errors.MxwireError` if it could not be completed, and
        KeyboardInterrupt if it was interrupted."""
        # Queues on the path drain: a trial must not begin with those that the last one has filled.
        if not self._rested:
            time.sleep(self._options.cool_down)
        self._rested = False
        found = self._run.run(templates, plan, streams=self._options.streams, settle=self._options.settle)
        if found.generator.ended == "interrupted":
            raise KeyboardInterrupt
        reason = found.generator.ended or found.error
        if reason:
            raise MxwireError(reason)
        return found

    def measure(self, size: int, templates: tuple[FrameTemplate, ...]) -> SizeMeasurement:
        """Measure the tester's own limit for a frame length, before all tests of that length."""
        self._progress(f"{size} bytes: the tester's own limit")
        found = self._trial(templates, GeneratorPlan(seconds=self._options.trial))
        assert found.sink is not None
        limit = TesterLimit(
            found.generator.frames_per_second,
            float(found.sink.get("frames_per_second", 0.0)),
            int(found.sink.get("ring", 0)),
        )
        if not limit.sent:
            raise MxwireError(f"{size} bytes: no frame could be sent")
        measured = SizeMeasurement(size, templates, self._megabits, limit)
        self._carry(measured, found)
        return measured

    def _carry(self, measured: SizeMeasurement, found: RunResult) -> None:
        """Note the rate of a trial that the network carried."""
        if found.loss <= self._options.accepted_loss:
            measured.carried = max(measured.carried, found.generator.frames_per_second)

    def _at_rate(self, measured: SizeMeasurement, rate: float) -> RunResult:
        self._progress(f"{measured.size} bytes: {rate:,.0f} frames/s")
        plan = GeneratorPlan(rate=rate, seconds=self._options.trial)
        found = self._trial(measured.templates, plan)
        self._note(measured, found, rate=rate)
        self._carry(measured, found)
        return found

    def _note(self, measured: SizeMeasurement, found: RunResult, **tried: float) -> None:
        measured.trials.append(
            {
                **tried,
                "sent": found.sent,
                "received": found.received,
                "lost": found.lost,
                "frames_per_second": round(found.generator.frames_per_second, 1),
                "places": {name: count for name, count in found.places().items() if count},
            }
        )

    def _passes(self, measured: SizeMeasurement, rate: float) -> bool:
        """Return whether the network carried a rate; record which part of the tester did not."""
        for _ in range(_ATTEMPTS):
            found = self._at_rate(measured, rate)
            reached = found.generator.frames_per_second >= _REACHED * rate
            # A loss counts below the rate as well: more frames would not lose fewer.
            if reached or found.loss > self._options.accepted_loss:
                break
        passed = reached and found.loss <= self._options.accepted_loss
        if not passed:
            measured.limited_by = "generator" if not reached else _lost_by_tester(found)
        return passed

    # Tests

    def throughput(self, measured: SizeMeasurement) -> dict[str, Any]:
        """Find the highest rate without more than the accepted loss."""
        options = self._options
        found = decide(
            search_rate(measured.top, options.resolution, options.repetitions),
            lambda rate: self._passes(measured, rate),
        )
        rate = found.value
        if measured.carried > rate:
            # The generator was too slow for the rate of a trial, but what it did send was carried.
            rate, measured.limited_by = min(measured.carried, measured.top), "generator"
        if measured.line is not None and rate >= _REACHED * measured.line:
            # The line was saturated: this is the best possible result, even if the generator was late in another trial.
            measured.limited_by = None
        return measured.result("throughput", rate, settled=found.settled)

    def latency(self, measured: SizeMeasurement, rate: float | None) -> Iterator[dict[str, Any]]:
        """Measure latencies at shares of the throughput, which is searched unless ``rate`` is given."""
        if rate is None:
            throughput = self.throughput(measured)
            rate = float(throughput["frames_per_second"])
        if not rate:
            raise MxwireError(f"{measured.size} bytes: no rate passes without loss, so there is none for latencies")
        for load in _LOADS:
            measured.trials = []
            found = self._at_rate(measured, rate * load)
            assert found.sink is not None
            latency = dict(found.sink.get("latency") or {})
            yield measured.result(
                "latency",
                rate * load,
                load_percent=round(load * 100),
                latency=latency,
                common_clocks=found.common_clocks,
                p99_ns=latency.get("p99_ns") if found.common_clocks else None,
                lost=found.lost,
            )

    def loss(self, measured: SizeMeasurement) -> dict[str, Any]:
        """Measure the loss from the highest rate down in steps of 10%."""

        def share(rate: float) -> float:
            found = self._at_rate(measured, rate)
            if found.lost and len(measured.trials) == 1:
                measured.limited_by = _lost_by_tester(found)
            return found.loss

        steps = decide(step_down(measured.top), share)
        worst = max(loss for _, loss in steps)
        record = measured.result("loss", measured.top, steps=[{"rate": rate, "loss": loss} for rate, loss in steps])
        return record | {"percent": round(100 * worst, 6)}

    def burst(self, measured: SizeMeasurement) -> dict[str, Any]:
        """Find the longest burst at the tester's full speed that arrives without loss, several times."""
        lengths = []
        for number in range(self._options.repetitions):

            def passes(count: int, number: int = number) -> bool:
                self._progress(f"{measured.size} bytes: burst of {count:,} frames, repetition {number + 1}")
                found = self._trial(measured.templates, GeneratorPlan(count=count))
                self._note(measured, found, burst=count)
                if found.lost:
                    measured.limited_by = _lost_by_tester(found)
                return not found.lost

            longest = max(int(measured.limit.sent * _BURST_SECONDS), 1)
            step = max(int(longest * self._options.resolution), 1)
            lengths.append(decide(search_count(longest, step), passes))
        mean = sum(lengths) / len(lengths)
        whole = min(lengths) == longest
        # RFC 9004: the buffer time is corrected for the frames that the device forwards during the burst.
        forwarded = min(measured.limit.received / measured.limit.sent, 1.0)
        buffer = mean * (1 - forwarded)
        return measured.result(
            "burst",
            measured.limit.sent,
            count=round(mean, 1),
            shortest=min(lengths),
            longest=max(lengths),
            no_loss=whole,
            buffer_frames=None if whole else round(buffer, 1),
        )


def _lost_by_tester(found: RunResult) -> str | None:
    """Return the part of the tester that lost frames in a trial; None if it was not the tester."""
    places = found.places()
    # More than half of the loss: a few drops in the ring do not explain that of a network.
    return "sink" if places.get("receiver's ring", 0) * 2 > found.lost else None
