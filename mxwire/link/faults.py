"""Faults of a network path: loss, duplication, reordering, corruption and delay, by a seed and in real time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from mxwire.ethernet import HEADER_SIZE
from mxwire.units import MILLISECOND


@dataclass(frozen=True, slots=True)
class Faults:
    """Fault rates of one direction, from 0 to 1.

    Raises ValueError for an invalid rate or delay.
    """

    loss: float = 0.0
    """Share of frames that are lost."""
    duplicate: float = 0.0
    """Share of frames that arrive twice."""
    reorder: float = 0.0
    """Share of frames that are delayed by up to 2 ms, so that later ones overtake them."""
    corrupt: float = 0.0
    """Share of frames with one bit inverted after the Ethernet header."""
    delay: float = 0.0
    """Additional delay of every frame in seconds."""

    def __post_init__(self) -> None:
        """Check the rates and the delay."""
        for name in ("loss", "duplicate", "reorder", "corrupt"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} is a rate from 0 to 1, not {rate}")
        if not 0 <= self.delay < float("inf"):
            raise ValueError(f"delay is a number of seconds, not {self.delay}")


@dataclass(slots=True)
class FaultCounts:
    """Counters of one direction."""

    frames: int = 0
    """Frames enqueued."""
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0


class FaultyPath:
    """One direction of a faulty link. Which frames are affected depends on the seed alone."""

    def __init__(self, faults: Faults, random: Random) -> None:
        self.faults = faults
        self.counts = FaultCounts()
        self._random = random
        self._held: list[tuple[int, int, bytes]] = []
        self._place = 0

    @property
    def harmless(self) -> bool:
        """True if all frames pass unchanged."""
        return self.faults == Faults() and not self._held

    def draw_from(self, random: Random) -> None:
        """Use another source of randomness for the next frames."""
        self._random = random

    def put(self, frame: bytes, now: int) -> None:
        """Enqueue a frame at time ``now``, in ns of any clock."""
        faults, draw = self.faults, self._random.random
        # Draw the random numbers of all faults for each frame, so that one rate does not change which frames the other
        # faults affect.
        lost, twice, late, corrupt = (
            draw() < rate for rate in (faults.loss, faults.duplicate, faults.reorder, faults.corrupt)
        )
        hold = self._random.randrange(2 * MILLISECOND)
        position = self._random.random()
        self.counts.frames += 1
        if lost:
            self.counts.lost += 1
            return
        if corrupt and len(frame) > HEADER_SIZE:
            self.counts.corrupted += 1
            frame = _with_bit_inverted(frame, position)
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
        """Take the frames that are due by ``now``, each with its time."""
        out = []
        while self._held and self._held[0][0] <= now:
            due, _, frame = heapq.heappop(self._held)
            out.append((due, frame))
        return out

    @property
    def in_flight(self) -> int:
        """Number of frames that are held back."""
        return len(self._held)

    def due(self) -> int | None:
        """Time at which the next frame is due; None if none is held back."""
        return self._held[0][0] if self._held else None


def _with_bit_inverted(frame: bytes, position: float) -> bytes:
    bit = int(position * (len(frame) - HEADER_SIZE) * 8)
    corrupted = bytearray(frame)
    corrupted[HEADER_SIZE + bit // 8] ^= 1 << bit % 8
    return bytes(corrupted)
