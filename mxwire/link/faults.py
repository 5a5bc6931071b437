"""What goes wrong with frames on their way, by a seed and in real time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from mxwire.ethernet import HEADER_SIZE
from mxwire.units import MILLISECOND


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what goes wrong in one direction; rates are from 0 to 1.

    Raises ValueError for what is no rate or no time.
    """

    loss: float = 0.0
    """Frames that never arrive."""
    duplicate: float = 0.0
    """Frames that arrive twice."""
    reorder: float = 0.0
    """Frames that are held back for up to 2 ms, so that later ones overtake them."""
    corrupt: float = 0.0
    """Frames that arrive with one bit turned over behind the Ethernet header."""
    delay: float = 0.0
    """Seconds that every frame takes longer."""

    def __post_init__(self) -> None:
        """Refuse nonsense."""
        for name in ("loss", "duplicate", "reorder", "corrupt"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} is a rate from 0 to 1, not {rate}")
        if not 0 <= self.delay < float("inf"):
            raise ValueError(f"delay is a number of seconds, not {self.delay}")


@dataclass(slots=True)
class FaultCounts:
    """What was done to the frames of one direction."""

    frames: int = 0
    """Frames that came in."""
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0


class FaultyPath:
    """One direction: frames go in, and come out as the faults have it; to which what happens, the seed says alone."""

    def __init__(self, faults: Faults, random: Random) -> None:
        self.faults = faults
        self.counts = FaultCounts()
        self._random = random
        self._held: list[tuple[int, int, bytes]] = []
        self._place = 0

    @property
    def harmless(self) -> bool:
        """Whether everything passes as it is."""
        return self.faults == Faults() and not self._held

    def draw_from(self, random: Random) -> None:
        """What happens to the next frames, this says."""
        self._random = random

    def put(self, frame: bytes, now: int) -> None:
        """A frame goes in at ``now``, in ns of any clock."""
        faults, draw = self.faults, self._random.random
        # All are drawn for each frame, so that what happens to it does not depend on the other rates.
        lost, twice, late, spoilt = (
            draw() < rate for rate in (faults.loss, faults.duplicate, faults.reorder, faults.corrupt)
        )
        hold = self._random.randrange(2 * MILLISECOND)
        turned = self._random.random()
        self.counts.frames += 1
        if lost:
            self.counts.lost += 1
            return
        if spoilt and len(frame) > HEADER_SIZE:
            self.counts.corrupted += 1
            frame = _with_bit_turned(frame, turned)
        due = now + round(faults.delay * 10**9)
        if twice:
            self.counts.duplicated += 1
            self._hold(due, frame)
        if late:
            self.counts.reordered += 1
            due += hold
        self._hold(due, frame)

    def _hold(self, due: int, frame: bytes) -> None:
        heapq.heappush(self._held, (due, self._place, frame))
        self._place += 1

    def take(self, now: int) -> list[tuple[int, bytes]]:
        """What has come out until ``now``, each with its time."""
        out = []
        while self._held and self._held[0][0] <= now:
            due, _, frame = heapq.heappop(self._held)
            out.append((due, frame))
        return out

    @property
    def under_way(self) -> int:
        """How many frames have gone in and not come out."""
        return len(self._held)

    def due(self) -> int | None:
        """When the next frame comes out; None: nothing is under way."""
        return self._held[0][0] if self._held else None


def _with_bit_turned(frame: bytes, where: float) -> bytes:
    bit = int(where * (len(frame) - HEADER_SIZE) * 8)
    spoilt = bytearray(frame)
    spoilt[HEADER_SIZE + bit // 8] ^= 1 << bit % 8
    return bytes(spoilt)
