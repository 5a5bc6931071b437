"""Figures of benchmarks, from the one recording of them (``benchmarks/recording.jsonl``, written by ``make bench``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mxwire.bench.record import Recording, read_recordings
from mxwire.bench.report import series_table
from mxwire.report.document import markdown
from rendering.basics import ROOT, PageError

RECORDING = ROOT / "benchmarks" / "recording.jsonl"
UNMEASURED = "*Not measured on a quiet machine yet: `make bench` records it.*"


@cache
def recordings() -> dict[str, Recording]:
    """Return the recordings by benchmark."""
    return {each.study: each for each in read_recordings(RECORDING)} if RECORDING.exists() else {}


def recorded(study: str, wanted: str | None) -> str:
    """Return tables of the series of a benchmark, those that ``wanted`` names with semicolons between, or all.

    Raises :class:`PageError` for a series or a benchmark that does not exist.
    """
    if not (ROOT / "benchmarks" / f"{study}.py").exists():
        raise PageError(f"there is no benchmark {study}")
    recording = recordings().get(study)
    if recording is None:
        return UNMEASURED
    return "\n\n".join(_parts(recording, wanted))


def _parts(recording: Recording, wanted: str | None) -> Iterator[str]:
    for name in wanted.split("; ") if wanted else (each.name for each in recording.series):
        series = recording.named(name)
        if not series.measurements:
            raise PageError(f"{recording.study} has no series {name!r}")
        yield f"**{name[:1].upper()}{name[1:]}, {series.unit}**"
        yield markdown([series_table(series)]).strip()
    yield conditions_of(recording)


def conditions_of(recording: Recording) -> str:
    """Return a sentence about the circumstances of a recording."""
    conditions = recording.conditions
    rounds = max(len(each.samples) for series in recording.series for each in series.measurements)
    where = "virtual machine" if conditions.virtual_machine else "machine"
    how = "compiled" if conditions.compiled else "interpreted"
    return (
        f"Medians of {rounds} interleaved rounds, on {conditions.time[:10]}: {where} with {conditions.processors} "
        f"processors ({conditions.processor}), load {conditions.load:g}, Linux {conditions.kernel}, "
        f"Python {conditions.python}, mxwire {conditions.mxwire}, {how}."
    )
