"""Results of a raw replay: frames transmitted, accuracy of the pace, and frames received."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.units import SECOND
from mxwire.wire.enums import PacketType

_BUCKET_NS: Final = 1_000
_BUCKETS: Final = 1_000_000
"""Resolution of delays up to a second: one bucket per microsecond."""


@dataclass
class DelayHistogram:
    """Histogram of the delays between due and actual transmission, in bounded memory."""

    count: int = 0
    total_ns: int = 0
    largest_ns: int = 0
    _buckets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BUCKETS + 1, np.int64))

    def add(self, late_ns: NDArray[np.int64]) -> None:
        """Add delays in ns."""
        if not len(late_ns):
            return
        self.count += len(late_ns)
        self.total_ns += int(late_ns.sum())
        self.largest_ns = max(self.largest_ns, int(late_ns.max()))
        np.add.at(self._buckets, np.minimum(late_ns // _BUCKET_NS, _BUCKETS), 1)

    @property
    def mean_ns(self) -> float:
        """Mean delay in ns."""
        return self.total_ns / self.count if self.count else 0.0

    def percentile_ns(self, percent: float) -> int:
        """Return the delay that ``percent`` of the frames do not exceed, rounded up to a microsecond."""
        if not self.count:
            return 0
        place = int(np.searchsorted(np.cumsum(self._buckets), self.count * percent / 100))
        return min((place + 1) * _BUCKET_NS, self.largest_ns)


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
    asked_ns: int = 0
    """Requested duration from the first frame to the last; 0 at top speed."""
    taken_ns: int = 0
    """Actual duration."""
    errors: DelayHistogram = field(default_factory=DelayHistogram)
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
        counts = {type_name(each): int(self.answers[each]) for each in np.flatnonzero(self.answers).tolist()}
        return dict(sorted(counts.items(), key=lambda each: -each[1]))

    def record(self) -> dict[str, Any]:
        """Return the result as an object for JSON; times in microseconds."""
        paced = self.errors.count > 0
        return {
            "frames": self.frames,
            "bytes": self.bytes,
            "refused": self.refused,
            "loops": self.loops,
            "asked_us": self.asked_ns / 1e3 if paced else None,
            "taken_us": self.taken_ns / 1e3,
            "frames_per_second": round(self.frames_per_second, 1),
            "bits_per_second": round(self.bits_per_second, 1),
            "late_mean_us": round(self.errors.mean_ns / 1e3, 3) if paced else None,
            "late_p99_us": self.errors.percentile_ns(99) / 1e3 if paced else None,
            "late_max_us": self.errors.largest_ns / 1e3 if paced else None,
            "answers": self.answers_by_type(),
            "interrupted": self.interrupted,
        }


def type_name(number: int) -> str:
    """Return the name of a packet type, or its number if it has none."""
    try:
        return PacketType(number).name
    except ValueError:
        return str(number)
