"""Durations of many captures: records of samples, and the tables and records of their sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from mxwire.analysis.timing import DurationSketch, GapHistogram, Timing
from mxwire.report.document import Block
from mxwire.report.pairs import PairOrder
from mxwire.report.timing import duration_blocks, length_estimate, series_of

SAMPLES: Final = "samples"
"""The records that are merged and not printed."""
_DELIVERY: Final = "delivery"
Party = tuple[str, int | None]
"""Host and endpoint of a record."""


def sample_records(timing: Timing, order: PairOrder) -> Iterator[dict[str, Any]]:
    """Yield a record of the samples of each series of durations, and of the deliveries of each pair."""
    for each in series_of(timing):
        yield _record(each.record, each.field, each.key, each.samples.sketch())
    for pair, parties in order.parties(timing):
        if pair.delivery.count:
            yield _record(
                _DELIVERY,
                "pair",
                sorted(((host or "?", number) for host, number in parties), key=str),
                pair.delivery.sketch(),
            )


def _record(name: str, field: str, key: Any, sketch: DurationSketch) -> dict[str, Any]:
    return {"record": SAMPLES, "of": name, "field": field, "key": key} | sketch.values()


class MergedTiming:
    """Accumulator of the records of samples and of gaps."""

    def __init__(self) -> None:
        self._sketches: dict[tuple[str, Any], DurationSketch] = {}
        self._fields: dict[str, str] = {}
        self._gaps = GapHistogram()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record, if it is a record of samples or gaps."""
        if record["record"] == SAMPLES:
            name, key = record["of"], record["key"]
            self._fields[name] = record["field"]
            key = name, tuple(map(tuple, key)) if isinstance(key, list) else key
            self._sketches[key] = self._sketches.get(key, DurationSketch()) + DurationSketch.of(record)
        elif record["record"] == "gaps":
            self._gaps.merge(np.array(record["counts"], np.int64))

    def delivery(self, one: Party, other: Party) -> DurationSketch:
        """Return the times of delivery between two hosts or endpoints."""
        first, second = sorted((one, other), key=str)
        return self._sketches.get((_DELIVERY, (first, second)), DurationSketch())

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record per series, and the record of the gaps."""
        for (name, key), sketch in sorted(self._sketches.items(), key=lambda each: (each[0][0], _place(each[0][1]))):
            if name != _DELIVERY:
                length = key if isinstance(key, int) else None
                yield {"record": f"merged_{name}", self._fields[name]: key} | length_estimate(sketch, length)
        if self._gaps.total:
            edges = [round(each, 3) for each in self._gaps.edges_ns.tolist()]
            counts = self._gaps.counts.tolist()
            yield {"record": "merged_gaps", "count": self._gaps.total, "edges_ns": edges, "counts": counts}

    def blocks(self) -> list[Block]:
        """Return the tables of durations and gaps."""
        return duration_blocks(self._sketches, self._gaps)


def _place(key: int | str) -> tuple[int, str]:
    """Return a value by which lengths are sorted as numbers, and names as texts."""
    return (key, "") if isinstance(key, int) else (0, str(key))
