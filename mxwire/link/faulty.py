"""FaultyLink: a wrapper that adds faults to any link."""

from __future__ import annotations

import select
import time
from dataclasses import replace
from random import Random

from mxwire.frames import FrameBatch
from mxwire.link.faults import FaultCounts, Faults, FaultyPath
from mxwire.link.link import Link, LinkStatistics
from mxwire.link.timer import Timer
from mxwire.link.wrapper import LinkWrapper
from mxwire.units import SECOND

_NOTHING = FrameBatch.from_frames(())
_NONE = Faults()


class FaultyLink(LinkWrapper):
    """A link that loses, duplicates, reorders, delays or corrupts frames, in one or both directions.

    The same seed has the same effect on the same sequence of frames; only times are real. Frames that are held back are
    sent during later calls, which a host makes continually; ``fileno`` is readable when one is due.
    """

    def __init__(self, link: Link, *, seed: int, sending: Faults = _NONE, receiving: Faults = _NONE) -> None:
        super().__init__(link)
        self._sending = FaultyPath(sending, Random(f"{seed} sending"))
        self._receiving = FaultyPath(receiving, Random(f"{seed} receiving"))
        self._timer = Timer()
        self._waiting = select.epoll()
        self._waiting.register(link.fileno(), select.EPOLLIN)
        self._waiting.register(self._timer.fileno(), select.EPOLLIN)
        self._received = 0
        self._woken = False
        self._closed = False

    @property
    def faults_sending(self) -> FaultCounts:
        """Counters of sent frames."""
        return self._sending.counts

    @property
    def faults_receiving(self) -> FaultCounts:
        """Counters of received frames."""
        return self._receiving.counts

    @property
    def in_flight(self) -> int:
        """Number of frames that are held back, in both directions."""
        return self._sending.in_flight + self._receiving.in_flight

    def change(
        self, *, sending: Faults | None = None, receiving: Faults | None = None, seed: int | None = None
    ) -> None:
        """Change the faults, and with ``seed`` restart their randomness; frames held back stay held back."""
        self._sending.faults = sending or self._sending.faults
        self._receiving.faults = receiving or self._receiving.faults
        if seed is not None:
            self._sending.draw_from(Random(f"{seed} sending"))
            self._receiving.draw_from(Random(f"{seed} receiving"))

    def send(self, batch: FrameBatch) -> int:
        """Send frames through the faults; return the number accepted, which includes lost ones."""
        if self._closed:
            return 0
        if self._sending.harmless:
            self._sending.counts.frames += len(batch)
            return self.link.send(batch)
        now = time.monotonic_ns()
        for index in range(len(batch)):
            self._sending.put(batch.frame(index), now)
        refused = self._send_due(now)
        self._set_timer()
        return max(len(batch) - refused, 0)

    def _send_due(self, now: int) -> int:
        """Send the frames that are due; return the number that the link refused."""
        frames = [frame for _, frame in self._sending.take(now)]
        return len(frames) - self.link.send(FrameBatch.from_frames(frames)) if frames else 0

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return frames that have arrived and are due; see :meth:`mxwire.link.link.Link.receive`."""
        end = None if timeout is None else time.monotonic_ns() + round(timeout * SECOND)
        while True:
            self._send_due(time.monotonic_ns())
            batch = self._apply_faults(self.link.receive(self._timeout(end)))
            over = end is not None and time.monotonic_ns() >= end
            if len(batch) or self._woken or over:
                self._woken = False
                self._send_due(time.monotonic_ns())
                self._set_timer()
                return batch

    def _timeout(self, end: int | None) -> float | None:
        """Seconds to wait for the link: until a held frame is due, at most until ``end``."""
        ends = [each for each in (end, self._sending.due(), self._receiving.due()) if each is not None]
        if self._woken:
            return 0.0
        return max(min(ends) - time.monotonic_ns(), 0) / SECOND if ends else None

    def _apply_faults(self, batch: FrameBatch) -> FrameBatch:
        """Pass received frames through the faults; return those that are due."""
        if self._receiving.harmless:
            self._receiving.counts.frames += len(batch)
            self._received += len(batch)
            return batch
        now = time.monotonic_ns()
        for index in range(len(batch)):
            self._receiving.put(batch.frame(index), now)
        arrived = self._receiving.take(now)
        if not arrived:
            return _NOTHING
        first = self._received + 1
        self._received += len(arrived)
        # Frames are held by the monotonic clock, and timestamps count from 1970.
        since_1970 = time.time_ns() - now
        times = [due + since_1970 for due, _ in arrived]
        return FrameBatch.from_frames([frame for _, frame in arrived], times, first_number=first)

    def _set_timer(self) -> None:
        dues = [each for each in (self._sending.due(), self._receiving.due()) if each is not None]
        self._timer.set(min(dues, default=None))

    def wake(self) -> None:
        """End a ``receive`` that blocks in another thread, or the next one."""
        self._woken = True
        super().wake()

    def fileno(self) -> int:
        """Descriptor that is readable when frames have arrived or are due."""
        return -1 if self._closed else self._waiting.fileno()

    def statistics(self) -> LinkStatistics:
        """Counters of the inner link, with the number of frames returned by ``receive``."""
        return replace(super().statistics(), received=self._received)

    def close(self) -> None:
        """Close the inner link too; frames held back are lost. Closing it again does nothing."""
        if not self._closed:
            self._closed = True
            self._waiting.close()
            self._timer.close()
        super().close()
