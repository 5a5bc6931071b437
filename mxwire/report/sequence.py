"""Appearance of time-sequence graphs, the same in plots, xplot files and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mxwire.analysis.time_sequence import KINDS, SequenceGraph
from mxwire.report.pairs import party_text
from mxwire.words import count_of


class KindStyle(NamedTuple):
    """Appearance of one kind of points."""

    label: str
    light: str
    """Colour on a light background."""
    dark: str
    """Colour on a dark background."""
    xplot: str
    """Colour name of xplot."""
    marker: str
    """Marker of points without bytes, in matplotlib's notation."""
    width: float
    """Width of lines, in points."""


STYLES: Final[dict[str, KindStyle]] = {
    "data": KindStyle("data", "#1f5fa8", "#82bdf8", "white", "o", 2.2),
    "retransmission": KindStyle("retransmission", "#b91c1c", "#ff9a90", "red", "o", 2.2),
    "duplicate": KindStyle("duplicate", "#a21caf", "#f0a0f5", "magenta", "o", 2.2),
    "lost": KindStyle("missing", "#f59e0b", "#fbbf24", "yellow", "x", 4.5),
    "announcement": KindStyle("announcement", "#0f766e", "#6fd6c4", "blue", "D", 1.5),
    "request": KindStyle("request", "#64748b", "#94a3b8", "purple", "^", 1.2),
    "re-request": KindStyle("re-request", "#c2410c", "#fdba74", "orange", "^", 1.6),
    "ack": KindStyle("ack", "#15803d", "#86efac", "green", "v", 1.5),
    "notify": KindStyle("NOTIFY", "#15803d", "#86efac", "green", "s", 1.5),
    "nack": KindStyle("nack", "#111827", "#f3f4f6", "pink", "X", 1.5),
}
"""Appearances by kind, in the order of :data:`~mxwire.analysis.time_sequence.KINDS`."""
assert tuple(STYLES) == KINDS
ACKED: Final = KindStyle("acknowledged", "#15803d", "#86efac", "green", "", 1.3)
WINDOW: Final = KindStyle("requested up to", "#94a3b8", "#64748b", "yellow", "", 1.0)


def graph_title(graph: SequenceGraph, names: Mapping[int, str]) -> str:
    """Return the title of a graph: its messages, and the endpoints in their direction."""
    count = len(graph.messages)
    which = f"message {graph.messages[0]}" if count == 1 else f"{count_of(count, 'message')}"
    ends = " → ".join(party_text(each, names) for each in (graph.source, graph.destination))
    left_out = f", {count_of(graph.omitted, 'point')} left out" if graph.omitted else ""
    return f"{which}, {count_of(graph.length, 'byte')}: {ends}{left_out}"
