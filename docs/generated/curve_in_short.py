"""The curve of live hosts at some lengths, with those at which messages change their kind, for the README."""

from __future__ import annotations

from mxwire.report.document import Column, Row, Table, markdown, number_columns
from mxwire.report.plot import number_text
from rendering.recorded import UNMEASURED, conditions_of, recordings

LENGTHS = (0, 128, 129, 4096, 32_768, 32_769, 1 << 18, 1 << 20, 1 << 22)
COLUMNS = (
    ("half round trip", ("mxoe", "omx:9000", "tcp", "frames, mxoe")),
    ("windowed rate", ("mxoe", "omx:9000", "tcp")),
)


def made() -> str:
    """Return a table, with a sentence about its conditions."""
    recording = recordings().get("curve")
    if recording is None:
        return UNMEASURED
    shown = [(series, name) for title, names in COLUMNS if (series := recording.named(title)) for name in names]
    headings = [f"{name}, {series.unit}" for series, name in shown]
    rows = []
    for length in LENGTHS:
        # A message without data has no rate in bytes: the recording counts it as one.
        points = [series.point(name, length) if length or series.unit == "µs" else None for series, name in shown]
        rows.append(Row((f"{length:,}", *("" if each is None else number_text(each.median) for each in points))))
    table = Table((Column("bytes", right=True), *number_columns(*headings)), tuple(rows))
    return f"{markdown([table])}\n{conditions_of(recording)}"
