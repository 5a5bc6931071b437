"""Transmission of frames at their due times, and its result: frames sent, accuracy of the pace, frames received."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch
from mxwire.latency_histogram import LatencyHistogram
from mxwire.link import Link, LinkError
from mxwire.link.transmit_waits import SPIN_NS, FullQueue, PacedThread
from mxwire.replay.raw.pace import Pace
from mxwire.units import SECOND
from mxwire.wire.enums import packet_type_name
from mxwire.wire.layout import TYPE_OFFSET


@dataclass
class RawReplayResult:
    """The requested and the actual transmission."""

    frames: int = 0
    """Frames that the interface accepted."""
    bytes: int = 0
    """Bytes of these frames, from the destination address on."""
    refused: int = 0
    """Frames that the interface refused."""
    loops: int = 0
    """Number of complete transmissions of the capture."""
    requested_ns: int = 0
    """Requested duration from the first frame to the last; 0 at top speed."""
    taken_ns: int = 0
    """Actual duration."""
    errors: LatencyHistogram = field(default_factory=LatencyHistogram)
    """Delay of each frame; empty at top speed."""
    answers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))
    """Number of received frames, by packet type."""
    interrupted: bool = False

    @property
    def frames_per_second(self) -> float:
        """Actual frame rate."""
        return self.frames * SECOND / self.taken_ns if self.taken_ns else 0.0

    @property
    def bits_per_second(self) -> float:
        """Actual bit rate."""
        return 8 * self.bytes * SECOND / self.taken_ns if self.taken_ns else 0.0

    def answers_by_type(self) -> dict[str, int]:
        """Return the number of received frames by name of type, the most frequent first."""
        counts = {packet_type_name(each): int(self.answers[each]) for each in np.flatnonzero(self.answers).tolist()}
        return dict(sorted(counts.items(), key=lambda each: -each[1]))

    def record(self) -> dict[str, Any]:
        """Return the result as an object for JSON; times in microseconds."""
        paced = self.errors.count > 0
        return {
            "frames": self.frames,
            "bytes": self.bytes,
            "refused": self.refused,
            "loops": self.loops,
            "requested_us": self.requested_ns / 1e3 if paced else None,
            "elapsed_us": self.taken_ns / 1e3,
            "frames_per_second": round(self.frames_per_second, 1),
            "bits_per_second": round(self.bits_per_second, 1),
            "late_mean_us": round(self.errors.mean_ns / 1e3, 3) if paced else None,
            "late_p99_us": (self.errors.percentile_ns(99) or 0) / 1e3 if paced else None,
            "late_max_us": (self.errors.maximum_ns or 0) / 1e3 if paced else None,
            "answers": self.answers_by_type(),
            "interrupted": self.interrupted,
        }


_LOOK_NS: Final = 30_000
"""Minimum time before the next frame in which received frames are read."""
_UNCOUNTED: Final = 1024
"""Number of pieces whose delays are counted together: counting after each piece would delay the next frames."""


class Player:
    """Transmits frames through a link at their due times, and counts received frames in between.

    Frames that are due together are transmitted in one call. No frame is early; late frames are not skipped.
    ``clock`` returns monotonic ns.
    """

    def __init__(self, link: Link, pace: Pace, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._link = link
        self._pace = pace
        self._clock = clock
        self._began: int | None = None
        self._thread = PacedThread()
        self._queue = FullQueue(link.name)
        self._late: list[NDArray[np.int64]] = []
        """Delays that have not been counted yet."""
        self.result = RawReplayResult()

    def play(self, pieces: Iterable[FrameBatch]) -> None:
        """Transmit all frames of a capture once; further calls are further loops."""
        try:
            for piece in pieces:
                self._play(piece)
        finally:
            self._count_errors()
        self.result.loops += 1
        self._pace.repeat()

    def listen(self, seconds: float) -> None:
        """Count received frames for some ``seconds``."""
        end = self._clock() + int(seconds * 1e9)
        while (left := end - self._clock()) > 0:
            self._count(self._link.receive(left / 1e9))

    def _play(self, batch: FrameBatch) -> None:
        due = self._pace.due(batch.timestamp_ns, batch.length)
        first = 0
        if self._began is None and not self._pace.hurried:
            # The first call takes up to 0.1 ms longer than others, so all later frames would seem early compared with
            # its frames: time begins when these have left.
            first = int(np.searchsorted(due, 0, "right"))
            self._send(batch, 0, first)
        if self._began is None:
            self._began = self._clock()
            # These frames define the beginning, and are not late.
            self._late.append(due[:first])
        if self._pace.hurried:
            self._send(batch, 0, len(batch))
            self._count(self._link.receive(0))
        else:
            self._play_paced(batch.part(first, len(batch)), due[first:] + self._began)
            self.result.requested_ns = int(due[-1])
        self.result.taken_ns = self._clock() - self._began

    def _play_paced(self, batch: FrameBatch, due: NDArray[np.int64]) -> None:
        times, count = due.tolist(), len(due)
        left_at = np.zeros(count, np.int64)
        place = 0
        while place < count:
            now = self._wait_until(times[place])
            # With all frames that have become due during the wait.
            end = bisect_right(times, now, place + 1)
            self._send(batch, place, end)
            left_at[place:end] = self._clock()
            place = end
        self._late.append(left_at - due)
        if len(self._late) >= _UNCOUNTED:
            self._count_errors()

    def _wait_until(self, due: int) -> int:
        """Wait until ``due``; return the time afterwards."""
        clock = self._clock
        now = clock()
        self._thread.note_delay(now - due)
        # There is time for counting before the next frame.
        if due - now > SPIN_NS:
            self._count_errors()
            now = clock()
        while (left := due - now) > _LOOK_NS:
            self._count(self._link.receive(max(0, left - SPIN_NS) / 1e9))
            now = clock()
        self._thread.nap(due - now)
        # A nap ends before the time, as the kernel may end a sleep after it.
        while now < due:
            now = clock()
        return now

    def _send(self, batch: FrameBatch, first: int, end: int) -> None:
        """Transmit frames; wait while the interface's queue is full."""
        result = self.result
        while first < end:
            part = batch.part(first, end)
            sent = self._link.send(part)
            result.frames += sent
            result.bytes += int(part.length[:sent].sum())
            first += sent
            if sent:
                self._queue.clear()
            if first < end:
                try:
                    self._queue.pause(self._clock())
                except LinkError:
                    result.refused += end - first
                    raise

    def _count_errors(self) -> None:
        for late in self._late:
            self.result.errors.add(late)
        self._late.clear()

    def _count(self, batch: FrameBatch) -> None:
        whole = batch.offset[batch.length > TYPE_OFFSET]
        if len(whole):
            self.result.answers += np.bincount(batch.buffer[whole + TYPE_OFFSET], minlength=256)
