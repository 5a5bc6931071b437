"""The fate of a frame in a simulated network, as recorded in the comments of a capture."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LOST: Final = "lost in the network"
_COPIES: Final = re.compile(r"arrives (\d{1,4}) times")
_LATE: Final = re.compile(r"arrives (\d{1,9}\.\d{3}) ms later, behind frames that were sent after it")


@dataclass(frozen=True, slots=True)
class Fate:
    """Effect of the network on a frame; by default none."""

    arrivals: int = 1
    """Number of times it arrives: 0 if it was lost."""
    late_ns: int = 0
    """Additional delay, if later frames arrived first."""

    @property
    def is_plain(self) -> bool:
        """True if it arrived once and in order."""
        return self == Fate()

    @property
    def lines(self) -> tuple[str, ...]:
        """Describe the fate."""
        arrivals = () if self.arrivals == 1 else (f"arrives {self.arrivals} times",) if self.arrivals else (LOST,)
        late = f"arrives {self.late_ns / 1e6:.3f} ms later, behind frames that were sent after it"
        return (*arrivals, late) if self.late_ns else arrivals

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Fate:
        """Parse the lines of a comment."""
        arrivals, late = 1, 0
        for line in lines:
            if line == LOST:
                arrivals = 0
            elif found := _COPIES.fullmatch(line):
                arrivals = int(found[1])
            elif found := _LATE.fullmatch(line):
                late = round(float(found[1]) * 1e6)
        return cls(arrivals, late)
