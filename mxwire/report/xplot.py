"""Time-sequence and throughput graphs as files for xplot, as tcptrace writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mxwire.analysis.time_sequence import KINDS, SequenceGraph
from mxwire.analysis.timing import RateLine, Timing
from mxwire.analysis.timing.line import common_rates
from mxwire.errors import create_folder, write_file
from mxwire.report.pairs import PairOrder, party_text
from mxwire.report.sequence import ACKED, STYLES, WINDOW, graph_title
from mxwire.units import SECOND

_SYMBOLS: Final = {"announcement": "diamond", "ack": "dtick", "notify": "box", "nack": "x"}
"""Symbols of points without bytes, by kind."""


def write_xplot(folder: Path, graphs: Sequence[SequenceGraph], timing: Timing) -> list[Path]:
    """Write one time-sequence file per graph, and one throughput file per direction of the pair of hosts in the first
    one, or of the busiest pair; return their paths.

    Raises :class:`~mxwire.errors.OutputError` if a file cannot be written.
    """
    create_folder(folder)
    names = timing.follower.names
    contents = {f"{letters}_tsg.xpl": _sequence(graph, names) for letters, graph in zip(_LETTERS, graphs, strict=False)}
    for letters, (title, line) in zip(_LETTERS, _rates(graphs, timing), strict=False):
        contents[f"{letters}_tput.xpl"] = _throughput(title, line)
    written = []
    for name, lines in contents.items():
        path = folder / name
        write_file(path, "".join(f"{line}\n" for line in lines))
        written.append(path)
    return written


def _rates(graphs: Sequence[SequenceGraph], timing: Timing) -> Iterator[tuple[str, RateLine]]:
    """Yield the title and the rate of each direction, starting with the direction of the first graph."""
    source = graphs[0].source.address if graphs else None
    other = graphs[0].destination.address if graphs else None
    for pair in PairOrder().pairs(timing):
        hosts = [each.address for each in pair.ends]
        if source is None or {*hosts} == {source, other}:
            for side in (0, 1) if source in (None, hosts[0]) else (1, 0):
                ends = (party_text(pair.ends[each], timing.follower.names) for each in (side, 1 - side))
                yield " → ".join(ends), pair.totals[side].rate
            return


_LETTERS: Final = ("a2b", "b2a")
"""Names of the two directions in file names, as in tcptrace."""


def _head(title: str, unit: str) -> Iterator[str]:
    yield "timeval unsigned"
    yield from ("title", title, "xlabel", "time", "ylabel", unit)


def _sequence(graph: SequenceGraph, names: Mapping[int, str]) -> Iterator[str]:
    yield from _head(f"time-sequence graph, {graph_title(graph, names)}", "offset, bytes")
    for point in graph.points:
        kind = KINDS[int(point["kind"])]
        start, end, low, high = (int(point[name]) for name in ("start_ns", "end_ns", "low", "high"))
        yield STYLES[kind].xplot
        if high == low:
            yield f"{_SYMBOLS.get(kind, 'dot')} {_time(start)} {low}"
        elif kind in ("request", "re-request"):
            yield from (f"line {_time(start)} {low} {_time(end)} {high}", f"utick {_time(end)} {high}")
        else:
            yield f"line {_time(start)} {low} {_time(end)} {high}"
            yield from (f"darrow {_time(start)} {low}", f"uarrow {_time(end)} {high}")
    last = int(graph.points["end_ns"].max()) if len(graph.points) else 0
    for style, steps in ((ACKED, graph.acked), (WINDOW, graph.window)):
        yield style.xplot
        before = 0
        for (time_ns, offset), after in zip(
            steps.tolist(), [*steps[1:, 0].tolist(), max(last, int(steps[-1, 0]) if len(steps) else 0)], strict=False
        ):
            yield f"line {_time(time_ns)} {before} {_time(time_ns)} {offset}"
            yield f"line {_time(time_ns)} {offset} {_time(after)} {offset}"
            before = offset
    yield "go"


def _throughput(title: str, line: RateLine) -> Iterator[str]:
    yield from _head(f"throughput, {title}", "bytes per second")
    yield "white"
    start, width, steps = common_rates([line])
    before = 0
    for place, amount in enumerate(steps[0].tolist()):
        at, rate = start + place * width, round(amount * SECOND / width)
        yield f"line {_time(at)} {before} {_time(at)} {rate}"
        yield f"line {_time(at)} {rate} {_time(at + width)} {rate}"
        before = rate
    yield "go"


def _time(time_ns: int) -> str:
    # xplot reads times as unsigned (see the head), with at most microseconds.
    return f"{max(time_ns, 0) // SECOND}.{max(time_ns, 0) % SECOND // 1000:06}"
