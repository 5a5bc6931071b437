"""Follows acknowledgements: piggybacks and libacks (chapter 11 of the rules)."""

from __future__ import annotations

from typing import Final

from mxwire.analysis.conversations.books import Books
from mxwire.analysis.conversations.message import Acknowledgement, Entry, How, Message, Notice
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.rows import Row
from mxwire.analysis.conversations.streams import Stream
from mxwire.analysis.conversations.watch import Role
from mxwire.rules.state.sequence import position_of
from mxwire.wire.enums import TrucType
from mxwire.wire.numbers import (
    ABANDONED_DONE,
    ABANDONED_NEXT,
    FIRST_NUMBER,
    LIBACK_LENGTH,
    NO_SESSION,
    NUMBER_MASK,
    OUTSTANDING_MAXIMUM,
    SESSION_NUMBER_MASK,
)

_EMPTY: Final = (FIRST_NUMBER, ABANDONED_DONE)
"""Numbers that a receiver acknowledges that has had nothing yet."""


class Libacks:
    """Handler of explicit acknowledgements."""

    def __init__(self, books: Books) -> None:
        self.books = books

    def truc(self, row: Row) -> None:
        """A TRUC; only libacks say something."""
        _, _, time_ns, _, wire_length, key, session, sub_type, length, inner_session, value = row
        flow = self.books.flow(key, session, time_ns, wire_length)
        if sub_type != TrucType.ACK or length < LIBACK_LENGTH or session != inner_session:
            return
        flow.libacks += 1
        acknowledge(self.books, row, flow.back, value, "liback", effective=session != NO_SESSION)


def acknowledge(books: Books, row: Row, flow: Flow, value: int, how: How, *, effective: bool) -> None:
    """The receiver of a flow acknowledges all numbers below ``value`` (R-ACK-01)."""
    stream = flow.stream
    if stream is None:
        _acknowledge_unseen(flow, value)
        return
    if (value ^ stream.bits) & SESSION_NUMBER_MASK and flow.former is not None:
        # The sender has restarted, and the receiver does not know it yet.
        stream = flow.former
    if value == stream.ack_value or (value ^ stream.bits) & SESSION_NUMBER_MASK:
        return
    if value & NUMBER_MASK in _EMPTY and _says_nothing(flow, stream, value):
        return
    position = position_of(value, stream.acked)
    if position <= stream.acked:
        return
    ack = Acknowledgement(row[3], row[2], how, effective)
    if effective and position == stream.acked + 1:
        entry = stream.advance_one(ack)
        if entry is not None:
            _note(books, entry, ack)
    else:
        for entry in stream.advance(position, ack):
            _note(books, entry, ack)
    if effective:
        stream.ack_value = value


def _acknowledge_unseen(flow: Flow, value: int) -> None:
    """Count what the capture does not show of a direction."""
    before = flow.acked_unseen
    if before is None:
        before = flow.told[-1] if flow.told else value
    ahead = (value - before) & NUMBER_MASK
    if not (value ^ before) & SESSION_NUMBER_MASK and 0 < ahead < OUTSTANDING_MAXIMUM:
        flow.unseen += ahead
    flow.acked_unseen = value


def _says_nothing(flow: Flow, stream: Stream, value: int) -> bool:
    """Return whether an ack only reports that nothing was received since a partner was abandoned (R-RTX-05)."""
    return stream.first & NUMBER_MASK == ABANDONED_NEXT or value & SESSION_NUMBER_MASK | ABANDONED_NEXT in flow.told


def _note(books: Books, entry: Entry, ack: Acknowledgement) -> None:
    if not ack.effective:
        if entry.refused_ack is None:
            entry.refused_ack = ack
    elif entry.ack is None:
        entry.ack = ack
    message = entry.message if isinstance(entry, Notice) else entry
    assert isinstance(message, Message)
    if books.watch is not None:
        books.saw(message, Role.ACK)
    if ack.effective and (message.pull is None or entry is message.pull.notice):
        books.settle(message)
