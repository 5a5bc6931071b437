"""Reports of studies: blocks for terminals and pipes, plots over size, and one HTML page per study."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from mxwire.bench.record import Measurement, Recording, Series
from mxwire.errors import OutputError, write_file
from mxwire.extras import import_extra
from mxwire.report import plot
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, Verbatim, columns_of
from mxwire.wire.dialect import Dialect
from mxwire.words import size_text

_DASHES: Final = {"-": "", "--": "6 3", ":": "2 2", "-.": "6 2 2 2"}
"""Dashes of curves as matplotlib calls them, and for the key of a page."""
_MARKERS: Final = {
    "o": "M14.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "s": "M15 3h6v6h-6z",
    "^": "M18 2l4 7h-8z",
    "D": "M18 2l4 4-4 4-4-4z",
}
"""Points of curves as matplotlib calls them, and as paths in the middle of a line of 36 by 12."""
_LABEL_LINE: Final = 36
"""Maximum number of characters of a vertical axis's name and unit in one line."""
_LEGEND_INSIDE: Final = 6
"""Maximum number of curves whose legend fits within the axes."""
_LEGIBLE: Final = 16
"""Maximum number of curves of a panel, if they can be divided into groups."""
_PANEL: Final = 3.2
_LEGEND_LINE: Final = 0.16
"""Height of a panel, and of a line of a legend beside it, in inches."""
SERIES_CAPTION: Final = (
    "Medians of all rounds with their confidence intervals; hollow points have marks that others of their curve lack."
)
Figure = Callable[[Any], Any]
"""Makes a figure with pyplot."""


def estimate(measurement: Measurement) -> str:
    """The median, and half the width of its confidence interval unless it is 0."""
    low, high = measurement.interval()
    return plot.number_text(measurement.median) + (f" ±{_uncertainty((high - low) / 2)}" if high > low else "")


def _uncertainty(half_width: float) -> str:
    """Half the width of an interval, with two digits: further digits are not significant."""
    return f"{half_width:,.0f}" if half_width >= 10 else f"{half_width:.2g}"


_SHORT_MARKS: Final = {
    "methods differ": ("≠", "the methods differ"),
    "undecided": ("?", "undecided whether the methods agree"),
    "overlap": ("<", "the send overlaps the flight, so L is negative"),
    "disturbed": ("~", "disturbed"),
    "retransmitted": ("r", "retransmitted"),
    "lost": ("!", "messages were lost in a round, which was repeated"),
}
"""Marks of points as signs, for wide tables, and their meaning."""


def spread(measurement: Measurement, known: Collection[str] = (), *, short: bool = False) -> str:
    """The estimate of a measurement, and its marks except the ``known`` ones; with ``short`` as signs."""
    marks = [each for each in measurement.marks if each not in known]
    signs = [_SHORT_MARKS.get(each, (each,))[0] if short else each for each in marks]
    return " ".join([estimate(measurement), *signs])


def marks_legend(measurements: Iterable[Measurement]) -> Iterator[Block]:
    """The meaning of the signs that measurements have."""
    present = {mark for each in measurements for mark in each.marks}
    shown = [f"{sign} {meaning}" for mark, (sign, meaning) in _SHORT_MARKS.items() if mark in present]
    if shown:
        yield Paragraph(f"Marks: {'; '.join(shown)}.")


def shared_marks(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """The marks that all measurements have."""
    first = measurements[0].marks if measurements else ()
    return tuple(mark for mark in first if all(mark in each.marks for each in measurements))


def condition_blocks(recording: Recording) -> Iterator[Block]:
    """The conditions of a recording, and its remarks."""
    yield Heading("Conditions", 3)
    yield Table(columns_of("condition, ~value"), tuple(map(Row, recording.conditions.lines())))
    if recording.remarks:
        yield Listing(tuple(recording.remarks))
    if not recording.complete:
        yield Paragraph("Partial: the study ended early.")


def axis_name(series: Series) -> str:
    """The name of the parameter of a series, with its unit."""
    return ", ".join(filter(None, ("MTU" if series.x == "mtu" else series.x, series.x_unit)))


def numbers_table(first: str, headings: Iterable[str], rows: Iterable[Iterable[str]], *, right: bool = False) -> Table:
    """A table with columns of numbers behind its ``first`` one, which has numbers too if ``right``."""
    columns = Column(first, right=right), *(Column(each, right=True) for each in headings)
    return Table(columns, tuple(Row(tuple(each)) for each in rows), divisible=True)


def points_table(
    first: str,
    headings: Iterable[str],
    lines: Iterable[tuple[str, Iterable[Measurement | None]]],
    text: Callable[[Measurement], str] = estimate,
    *,
    right: bool = False,
) -> Table:
    """A table with a row per line: its name, and the ``text`` of its points; empty for those that were not measured."""
    rows = ((name, *("" if each is None else text(each) for each in points)) for name, points in lines)
    return numbers_table(first, headings, rows, right=right)


def curves_table(
    first: str, series: Series, text: Callable[[Measurement], str] = estimate, place: Callable[[Any], str] = size_text
) -> Table:
    """A table with a row per contestant of a series, and a column per value of its axis, headed by ``place``."""
    values = series.places()
    lines = ((name, [series.point(name, value) for value in values]) for name in series.contestants())
    return points_table(first, map(place, values), lines, text)


def series_table(series: Series) -> Table:
    """Medians with their intervals: one row per value of the parameter, one column per contestant; of a series without
    a parameter, one row per contestant.

    Marks that a contestant's measurements share are in the heading, unless those of all do: see :func:`series_blocks`.
    """
    names = series.contestants()
    known = {name: shared_marks(series.curve(name)) for name in names}
    shared = shared_marks(series.measurements)
    headings = [", ".join([name, *(mark for mark in known[name] if mark not in shared)]) for name in names]
    if not series.x:
        alone = ((name, [each]) for name in names for each in series.curve(name))
        return points_table("contestant", [series.unit], alone, lambda each: spread(each, shared))
    lines = ((f"{value:,}", [series.point(name, value) for name in names]) for value in series.places())
    return points_table(axis_name(series), headings, lines, lambda each: spread(each, known[each.name]), right=True)


def series_blocks(series: Series) -> Iterator[Block]:
    """A series as a table with a heading."""
    name = series.name[:1].upper() + series.name[1:]
    yield Heading(", ".join([name, series.unit, *shared_marks(series.measurements)]), 3)
    yield series_table(series)


def study_blocks(recording: Recording) -> Iterator[Block]:
    """All series of a recording."""
    for series in recording.series:
        yield from series_blocks(series)


# Plots


@dataclass(frozen=True)
class SeriesFigure:
    """A figure with one panel per series, over a common axis of sizes.

    Both axes are logarithmic, or with ``limits`` the vertical one is linear and has these.

    Bands are confidence intervals. Hollow points have marks that other points of their curve lack. A contestant has the
    same curve in all panels of its group. ``legend``: with one in each panel, or beside it if there are many curves.
    """

    shown: Sequence[Series]
    title: str
    dialect: Dialect | None = None
    """Marks the sizes at which its messages change their kind."""
    limits: tuple[float, float] | None = None
    legend: bool = True
    groups: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Contestants that share panels, by the name of their group. The panels of a series have the same vertical axis."""

    def __call__(self, pyplot: Any) -> Any:
        """Make the figure with pyplot."""
        counts = [len(set(each.contestants()).intersection(group)) for each in self.shown for group in self._groups()]
        beside = self.legend and max(counts) > _LEGEND_INSIDE
        # A legend that is higher than its panel would leave the curves no room.
        lines = max(counts) if beside else 0
        size = 11.5 if beside else 9, 1.2 + max(_PANEL, _LEGEND_LINE * lines) * len(counts)
        drawing, panels = plot.panels(pyplot, self.title, size, len(counts), sharex=True)
        every = [(series, name) for name in self.groups or ("",) for series in self.shown]
        for place, ((series, name), axes) in enumerate(zip(every, panels, strict=True)):
            draw_series(drawing, axes, series, self.styles(name), limits=self.limits, legend=self.legend)
            if len(self.groups) > 1:
                axes.set_title(name, loc="left", fontsize=10)
            lengths = [plotted(each.parameters[series.x]) for each in series.measurements]
            if self.dialect is not None:
                plot.marks(axes, lengths, self.dialect, named=place == 0)
            if place == len(every) - 1:
                plot.length_axis(axes, lengths)
                axes.set_xlabel(axis_name(series))
        return drawing

    def _groups(self) -> Collection[Collection[str]]:
        return self.groups.values() or ([name for each in self.shown for name in each.contestants()],)

    def styles(self, group: str = "") -> dict[str, CurveStyle]:
        """The curve of each contestant of a group, in any series; without groups, of all."""
        names = [name for each in self.shown for name in each.contestants()]
        return line_styles([each for each in names if not self.groups or each in self.groups[group]])

    def grouped(self, groups: Mapping[str, Collection[str]]) -> SeriesFigure:
        """The same figure in groups if it has too many curves for one panel.

        Empty groups are left out; contestants of no group are one of their own.
        """
        names = {name for each in self.shown for name in each.contestants()}
        if len(names) <= _LEGIBLE:
            return self
        found = {each: names.intersection(group) for each, group in groups.items()}
        found["others"] = names.difference(*found.values())
        return replace(self, groups={each: group for each, group in found.items() if group})

    def parts(self) -> Iterator[SeriesFigure]:
        """A figure without legend per group; the figure itself without legend if it has no groups."""
        if not self.groups:
            yield replace(self, legend=False)
        for each, group in self.groups.items():
            yield replace(self, title=f"{self.title}: {each}", groups={each: group}, legend=False)


def plotted(size: int) -> plot.PlottedLength:
    """A position on the axis of lengths."""
    return plot.PlottedLength(size, 0.0, 0.0, 0.0, 0.0)


class CurveStyle(NamedTuple):
    """The appearance of a curve."""

    colour: str
    dashes: str
    marker: str

    @property
    def key(self) -> dict[str, str]:
        """The curve as values of the template of a page."""
        return {"colour": self.colour, "dashes": _DASHES[self.dashes], "marker": _MARKERS[self.marker]}


def line_styles(names: Sequence[str]) -> dict[str, CurveStyle]:
    """The curve of each contestant: the text before the comma determines the colour and the shape of its points, which
    changes when the colours repeat, and the rest the dashes.
    """
    names = list(dict.fromkeys(names))
    heads = list(dict.fromkeys(name.partition(", ")[0] for name in names))
    tails: dict[str, list[str]] = {head: [] for head in heads}
    styles = {}
    for name in names:
        head, _, tail = name.partition(", ")
        tails[head].append(tail)
        repeat, place = divmod(heads.index(head), len(plot.COLOURS))
        dashes = list(_DASHES)[(len(tails[head]) - 1) % len(_DASHES)]
        styles[name] = CurveStyle(plot.COLOURS[place], dashes, list(_MARKERS)[repeat % len(_MARKERS)])
    return styles


def draw_series(
    drawing: Any,
    axes: Any,
    series: Series,
    styles: dict[str, CurveStyle] | None = None,
    *,
    limits: tuple[float, float] | None = None,
    legend: bool = True,
) -> None:
    """Draw the curves of a series that have styles, or all; see :class:`SeriesFigure`."""
    styles = line_styles(series.contestants()) if styles is None else styles
    names = [each for each in series.contestants() if each in styles]
    for name in names:
        colour, dashes, marker = styles[name]
        # A logarithmic axis has no place for others.
        curve = [each for each in series.curve(name) if limits or each.median > 0]
        if not curve:
            continue
        places = [each.parameters[series.x] or 0.5 for each in curve]
        medians = [each.median for each in curve]
        intervals = [each.interval() for each in curve]
        lows = [low if limits else max(low, median / 100) for (low, _), median in zip(intervals, medians, strict=True)]
        axes.fill_between(places, lows, [high for _, high in intervals], color=colour, alpha=0.15, linewidth=0)
        axes.plot(places, medians, color=colour, linestyle=dashes, linewidth=1.4, marker=marker, ms=4, label=name)
        shared = shared_marks(curve)
        marked = [
            (x, y)
            for x, y, each in zip(places, medians, curve, strict=True)
            if any(mark not in shared for mark in each.marks)
        ]
        if marked:
            axes.plot(*zip(*marked, strict=True), linestyle="", marker=marker, ms=4, mfc="white", mec=colour)
    # A long label in one line would reach into the next panel.
    separator = ", " if len(series.name) + len(series.unit) <= _LABEL_LINE else ",\n"
    axes.set_ylabel(f"{series.name}{separator}{series.unit}")
    values = [each.median for each in series.measurements if limits or each.median > 0]
    if not values:
        return
    if limits:
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_ylim(*limits)
    else:
        plot.vertical_axis(axes, min(values), max(values))
    if not legend or not names:
        return
    if len(names) <= _LEGEND_INSIDE:
        axes.legend(fontsize=8, ncols=2, **plot.OVER_LINES)
    else:
        plot.legend_beside(drawing, axes, handlelength=2.6)


# Files


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page."""

    figure: Figure
    caption: str
    key: Mapping[str, CurveStyle] = field(default_factory=dict)
    """The parts of a drawing without a legend, by name, unless it is of series."""


def figure_of(
    series: Iterable[Series], title: str, caption: str = SERIES_CAPTION, dialect: Dialect | None = None
) -> Iterator[PageFigure]:
    """A figure of those series for which anything was measured; none without any."""
    shown = [each for each in series if each]
    if shown:
        yield PageFigure(SeriesFigure(shown, title, dialect), caption)


def write_figure(path: Path, figure: Figure) -> None:
    """Draw a figure into a .svg, .png, .pdf, or .html that contains it.

    Raises :class:`~mxwire.errors.MxwireError` if matplotlib is not installed, or the file cannot be written.
    """
    kind = path.suffix[1:]
    if kind == "html":
        write_file(path, plot.page(path.stem, plot.rendered(figure, "svg")))
    else:
        write_file(path, plot.rendered(figure, kind))


def _svg(figure: Figure) -> str:
    drawn = plot.rendered(figure, "svg").decode()
    return drawn[drawn.index("<svg") :]


def write_page(
    folder: Path,
    recording: Recording,
    title: str,
    blocks: Sequence[Block],
    figures: Sequence[PageFigure],
    lead: Sequence[Block] = (),
) -> Path:
    """Write the page of a study with its figures and tables, and the recording beside it; return the page.

    The blocks of ``lead`` precede the figures.

    Raises :class:`~mxwire.errors.MxwireError` if jinja2 is not installed, or a file cannot be written.
    """
    import_extra("jinja2", "report", "--html")
    from mxwire.report.site.pages import environment, write_static, write_text

    drawn = [each for figure in figures for each in _page_figures(figure)]
    conditions = recording.conditions
    subtitle = " · ".join(filter(None, (conditions.processor, conditions.testbed, conditions.time)))
    if not recording.complete:
        subtitle += " · partial"
    template = environment("mxwire.report.site", "mxwire.bench").get_template("study.html")
    first, last = ([_page_block(each) for each in part] for part in (lead, blocks))
    text = template.render(root="", title=title, subtitle=subtitle, lead=first, figures=drawn, blocks=last)
    try:
        write_static(folder / "assets")
        recording.write(folder / f"{recording.study}.jsonl")
        page = folder / f"{recording.study}.html"
        write_text(page, text)
    except OSError as error:
        raise OutputError.of(error.filename or folder, error) from None
    return page


def _page_figures(shown: PageFigure) -> Iterator[dict[str, Any]]:
    """The groups of a figure as values of the template: a key is text that a narrow page breaks in lines."""
    from markupsafe import Markup

    figure = shown.figure
    parts: list[tuple[Figure, Mapping[str, CurveStyle]]] = [(figure, shown.key)]
    if isinstance(figure, SeriesFigure):
        parts = [(each, each.styles(*each.groups)) for each in figure.parts()]
    for number, (part, styles) in enumerate(parts, 1):
        key = [(name, style.key) for name, style in styles.items()]
        # One caption is that of all groups.
        caption = shown.caption if number == len(parts) else ""
        yield {"drawing": Markup(_svg(part)), "caption": caption, "key": key}


def _page_block(block: Block) -> dict[str, Any]:
    """A block as values of the template."""
    match block:
        case Heading(text, level):
            return {"kind": "heading", "text": text, "level": level}
        case Listing(items):
            return {"kind": "listing", "texts": items}
        case Verbatim(text):
            return {"kind": "verbatim", "text": text}
        case Table(columns, rows):
            cells = [list(zip(row.cells, columns, strict=True)) for row in rows]
            return {"kind": "table", "columns": columns, "rows": cells}
        case Paragraph(text):
            return {"kind": "paragraph", "text": text}
