"""Messages of runs as rows, and their order among other messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, AnyStr, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import WAITING, Acknowledgement, CapturedMessage, Kind
from mxwire.analysis.conversations.partners import Flow
from mxwire.structured import concatenated

KINDS: Final[tuple[Kind, ...]] = "TINY", "SMALL"
LIBACK: Final = len(KINDS)
"""Kind of a frame that is only an ack; those of messages are places in ``KINDS``."""
OPEN: Final = -1
"""``ack_kind`` of a message that was in flight when the capture ended."""
CAPTURE_ENDS: Final = "the capture ends first"
"""Remark on such a message."""
ROW: Final = np.dtype(
    [
        ("number", "i8"), ("stream", "i8"), ("position", "i8"), ("kind", "i8"), ("length", "i8"), ("match", "u8"),
        ("time_ns", "i8"), ("ack", "i8"), ("frame", "i8"),
        ("settled_ns", "i8"), ("ack_frame", "i8"), ("ack_kind", "i8"),
    ]
)  # fmt: skip
"""Columns of plain messages; the last three describe the frame that acknowledged the message."""
PART: Final = 1 << 14
_NO_END: Final = 1 << 62


@dataclass(slots=True)
class MessageGroup:
    """Messages in the order of their numbers: plain ones as rows, others as objects.

    Plain messages are TINYs and SMALLs of one frame that were acknowledged, or in flight when the capture ended.
    """

    rows: NDArray[Any]
    """Columns: :data:`ROW`; ``stream`` is a place in ``flows``."""
    flows: list[Flow] = field(default_factory=list)
    messages: list[CapturedMessage] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.rows) + len(self.messages)

    def parts(self) -> Iterator[MessageGroup]:
        """Yield the messages in groups of at most :data:`PART`, for output that is built in memory."""
        others = np.array([each.number for each in self.messages], np.int64)
        numbers = np.sort(np.concatenate([self.rows["number"], others]))
        edges = [0, *numbers[PART::PART].tolist(), _NO_END] if len(numbers) else []
        row, other = (np.searchsorted(each, edges).tolist() for each in (self.rows["number"], others))
        for place in range(len(edges) - 1):
            rows, messages = slice(row[place], row[place + 1]), slice(other[place], other[place + 1])
            yield MessageGroup(self.rows[rows], self.flows, self.messages[messages])

    def merged(self, rows: list[AnyStr], messages: list[AnyStr]) -> list[AnyStr]:
        """Return the texts of all messages in order, from those of the rows and those of the objects."""
        if not messages:
            return rows
        numbers = np.concatenate([self.rows["number"], [each.number for each in self.messages]])
        texts = rows + messages
        return [texts[place] for place in np.argsort(numbers, kind="stable").tolist()]


class GroupSorter:
    """Sorter of rows and messages by number, as :class:`~mxwire.analysis.conversations.message.MessageSorter`."""

    def __init__(self, none: NDArray[Any]) -> None:
        self._waiting = MessageGroup(none)
        self._heap: list[tuple[int, CapturedMessage]] = []
        self._next = 1

    def put(self, groups: Iterable[MessageGroup], *, all_left: bool = False) -> MessageGroup:
        """Add messages; return those that are next in order, or all that are left."""
        waiting, rows = self._waiting, [self._waiting.rows]
        # Groups of one table share its list of flows, which is not copied.
        joined_flows: list[Flow] | None = None
        for group in groups:
            added = group.rows
            if len(added) and group.flows is not waiting.flows:
                if any(map(len, rows)):
                    added = added.copy()
                    added["stream"] += len(waiting.flows)
                    joined_flows = waiting.flows = waiting.flows + group.flows
                else:
                    waiting.flows = group.flows
            rows.append(added)
            for each in group.messages:
                heappush(self._heap, (each.number, each))
        joined = concatenated(rows)
        joined = joined.take(np.argsort(joined["number"], kind="stable"))
        end = self._end(joined["number"], all_left)
        cut = int(np.searchsorted(joined["number"], end))
        ready = MessageGroup(joined[:cut], waiting.flows)
        while self._heap and self._heap[0][0] < end:
            ready.messages.append(heappop(self._heap)[1])
        self._waiting = left = MessageGroup(joined[cut:], waiting.flows)
        if left.flows is joined_flows:
            used, left.rows["stream"] = np.unique(left.rows["stream"], return_inverse=True)
            left.flows = [left.flows[each] for each in used.tolist()]
        self._next = max(self._next, end)
        return ready

    def _end(self, rows: NDArray[np.int64], all_left: bool) -> int:
        """Return the number up to which messages are ready (exclusive)."""
        numbers = np.sort(np.concatenate([rows, np.array([number for number, _ in self._heap], np.int64)]))
        if not len(numbers):
            return self._next
        if all_left:
            return int(numbers[-1]) + 1
        late = int(np.searchsorted(numbers, self._next))
        following = numbers[late:] == self._next + np.arange(len(numbers) - late)
        end = self._next + (len(following) if following.all() else int(following.argmin()))
        over = len(numbers) - WAITING
        return max(end, int(numbers[over - 1]) + 1) if over > 0 else end


def acknowledgement(frame: int, time_ns: int, kind: int) -> Acknowledgement:
    """Return the ack in the plain frame with the number ``frame``."""
    return Acknowledgement(frame, time_ns, "liback" if kind == LIBACK else "piggyback", True)
