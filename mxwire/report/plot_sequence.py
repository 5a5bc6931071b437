"""Time-sequence graphs and rates over time as panels of a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from mxwire.analysis.time_sequence import KINDS, SequenceGraph
from mxwire.analysis.timing import Timing
from mxwire.analysis.timing.line import common_rates
from mxwire.report.pairs import PairOrder, party_text
from mxwire.report.plot import COLOURS
from mxwire.report.sequence import ACKED, STYLES, WINDOW, graph_title
from mxwire.units import SECOND

DIRECTIONS: Final = 6
"""Maximum number of directions with a curve of their own in the panel of throughput."""


def throughput(axes: Any, timing: Timing) -> None:
    """Plot the bytes on the wire per second, per direction of the busiest pairs of hosts, and of all others."""
    names = timing.follower.names
    directions = [
        (f"{party_text(pair.ends[side], names)} → {party_text(pair.ends[1 - side], names)}", pair.totals[side].rate)
        for pair in PairOrder().pairs(timing)
        for side in (0, 1)
        if pair.totals[side].frames
    ]
    start, width, steps = common_rates([line for _, line in directions])
    rates = steps / (width / SECOND) / 1e6
    seconds = (start - (timing.first_ns or 0) + width * np.arange(rates.shape[1] + 1)) / SECOND
    labels = [label for label, _ in directions]
    if len(rates) > DIRECTIONS:
        busiest = np.sort(np.argsort(-rates.sum(axis=1), kind="stable")[: DIRECTIONS - 1])
        rest = np.delete(rates, busiest, axis=0).sum(axis=0)
        rates, labels = np.vstack([rates[busiest], rest]), [*(labels[each] for each in busiest), "others"]
    for label, rate, colour in zip(labels, rates, COLOURS, strict=False):
        axes.stairs(rate, seconds, color=colour, linewidth=1.1, label=_plain(label))
    axes.set_ylabel("MB/s on the wire")
    axes.set_xlabel("seconds")
    axes.set_ylim(bottom=0)
    duration = (timing.last_ns - (timing.first_ns or 0)) / SECOND
    axes.set_xlim(-0.01 * duration, 1.01 * duration)
    if labels:
        _legend(axes, 3)


def sequence(axes: Any, graph: SequenceGraph, start_ns: int, names: Mapping[int, str]) -> None:
    """Plot a time-sequence graph, with times since ``start_ns``."""
    from matplotlib.collections import LineCollection

    points = graph.points
    start, end = ((points[name] - start_ns) / SECOND for name in ("start_ns", "end_ns"))
    low, high = points["low"] / 1024, points["high"] / 1024
    for steps, style, line in ((graph.window, WINDOW, "--"), (graph.acked, ACKED, "-")):
        if len(steps):
            times = np.append((steps[:, 0] - start_ns) / SECOND, end.max(initial=0))
            values = np.append(steps[:, 1], steps[-1, 1]) / 1024
            axes.step(times, values, line, where="post", color=style.light, linewidth=style.width, label=style.label)
    # Requests lie behind data, and losses behind what fills them.
    order = ("request", "lost", "data", "retransmission", "duplicate", "re-request", "announcement")
    for name in (*order, *(each for each in KINDS if each not in order)):
        style, mine = STYLES[name], points["kind"] == KINDS.index(name)
        wide, flat = np.flatnonzero(mine & (high > low)), np.flatnonzero(mine & (high <= low))
        label = style.label
        if len(wide):
            ends = np.stack([np.stack([start[wide], low[wide]], 1), np.stack([end[wide], high[wide]], 1)], 1)
            lines = LineCollection(list(ends), colors=style.light, linewidths=style.width, label=label)
            axes.add_collection(lines)
            label = "_"
        if len(flat):
            axes.plot(start[flat], low[flat], style.marker, color=style.light, markersize=4, label=label)
    axes.autoscale()
    axes.set_ylabel("offset, KiB")
    axes.set_xlabel("seconds")
    axes.set_title(_plain(graph_title(graph, names)), loc="left", fontsize=9, color="#4b5563", pad=32)
    _legend(axes, 6)


def _legend(axes: Any, columns: int) -> None:
    """Place the legend above the panel, since curves may be anywhere in it."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.1,
        frameon=False,
        ncols=columns,
        fontsize=7.5,
        handlelength=1.2,
        columnspacing=1.0,
    )


def _plain(text: str) -> str:
    """Escape a name from the wire, in which matplotlib would read formulas."""
    return text.replace("$", r"\$")
