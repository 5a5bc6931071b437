"""Recordings of studies: measurements with their samples and counts, and the conditions under which they were made.

A recording is written as JSON Lines (an object for the study and its conditions, one per measurement, and one at the
end) or as Parquet (one row per measurement).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any, Final

from mxwire.errors import MxwireError, OutputError
from mxwire.extras import import_extra
from mxwire.order_statistics import percentile
from mxwire.words import count_of

VIRTUAL_TIME: Final = "virtual time"
"""The testbed of a study on modelled hosts."""
VARIED: Final = "varied"
"""The fact of a study in virtual time with the points that result if a guess of its table changes."""
_FORMER: Final = {"stage": "testbed"}
"""The names of conditions by those in recordings of version 0.9 and earlier."""
CONFIDENCE: Final = 0.95
"""Probability with which the interval of a measurement contains the median."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The circumstances of a recording that decide its numbers."""

    time: str = ""
    """Begin, as ISO 8601 in UTC."""
    testbed: str = ""
    """``namespaces``, ``machines``, ``memory``, or :data:`VIRTUAL_TIME` and the name of a table of costs."""
    processor: str = ""
    processors: int = 0
    """Processors that the study may use."""
    virtual_machine: bool = False
    kernel: str = ""
    python: str = ""
    mxwire: str = ""
    compiled: bool = False
    """True if mxwire's engine and links are compiled."""
    load: float = 0.0
    """Average number of programs that were runnable beside the study, before it."""
    steered: bool = False
    """True if frames are processed by the receiver's processor."""
    mtu: int = 0
    offloads: tuple[str, ...] = ()
    """Offloads that are on."""
    driver: str = ""
    delay: float = 0.0
    """Delay added to each frame, in seconds."""
    coalescing: float | None = None
    """Interrupt coalescing in µs; None if the driver has none."""
    placement: tuple[int, ...] = ()
    """Processor of each side."""
    quick: bool = False
    """True if too few operations were measured to judge times."""
    seed: int | None = None

    @property
    def virtual(self) -> bool:
        """True if times are those of a model."""
        return self.testbed.startswith(VIRTUAL_TIME)

    def lines(self) -> Iterator[tuple[str, str]]:
        """The conditions as names and texts, for a report."""
        where = "virtual machine" if self.virtual_machine else "machine"
        yield "machine", f"{self.processor}, {count_of(self.processors, 'processor')} ({where})"
        yield "software", f"Linux {self.kernel}, Python {self.python}, mxwire {self.mxwire}"
        yield "engine", "compiled" if self.compiled else "interpreted"
        yield "other programs before", f"{self.load:.1f}"
        if self.mtu:
            side = "receiver's" if self.steered else "sender's"
            steering = f", frames processed by the {side} processor" if self.testbed == "namespaces" else ""
            yield "network", f"{self.testbed}, {self.driver or 'no driver'}, MTU {self.mtu}{steering}"
            yield "offloads", ", ".join(self.offloads) or "none"
        else:
            yield "network", self.testbed
        if self.delay:
            yield "delay", f"{self.delay * 1e6:g} µs per frame and direction"
        yield "time", self.time


@dataclass(frozen=True)
class Measurement:
    """A point: one contestant at one value of the series' parameter."""

    name: str
    """The contestant, such as ``tcp, spinning``."""
    unit: str
    samples: tuple[float, ...]
    """One value per round, in the order of the rounds; those of different contestants belong together by position."""
    parameters: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    """Counts such as frames, system calls and copied bytes, per message unless the key names another unit."""
    marks: tuple[str, ...] = ()
    """Caveats: ``lost``, ``disturbed``, ``modelled``, ``counted``, ``overlap``, ``methods differ`` …"""
    details: dict[str, float] = field(default_factory=dict)
    """Further values, such as percentiles within rounds."""

    @cached_property
    def _ordered(self) -> list[float]:
        return sorted(self.samples)

    @property
    def least(self) -> float:
        """Smallest sample."""
        return self._ordered[0]

    @property
    def median(self) -> float:
        """Median of the samples."""
        return statistics.median(self._ordered)

    @property
    def p99(self) -> float:
        """99th percentile of single operations if they were recorded, otherwise of the samples."""
        return self.details.get("p99", percentile(self._ordered, 99))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Confidence interval of the median from order statistics, which assumes no distribution.

        With fewer than 6 samples no interval has 95%; then it is that of all samples.
        """
        ordered, count = self._ordered, len(self.samples)
        outside = 0.0
        place = 0
        while place < count // 2:
            outside += 2 * comb(count, place) / 2**count
            if outside > 1 - confidence:
                break
            place += 1
        place = max(place - 1, 0)
        return ordered[place], ordered[count - 1 - place]

    def record(self) -> dict[str, Any]:
        """The measurement as an object for JSON."""
        low, high = self.interval()
        derived = {"median": self.median, "least": self.least, "p99": self.p99, "interval": [low, high]}
        return asdict(self) | derived

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Measurement:
        """The measurement of an object; values derived from the samples are computed again."""
        samples, marks = tuple(map(float, record["samples"])), tuple(record.get("marks", ()))
        if not samples:
            raise ValueError("a measurement has no samples")
        others = {name: dict(record.get(name) or {}) for name in ("parameters", "counts", "details")}
        return cls(str(record["name"]), str(record["unit"]), samples, marks=marks, **others)


@dataclass(frozen=True)
class Series:
    """Curves over one parameter."""

    name: str
    unit: str
    x: str = "size"
    """Key of the parameter of the horizontal axis in ``Measurement.parameters``."""
    x_unit: str = "bytes"
    measurements: list[Measurement] = field(default_factory=list)

    def __bool__(self) -> bool:
        """True if anything was measured."""
        return bool(self.measurements)

    def contestants(self) -> list[str]:
        """Names of the curves, in the order of their first points."""
        return list(dict.fromkeys(each.name for each in self.measurements))

    def curve(self, name: str) -> list[Measurement]:
        """The points of one contestant, in order."""
        points = [each for each in self.measurements if each.name == name]
        return sorted(points, key=lambda each: each.parameters.get(self.x, 0))

    def point(self, name: str, x: float) -> Measurement | None:
        """The point of a contestant at a value of the parameter; None if it was not measured."""
        return next((each for each in self.curve(name) if each.parameters.get(self.x) == x), None)

    def median(self, name: str, x: float) -> float | None:
        """The median of a contestant at a value of the parameter; None if it was not measured."""
        point = self.point(name, x)
        return None if point is None else point.median

    def part(self, end: str, name: str = "") -> Series:
        """The curves whose names end with ``end``, without it, as a series of a ``name``."""
        found = [
            replace(each, name=each.name.removesuffix(end)) for each in self.measurements if each.name.endswith(end)
        ]
        return replace(self, name=name or self.name, measurements=found)

    def places(self) -> list[Any]:
        """The values of the parameter at which anything was measured, in order."""
        return sorted({each.parameters.get(self.x, 0) for each in self.measurements})


@dataclass
class Recording:
    """All measurements of one run of a study."""

    study: str
    conditions: Conditions
    series: list[Series] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Sentences that list the missing measurements, with the reasons."""
    complete: bool = True
    """False after Ctrl-C, the loss of a side, or a time limit: the measurements are those made until then."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Results other than curves, such as a budget or parameters of a model."""

    def remark(self, text: str) -> None:
        """Add a remark, unless the recording has it."""
        if text not in self.remarks:
            self.remarks.append(text)

    def named(self, name: str) -> Series:
        """The series of a name, which is empty if nothing was measured for it."""
        return next((each for each in self.series if each.name == name), Series(name, ""))

    def varied(self, points: Iterable[Sequence[Any]]) -> Recording:
        """The recording with other values for some points: their series, name, parameter and value."""
        values = {(series, name, x): (float(value),) for series, name, x, value in points}
        changed = []
        for series in self.series:
            keys = ((series.name, each.name, each.parameters.get(series.x)) for each in series.measurements)
            pairs = zip(keys, series.measurements, strict=True)
            moved = [replace(each, samples=values.get(key, each.samples)) for key, each in pairs]
            changed.append(replace(series, measurements=moved))
        return replace(self, series=changed)

    def join(self, other: Recording) -> None:
        """Add the series of another part of the study; curves of a series that both have are joined."""
        for series in other.series:
            known = self.named(series.name)
            if known:
                known.measurements.extend(series.measurements)
            else:
                self.series.append(series)
        self.remarks += other.remarks
        self.complete &= other.complete

    def values(self) -> list[tuple[str, str, Any, float]]:
        """The points as :meth:`varied` takes them."""
        return [
            (series.name, each.name, each.parameters.get(series.x), each.median)
            for series in self.series
            for each in series.measurements
        ]

    def records(self) -> Iterator[dict[str, Any]]:
        """The lines of the recording."""
        yield {"record": "study", "study": self.study, "conditions": asdict(self.conditions)}
        for series in self.series:
            about = {name: getattr(series, name) for name in ("x", "x_unit")}
            for each in series.measurements:
                line = {"record": "measurement", "study": self.study, "series": series.name}
                yield line | about | each.record() | {"series_unit": series.unit}
        end = {"complete": self.complete, "remarks": self.remarks, "facts": self.facts}
        yield {"record": "end", "study": self.study} | end

    def write(self, path: Path) -> None:
        """Write a file: Parquet if its name ends so, otherwise JSON Lines.

        Raises :class:`~mxwire.errors.OutputError` if it cannot be written.
        """
        try:
            if path.suffix == ".parquet":
                self._write_parquet(path)
            else:
                path.write_text("".join(json.dumps(each) + "\n" for each in self.records()), encoding="utf-8")
        except OSError as error:
            raise OutputError.of(path, error) from None

    def _write_parquet(self, path: Path) -> None:
        polars = import_extra("polars", "table", "a file that ends in .parquet")
        first, *rows, last = self.records()
        around = {"conditions": json.dumps(first["conditions"]), "end": json.dumps(last)}
        coded = ("parameters", "counts", "details")
        table = [row | {name: json.dumps(row[name]) for name in coded} | around for row in rows]
        polars.DataFrame(table).write_parquet(path)


class RecordingError(MxwireError):
    """A file is not a recording of a study."""


def read_recordings(path: Path) -> list[Recording]:
    """Read the recordings of a file: JSON Lines with one or more of them, or Parquet.

    Raises :class:`RecordingError` for a file that cannot be read, or contains something else.
    """
    try:
        if path.suffix == ".parquet":
            return _assembled(_parquet_records(path))
        return _assembled(_json_records(path))
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(f"{path}: not a recording of mxwire bench ({error})") from None


def _json_records(path: Path) -> Iterator[dict[str, Any]]:
    # Not splitlines: strings may contain the other line boundaries of Unicode.
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                problem = str(error).partition(": line ")[0]
                raise ValueError(f"line {number} is cut off, or not JSON: {problem}") from None


def _parquet_records(path: Path) -> Iterator[dict[str, Any]]:
    polars = import_extra("polars", "table", "a file that ends in .parquet")
    try:
        rows = polars.read_parquet(path).to_dicts()
    except polars.exceptions.PolarsError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    for place, row in enumerate(rows):
        if not place:
            yield {"record": "study", "study": row["study"], "conditions": json.loads(row["conditions"])}
        yield row | {name: json.loads(row[name]) for name in ("parameters", "counts", "details")}
    if rows:
        yield json.loads(rows[-1]["end"])


def _assembled(records: Iterable[dict[str, Any]]) -> list[Recording]:
    recordings: list[Recording] = []
    known = {each.name for each in fields(Conditions)}
    for record in records:
        kind = record.get("record")
        if kind == "study":
            given = {_FORMER.get(key, key): value for key, value in record["conditions"].items()}
            conditions = {key: value for key, value in given.items() if key in known}
            conditions |= {key: tuple(conditions[key]) for key in ("offloads", "placement") if key in conditions}
            recordings.append(Recording(record["study"], Conditions(**conditions), complete=False))
        elif not recordings:
            raise ValueError("the first line does not begin a study")
        elif kind == "measurement":
            _add(recordings[-1], record)
        elif kind == "end":
            recordings[-1].complete, recordings[-1].remarks = record["complete"], list(record["remarks"])
            recordings[-1].facts = dict(record.get("facts") or {})
    if not recordings:
        raise ValueError("it is empty")
    return recordings


def _add(recording: Recording, record: dict[str, Any]) -> None:
    series = recording.named(record["series"])
    if not series:
        series = Series(record["series"], record["series_unit"], record["x"], record["x_unit"])
        recording.series.append(series)
    series.measurements.append(Measurement.from_record(record))


def now_text() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
