"""Messages that runs of plain frames have settled, as rows until they must be objects: step 5 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.message import Acknowledgement, CapturedMessage, Kind, NumberedEntry
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.state import LINGER_NS, NEVER, FollowerState, note_missing
from mxwire.analysis.conversations.streams import Stream

KINDS: Final[tuple[Kind, ...]] = "TINY", "SMALL"
LIBACK: Final = len(KINDS)
REPEATED: Final = LIBACK + 1
"""Added to the kind of a frame that repeats a message."""
LATER: Final = NumberedEntry(-1, 0, 0)
"""Entry of a settled message whose object has not been created."""
SETTLED: Final = np.dtype(
    [
        ("number", "i8"), ("stream", "i8"), ("position", "i8"), ("kind", "i8"), ("length", "i8"), ("match", "u8"),
        ("time_ns", "i8"), ("ack", "i8"), ("frame", "i8"),
        ("settled_ns", "i8"), ("ack_frame", "i8"), ("ack_kind", "i8"),
    ]
)  # fmt: skip
"""Columns of settled messages; the last three describe the frame that settled the message."""
FRAME_COLUMNS: Final = {each: each for each in ("kind", "length", "match", "time_ns", "ack")} | {"frame": "number"}
"""Attributes of ``LaneFrames`` by the columns of ``SETTLED`` that hold them for the frame of the message."""


class SettledMessages:
    """Messages that were settled in the latest runs, and are not created."""

    def __init__(self) -> None:
        self.taken: list[MessageGroup] | None = None
        """The reported messages, if they are taken as rows."""
        self.clear()

    def clear(self) -> None:
        """Discard all messages."""
        self.rows = np.zeros(0, SETTLED)
        """In order of settlement, after all in ``FollowerState.lingering``."""
        self.reported = 0
        """Number of rows at the beginning that were reported but are still entries of their streams."""
        self.streams: list[tuple[Flow, Stream]] = []
        """The streams by their number in ``rows``."""
        self.created: dict[int, CapturedMessage] = {}
        """By number, the messages that were in flight before the run in which they were settled; their rows lack the
        frame."""

    def keep(self, rows: NDArray[Any], reported: int, *, keep_all: bool) -> None:
        """Discard unneeded ``rows``: those among the first ``reported`` that are no longer entries of their streams."""
        if self.taken is not None and reported > self.reported:
            self.taken.append(self._group(rows[self.reported : reported]))
        oldest = np.array([next(iter(stream.entries), stream.next) for _, stream in self.streams], np.int64)
        kept = rows["position"] >= oldest[rows["stream"]]
        kept[reported:] = True
        kept |= keep_all
        self.rows, self.reported = rows[kept], int(np.count_nonzero(kept[:reported]))
        numbers = {*self.rows["number"].tolist()}
        self.created = {number: each for number, each in self.created.items() if number in numbers}

    def report_all(self) -> None:
        """Report all rows at the end of the capture."""
        if self.taken is not None and len(self.rows) > self.reported:
            self.taken.append(self._group(self.rows[self.reported :]))
        self.clear()

    def _group(self, rows: NDArray[Any]) -> MessageGroup:
        """Return reported messages; those from before their run are objects, unless one frame describes them."""
        at = np.flatnonzero(np.isin(rows["number"], [*self.created]))
        plain, values, messages, others = [], [], [], []
        columns = ("number", "ack_frame", "settled_ns", "ack_kind")
        for place, number, ack_frame, time_ns, how in zip(
            at.tolist(), *(rows[name][at].tolist() for name in columns), strict=True
        ):
            message = self.created[number]
            if _is_one_frame(message):
                plain.append(place)
                values.append(_columns_of(message))
                continue
            message.ack = acknowledgement(ack_frame, time_ns, how)
            note_missing(message)
            messages.append(message)
            others.append(place)
        if plain:
            for name, column in zip(FRAME_COLUMNS, zip(*values, strict=True), strict=True):
                rows[name][plain] = column
        return MessageGroup(np.delete(rows, others), [flow for flow, _ in self.streams], messages)

    def create(self, state: FollowerState) -> None:
        """Create all messages, and settle and report them."""
        now_ns = state.now_ns
        ack: Acknowledgement | None = None
        # Columns, since a tuple per row would burden the garbage collector.
        columns = zip(*(self.rows[name].tolist() for name in SETTLED.names or ()), strict=True)
        for (
            number, which, position, kind, length, match, time_ns, piggyack, frame, state.now_ns, ack_frame, how
        ) in columns:  # fmt: skip
            flow, stream = self.streams[which]
            message = self.created.get(number)
            if message is None:
                message = create_plain(state, number, flow, position, kind, length, match, time_ns, piggyack, frame)
            if ack is None or ack.frame != ack_frame or ack.time_ns != state.now_ns or ack is not stream.last_ack:
                ack = stream.last_ack = acknowledgement(ack_frame, state.now_ns, how)
            message.ack = ack
            if stream.entries.get(position) is LATER:
                stream.entries[position] = message
            state.settle(message)
        for _ in range(self.reported):
            state.report(state.lingering.popleft(), forget=False, taken=self.taken is not None)
        state.now_ns = now_ns
        state.due_ns = state.lingering[0].settled_ns + LINGER_NS if state.lingering else NEVER
        self.clear()


def _is_one_frame(message: CapturedMessage) -> bool:
    """Return whether a message that was just acknowledged consists of a single frame, seen once."""
    return (
        message.kind in KINDS
        and message.frame_count == message.transmissions == 1
        and not (message.duplicates or message.nacks or message.half_seen)
        and message.refused_ack is None
        and message.complete_ns == message.first_ns
    )


def _columns_of(message: CapturedMessage) -> tuple[int | None, ...]:
    """Return the columns of ``FRAME_COLUMNS`` of a message of a single frame."""
    kind, length, match = KINDS.index(message.kind), message.length, message.match
    return kind, length, match, message.first_ns, message.piggyack, message.run_first


def create_plain(
    state: FollowerState,
    number: int,
    flow: Flow,
    position: int,
    kind: int,
    length: int,
    match: int,
    time_ns: int,
    piggyack: int,
    frame: int,
) -> CapturedMessage:
    """Create the message of a plain frame with the number ``frame``."""
    message = CapturedMessage(position, time_ns, piggyack, number, flow, KINDS[kind], length, match)
    message.complete_ns, message.bytes_seen = time_ns, length
    message.run_first = message.run_last = frame
    message.frame_count = 1
    if state.watch is not None and state.watch.number == number:
        state.watch.message = message
    return message


def acknowledgement(frame: int, time_ns: int, kind: int) -> Acknowledgement:
    """Return the ack in the plain frame with the number ``frame``, of a kind as in ``LaneFrames``."""
    return Acknowledgement(frame, time_ns, "liback" if kind == LIBACK else "piggyback", True)
