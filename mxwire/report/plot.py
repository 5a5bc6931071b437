"""Plots of latency and bandwidth by message length: the figure of ``mxwire perf``, and axes and curves for others.

matplotlib is an optional extra: its objects are passed as arguments, and this module imports it only when needed.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mxwire.errors import write_file
from mxwire.extras import import_extra
from mxwire.texts import file_text
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM, TINY_MAXIMUM

COLOURS: Final = (
    *("#1f5fa8", "#c2410c", "#0f766e", "#7c3aed", "#be185d", "#4d7c0f", "#64748b", "#0891b2"),
    "#111827",
    *("#b45309", "#a16207", "#4338ca", "#15803d", "#9f1239", "#57534e"),
)
"""Colours of curves, in order."""
LATENCY, BANDWIDTH = COLOURS[:2]
MARK: Final = "#8a8f98"
OVER_LINES: Final[dict[str, Any]] = {"facecolor": "white", "edgecolor": "none"}
"""The background of text that lies over the lines of a figure."""
_BESIDE: Final[dict[str, Any]] = {
    "loc": "upper left",
    "bbox_to_anchor": (1.01, 1),
    "borderaxespad": 0,
    "labelspacing": 0.3,
    "frameon": False,
    "fontsize": 8,
}
_BESIDE_RECT: Final = (0, 0, 0.95, 1)
"""The part of a figure for axes and such a legend: a browser's letters are wider than those the layout measured."""
FONT: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "mxwire", "font.size": 10}
_CLOSE: Final = 1e-9
"""Relative error allowed in ``value``: a power of ten computed in floating point may be off by one bit."""


@dataclass(frozen=True, slots=True)
class PlottedLength:
    """Latency and bandwidth of one message length."""

    length: int
    """Message length in bytes."""
    mean: float
    """Half the round trip in µs, or the whole round trip for unidirectional measurements."""
    median: float
    p99: float
    megabytes: float
    """Bandwidth in MB/s."""


def check() -> None:
    """Raise :class:`~mxwire.extras.MissingExtraError` if matplotlib is not installed."""
    import_extra("matplotlib", "plot", "--plot")


def draw(
    path: Path, measured: Sequence[PlottedLength], dialect: Dialect, partner: str, *, unidirectional: bool = False
) -> None:
    """Draw measurements into the file ``path``; its suffix selects the format.

    Raises :class:`~mxwire.errors.MxwireError` if matplotlib is not installed, or the file cannot be written.
    """

    def figure(pyplot: Any) -> Any:
        title = f"Messages to {partner} and back, dialect {dialect}"
        drawing, (above, below) = panels(pyplot, title, (9, 7.2), 2, sharex=True, gridspec_kw={"hspace": 0.04})
        latency(above, measured, unidirectional)
        bandwidth(below, measured)
        for axes in (above, below):
            marks(axes, measured, dialect, named=axes is above)
        length_axis(below, measured)
        return drawing

    write_file(path, rendered(figure, path.suffix[1:]))


def rendered(figure: Callable[[Any], Any], kind: str) -> bytes:
    """Render the figure that ``figure`` makes with pyplot; ``kind`` is svg, pdf or png."""
    check()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context(FONT):
        drawing = figure(pyplot)
        try:
            image = io.BytesIO()
            metadata = {"Date": None} if kind in ("svg", "pdf") else None
            drawing.savefig(image, format=kind, dpi=150, metadata=metadata)
        finally:
            pyplot.close(drawing)
    return image.getvalue()


def page(title: str, drawing: bytes, text: str = "") -> str:
    """A self-contained HTML page with a drawing in SVG, which stays readable on a phone, and preformatted text."""
    figure = drawing.decode()
    shown = f'<pre tabindex="0">{html.escape(text)}</pre>\n' if text else ""
    template = file_text(__file__, "plot_page.html")
    return template.format(title=html.escape(title), figure=figure[figure.index("<svg") :], text=shown)


def panels(
    pyplot: Any, title: str, size: tuple[float, float], rows: int = 1, columns: int = 1, **more: Any
) -> tuple[Any, list[Any]]:
    """Make a figure with a title, and return it with its panels; all figures have this style."""
    drawing, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **more)
    for each in axes.flat:
        _tidy(each)
    drawing.suptitle(title, x=0.01, ha="left", fontsize=13)
    return drawing, list(axes.flat)


def legend_beside(drawing: Any, axes: Any, **more: Any) -> None:
    """Place the legend beside its panel, where it covers nothing."""
    axes.legend(**_BESIDE, **more)
    drawing.get_layout_engine().set(rect=_BESIDE_RECT)


def _tidy(axes: Any) -> None:
    """Draw a light grid behind the data, and remove the top and right borders."""
    axes.grid(True, which="major", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def places_of(measured: Sequence[PlottedLength]) -> list[float]:
    """The positions of lengths on the logarithmic axis; 0 is placed at 0.5."""
    return [each.length or 0.5 for each in measured]


def latency(axes: Any, measured: Sequence[PlottedLength], unidirectional: bool) -> None:
    """Plot median, mean and 99th percentile of the latency."""
    places = places_of(measured)
    median, p99 = [each.median for each in measured], [each.p99 for each in measured]
    axes.fill_between(places, median, p99, color=LATENCY, alpha=0.12, linewidth=0, label="median to p99")
    axes.plot(places, median, color=LATENCY, marker="o", markersize=4, label="median")
    axes.plot(places, [each.mean for each in measured], color=LATENCY, linestyle=":", linewidth=1.2, label="mean")
    vertical_axis(axes, min(median), max(p99))
    axes.set_ylabel("round trip, µs" if unidirectional else "half a round trip, µs")
    axes.legend(loc="upper left", **OVER_LINES)


def bandwidth(axes: Any, measured: Sequence[PlottedLength]) -> None:
    """Plot the bandwidth in MB/s, and annotate the maximum."""
    some = [each for each in measured if each.length]
    axes.plot(places_of(some), [each.megabytes for each in some], color=BANDWIDTH, marker="o", markersize=4)
    axes.set_ylabel("bandwidth, MB/s")
    axes.set_xlabel("message length, bytes")
    if some:
        rates = [each.megabytes for each in some]
        vertical_axis(axes, min(rates), max(rates) * 1.6)
        best = max(some, key=lambda each: each.megabytes)
        axes.annotate(
            f"{number_text(best.megabytes)} MB/s = {number_text(best.megabytes * 8 / 1000)} Gb/s",
            (best.length, best.megabytes),
            xytext=(-8, 8),
            textcoords="offset points",
            ha="right",
            color=BANDWIDTH,
            bbox=OVER_LINES | {"pad": 1},
        )


def marks(axes: Any, measured: Sequence[PlottedLength], dialect: Dialect, *, named: bool) -> None:
    """Mark the lengths at which the message type changes or one more fragment is needed."""
    places = places_of(measured)
    low, high = min(places), max(places)
    for edge in range(dialect.fragment_payload, RENDEZVOUS_THRESHOLD, dialect.fragment_payload):
        if low <= edge <= high:
            axes.axvline(edge, color=MARK, linewidth=0.6, linestyle=(0, (1, 3)))
    thresholds = (TINY_MAXIMUM, SMALL_MAXIMUM, RENDEZVOUS_THRESHOLD)
    bounds = (low, *thresholds, high)
    for edge in thresholds:
        if low <= edge <= high:
            axes.axvline(edge, color=MARK, linewidth=1.1, linestyle=(0, (5, 3)))
    if not named:
        return
    names = (
        f"TINY\nto {TINY_MAXIMUM}",
        f"SMALL\nto {SMALL_MAXIMUM}",
        f"MEDIUM, to {RENDEZVOUS_THRESHOLD:,}\nfragments of {dialect.fragment_payload:,}",
        f"LARGE\npulled in frames of {dialect.reply_payload:,}",
    )
    for name, start, end in zip(names, bounds, bounds[1:], strict=False):
        start, end = max(start, low), min(end, high)
        if start < end:
            axes.annotate(
                name,
                ((start * end) ** 0.5, 1.02),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=8,
                color="#4b5563",
            )


def length_axis(axes: Any, measured: Sequence[PlottedLength]) -> None:
    """Set up a logarithmic axis of lengths with ticks at powers of four, or at the lengths if they span too few."""
    from matplotlib.ticker import FixedLocator, NullLocator

    lengths = sorted({each.length for each in measured})
    high = max(*lengths, 1) if len(lengths) > 1 else lengths[0] or 1
    axes.set_xscale("log", base=2)
    ticks = [(0.5, "0")] if 0 in lengths else []
    power = 1
    while power <= high:
        if power >= (lengths[0] or 1):
            ticks.append((power, _size(power)))
        power *= 4
    if len(ticks) < 2:
        ticks = [(length or 0.5, f"{length:,}") for length in lengths]
    if len(ticks) > 1:
        axes.xaxis.set_major_locator(FixedLocator([place for place, _ in ticks]))
        axes.set_xticklabels([text for _, text in ticks])
        axes.xaxis.set_minor_locator(NullLocator())


def _size(length: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if length >= size and length % size == 0:
            return f"{length // size} {unit}"
    return str(length)


def vertical_axis(axes: Any, low: float, high: float) -> None:
    """Set up a logarithmic axis from ``low`` to ``high``, extended to round numbers, with ticks at round numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(_round_down(low), _round_up(high))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20 … that does not exceed ``value``."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + _CLOSE))


def _round_up(value: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(value))
    return min(step * power for step in (2, 5, 10) if step * power >= value)


def number_text(value: float) -> str:
    """Format a number with about three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
