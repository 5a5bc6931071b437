"""Messages as columns, of which totals and durations are taken: plain ones from rows, all others from objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.conversations.message import Kind
from mxwire.analysis.conversations.message_rows import LIBACK, OPEN, ROW, MessageGroup
from mxwire.structured import concatenated
from mxwire.wire.codes import groups_of

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The kinds by their numbers in the columns, which begin with those of rows."""
UNKNOWN: Final = -1 << 62
NO_ROWS: Final = np.zeros(0, ROW)
MEASURED: Final = np.dtype(
    [
        ("flow", "i8"), ("kind", "i8"), ("length", "i8"), ("frames", "i8"),
        ("first_ns", "i8"), ("complete_ns", "i8"), ("end_ns", "i8"), ("ack_ns", "i8"),
        ("liback", "?"), ("received", "?"), ("delivered", "?"), ("lost", "?"),
        ("repeated", "?"), ("pulled", "?"), ("half_seen", "?"),
    ]
)  # fmt: skip
"""Columns of messages; :data:`UNKNOWN` stands for None. ``flow`` is a place in ``flows``, ``frames`` the number of
frames with data (1 for a large message), ``liback`` true if the ack was pure; ``delivered`` and ``lost`` are what the
sender knows."""


@dataclass(frozen=True, slots=True)
class MeasuredMessages:
    """Messages in the order in which they are measured."""

    columns: NDArray[Any]
    """Columns :data:`MEASURED`, shape (n,)."""
    flows: list[Flow]
    """The flows of the messages."""

    @classmethod
    def of(cls, messages: MessageGroup) -> MeasuredMessages:
        """Return the columns of messages, in the order of their numbers."""
        rows, columns = messages.rows, np.zeros(len(messages.rows), MEASURED)
        streams, columns["flow"] = np.unique(rows["stream"], return_inverse=True)
        flows = [messages.flows[each] for each in streams.tolist()]
        for name, source in _OF_ROWS.items():
            columns[name] = rows[source]
        columns["end_ns"] = np.maximum(rows["settled_ns"], rows["time_ns"])
        columns["liback"] = rows["ack_kind"] == LIBACK
        columns["frames"] = 1
        is_open = rows["ack_kind"] == OPEN
        columns["ack_ns"][is_open] = UNKNOWN
        columns["received"] = columns["delivered"] = ~is_open
        columns["half_seen"] = is_open
        if messages.messages:
            others = [_columns_of(each, at) for at, each in enumerate(messages.messages, len(flows))]
            flows += [each.flow for each in messages.messages]
            columns = concatenated([columns, np.array(others, MEASURED)])
            if len(rows):
                numbers = np.concatenate([rows["number"], [each.number for each in messages.messages]])
                columns = columns.take(np.argsort(numbers, kind="stable"))
        return cls(columns, flows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column ``name``."""
        column: NDArray[Any] = self.columns[name]
        return column


_OF_ROWS: Final = {
    "kind": "kind",
    "length": "length",
    "first_ns": "time_ns",
    "complete_ns": "time_ns",
    "ack_ns": "settled_ns",
}
"""Columns of ``ROW`` by the measured ones that equal them."""


def _columns_of(message: CapturedMessage, flow: int) -> tuple[int | bool, ...]:
    sender, ack, length, complete_ns = message.sender, message.ack, message.length, message.complete_ns
    pulled = message.pull is not None
    return (
        flow,
        KINDS.index(message.kind),
        UNKNOWN if length is None else length,
        message.fragments.bit_count() or 1,
        message.first_ns,
        UNKNOWN if complete_ns is None else complete_ns,
        message.end_ns,
        UNKNOWN if ack is None else ack.time_ns,
        ack is not None and ack.how == "liback",
        message.receiver == "received",
        sender == ("notified" if pulled else "acked"),
        sender in ("truncated", "failed", "nacked", "abandoned"),
        message.retransmissions > 0,
        pulled,
        bool(message.half_seen),
    )


def in_turn(values: NDArray[np.int64]) -> list[int]:
    """Return the distinct values of an array in the order of their first places."""
    first = np.unique(values, return_index=True)[1]
    found: list[int] = values[np.sort(first)].tolist()
    return found


def in_order(keys: NDArray[np.int64]) -> list[tuple[int, NDArray[np.intp]]]:
    """Return each distinct value of an array with its places, in the order of their first ones."""
    return sorted(groups_of(keys), key=lambda group: int(group[1][0]))
