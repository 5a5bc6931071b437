"""Messages of runs of plain frames, as rows until they must be objects: step 5 of
:mod:`mxwire.analysis.conversations.plain_run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.direction_table import DirectionTable
from mxwire.analysis.conversations.message import Acknowledgement, CapturedMessage
from mxwire.analysis.conversations.message_rows import KINDS, LIBACK, OPEN, ROW, MessageGroup, acknowledgement
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.state import LINGER_NS, NEVER, FollowerState, note_missing
from mxwire.structured import concatenated

REPEATED: Final = LIBACK + 1
"""Added to the kind of a frame that repeats a message."""
FRAME_COLUMNS: Final = {each: each for each in ("kind", "length", "match", "time_ns", "ack")} | {"frame": "number"}
"""Attributes of ``LaneFrames`` by the columns of ``ROW`` that hold them for the frame of the message."""


class RunMessages:
    """Messages of the latest runs that are not created: those in flight, and those that are settled."""

    def __init__(self) -> None:
        self.taken: list[MessageGroup] | None = None
        """The reported messages, if they are taken as rows."""
        self.clear()

    def clear(self) -> None:
        """Discard all messages, and the state of directions."""
        self.table = DirectionTable()
        """The directions; columns ``stream`` of messages are places in it."""
        self.rows = np.zeros(0, ROW)
        """Settled messages in order of settlement, after all in ``FollowerState.lingering``."""
        self.flying = np.zeros(0, ROW)
        """All unacknowledged messages of the directions, by direction and position."""
        self.reported = 0
        """Number of rows at the beginning that were reported but are still entries of their streams."""
        self.created: dict[int, CapturedMessage] = {}
        """By number, messages that are objects, because a frame was followed singly or repeats them; their rows may
        lack the frame."""

    def read(self, source: NDArray[np.uint64], destination: NDArray[np.uint64], state: FollowerState) -> None:
        """Add directions to the table, with their messages in flight."""
        messages = self.table.read(source, destination, state)
        rows = np.zeros(len(messages), ROW)
        rows["number"] = [each.number for each in messages]
        rows["position"] = [each.position for each in messages]
        rows["stream"] = [self.table.numbers[id(each.flow.stream)] for each in messages]
        for each in messages:
            self.created[each.number] = state.in_flight.pop(each.number)
        self.fly(concatenated([self.flying, rows]))

    def fly(self, rows: NDArray[Any]) -> None:
        """Set the messages in flight."""
        self.flying = rows.take(np.lexsort((rows["position"], rows["stream"])))

    def keep(self, rows: NDArray[Any], reported: int, *, keep_all: bool) -> None:
        """Discard unneeded ``rows``: those among the first ``reported`` that are no longer entries of their streams."""
        if self.taken is not None and reported > self.reported:
            self.taken.append(self._group(rows[self.reported : reported]))
        table, stream, position = self.table, rows["stream"][:reported], rows["position"][:reported]
        kept = (position >= table.oldest[stream]) | keep_all
        has_former = table.changes["forgotten"] < table.rows["held"]
        kept |= (position < table.rows["first"][stream]) & has_former[stream]
        self.rows, self.reported = rows, reported
        if not kept.all():
            self.rows = concatenated([rows[:reported].compress(kept), rows[reported:]])
            self.reported = int(np.count_nonzero(kept))
        if self.created:
            numbers = {*self.rows["number"].tolist(), *self.flying["number"].tolist()}
            self.created = {number: each for number, each in self.created.items() if number in numbers}

    def report_all(self) -> None:
        """Report all rows at the end of the capture; messages in flight remain if they are objects."""
        assert self.taken is not None
        objects = np.isin(self.flying["number"], [*self.created])
        flying = self.flying[~objects]
        flying["settled_ns"], flying["ack_kind"] = flying["time_ns"], OPEN
        self.taken += [self._group(self.rows[self.reported :]), MessageGroup(flying, self.table.flows)]
        self.rows, self.reported, self.flying = self.rows[:0], 0, self.flying[objects]

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
        return MessageGroup(np.delete(rows, others), self.table.flows, messages)

    def create(self, state: FollowerState) -> None:
        """Write the state of directions, create all messages, and settle and report them."""
        if not len(self.table):
            return
        self.table.write(marked=state.marks is not None)
        oldest, now_ns = self.table.oldest.tolist(), state.now_ns
        ack: Acknowledgement | None = None
        for *row, state.now_ns, ack_frame, how in _rows_of(self.rows):
            message = self._message(state, oldest, *row)
            stream = self.table.stream(row[1])
            if ack is None or ack.frame != ack_frame or ack.time_ns != state.now_ns or ack is not stream.last_ack:
                ack = stream.last_ack = acknowledgement(ack_frame, state.now_ns, how)
            message.ack = ack
            state.settle(message)
        for _ in range(self.reported):
            state.report(state.lingering.popleft(), forget=False, taken=self.taken is not None)
        state.now_ns = now_ns
        state.due_ns = state.lingering[0].settled_ns + LINGER_NS if state.lingering else NEVER
        if len(self.flying):
            flying = [self._message(state, oldest, *row) for *row, _, _, _ in _rows_of(self.flying)]
            in_flight = sorted({**state.in_flight, **{each.number: each for each in flying}}.items())
            state.in_flight.clear()
            state.in_flight.update(in_flight)
        self.table.write_reported()
        self.clear()

    def _message(
        self, state: FollowerState, oldest: list[int], number: int, which: int, position: int, *values: int
    ) -> CapturedMessage:
        """Return the message of a row, which is created unless it was, as an entry of its stream."""
        message = self.created.get(number)
        if message is None:
            message = create_plain(state, number, self.table.flows[which], position, *values)
        if position >= oldest[which]:
            self.table.stream(which).entries[position] = message
        return message


def _rows_of(rows: NDArray[Any]) -> Iterator[tuple[int, ...]]:
    # Columns, since a tuple per row would burden the garbage collector.
    return zip(*(rows[name].tolist() for name in ROW.names or ()), strict=True)


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
