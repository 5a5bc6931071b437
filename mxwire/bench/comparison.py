"""Two recordings of a study, compared point by point by their confidence intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from mxwire.bench.record import Measurement, Recording
from mxwire.bench.report import estimate
from mxwire.errors import MxwireError
from mxwire.report.document import Block, Column, Listing, Paragraph, Row, Table, number_columns
from mxwire.words import count_of

Agreement = Literal["agree", "differ", "undecided", "missing"]
_CONDITIONS: Final = ("processor", "processors", "kernel", "compiled", "steered", "mtu", "offloads", "delay", "quick")
"""Conditions that decide numbers; the time and the load differ between any two recordings."""


@dataclass(frozen=True, slots=True)
class PointComparison:
    """A point of two recordings."""

    study: str
    series: str
    name: str
    x: float
    outcome: Agreement
    """``undecided`` if one of them was disturbed, ``missing`` if one recording lacks it."""
    left: Measurement | None
    right: Measurement | None

    def record(self) -> dict[str, Any]:
        """The comparison as an object for JSON."""
        sides = {side: None if each is None else each.record() for side, each in (("a", self.left), ("b", self.right))}
        return {key: value for key, value in asdict(self).items() if key not in ("left", "right")} | sides


def compare_recordings(
    left: Sequence[Recording], right: Sequence[Recording], tolerance: float = 0.0
) -> Iterator[PointComparison]:
    """Compare the points of the studies that both have; ``tolerance`` widens intervals by a share of the medians.

    Raises :class:`~mxwire.errors.MxwireError` if they have no study in common.
    """
    by_study = {_key(each): each for each in right}
    shared = [(each, by_study[_key(each)]) for each in left if _key(each) in by_study]
    if not shared:
        raise MxwireError("the two files have no study in common")
    for one, other in shared:
        places, others = _points(one), _points(other)
        for place in {**places, **others}:
            before, after = places.get(place), others.get(place)
            yield PointComparison(one.study, *place, _judged(before, after, tolerance), before, after)


def differing_conditions(left: Sequence[Recording], right: Sequence[Recording]) -> list[str]:
    """The conditions in which the recordings of a study differ, as sentences."""
    by_study = {_key(each): each for each in right}
    differences = []
    for one in left:
        other = by_study.get(_key(one))
        if other is None:
            continue
        for name in _CONDITIONS:
            here, there = getattr(one.conditions, name), getattr(other.conditions, name)
            if here != there:
                differences.append(f"{one.study}: {name.replace('_', ' ')} {here} and {there}")
    return differences


def _key(recording: Recording) -> tuple[str, str]:
    return recording.study, recording.conditions.testbed


def _points(recording: Recording) -> dict[tuple[str, str, float], Measurement]:
    return {
        (series.name, each.name, float(each.parameters.get(series.x, 0))): each
        for series in recording.series
        for each in series.measurements
    }


def _judged(left: Measurement | None, right: Measurement | None, tolerance: float) -> Agreement:
    if left is None or right is None:
        return "missing"
    if "disturbed" in (*left.marks, *right.marks):
        return "undecided"
    (low, high), (lowest, highest) = left.interval(), right.interval()
    room = tolerance * max(abs(left.median), abs(right.median))
    return "agree" if low <= highest + room and lowest <= high + room else "differ"


def comparison_blocks(found: Sequence[PointComparison], conditions: Sequence[str]) -> Iterator[Block]:
    """The totals, the conditions that differ, and a table of the points that do not agree."""
    totals = Counter(each.outcome for each in found)
    others = ", ".join(f"{totals[each]} {each}" for each in ("differ", "undecided", "missing") if totals[each])
    yield Paragraph(f"{totals['agree']} of {count_of(len(found), 'point')} agree" + (f"; {others}." if others else "."))
    if conditions:
        yield Paragraph("Conditions that differ:")
        yield Listing(tuple(conditions))
    shown = [each for each in found if each.outcome != "agree"]
    if shown:
        columns = (Column("point", wraps=True), *number_columns("at", "A", "B"), Column("outcome"))
        yield Table(columns, tuple(_row(each) for each in shown))


def _row(point: PointComparison) -> Row:
    known = point.left or point.right
    values = ("-" if each is None else f"{estimate(each)} {each.unit}" for each in (point.left, point.right))
    assert known is not None
    return Row((f"{point.study}: {point.series}, {point.name}", f"{point.x:,.15g}", *values, point.outcome))
