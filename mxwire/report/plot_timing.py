"""Timing statistics as a figure: latency and bandwidth by length, throughput and bytes in flight over time, the
time-sequence graphs of a transfer or conversation, and gaps between frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from mxwire.analysis.table_file import check_format
from mxwire.analysis.time_sequence import SequenceGraph
from mxwire.analysis.timing import Timing
from mxwire.analysis.timing.round_trips import Lengths
from mxwire.errors import check_writable, write_file
from mxwire.report import plot
from mxwire.report.document import plain
from mxwire.report.plot_sequence import sequence, throughput
from mxwire.report.timing import TimedCapture, timing_blocks
from mxwire.wire.dialect import MXOE

SUFFIXES: Final = (".svg", ".png", ".html")
"""Supported file name suffixes."""
_REPEAT: Final = "#b91c1c"


def check_plot(path: Path) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a figure cannot be written to ``path``."""
    check_format(path, "figure", SUFFIXES)
    check_writable(path)
    plot.check()


def draw_timing(path: Path, name: str, timing: Timing, graphs: Sequence[SequenceGraph] = ()) -> None:
    """Draw the measurements of the capture ``name`` into the file ``path``; its suffix selects the format.

    ``graphs`` are time-sequence graphs to draw as well. Raises :class:`~mxwire.errors.MxwireError` if matplotlib is not
    installed, or the file cannot be written.
    """
    check_plot(path)
    page = path.suffix.lower() == ".html"
    drawn = plot.rendered(
        lambda pyplot: _figure(pyplot, name, timing, graphs), "svg" if page else path.suffix.lower()[1:]
    )
    write_file(
        path, plot.page(name, drawn, plain(timing_blocks(TimedCapture.of(name, timing))[1:], 140)) if page else drawn
    )


def measurements(lengths: Lengths) -> list[plot.PlottedLength]:
    """Durations by length as points of a plot, in µs and MB/s, without durations of 0: the axes are logarithmic."""
    measured = []
    for length, samples in sorted(lengths.by_length.items()):
        estimate = samples.estimate()
        if estimate is not None and estimate.median > 0:
            mean, median = estimate.mean / 1e3, estimate.median / 1e3
            p99 = (estimate.most if estimate.p99 is None else estimate.p99) / 1e3
            measured.append(plot.PlottedLength(length, mean, median, p99, length / median))
    return measured


def _figure(pyplot: Any, name: str, timing: Timing, graphs: Sequence[SequenceGraph]) -> Any:
    what, lengths = _best(timing)
    measured = measurements(lengths)
    by_length = len(measured) > 1
    heights = [3.4, 2.6] if by_length else []
    heights += [2.4, 2.2, *[3.6] * len(graphs), 2.0]
    dialect = f", dialect {timing.dialect.name}" if timing.dialect else ""
    ratios = {"height_ratios": heights}
    size = 9, 1.4 + sum(heights)
    figure, panels = plot.panels(pyplot, f"{name}{dialect}", size, len(heights), gridspec_kw=ratios)
    if by_length:
        _by_length(panels[0], panels[1], measured, lengths, what, timing)
    over_time = panels[2 * by_length :]
    throughput(over_time[0], timing)
    _over_time(over_time[1], timing)
    for axes, graph in zip(over_time[2:-1], graphs, strict=True):
        sequence(axes, graph, timing.first_ns or 0, timing.follower.names)
    _gaps(over_time[-1], timing)
    return figure


def _best(timing: Timing) -> tuple[str, Lengths]:
    """The measurement to plot as latency, with its axis label: the most direct one available."""
    for what, lengths in (
        ("half a round trip, µs", timing.iterations),
        ("half a round trip to the last byte, µs", timing.answers),
    ):
        if lengths.by_length:
            return what, lengths
    return "first frame to last byte, µs", timing.transfers


def _by_length(
    above: Any, below: Any, measured: list[plot.PlottedLength], lengths: Lengths, what: str, timing: Timing
) -> None:
    plot.latency(above, measured, False)
    above.set_ylabel(what)
    plot.bandwidth(below, measured)
    _intervals(above, measured, lengths)
    below.sharex(above)
    for axes in (above, below):
        plot.marks(axes, measured, timing.dialect or MXOE, named=axes is above)
    plot.length_axis(below, measured)
    above.tick_params(labelbottom=False)


def _intervals(axes: Any, measured: list[plot.PlottedLength], lengths: Lengths) -> None:
    """Draw the 95% confidence interval of each median as a bar."""
    label = "median, 95% CI"
    for each in measured:
        estimate = lengths.by_length[each.length].estimate()
        if estimate is None or estimate.median_low is None or estimate.median_high is None:
            continue
        low, high = max(estimate.median_low / 1e3, 1e-3), estimate.median_high / 1e3
        axes.plot([each.length or 0.5] * 2, [low, high], color=plot.LATENCY, linewidth=2.5, alpha=0.5, label=label)
        label = "_"
    axes.legend(loc="upper left", frameon=False)


def _over_time(axes: Any, timing: Timing) -> None:
    """Plot bytes in flight over time, with marks at retransmissions and re-requests."""
    line = timing.line.line()
    seconds = line.width_ns / 1e9 * np.arange(len(line.in_flight) + 1)
    axes.stairs(line.in_flight / 1024, seconds, fill=True, color=plot.BANDWIDTH, alpha=0.35, label="in flight")
    axes.stairs(line.in_flight / 1024, seconds, color=plot.BANDWIDTH, linewidth=0.8)
    axes.set_ylabel("KiB in flight")
    axes.set_xlabel("seconds")
    duration = max((timing.last_ns - (timing.first_ns or 0)) / 1e9, seconds[-1])
    axes.set_xlim(-0.01 * duration, 1.01 * duration)
    axes.set_ylim(bottom=0)
    at = np.flatnonzero(line.repeats)
    if len(at):
        top = axes.get_ylim()[1]
        middle = (seconds[at] + seconds[at + 1]) / 2
        label = "retransmitted or re-requested"
        axes.plot(middle, np.full(len(at), top * 0.96), "v", color=_REPEAT, markersize=5, label=label)
        axes.vlines(middle, 0, top * 0.96, color=_REPEAT, linewidth=0.5, alpha=0.5)
        # Above the panel, since the curve and the marks may be anywhere in it.
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), borderaxespad=0, frameon=False, ncols=2)


def _gaps(axes: Any, timing: Timing) -> None:
    """Plot a histogram of the gaps between frames of one sender."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    edges = timing.gaps.edges_ns / 1e3
    counts = timing.gaps.counts
    used = np.flatnonzero(counts)
    axes.stairs(counts, edges, fill=True, color=plot.LATENCY, alpha=0.7)
    axes.set_xscale("log")
    if len(used):
        axes.set_xlim(edges[max(used[0] - 1, 0)], edges[min(used[-1] + 2, len(edges) - 1)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _duration(value)))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    axes.set_xlabel("gap between consecutive frames of one sender")
    axes.set_ylabel("gaps")


def _duration(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} µs"
