"""The plan of a merge: the destination of each frame of two captures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.merging.clocks import Alignment, Side
from mxwire.analysis.merging.fingerprints import Fingerprints
from mxwire.analysis.merging.matching import COPY_NS, Places, matched


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one capture. All but ``frames`` count frames that only this one has."""

    frames: int
    only: int
    """All of them."""
    outside: int
    """The other capture had not begun yet, or had ended."""
    duplicates: int
    """Doubles of frames that both have."""
    sent: int
    """They were sent at this end, and did not arrive at the other, or were not captured there."""
    arrived: int
    """They arrived at this end, and were sent at the other one, whose capture has lost them."""

    @property
    def unknown(self) -> int:
        """Frames known to come from neither end."""
        return self.only - self.outside - self.duplicates - self.sent - self.arrived


@dataclass(frozen=True, slots=True)
class Delay:
    """One-way delays of frames, in nanoseconds, by the compared clocks."""

    frames: int
    least_ns: float
    median_ns: float


@dataclass(frozen=True)
class Plan:
    """Common frames of two captures, and the frames written of each."""

    alignment: Alignment
    both: int
    """Frames that both have."""
    first: Counts
    second: Counts
    delays: dict[Side, Delay]
    """By the end at which frames began; only of ends that have sent any."""
    keep: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Which frames of each are written; shapes (frames of it,)."""


def plan(first: Fingerprints, second: Fingerprints, *, keep_both: bool = False) -> Plan:
    """Match the frames of two captures and choose those to write: of each pair, the one captured at its sender.

    So each frame has its time of transmission, where that is known. With ``keep_both`` all are written. Raises
    :class:`~mxwire.analysis.merging.MergeError` where the captures do not fit together.
    """
    alignment, one, other = matched(first, second)
    first_ns, second_ns = first.time_ns, alignment.clock.to_first(second.time_ns)
    keep = np.ones(len(first), np.bool_), np.ones(len(second), np.bool_)
    if not keep_both:
        at_second = _from(first.source[one], alignment, "second")
        keep[0][one[at_second]] = False
        keep[1][other[~at_second]] = False
    took = second_ns[other] - first_ns[one]
    return Plan(
        alignment,
        len(one),
        _counts(first, one, first_ns, second_ns, alignment, "first"),
        _counts(second, other, second_ns, first_ns, alignment, "second"),
        _delays(first.source[one], took, alignment),
        keep,
    )


def _from(source: NDArray[np.int64], alignment: Alignment, side: Side) -> NDArray[np.bool_]:
    return np.isin(source, [each for each, where in alignment.sides.items() if where == side])


def _counts(
    capture: Fingerprints,
    pairs: Places,
    time_ns: NDArray[np.int64],
    other_ns: NDArray[np.int64],
    alignment: Alignment,
    side: Side,
) -> Counts:
    alone = np.ones(len(capture), np.bool_)
    alone[pairs] = False
    places = np.flatnonzero(alone)
    begun, ended = int(other_ns.min()), int(other_ns.max())
    outside = (time_ns[places] < begun) | (time_ns[places] > ended)
    places = places[~outside]
    duplicates = _duplicates(capture, pairs, places)
    places = places[~duplicates]
    here = _from(capture.source[places], alignment, side)
    there = _from(capture.source[places], alignment, "second" if side == "first" else "first")
    return Counts(
        len(capture), int(alone.sum()), int(outside.sum()), int(duplicates.sum()), int(here.sum()), int(there.sum())
    )


def _duplicates(capture: Fingerprints, pairs: Places, places: Places) -> NDArray[np.bool_]:
    """Which of the frames at ``places`` are the same as one of ``pairs`` of about the same time."""
    keys = capture.keys(capture.cut)
    alike = np.isin(keys[places], keys[pairs])
    times: dict[int, list[int]] = {}
    wanted = np.isin(keys[pairs], keys[places[alike]])
    for place in pairs[wanted].tolist():
        times.setdefault(int(keys[place]), []).append(int(capture.time_ns[place]))
    found = np.zeros(len(places), np.bool_)
    for number in np.flatnonzero(alike).tolist():
        place = places[number]
        known = times[int(keys[place])]
        found[number] = min(abs(each - int(capture.time_ns[place])) for each in known) <= COPY_NS
    return found


def _delays(source: NDArray[np.int64], took: NDArray[np.int64], alignment: Alignment) -> dict[Side, Delay]:
    found: dict[Side, Delay] = {}
    sides: tuple[tuple[Side, int], ...] = (("first", 1), ("second", -1))
    for side, sign in sides:
        chosen = took[_from(source, alignment, side)] * sign
        if len(chosen):
            found[side] = Delay(len(chosen), float(chosen.min()), float(np.median(chosen)))
    return found
