"""What became of frames on their way, as the comments in the captures of a report say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mxwire.rules import LOST as NEVER

if TYPE_CHECKING:
    from mxwire.interop.stage import Recorded

LOST: Final = "lost on the way"
_COPIES: Final = re.compile(r"arrives (\d{1,4}) times")
_LATE: Final = re.compile(r"arrives (\d{1,9}\.\d{3}) ms later, behind frames that were sent after it")
_ADDRESSES: Final = slice(0, 12)


@dataclass(frozen=True, slots=True)
class Fate:
    """What befell a frame; nothing, if all is as by default."""

    copies: int = 1
    """How often it arrives: 0 if it was lost."""
    late_ns: int = 0
    """How long it was on its way, if others overtook it."""

    @property
    def is_plain(self) -> bool:
        """Whether it arrived, once and in its turn."""
        return self == Fate()

    @property
    def lines(self) -> tuple[str, ...]:
        """In words."""
        copies = () if self.copies == 1 else (f"arrives {self.copies} times",) if self.copies else (LOST,)
        late = f"arrives {self.late_ns / 1e6:.3f} ms later, behind frames that were sent after it"
        return (*copies, late) if self.late_ns else copies

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Fate:
        """What the lines of a comment say."""
        copies, late = 1, 0
        for line in lines:
            if line == LOST:
                copies = 0
            elif found := _COPIES.fullmatch(line):
                copies = int(found[1])
            elif found := _LATE.fullmatch(line):
                late = round(float(found[1]) * 1e6)
        return cls(copies, late)


def fates(frames: Sequence[Recorded]) -> dict[int, Fate]:
    """The fates of the frames that something befell, by their numbers from 1."""
    found: dict[int, Fate] = {}
    earliest: dict[bytes, int] = {}
    """By addresses: when the first of the frames that were sent later arrives."""
    for number, each in reversed(list(enumerate(frames, 1))):
        arrival = each.arrival_ns
        copies = 0 if arrival == NEVER else each.copies
        late = 0
        if arrival is not None and copies:
            way = each.frame[_ADDRESSES]
            if arrival > earliest.get(way, arrival):
                late = arrival - each.time_ns
            earliest[way] = min(arrival, earliest.get(way, arrival))
        fate = Fate(copies, late)
        if not fate.is_plain:
            found[number] = fate
    return found
