"""Match the frames of two captures: by their bytes, and by their order if several are identical."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.merging.clocks import DRIFT_KNOWN, LEAST, OUTLIER_NS, Alignment, align
from mxwire.errors import MergeError
from mxwire.ethernet import SOURCE
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from mxwire.wire.encapsulation import TAG_LENGTH, TAG_TYPES, TAGS_MAXIMUM

HEAD: Final = 96
"""Number of bytes compared per frame if one of the captures truncated frames: all headers, and some data."""
_TYPE: Final = 12
_TAGS: Final = frozenset(each.to_bytes(2, "big") for each in TAG_TYPES)


class Fingerprints:
    """Digests, times and sources of the frames of one capture; arrays have shape (n,)."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Name of the capture in error texts."""
        self.cut = False
        """True if the capture truncated frames."""
        self._parts: list[tuple[NDArray[np.int64], ...]] = []
        self._whole: NDArray[np.int64] | None = None

    def add(self, batch: FrameBatch) -> None:
        """Add the next batch.

        Raises :class:`~mxwire.analysis.merging.MergeError` if the capture changed the frames, so that they differ from
        those on Ethernet.
        """
        if batch.link_type != LINKTYPE_ETHERNET:
            raise MergeError(
                f"{self.name}: was not captured on an Ethernet interface (link type {batch.link_type}), so it has no "
                "destination addresses; capture on the interface itself, not on any"
            )
        rows = np.empty((3, len(batch)), np.int64)
        lengths, wire_lengths = batch.length.tolist(), batch.wire_length.tolist()
        for place, (length, wire_length) in enumerate(zip(lengths, wire_lengths, strict=True)):
            rows[:, place] = self._fingerprint(batch.frame(place), length, max(wire_length, length))
        self._parts.append((*rows, batch.timestamp_ns.astype(np.int64)))

    def _fingerprint(self, frame: bytes, length: int, wire_length: int) -> tuple[int, int, int]:
        """Return digests of all bytes and of the first bytes, and the source address, without VLAN tags."""
        tags = 0
        while tags < TAGS_MAXIMUM and frame[_TYPE + tags * TAG_LENGTH :][:2] in _TAGS:
            tags += 1
        if tags:
            frame = frame[:_TYPE] + frame[_TYPE + tags * TAG_LENGTH :]
        wire_length -= tags * TAG_LENGTH
        self.cut = self.cut or len(frame) < wire_length
        if len(frame) < min(HEAD, wire_length):
            raise MergeError(f"{self.name}: its frames were cut to {length} bytes: {HEAD} are needed to recognise them")
        head = frame[:HEAD] + wire_length.to_bytes(4, "big")
        return _digest(frame), _digest(head), int.from_bytes(frame[SOURCE], "big")

    def _column(self, which: int) -> NDArray[np.int64]:
        if len(self._parts) > 1:
            self._parts = [tuple(np.concatenate(each) for each in zip(*self._parts, strict=True))]
        return self._parts[0][which] if self._parts else np.zeros(0, np.int64)

    def __len__(self) -> int:
        """The number of frames."""
        return len(self._column(0))

    def keys(self, cut: bool) -> NDArray[np.int64]:
        """Return keys that are equal for equal frames; with ``cut`` only first bytes and lengths are compared."""
        return self._column(1 if cut else 0)

    @property
    def source(self) -> NDArray[np.int64]:
        """Source addresses as integers."""
        return self._column(2)

    @property
    def time_ns(self) -> NDArray[np.int64]:
        """Time of each frame, by this capture's clock."""
        return self._column(3)


def _digest(data: bytes) -> int:
    """Return a hash of 64 bits that, unlike Python's own, is the same in every process, so that sorting by it is
    reproducible.
    """
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


COPY_NS: Final = 1_000_000
"""A frame repeated within this time is a duplicate, made by the network or by a mirror port."""
_ALIKE: Final = 64
"""Maximum number of identical frames that are compared pairwise while the clocks are unknown."""
_ROUNDING_NS: Final = 2_000
"""Rounding of times in captures with a resolution of microseconds."""
_COMPARED: Final = 4096
"""Maximum number of pairs of identical frames among which the best are chosen; beyond it, the nearest are paired."""
_CANDIDATES: Final = 200_000
_WINDOW_NS: Final = 2_000_000
"""Maximum deviation between clock differences that delays and drift explain."""
_AMBIGUOUS: Final = 0.75

Places = NDArray[np.intp]


def matched(first: Fingerprints, second: Fingerprints) -> tuple[Alignment, Places, Places]:
    """Compare the clocks, and pair the frames: their places in the first capture, and in the second.

    Raises :class:`~mxwire.analysis.merging.MergeError` if too few frames are the same.
    """
    cut = first.cut or second.cut
    groups = _MatchGroups(first.keys(cut), second.keys(cut))
    one, other = groups.certain(first.time_ns, second.time_ns)
    alone = len(one)
    if len(one) < LEAST:
        one, other = groups.every_pair()
        if groups.exist and not len(one):
            raise MergeError(_repeating(first, second))
        one, other = _most_likely(first, second, one, other)
    if len(one) < LEAST:
        raise MergeError(_too_few(first, second, len(one)))
    alignment = align(first.time_ns[one], second.time_ns[other], first.source[one])
    one, other = groups.in_order(first, second, alignment)
    vague = not alignment.drift_seen or alignment.drift_uncertainty > DRIFT_KNOWN
    if len(one) >= LEAST and (alone < LEAST or vague):
        # Identical frames are paired now as well, and these pairs improve the estimate of the clocks.
        better = align(first.time_ns[one], second.time_ns[other], first.source[one])
        if alone < LEAST or (better.drift_seen and better.acausal <= alignment.acausal):
            alignment = better
            one, other = groups.in_order(first, second, alignment)
    if len(one) < LEAST:
        raise MergeError(_too_few(first, second, len(one)))
    return alignment, one, other


def _repeating(first: Fingerprints, second: Fingerprints) -> str:
    return (
        f"{first.name} and {second.name}: what they have in common repeats itself, so that it fits at several "
        "differences of their clocks: take longer captures, or such with messages in them"
    )


def _too_few(first: Fingerprints, second: Fingerprints, count: int) -> str:
    same = "none is" if not count else f"only {count} can be identified as"
    return (
        f"{first.name} and {second.name}: of {len(first)} and {len(second)} frames {same} the same in both; merge "
        f"needs {LEAST}: are they captures of the two ends of one path, taken at the same time?"
    )


def _most_likely(first: Fingerprints, second: Fingerprints, one: Places, other: Places) -> tuple[Places, Places]:
    """Return the possible pairs that agree on a difference of the clocks."""
    ahead = second.time_ns[other] - first.time_ns[one]
    order = np.argsort(ahead, kind="stable")
    sorted_ahead = ahead[order]
    ends = np.searchsorted(sorted_ahead, sorted_ahead + _WINDOW_NS, side="right")
    counts = ends - np.arange(len(ends))
    if not len(counts):
        return one, other
    best = int(counts.argmax())
    apart = np.abs(sorted_ahead - sorted_ahead[best]) > 2 * _WINDOW_NS
    if apart.any() and int(counts[apart].max()) >= _AMBIGUOUS * int(counts[best]) and int(counts[best]) >= LEAST:
        raise MergeError(_repeating(first, second))
    chosen = order[best : ends[best]]
    return one[chosen], other[chosen]


class _MatchGroups:
    """Groups of frames with equal keys that occur in both captures."""

    def __init__(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        self._first, self._second = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
        keys, self._start, self._count = np.unique(first[self._first], return_index=True, return_counts=True)
        other_keys, start, count = np.unique(second[self._second], return_index=True, return_counts=True)
        _, here, there = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
        self._start, self._count = self._start[here], self._count[here]
        self._other_start, self._other_count = start[there], count[there]

    @property
    def exist(self) -> bool:
        """True if both captures have a frame in common."""
        return bool(len(self._count))

    def single(self) -> tuple[Places, Places]:
        """Return the frames that occur exactly once in each capture."""
        once = (self._count == 1) & (self._other_count == 1)
        return self._first[self._start[once]], self._second[self._other_start[once]]

    def certain(self, first_ns: NDArray[np.int64], second_ns: NDArray[np.int64]) -> tuple[Places, Places]:
        """Return the first frame of each group whose frames are all from the same moment, in both captures.

        They are duplicates of one frame, made by a mirror port or by the network; retransmissions follow later.
        """
        one, other = self._first[self._start], self._second[self._other_start]
        last = self._first[self._start + self._count - 1]
        other_last = self._second[self._other_start + self._other_count - 1]
        brief = (first_ns[last] - first_ns[one] <= COPY_NS) & (second_ns[other_last] - second_ns[other] <= COPY_NS)
        return one[brief], other[brief]

    def every_pair(self) -> tuple[Places, Places]:
        """Return each frame with each identical one, a bounded number of pairs."""
        ones, others, total = [], [], 0
        few = (self._count <= _ALIKE) & (self._other_count <= _ALIKE)
        for group in np.flatnonzero(few).tolist():
            one, other = self._members(group)
            ones.append(np.repeat(one, len(other)))
            others.append(np.tile(other, len(one)))
            total += len(one) * len(other)
            if total > _CANDIDATES:
                break
        nothing = np.zeros(0, np.intp)
        return np.concatenate([nothing, *ones]), np.concatenate([nothing, *others])

    def in_order(self, first: Fingerprints, second: Fingerprints, alignment: Alignment) -> tuple[Places, Places]:
        """Return the pairs, using the known clocks; of identical frames the nearest are paired.

        Frames are not paired if one would have arrived before the other was sent.
        """
        first_ns, second_ns = first.time_ns, alignment.clock.to_first(second.time_ns)
        directions = _directions_of(first.source, alignment)
        slack = _slack(alignment, int(np.ptp(first_ns)) if len(first_ns) else 0)
        one, other = self.single()
        delay = (second_ns[other] - first_ns[one]) * np.where(directions[one] == 0, 1, directions[one])
        fits = (np.abs(delay) <= OUTLIER_NS) & ((directions[one] == 0) | (delay >= -slack))
        ones, others = [one[fits]], [other[fits]]
        for group in np.flatnonzero((self._count > 1) | (self._other_count > 1)).tolist():
            here, there = self._members(group)
            direction = int(directions[here[0]])
            pairs = _nearest(first_ns[here].tolist(), second_ns[there].tolist(), direction, slack)
            ones.append(here[[each for each, _ in pairs]])
            others.append(there[[each for _, each in pairs]])
        return np.concatenate(ones), np.concatenate(others)

    def _members(self, group: int) -> tuple[Places, Places]:
        start, other_start = int(self._start[group]), int(self._other_start[group])
        return (
            self._first[start : start + int(self._count[group])],
            self._second[other_start : other_start + int(self._other_count[group])],
        )


def _directions_of(source: NDArray[np.int64], alignment: Alignment) -> NDArray[np.int64]:
    """Return 1 for frames from the first end to the second, -1 for the opposite direction, 0 if unknown."""
    if alignment.acausal:
        return np.zeros(len(source), np.int64)
    there = [each for each, side in alignment.sides.items() if side == "first"]
    back = [each for each, side in alignment.sides.items() if side == "second"]
    return np.isin(source, there).astype(np.int64) - np.isin(source, back)


def _slack(alignment: Alignment, duration: int) -> float:
    """Largest apparent negative delay of a frame, in nanoseconds, allowed for the uncertainty of the clocks."""
    delay = COPY_NS if alignment.uncertainty_ns is None else 2 * alignment.uncertainty_ns
    return _ROUNDING_NS + delay + min(alignment.drift_uncertainty * duration, OUTLIER_NS)


def _nearest(one: list[int], other: list[int], direction: int, slack: float) -> list[tuple[int, int]]:
    """Return ordered pairs of places in two lists of times, each time with the nearest one in the right direction."""

    def apart(here: int, there: int) -> float:
        """Return the delay of a frame as a distance; a frame that seems to arrive too early gets the greatest."""
        delay = (other[there] - one[here]) * (direction or 1)
        if delay >= 0 or not direction:
            return abs(delay)
        return OUTLIER_NS / 2 - delay if delay >= -slack else 2 * OUTLIER_NS

    if len(one) * len(other) <= _COMPARED:
        return _best(len(one), len(other), apart)
    pairs, here, there = [], 0, 0
    while here < len(one) and there < len(other):
        more = (len(one) - here) - (len(other) - there)
        if more > 0 and here + 1 < len(one) and apart(here + 1, there) < apart(here, there):
            here += 1
        elif more < 0 and there + 1 < len(other) and apart(here, there + 1) < apart(here, there):
            there += 1
        elif apart(here, there) > OUTLIER_NS:
            if other[there] < one[here]:
                there += 1
            else:
                here += 1
        else:
            pairs.append((here, there))
            here += 1
            there += 1
    return pairs


def _best(one: int, other: int, apart: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Return the ordered pairing with most pairs and, among several, the one with the least total distance."""
    # Filled from the end: the number of pairs that are possible from this place, and their total distance.
    scores = [[(0, 0.0)] * (other + 1) for _ in range(one + 1)]
    for here in reversed(range(one)):
        for there in reversed(range(other)):
            better = max(scores[here + 1][there], scores[here][there + 1])
            distance = apart(here, there)
            if distance <= OUTLIER_NS:
                pairs, less = scores[here + 1][there + 1]
                better = max(better, (pairs + 1, less - distance))
            scores[here][there] = better
    chosen, here, there = [], 0, 0
    while here < one and there < other:
        if scores[here][there] == scores[here + 1][there]:
            here += 1
        elif scores[here][there] == scores[here][there + 1]:
            there += 1
        else:
            chosen.append((here, there))
            here += 1
            there += 1
    return chosen
