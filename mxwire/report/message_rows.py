"""Lines and JSON of plain messages, from rows.

:meth:`mxwire.report.messages.MessageLayout.lines` and :func:`mxwire.report.messages.message_json` define the result;
here one template formats the columns, and what is equal in all messages between two endpoints is formatted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import CapturedMessage
from mxwire.analysis.conversations.message_rows import CAPTURE_ENDS, KINDS, LIBACK, OPEN, MessageGroup
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
_OUTCOMES: Final = ("acked", "received"), ("open", "unknown")
"""Knowledge of sender and receiver about messages that were acknowledged, and that were not."""
_ACKED, _OPEN = (f'"sender":"{sender}","receiver":"{receiver}",' for sender, receiver in _OUTCOMES)
_OPEN += f'"half_seen":["{CAPTURE_ENDS}"],'
_HOW: Final = "", ',"ack_how":"liback"'
_OF_FLOW: Final = (
    *("conversation", "kind", "source", "source_name", "source_endpoint"),
    *("destination", "destination_name", "destination_endpoint"),
)


class FlowTexts:
    """Texts that depend only on the flow and the kind of a message; kept while the names of hosts do not change."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._texts: dict[tuple[Flow, int], int] = {}
        """Places in ``_found``."""
        self._found: list[str] = []
        self._flows: list[Flow] | None = None
        self._place = np.zeros(0, np.intp)
        """Places in ``_found`` of the flows and kinds of ``_flows``, -1 if not known."""

    def of(
        self, group: MessageGroup, names: Mapping[int, str] | HostNames | None, text: Callable[[Flow, str], str]
    ) -> tuple[list[str], NDArray[np.intp]]:
        """Return texts, and the place of that of each row among them; ``text`` makes new ones."""
        known, texts = dict({} if names is None else names.items()), self._texts
        if known != self._names or len(texts) > _TEXTS:
            self._names, self._found, self._flows = known, [], None
            texts.clear()
        if self._flows is not group.flows:
            self._flows, self._place = group.flows, np.zeros(0, np.intp)
        # A table of directions grows.
        more = len(group.flows) * len(KINDS) - len(self._place)
        self._place = np.concatenate([self._place, np.full(more, -1)])
        keys = group.rows["stream"] * len(KINDS) + group.rows["kind"]
        for key in np.unique(keys[self._place[keys] < 0]).tolist():
            flow, kind = group.flows[key // len(KINDS)], key % len(KINDS)
            if (flow, kind) not in texts:
                texts[flow, kind] = len(self._found)
                self._found.append(text(flow, KINDS[kind]))
            self._place[key] = texts[flow, kind]
        return self._found, self._place[keys]


def row_lines(
    group: MessageGroup,
    layout: MessageLayout,
    since_ns: int,
    width: int | None,
    names: HostNames | None,
    flow_texts: FlowTexts,
) -> list[bytes]:
    """Return the lines of the rows of a group in UTF-8, as :meth:`MessageLayout.lines`."""
    widths, rows = layout.widths, group.rows

    @cache
    def tail(endpoints: str, kind: str) -> str:
        return layout.cells({"endpoints": endpoints, "kind": kind})

    def head(flow: Flow, kind: str) -> str:
        hosts = f"{layout.hosts(flow, names):{widths['source → destination']}}"
        return layout.gap.join((hosts, tail(endpoints_of(flow), kind)))

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
    is_open = rows["ack_kind"] == OPEN
    ends = [f"{sender:<{widths['sender']}}{layout.gap}{receiver}" for sender, receiver in _OUTCOMES]
    columns.append(chosen(ends, is_open.astype(np.intp)))
    gap = constant(layout.gap)
    lines = rows_of(len(rows), columns[0], *(part for each in columns[1:] for part in (gap, each)))
    for place in np.flatnonzero(is_open).tolist():
        lines[place] = "\n".join(layout.noted(lines[place].decode(), CAPTURE_ENDS, width)).encode(errors="replace")
    return lines


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
        '%s"frames":[[%d,%d]]%s}'
    )
    frame, settled = rows["frame"].tolist(), rows["settled_ns"].tolist()
    outcomes, acks = [], []
    for kind, end_ns, ack_frame in zip(rows["ack_kind"].tolist(), settled, rows["ack_frame"].tolist(), strict=True):
        if kind == OPEN:
            outcomes.append(f'"end_ns":{end_ns},{_OPEN}')
            acks.append("")
        else:
            outcomes.append(_ACKED)
            acks.append(f',"ack_ns":{end_ns},"ack_frame":{ack_frame}{_HOW[kind == LIBACK]}')
    heads, which = flow_texts.of(group, names, head)
    columns = (
        rows["number"].tolist(),
        [heads[each] for each in which.tolist()],
        (rows["position"] & NUMBER_MASK).tolist(),
        rows["length"].tolist(),
        rows["match"].tolist(),
        rows["time_ns"].tolist(),
        seconds_since(rows["time_ns"], start_ns),
        *(outcomes, frame, frame, acks),
    )
    return list(map(template.__mod__, zip(*columns, strict=True)))
