"""Generator: sends test frames as fast as a link takes them, or at a rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE
from mxwire.frames import FrameBatch
from mxwire.latency_histogram import LatencyHistogram
from mxwire.linerate.pacing import DEPTH_NS, TokenBucket
from mxwire.linerate.slots import FrameSlots
from mxwire.link.transmit_waits import SPIN_NS, FullQueue, PacedThread
from mxwire.units import MILLISECOND, SECOND

BATCH: Final = 64
"""Frames per call of the link: enough to spread the cost of a call, few enough to stay in the processor's cache."""
_REHEARSALS: Final = 20
"""Calls after which further ones take no longer than in the middle of a run."""
_CLOCK_CHECK_NS: Final = 100 * MILLISECOND
_CLOCK_STEP_NS: Final = MILLISECOND


class FrameTransmitter(Protocol):
    """The part of a :class:`~mxwire.link.link.Link` that a generator needs."""

    @property
    def name(self) -> str:
        """Name of the interface."""

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent."""


SendSlots = Callable[[int, int], int]
"""Sends the frames in the slots from one up to, not including, another; returns the number sent."""


@dataclass
class GeneratorResult:
    """A run as it was requested, and as it was sent."""

    frames: int = 0
    """Frames accepted by the interface."""
    bytes: int = 0
    """Bytes of these frames, without frame check sequence."""
    duration_ns: int = 0
    processor_ns: int = 0
    """Time of the processor that the generator used; on a veth pair it includes the kernel's part of the receiver."""
    rate: float | None = None
    """Requested frames per second; None: as fast as possible."""
    forgone: int = 0
    """Frames not sent because the generator was late by more than the depth of its bucket."""
    delayed: int = 0
    """Calls in which the interface did not accept all frames: its queue was full."""
    lateness: LatencyHistogram = field(default_factory=LatencyHistogram)
    """Delay of each frame of a paced run."""
    clock_steps: int = 0
    """Times at which the clock of the stamps was set."""
    ended: str = ""
    """The reason for an early end."""

    @property
    def frames_per_second(self) -> float:
        """Frame rate reached."""
        return self.frames * SECOND / self.duration_ns if self.duration_ns else 0.0

    @property
    def bits_per_second(self) -> float:
        """Bit rate reached, without frame check sequence, preamble and gap."""
        return 8 * self.bytes * SECOND / self.duration_ns if self.duration_ns else 0.0

    def record(self) -> dict[str, Any]:
        """The result as an object for JSON."""
        return {
            "frames": self.frames,
            "bytes": self.bytes,
            "duration_ns": self.duration_ns,
            "processor_ns": self.processor_ns,
            "frames_per_second": round(self.frames_per_second, 1),
            "bits_per_second": round(self.bits_per_second, 1),
            "requested_frames_per_second": self.rate,
            "forgone": self.forgone,
            "delayed_calls": self.delayed,
            "lateness": None if self.rate is None else self.lateness.record(),
            "clock_steps": self.clock_steps,
            "ended": self.ended or None,
        }


@dataclass(frozen=True, slots=True)
class GeneratorPlan:
    """Limits and pace of a run. Without ``count`` and ``seconds`` it ends when it is interrupted."""

    rate: float | None = None
    """Frames per second; None: as fast as possible."""
    count: int | None = None
    seconds: float | None = None
    burst: int = 1
    catch_up_ns: int = DEPTH_NS
    """After a delay, the frames of this much time are sent at once to catch up; the others are forgone."""
    batch: int | None = None
    """Maximum number of frames per call of the link; None for the default of the link."""


class ClockMonitor:
    """Detects that the clock of day was set: its distance from the monotonic clock changes.

    ``clock`` returns monotonic ns, ``day_clock`` ns of day.
    """

    def __init__(self, clock: Callable[[], int], day_clock: Callable[[], int]) -> None:
        self._clock = clock
        self._day_clock = day_clock
        self._distance = day_clock() - clock()
        self.steps = 0

    def check(self) -> bool:
        """Return whether the clock was set since the last call."""
        distance = self._day_clock() - self._clock()
        stepped = abs(distance - self._distance) > _CLOCK_STEP_NS
        self._distance = distance
        self.steps += stepped
        return stepped


class FrameGenerator:
    """Sends the frames of ``slots`` through a link, by ``send`` if that is given, in batches of ``batch``.

    ``clock`` returns monotonic ns, ``day_clock`` the ns of day with which frames are stamped.

    The number of a frame is used only when the interface has accepted it, so a gap at the receiver is a loss behind
    the interface. :attr:`result` is valid at any time, also after an error.
    """

    def __init__(
        self,
        link: FrameTransmitter,
        slots: FrameSlots,
        plan: GeneratorPlan,
        *,
        send: SendSlots | None = None,
        batch: int = BATCH,
        clock: Callable[[], int] = time.monotonic_ns,
        day_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._link = link
        self._send = send or (lambda first, end: link.send(slots.frames(first, end)))
        self._slots = slots
        self._plan = plan
        # One call per burst, so that its frames follow each other without a pause.
        self._batch = max(plan.batch or batch, plan.burst)
        self._clock = clock
        self._day_clock = day_clock
        self._queue = FullQueue(link.name)
        self._thread = PacedThread()
        self._step_ns = 0
        """Duration of a paced step, as rehearsed: from the time at which a frame is due until it has been sent."""
        self.stopped = False
        """Set to end the run after the current batch; a signal handler may set it."""
        self.result = GeneratorResult(rate=plan.rate)

    def run(self, progress: Callable[[GeneratorResult], None] | None = None) -> GeneratorResult:
        """Send until the plan is fulfilled; call ``progress`` some times per second.

        Raises :class:`~mxwire.link.errors.LinkError` if the interface accepts no frame for a few seconds.
        """
        plan, result, clock = self._plan, self.result, self._clock
        if progress is not None:
            progress(result)
        self._rehearse()
        monitor = ClockMonitor(clock, self._day_clock)
        used = time.process_time_ns()
        begun = now = clock()
        bucket = (
            None if plan.rate is None else TokenBucket(plan.rate, begun, burst=plan.burst, depth_ns=plan.catch_up_ns)
        )
        end = None if plan.seconds is None else begun + int(plan.seconds * SECOND)
        check = begun + _CLOCK_CHECK_NS
        try:
            while not self.stopped and (end is None or now < end):
                if plan.count is not None and result.frames >= plan.count:
                    break
                # Not after each batch: clocks and terminal take time from the frames.
                if now >= check:
                    result.clock_steps += monitor.check()
                    check = now + _CLOCK_CHECK_NS
                    result.duration_ns = now - begun
                    if progress is not None:
                        progress(result)
                self._step(now, bucket)
                now = clock()
        finally:
            result.duration_ns = clock() - begun
            result.processor_ns = time.process_time_ns() - used
            if bucket is not None:
                result.forgone = bucket.forgone
        return result

    def _rehearse(self) -> None:
        """Make all calls of a paced step without a frame: the first calls take 0.1 ms and would delay frames."""
        if self._plan.rate is None:
            return
        for _ in range(_REHEARSALS):
            bucket, begun = TokenBucket(self._plan.rate, 0), self._clock()
            count = bucket.take(0, 1)
            first = self._slots.stamp(0, 1, self._day_clock())
            self._send(first, first)
            self._step_ns = self._clock() - begun
            LatencyHistogram().add(bucket.lateness(0, count))

    def _step(self, now: int, bucket: TokenBucket | None) -> None:
        """Send the next batch, or wait until a frame is due."""
        plan, result = self._plan, self.result
        count = min(self._batch, self._slots.room(result.frames))
        if plan.count is not None:
            count = min(count, plan.count - result.frames)
        if bucket is not None:
            count = bucket.take(now, count)
            if not count:
                self._wait(now, bucket)
                return
        # Stamped just before the call, so that latencies do not include the wait for the pace.
        first = self._slots.stamp(result.frames, count, self._day_clock())
        sent = self._send(first, first + count)
        if bucket is not None and sent and not result.frames:
            # The first call takes up to 0.1 ms longer than others, so all later frames would seem early compared with
            # its frame.
            bucket.restart(self._clock() - self._step_ns)
        if sent:
            self._queue.clear()
        if sent < count:
            result.delayed += 1
            if not sent:
                self._queue.pause(now)
            if bucket is not None:
                bucket.give_back(count - sent)
        if bucket is not None and sent:
            late = bucket.lateness(now, sent)
            result.lateness.add(late)
            self._thread.note_delay(int(late[0]))
        result.frames += sent
        result.bytes += self._slots.octets[first + sent] - self._slots.octets[first]

    def _wait(self, now: int, bucket: TokenBucket) -> None:
        left = bucket.next_due() - now
        if left > SPIN_NS:
            # In short sleeps, so that a signal and the end of the run are noticed.
            time.sleep(min((left - SPIN_NS) / SECOND, 0.05))
        else:
            self._thread.nap(left)


def check_length(name: str, mtu: int, longest: int) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a frame of ``longest`` bytes exceeds the MTU of an interface."""
    if longest > mtu + HEADER_SIZE:
        raise MxwireError(
            f"{name}: its MTU of {mtu} is too small for frames of {longest} bytes, which need {longest - HEADER_SIZE}: "
            f"raise it on both sides (ip link set {name} mtu {longest - HEADER_SIZE}), or send shorter frames"
        )
