"""Lines and JSON of plain messages, from rows.

:meth:`mxwire.report.messages.MessageLayout.lines` and :func:`mxwire.report.messages.message_json` define the result;
here one template formats the columns, and what is equal in all messages between two endpoints is formatted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import CapturedMessage
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.plain_run import KINDS, LIBACK
from mxwire.report.compact import compact
from mxwire.report.json_line import plain_line
from mxwire.report.messages import MessageLayout, endpoints_of, message_record
from mxwire.report.times import seconds_texts
from mxwire.units import SECOND
from mxwire.wire.numbers import NUMBER_MASK

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

_EXACT: Final = 1 << 53
"""Integers below it are exact as floating-point numbers."""
_TEXTS: Final = 1 << 17
"""Number of texts that are kept: two kinds of each direction between tens of thousands of hosts."""
_OF_FLOW: Final = (
    *("conversation", "kind", "source", "source_name", "source_endpoint"),
    *("destination", "destination_name", "destination_endpoint"),
)


class FlowTexts:
    """Texts that depend only on the flow and the kind of a message; kept while the names of hosts do not change."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._texts: dict[tuple[Flow, int], str] = {}

    def of(
        self, group: MessageGroup, names: Mapping[int, str] | HostNames | None, text: Callable[[Flow, str], str]
    ) -> list[str]:
        """Return the text of each row, made by ``text`` if it is new."""
        known, texts = dict({} if names is None else names.items()), self._texts
        if known != self._names or len(texts) > _TEXTS:
            self._names = known
            texts.clear()
        keys = group.rows["stream"] * len(KINDS) + group.rows["kind"]
        found = {}
        for key in np.unique(keys).tolist():
            flow, kind = group.flows[key // len(KINDS)], key % len(KINDS)
            if (flow, kind) not in texts:
                texts[flow, kind] = text(flow, KINDS[kind])
            found[key] = texts[flow, kind]
        return [found[key] for key in keys.tolist()]


def row_lines(
    group: MessageGroup, layout: MessageLayout, since_ns: int, names: HostNames | None, flow_texts: FlowTexts
) -> list[str]:
    """Return the lines of the rows of a group, with start times since ``since_ns``; ``names`` replace addresses."""
    widths, rows = layout.widths, group.rows

    def head(flow: Flow, kind: str) -> str:
        cells = {"source → destination": layout.hosts(flow, names), "endpoints": endpoints_of(flow), "kind": kind}
        return layout.cells(cells)

    cells = [f"%{widths['#']}d", "%s", "%s", f"%{widths['length']}d"]
    columns = [
        rows["number"].tolist(),
        seconds_texts(rows["time_ns"] - since_ns, layout.digits),
        flow_texts.of(group, names, head),
        rows["length"].tolist(),
    ]
    if "match" in widths:
        cells.append(f"%#{widths['match']}x")
        columns.append(rows["match"].tolist())
    if "frames" in widths:
        cells.append(f"{1:>{widths['frames']}}")
    cells += [f"%{widths['ms']}.3f", f"{'acked':<{widths['sender']}}", "received"]
    columns.append(((rows["settled_ns"] - rows["time_ns"]) / 1e6).tolist())
    return list(map(layout.gap.join(cells).__mod__, zip(*columns, strict=True)))


def row_json(
    group: MessageGroup, names: Mapping[int, str], start_ns: int, file: str | None, flow_texts: FlowTexts
) -> list[str]:
    """Return the JSON of the rows of a group."""
    rows = group.rows

    def head(flow: Flow, kind: str) -> str:
        message = CapturedMessage(0, flow, "TINY" if kind == "TINY" else "SMALL", 0, 0, 0, 0, 0)
        record = message_record(message, names)
        return plain_line(compact({key: record[key] for key in _OF_FLOW}))[1:-1]

    named = "" if file is None else f"{plain_line({'file': file})[1:-1]},".replace("%", "%%")
    template = (
        f'{{{named}"message":%d,%s,"sequence":%d,"length":%d,"match":"0x%016x","start_ns":%d,"start_relative_s":%r,'
        '"sender":"acked","receiver":"received","frames":[[%d,%d]],"ack_ns":%d,"ack_frame":%d%s}'
    )
    passed: NDArray[np.int64] = rows["time_ns"] - start_ns
    exact = not len(passed) or int(np.abs(passed).max()) < _EXACT
    how = np.where(rows["ack_kind"] == LIBACK, ',"ack_how":"liback"', "")
    frame = rows["frame"].tolist()
    columns = (
        rows["number"].tolist(),
        flow_texts.of(group, names, head),
        (rows["position"] & NUMBER_MASK).tolist(),
        rows["length"].tolist(),
        rows["match"].tolist(),
        rows["time_ns"].tolist(),
        (passed / SECOND).tolist() if exact else [each / SECOND for each in passed.tolist()],
        *(frame, frame, rows["settled_ns"].tolist(), rows["ack_frame"].tolist(), how.tolist()),
    )
    return list(map(template.__mod__, zip(*columns, strict=True)))
