"""PerfResult: the times of one message length, and the line that omx_perf prints for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MEGABYTE = 10**6
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class PerfResult:
    """Measured times of one message length."""

    length: int
    """Length of a message in bytes."""
    microseconds: float
    """Half the mean round trip time; the whole of it if answers are empty (unidirectional)."""
    times: tuple[float, ...] = ()
    """The same for each iteration, sorted."""

    @classmethod
    def of(cls, length: int, rounds: Sequence[int], *, unidirectional: bool) -> PerfResult:
        """Make a result from the round trip times of all iterations, in ns."""
        share = 1e-3 if unidirectional else 0.5e-3
        times = sorted(each * share for each in rounds)
        return cls(length, sum(times) / len(times), tuple(times))

    @property
    def megabytes(self) -> float:
        """MB/s: 10^6 bytes."""
        return self.length / self.microseconds * 1e6 / MEGABYTE

    @property
    def mebibytes(self) -> float:
        """MiB/s: 2^20 bytes."""
        return self.length / self.microseconds * 1e6 / MEBIBYTE

    def percentile(self, percent: float) -> float:
        """Time in µs that ``percent`` % of the iterations did not exceed."""
        return self.times[min(len(self.times) - 1, int(len(self.times) * percent / 100))]

    def line(self) -> str:
        """Line of omx_perf: length, µs, MB/s, MiB/s."""
        return (
            f"length {self.length:>9}:\t{self.microseconds:.3f} us\t{self.megabytes:.2f} MB/s\t"
            f"{self.mebibytes:.2f} MiB/s"
        )

    def record(self) -> dict[str, Any]:
        """Record for JSON output."""
        return {
            "length": self.length,
            "microseconds": round(self.microseconds, 3),
            "megabytes_per_second": round(self.megabytes, 2),
            "mebibytes_per_second": round(self.mebibytes, 2),
            "iterations": len(self.times),
            "minimum_us": round(self.times[0], 3),
            "median_us": round(self.percentile(50), 3),
            "p99_us": round(self.percentile(99), 3),
            "maximum_us": round(self.times[-1], 3),
        }
