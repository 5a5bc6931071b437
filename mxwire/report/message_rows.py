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
from mxwire.analysis.conversations.message_rows import KINDS, LIBACK, MessageGroup
from mxwire.analysis.conversations.partners import Flow
from mxwire.report.compact import compact
from mxwire.report.frame_json import seconds_since
from mxwire.report.json_line import plain_line
from mxwire.report.messages import MessageLayout, endpoints_of, message_record
from mxwire.report.text_columns import chosen, constant, decimals, described, rows_of, seconds_column
from mxwire.wire.numbers import NUMBER_MASK

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

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
    ) -> tuple[list[str], NDArray[np.intp]]:
        """Return the different texts, and the place of that of each row among them; ``text`` makes new ones."""
        known, texts = dict({} if names is None else names.items()), self._texts
        if known != self._names or len(texts) > _TEXTS:
            self._names = known
            texts.clear()
        keys = group.rows["stream"] * len(KINDS) + group.rows["kind"]
        distinct, which = np.unique(keys, return_inverse=True)
        found = []
        for key in distinct.tolist():
            flow, kind = group.flows[key // len(KINDS)], key % len(KINDS)
            if (flow, kind) not in texts:
                texts[flow, kind] = text(flow, KINDS[kind])
            found.append(texts[flow, kind])
        return found, which


def row_lines(
    group: MessageGroup, layout: MessageLayout, since_ns: int, names: HostNames | None, flow_texts: FlowTexts
) -> list[bytes]:
    """Return the lines of the rows of a group in UTF-8, with start times since ``since_ns``.

    ``names`` replace addresses.
    """
    widths, rows = layout.widths, group.rows

    def head(flow: Flow, kind: str) -> str:
        cells = {"source → destination": layout.hosts(flow, names), "endpoints": endpoints_of(flow), "kind": kind}
        return layout.cells(cells)

    columns = [
        decimals(rows["number"], widths["#"]),
        seconds_column(rows["time_ns"] - since_ns, layout.digits),
        chosen(*flow_texts.of(group, names, head)),
        decimals(rows["length"], widths["length"]),
    ]
    if "match" in widths:
        columns.append(described(f"%#{widths['match']}x".__mod__, rows["match"]))
    if "frames" in widths:
        columns.append(constant(f"{1:>{widths['frames']}}"))
    columns.append(described(lambda passed: f"{passed / 1e6:{widths['ms']}.3f}", rows["settled_ns"] - rows["time_ns"]))
    columns.append(constant(f"{'acked':<{widths['sender']}}{layout.gap}received"))
    gap = constant(layout.gap)
    return rows_of(len(rows), columns[0], *(part for each in columns[1:] for part in (gap, each)))


def row_json(
    group: MessageGroup, names: Mapping[int, str], start_ns: int, file: str | None, flow_texts: FlowTexts
) -> list[str]:
    """Return the JSON of the rows of a group."""
    rows = group.rows

    def head(flow: Flow, kind: str) -> str:
        message = CapturedMessage(0, 0, 0, 0, flow, "TINY" if kind == "TINY" else "SMALL", 0, 0)
        record = message_record(message, names)
        return plain_line(compact({key: record[key] for key in _OF_FLOW}))[1:-1]

    named = "" if file is None else f"{plain_line({'file': file})[1:-1]},".replace("%", "%%")
    template = (
        f'{{{named}"message":%d,%s,"sequence":%d,"length":%d,"match":"0x%016x","start_ns":%d,"start_relative_s":%r,'
        '"sender":"acked","receiver":"received","frames":[[%d,%d]],"ack_ns":%d,"ack_frame":%d%s}'
    )
    how = np.where(rows["ack_kind"] == LIBACK, ',"ack_how":"liback"', "")
    frame = rows["frame"].tolist()
    heads, which = flow_texts.of(group, names, head)
    columns = (
        rows["number"].tolist(),
        [heads[each] for each in which.tolist()],
        (rows["position"] & NUMBER_MASK).tolist(),
        rows["length"].tolist(),
        rows["match"].tolist(),
        rows["time_ns"].tolist(),
        seconds_since(rows["time_ns"], start_ns),
        *(frame, frame, rows["settled_ns"].tolist(), rows["ack_frame"].tolist(), how.tolist()),
    )
    return list(map(template.__mod__, zip(*columns, strict=True)))
