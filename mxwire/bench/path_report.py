"""Report of ``bench path``: the ladder, the counts, the budgets and the share of a processor per frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from mxwire.bench import report
from mxwire.bench.path import ALONE, CALL, FRAME, FRAME_SIZE, LIBRARY, SIZES, TOLERANCE, TRIP, Budget, budgets, steps
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.rounds import order
from mxwire.report.document import Block, Heading, Paragraph, Table
from mxwire.report.plot import COLOURS, legend_beside, number_text, panels
from mxwire.wire.dialect import MXOE

_SPEEDS: Final = ((10, "10 Mb/s"), (100, "100 Mb/s"), (1_000, "1 Gb/s"), (10_000, "10 Gb/s"), (100_000, "100 Gb/s"))
"""Links of the papers' table and of today, in Mb/s."""


def path_blocks(recording: Recording) -> Iterator[Block]:
    """The ladder, the counts, the budget and the share of a processor per frame."""
    yield Heading("Where the time goes")
    trips = recording.named(TRIP)
    if trips:
        yield _ladder(trips)
        yield from report.marks_legend(trips.measurements)
        yield from _orderings(trips)
        counted = _counted(recording)
        if counted.rows:
            yield Heading("Counted per round trip, one side, blocking", 3)
            yield Paragraph(_COPIES)
            yield counted
            yield from _engine_copies(recording.named(ALONE))
    for name in (ALONE, CALL, FRAME):
        series = recording.named(name)
        if series:
            yield from report.series_blocks(series)
    found = list(budgets(recording))
    if found:
        yield Heading("Budget of half a round trip, µs", 3)
        yield _budget_table(found)
    if recording.facts.get("predictions"):
        yield Heading("Agreement: half round trips of mxoe by the table of costs here, µs", 3)
        yield _prediction_table(recording)
    interval = recording.named(FRAME).point("ring", FRAME_SIZE)
    if interval is not None:
        yield Heading("Frames of 1500 bytes on links of different speeds", 3)
        yield _shares(interval)


def _ladder(trips: Series) -> Table:
    sizes = [each for each in trips.places() if each in SIZES]
    differences = {(size, rung): more for size, rung, _, more in steps(trips)}

    def text(point: Measurement) -> str:
        more = differences.get((point.parameters["size"], point.name.removesuffix(", spinning")))
        return report.spread(point, short=True) + (f" ({more:+.1f})" if more is not None else "")

    lines = ((name, [trips.point(name, size) for size in sizes]) for name in trips.contestants())
    return report.points_table("half round trip", (f"{size:,} B, µs (step)" for size in sizes), lines, text)


def _orderings(trips: Series) -> Iterator[Block]:
    size = min(SIZES)
    chain = [each for rung in ("ring", "frames", "udp", "tcp") if (each := trips.point(f"{rung}, spinning", size))]
    texts = []
    for one, other in pairwise(chain):
        verdict = order(one.samples, other.samples)
        word = {"less": "less than", "greater": "greater than", "undecided": "undecided against"}[verdict]
        texts.append(f"{one.name.partition(',')[0]} {word} {other.name.partition(',')[0]}")
    if texts:
        yield Paragraph(f"Round by round, {size} bytes: {'; '.join(texts)}.")


_COUNTED: Final = {
    "system calls": "system calls",
    "bytes to the kernel": "to the kernel",
    "bytes in place": "in place",
    "bytes from the kernel": "from the kernel",
    "bytes copied, sent": "copied, sending",
    "bytes copied, received": "copied, receiving",
}
"""Counts of a round trip, and their headings."""


def _counted(recording: Recording) -> Table:
    counts = [
        (each.name.partition(",")[0], each.parameters["size"], each.counts)
        for each in recording.named(TRIP).measurements
        if "system calls" in each.counts
    ]
    counts += [(LIBRARY, int(size), each) for size, each in recording.facts.get(LIBRARY, {}).items()]
    rows = []
    for name, size, each in counts:
        values = (f"{each[key]:,.1f}" if key in each else "" for key in _COUNTED)
        rows.append((name, f"{size:,}", *values))
    return report.numbers_table("rung", ("size", *_COUNTED.values()), rows)


_COPIES: Final = (
    "Bytes per message of this side. To the kernel: copied by system calls, in place: of these, out of the "
    "application's message. Copied: by the process itself, between the message and the system calls or the ring; bare "
    "frames are built beforehand."
)


def _engine_copies(alone: Series) -> Iterator[Block]:
    """The bytes that the engines of both sides copy per message."""
    texts = [
        f"{each.counts['bytes copied']:,.0f} of {each.parameters['size']:,}"
        for each in alone.curve("engine")
        if "bytes copied" in each.counts
    ]
    if texts:
        yield Paragraph(f"The engines of both sides alone copy, in bytes per message: {'; '.join(texts)}.")


def _part_labels(found: list[Budget]) -> list[str]:
    return list(dict.fromkeys(label for each in found for label, _ in each.parts))


def _budget_table(found: list[Budget]) -> Table:
    words = {"agree": "closes", "differ": "does not close", "undecided": "undecided"}
    parts: dict[str, Callable[[Budget], str]] = {
        "sum of the parts": lambda each: f"{each.total:,.2f}",
        "measured": lambda each: f"{each.measured:,.2f}",
        "difference": lambda each: _difference(each.total / each.measured - 1),
        f"agreement within {TOLERANCE:.0%}": lambda each: words[each.verdict],
    }
    rows = [
        *(
            (label, *(f"{part:,.2f}" if (part := dict(each.parts).get(label)) is not None else "" for each in found))
            for label in _part_labels(found)
        ),
        *((label, *map(text, found)) for label, text in parts.items()),
    ]
    return report.numbers_table("part", (f"{each.name}, {each.size:,} B" for each in found), rows)


def _prediction_table(recording: Recording) -> Table:
    rows = []
    for each in recording.facts["predictions"]:
        numbers = (f"{each[name]:,.2f}" for name in ("predicted", "measured"))
        rows.append((f"{each['size']:,}", *numbers, _difference(each["difference"]), each["verdict"]))
    found = recording.facts["agreement"]
    rows.append(("agreement", "", "", f"within {found['within']:.0%}", f"{found['agree']} of {found['points']}"))
    return report.numbers_table("size, bytes", ("predicted", "measured", "difference", "verdict"), rows, right=True)


def _difference(share: float) -> str:
    """A share with its sign, if it is not 0."""
    whole = round(share * 100)
    return f"{whole:+d}%" if whole else "0%"


def _shares(interval: Measurement) -> Table:
    rows = []
    for megabits, name in _SPEEDS:
        gap = 1500 * 8 / megabits
        share = interval.median / gap
        shown = f"{share:.1%}" if share <= 1 else "more than one"
        rows.append((name, number_text(gap), number_text(interval.median), shown))
    return report.numbers_table("link", ("frame interval, µs", "cost per frame, µs", "share of a processor"), rows)


def path_figures(recording: Recording) -> Iterator[report.PageFigure]:
    """The ladder over size, and the budgets as bars."""
    yield from report.figure_of([recording.named(TRIP)], "Half a round trip, by path", dialect=MXOE)
    found = list(budgets(recording))
    if found:
        yield report.PageFigure(_budget_figure(found), "Parts that were measured alone, beside the measured whole.")


def _budget_figure(budgets_shown: list[Budget]) -> report.Figure:
    """Stacked bars of the parts, each above a bar of the measured whole."""

    def figure(pyplot: Any) -> Any:
        size = 11.5, 1.6 + 0.8 * len(budgets_shown)
        drawing, (axes,) = panels(pyplot, "Budget of half a round trip", size)
        labels = _part_labels(budgets_shown)
        for place, each in enumerate(budgets_shown):
            left = 0.0
            for label, value in each.parts:
                colour = COLOURS[labels.index(label) % len(COLOURS)]
                shown = label if label not in axes.get_legend_handles_labels()[1] else "_nolegend_"
                axes.barh(place - 0.19, value, 0.36, left=left, color=colour, label=shown)
                left += value
            axes.barh(place + 0.19, each.measured, 0.36, color="#cfd4da", label="_nolegend_" if place else "measured")
        axes.set_yticks(range(len(budgets_shown)), [f"{each.name}, {each.size:,} B" for each in budgets_shown])
        axes.invert_yaxis()
        axes.set_xlabel("half a round trip, µs")
        legend_beside(drawing, axes)
        return drawing

    return figure
