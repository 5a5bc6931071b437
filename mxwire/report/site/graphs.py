"""The data of a page for its script: the messages in columns, and the graphs over time."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from mxwire.analysis.capture_overview import is_notable
from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis import Party
from mxwire.analysis.time_sequence import FrameTrace, SequenceGraph
from mxwire.analysis.timing import PairStatistics
from mxwire.analysis.timing.line import common_rates
from mxwire.report.messages import match_text, message_notes
from mxwire.report.pairs import party_text
from mxwire.report.sequence import ACKED, STYLES, WINDOW, graph_title

CONVERSATIONS: Final = 20
"""Maximum number of conversations with time-sequence graphs on a page."""
DIRECTIONS: Final = 8
"""Maximum number of directions with a rate of their own on a page."""


class MessageColumns:
    """The messages of a page in columns; texts that many messages share are stored once."""

    def __init__(self, names: Mapping[int, str], start_ns: int) -> None:
        self._names = names
        self._start_ns = start_ns
        self._texts: dict[str, int] = {}
        self._rows: list[tuple[int | None, ...]] = []

    def add(self, message: CapturedMessage) -> None:
        """Add a message."""
        flow = message.flow
        ends = (Party(each.address, each.endpoint) for each in (flow, flow.back))
        source, destination = (self._text(party_text(each, self._names)) for each in ends)
        notes = "; ".join(message_notes(message))
        first = next((first for first, _ in message.frames), None)
        self._rows.append(
            (
                message.number,
                (message.first_ns - self._start_ns) // 1000,
                max(message.end_ns - message.first_ns, 0) // 1000,
                source,
                destination,
                self._text(message.kind),
                message.length,
                self._text(match_text(message.match)),
                message.frame_count,
                self._text(message.sender),
                self._text(message.receiver),
                self._text(notes),
                first,
                flow.conversation.number,
                int(is_notable(message)),
            )
        )

    def as_object(self) -> dict[str, Any]:
        """Return ``texts`` and ``columns``; times are in microseconds, texts are indexes."""
        self._rows.sort(key=lambda row: row[0] or 0)
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * len(_COLUMNS)
        return {"texts": list(self._texts), "columns": dict(zip(_COLUMNS, map(list, columns), strict=True))}

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


_COLUMNS: Final = (
    *("number", "start", "took", "source", "destination", "kind", "length", "match", "frames", "sender", "receiver"),
    *("notes", "first", "conversation", "notable"),
)


def page_data(
    messages: MessageColumns,
    trace: FrameTrace,
    pairs: Sequence[PairStatistics],
    names: Mapping[int, str],
    start_ns: int,
) -> dict[str, Any]:
    """Return all data of a page."""
    return {
        "messages": messages.as_object(),
        "conversations": [
            {"number": number, "graphs": [graph_data(each, names, start_ns) for each in trace.of_conversation(number)]}
            for number in trace.conversations()[:CONVERSATIONS]
        ],
        "rates": _rates(pairs, names, start_ns),
    }


def style_data() -> dict[str, Any]:
    """Return the appearance of the kinds of points, in the order of their numbers, and of the two lines."""
    return {
        "kinds": [[each.label, each.light, each.dark] for each in STYLES.values()],
        "lines": {name: [each.label, each.light, each.dark] for name, each in (("acked", ACKED), ("window", WINDOW))},
    }


def graph_data(graph: SequenceGraph, names: Mapping[int, str], start_ns: int) -> dict[str, Any]:
    """Return a time-sequence graph for the script; times are differences in nanoseconds."""
    # For columns of NDArray[Any], mypy tries all overloads of NumPy's operators, for seconds.
    points: Any = graph.points
    first = int(points["start_ns"][0]) - start_ns if len(points) else 0
    return {
        "title": graph_title(graph, names),
        "first": first,
        "time": np.diff(points["start_ns"], prepend=points["start_ns"][:1]).tolist(),
        "duration": (points["end_ns"] - points["start_ns"]).tolist(),
        "low": np.diff(points["low"], prepend=0).tolist(),
        "size": (points["high"] - points["low"]).tolist(),
        "kind": points["kind"].tolist(),
        "frame": np.diff(points["frame"], prepend=0).tolist(),
        "frames": (points["last_frame"] - points["frame"] + 1).tolist(),
        "message": np.diff(points["message"], prepend=0).tolist(),
        "acked": _steps(graph.acked, start_ns),
        "window": _steps(graph.window, start_ns),
    }


def _steps(steps: Any, start_ns: int) -> list[list[int]]:
    return [(steps[:, 0] - start_ns).tolist(), steps[:, 1].tolist()]


def _rates(pairs: Sequence[PairStatistics], names: Mapping[int, str], start_ns: int) -> dict[str, Any]:
    directions = [
        (" → ".join(party_text(pair.ends[each], names) for each in (side, 1 - side)), pair.totals[side].rate)
        for pair in pairs
        for side in (0, 1)
        if pair.totals[side].frames
    ]
    start, width, steps = common_rates([line for _, line in directions])
    labels = [label for label, _ in directions]
    if len(labels) > DIRECTIONS:
        rest = steps[DIRECTIONS - 1 :].sum(axis=0)
        steps, labels = np.vstack([steps[: DIRECTIONS - 1], rest]), [*labels[: DIRECTIONS - 1], "others"]
    return {"start": start - start_ns, "width": width, "labels": labels, "bytes": steps.tolist()}


def packed(data: Any) -> str:
    """Return data as JSON, compressed, in base64: a browser unpacks it without a network."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode()
