"""Report of ``bench overlap``: tables and panels by case, processors, and phases of both sides above their frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mxwire.bench.overlap import AVAILABILITY, OVERLAP, PARTIES, POLLED, PROCESSORS, RAN, RATE, TIMELINES, WAITED, Phase
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.report import CurveStyle, Figure, PageFigure, SeriesFigure, figure_of, numbers_table, series_blocks
from mxwire.report import plot
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table
from mxwire.words import size_text

_PHASES: Final = {"fill": plot.COLOURS[0], "sum": plot.COLOURS[2], "wait": "#cfd4da"}
_FRAMES: Final = {True: ("frame with data", plot.COLOURS[1]), False: ("other frame", plot.COLOURS[3])}
"""Name and colour of frames, by whether they have data."""
_KEY: Final = {
    **{kind: CurveStyle(colour, "-", "s") for kind, colour in _PHASES.items()},
    **{name: CurveStyle(colour, "-", "s") for name, colour in _FRAMES.values()},
}
_SIDES: Final = ("producer", "consumer")
_DATA: Final = 1000
"""Length in bytes from which a frame is drawn as one with data."""
_SHOWN: Final = (-1.5, 1.5)
"""Limits of the axis of overlap."""


def cases(series: Series) -> list[Series]:
    """A series per case: contestants have the names of their ways of progress, and the rest is in the series' name."""
    found: dict[str, list[Measurement]] = {}
    for each in series.measurements:
        way, _, case = each.name.partition(", ")
        found.setdefault(case, []).append(replace(each, name=way))
    return [
        replace(series, name=f"{series.name}, {case}" if case else series.name, measurements=measurements)
        for case, measurements in found.items()
    ]


def overlap_blocks(recording: Recording) -> Iterator[Block]:
    """All series, by case, and the processors of all parties."""
    yield Heading("Overlap of messages and work")
    for series in recording.series:
        for each in cases(series):
            yield from series_blocks(each)
        if series.name == RATE:
            yield from _processor_blocks(series)
    parties = recording.facts.get(PROCESSORS)
    if parties:
        yield Heading("Processors", 3)
        columns = list(dict.fromkeys(party for each in parties.values() for party in each))
        rows = (
            Row((way, *(", ".join(map(str, each.get(party, ()))) or "-" for party in columns)))
            for way, each in parties.items()
        )
        yield Table(tuple(map(Column, ("progress", *columns))), tuple(rows))


def _processor_blocks(rates: Series) -> Iterator[Block]:
    """The processor time of all parties in double buffering of the longest buffers, by case."""
    longest = max((each.parameters["size"] for each in rates.measurements), default=0)
    shown = [each for each in rates.measurements if each.parameters["size"] == longest]
    parties = [each for each in PARTIES if any(each + RAN in point.details for point in shown)]
    if not parties:
        return
    yield Heading(f"Double buffering: time per buffer of {size_text(longest)} in which each party ran + waited, µs", 3)
    rows = []
    for point in shown:
        used = [(point.details.get(each + RAN), point.details.get(each + WAITED)) for each in parties]
        texts = ("" if ran is None else f"{ran:,.0f} + {waited or 0:,.0f}" for ran, waited in used)
        rows.append((point.name, f"{longest / point.median:,.0f}", *texts))
    yield numbers_table("progress and work", ("per buffer", *parties), rows)
    yield Paragraph(
        "ran: on a processor; waited: ready, while another party had the processor. A party that does neither sleeps."
    )


def overlap_figures(recording: Recording) -> Iterator[PageFigure]:
    """Rates of double buffering, overlap, and a timeline per way of progress."""
    overlap = recording.named(OVERLAP)
    yield from figure_of(
        cases(recording.named(RATE)),
        "Double buffering",
        "The producer fills, the consumer sums; the slower of both has half of the network's rate.",
    )
    if overlap:
        yield PageFigure(
            SeriesFigure(cases(overlap), "Overlap of a message and work", limits=_SHOWN),
            f"1: a message and the work beside it take the time of the longer one. Values beyond {_SHOWN[0]:g} and "
            f"{_SHOWN[1]:g}, as on a busy machine, are not drawn.",
        )
    polled = (case for each in recording.series if each.name in (AVAILABILITY, POLLED) for case in cases(each))
    yield from figure_of(polled, "Polling", "Work in slices, with a poll between them.")
    for way, timeline in recording.facts.get(TIMELINES, {}).items():
        yield PageFigure(
            _timeline_figure(way, timeline),
            f"Producer-bound, {timeline['size']:,} bytes: phases of both sides, and below them the frames that each "
            "has sent (those with data above the line, others below).",
            _KEY,
        )


def _timeline_figure(way: str, timeline: dict[str, Any]) -> Figure:
    """Bars of phases per side, and ticks of the frames that it sent."""

    def figure(pyplot: Any) -> Any:
        drawing, (axes,) = plot.panels(pyplot, f"Phases and frames, progress: {way}", (9, 2.4))
        begin = timeline["begin"]
        for each in (Phase(**phase) for phase in timeline["phases"]):
            place, width = -1.6 * each.rank, (each.end - each.begin) / 1e6
            axes.barh(place, width, 0.6, left=(each.begin - begin) / 1e6, color=_PHASES[each.kind])
        for frame in timeline["frames"]:
            place, time = -1.6 * frame["rank"] - 0.6, (frame["time"] - begin) / 1e6
            data = frame["length"] >= _DATA
            axes.plot([time, time], [place, place + (0.2 if data else -0.2)], color=_FRAMES[data][1], linewidth=0.6)
        axes.set_yticks([0, -1.6], _SIDES)
        axes.set_xlim(0, (timeline["end"] - begin) / 1e6)
        axes.set_xlabel("ms")
        return drawing

    return figure
