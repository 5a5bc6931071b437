"""Parameters and results of a measurement.

The sender sends the parameters first: 44 bytes in network byte order. A result has the times of one message length,
and the line that omx_perf prints for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.order_statistics import percentile

MATCH: Final = 0x1234_5678_8765_4321
"""Match information of the parameters and of all measured messages."""
PARAMETERS_LENGTH: Final = 44
SETTLE: Final = 0.5
"""Seconds that a receiver waits for the ack of its last answer before it disconnects from the sender."""
LONGEST: Final = (1 << 32) - 1
"""Maximum length of a message of the protocol in bytes (wire format, section 7)."""
LENGTHS_MAXIMUM: Final = 1 << 20
"""Largest number of lengths accepted, so that a hostile sender cannot keep a receiver busy without limit."""
_LAYOUT: Final = struct.Struct("!10I4B")
_LOW: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class PerfParameters:
    """Parameters of a measurement; lengths are in bytes."""

    iterations: int = 1000
    """Measured iterations per length."""
    warmup: int = 10
    """Iterations per length before the measured ones."""
    start: int = 0
    """The first length."""
    end: int = 4 * 1024 * 1024 + 1
    """Exclusive upper bound of the lengths."""
    multiplier: int = 2
    increment: int = 0
    """The next length is ``length * multiplier + increment``."""
    aligned: bool = False
    """True if both sides use page-aligned buffers."""
    unidirectional: bool = False
    """True if answers are empty."""
    synchronous: bool = False
    """True if sends are synchronous."""

    def lengths(self) -> Iterator[int]:
        """Yield the lengths; after 0 comes the increment, or 1. May be endless: see :meth:`check`."""
        length = self.start
        while length < self.end:
            yield length
            length = length * self.multiplier + self.increment if length else self.increment or 1

    def answer_length(self, length: int) -> int:
        """Length of the answer to a message of ``length`` bytes."""
        return 0 if self.unidirectional else length

    def check(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for parameters that cannot be measured."""
        if self.start >= self.end:
            raise MxwireError(f"nothing to measure: the first length {self.start} is not below the end {self.end}")
        if not self.iterations:
            raise MxwireError("nothing to measure: there are no measured iterations")
        last = -1
        for count, length in enumerate(islice(self.lengths(), LENGTHS_MAXIMUM + 1)):
            if length <= last:
                raise MxwireError(
                    f"the lengths never reach the end: after {last} comes {length}, by multiplier {self.multiplier} "
                    f"and increment {self.increment}"
                )
            if length > LONGEST:
                raise MxwireError(f"a message of {length} bytes is too long: {LONGEST} is the maximum")
            if count == LENGTHS_MAXIMUM:
                raise MxwireError(f"more than {LENGTHS_MAXIMUM} lengths: choose a larger step")
            last = length

    def pack(self) -> bytes:
        """Encode the message."""
        iterations, warmup, *lengths = astuple(self)[:6]
        halves = [half for each in lengths for half in (each & _LOW, each >> 32 & _LOW)]
        flags = (self.aligned, self.unidirectional, self.synchronous)
        return _LAYOUT.pack(iterations, warmup, *halves, *flags, 0)

    @classmethod
    def unpack(cls, data: bytes) -> PerfParameters:
        """Decode a message; raise :class:`~mxwire.errors.MxwireError` for one of another length."""
        if len(data) != PARAMETERS_LENGTH:
            raise not_parameters(len(data))
        iterations, warmup, *rest = _LAYOUT.unpack(data)
        start, end, multiplier, increment = (rest[at] | rest[at + 1] << 32 for at in range(0, 8, 2))
        aligned, unidirectional, synchronous = (bool(each) for each in rest[8:11])
        return cls(iterations, warmup, start, end, multiplier, increment, aligned, unidirectional, synchronous)


def not_parameters(length: int) -> MxwireError:
    """Error for a message of another length."""
    return MxwireError(f"{length} bytes are not parameters of omx_perf, which have {PARAMETERS_LENGTH}")


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
    """The time of each iteration, sorted."""

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
        return percentile(self.times, percent)

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
