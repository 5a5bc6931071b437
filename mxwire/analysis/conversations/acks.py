"""Trackers of acknowledgements (piggybacks and libacks, chapter 11 of the rules) and of nacks (chapter 16)."""

from __future__ import annotations

from typing import Final

from mxwire.analysis.conversations.frame_marks import ACK, NACK
from mxwire.analysis.conversations.message import (
    REPORTED,
    Acknowledgement,
    CapturedMessage,
    How,
    Notice,
    NumberedEntry,
    Refusal,
)
from mxwire.analysis.conversations.partners import Connect, EndpointDirection, Flow
from mxwire.analysis.conversations.rows import Row
from mxwire.analysis.conversations.state import FollowerState
from mxwire.analysis.conversations.streams import Stream
from mxwire.rules.state.streams import position_of
from mxwire.wire.enums import NackType, TrucType
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
"""Sequence numbers in the acks of a receiver that has not received anything yet."""


class LibackTracker:
    """Handler of explicit acknowledgements."""

    def __init__(self, state: FollowerState) -> None:
        self.state = state

    def truc(self, row: Row) -> None:
        """Process a TRUC; only libacks among the TRUCs carry an acknowledgement."""
        _, _, time_ns, _, wire_length, key, session, sub_type, length, inner_session, value = row
        flow = self.state.flow(key, session, time_ns, wire_length)
        # A liback with two sessions is not valid (W-6.4): its frame counts, its number does not.
        if sub_type != TrucType.ACK or length < LIBACK_LENGTH or session != inner_session:
            return
        flow.libacks += 1
        known = session != NO_SESSION
        acknowledge(self.state, row, flow.back, value, "liback", effective=known, confirmed=known)
        marks = self.state.marks
        if marks is not None:
            acks = marks.acks
            # The latest ack belongs to an earlier frame if this one has acknowledged nothing new.
            marks.mark(row[0], acks[-1][1] if acks and acks[-1][0] == row[0] else 0, ACK)


def acknowledge(
    state: FollowerState, row: Row, flow: Flow, value: int, how: How, *, effective: bool, confirmed: bool
) -> None:
    """Record that the receiver of a flow acknowledges all sequence numbers below ``value`` (R-ACK-01).

    ``confirmed`` is False for a frame without a session: the sender refuses it together with its ack.
    """
    stream = flow.stream
    if stream is None:
        _acknowledge_unseen(flow, value)
        return
    if (value ^ stream.bits) & SESSION_NUMBER_MASK and flow.former is not None:
        # The sender has restarted, and the receiver has not noticed yet.
        stream = flow.former
    if value == stream.ack_value or (value ^ stream.bits) & SESSION_NUMBER_MASK:
        return
    # These numbers are ordinary ones for a stream that was never abandoned.
    if value & NUMBER_MASK in _EMPTY and _reports_nothing(flow, stream, value):
        return
    position = position_of(value, stream.acked)
    if confirmed:
        stream.confirm(position)
    # A repeated ack, or one that the network delayed.
    if position <= stream.acked:
        return
    ack = Acknowledgement(row[3], row[2], how, effective)
    # Most acks are for one message: no list is made for them.
    if effective and position == stream.acked + 1:
        entry = stream.advance_one(ack)
        if entry is not None:
            _note(state, entry, ack)
    else:
        for entry in stream.advance(position, ack):
            _note(state, entry, ack)
    # After any other ack, an accepted one with the same value still changes the state, so that it must not be skipped.
    if effective and confirmed:
        stream.ack_value = value


def _acknowledge_unseen(flow: Flow, value: int) -> None:
    """Count acknowledged sequence numbers if the capture lacks the direction in which they were sent."""
    before = flow.acked_unseen
    if before is None:
        # Without a requested start the first ack shows nothing, since numbers may begin anywhere.
        before = flow.starts[-1] if flow.starts else value
    ahead = (value - before) & NUMBER_MASK
    # A larger step is a step back, seen modulo 2^14: an ack that was delayed.
    if not (value ^ before) & SESSION_NUMBER_MASK and 0 < ahead < OUTSTANDING_MAXIMUM:
        flow.unseen += ahead
    flow.acked_unseen = value


def _reports_nothing(flow: Flow, stream: Stream, value: int) -> bool:
    """Return whether an ack only reports that nothing was received since a partner was abandoned (R-RTX-05)."""
    return stream.first & NUMBER_MASK == ABANDONED_NEXT or value & SESSION_NUMBER_MASK | ABANDONED_NEXT in flow.starts


def _note(state: FollowerState, entry: NumberedEntry, ack: Acknowledgement) -> None:
    if not ack.effective:
        if entry.refused_ack is None:
            entry.refused_ack = ack
    elif entry.ack is None:
        entry.ack = ack
    message = entry.message if isinstance(entry, Notice) else entry
    assert isinstance(message, CapturedMessage)
    if state.marks is not None:
        state.marks.acks.append((state.place, message.number))
    if ack.effective and (message.pull is None or entry is message.pull.notice):
        state.settle(message)


_NAMES = {int(each): each.name for each in NackType}


class NackTracker:
    """Handler of nacks addressed to libraries."""

    def __init__(self, state: FollowerState) -> None:
        self.state = state

    def nack_lib(self, row: Row) -> None:
        """Process the nack of a CONNECT or of a numbered packet."""
        _, _, time_ns, number, wire_length, key, nack_type, sequence = row
        direction = self.state.directions.get(key) or self.state.meet(key, time_ns)
        flow = direction.flow
        flow.count(time_ns, wire_length)
        flow.nacks += 1
        if self.state.marks is not None:
            self.state.marks.mark(row[0], 0, NACK)
        refusal = Refusal(number, time_ns, nack_name(nack_type))
        # The nack of a CONNECT names number 0 (R-CON-15). A message may have it, too, but only after 16,383 others.
        connect = _pending(flow) if sequence == 0 else None
        entry = None if connect is not None else _refused(direction, sequence)
        if entry is not None:
            self._refuse(entry, refusal)
        elif connect is not None:
            connect.nack = refusal

    def _refuse(self, entry: NumberedEntry, refusal: Refusal) -> None:
        message = entry.message if isinstance(entry, Notice) else entry
        assert isinstance(message, CapturedMessage)
        if message.state == REPORTED:
            self.state.note_late(message.flow, message, NACK)
            return
        if self.state.marks is not None:
            self.state.marks.mark(self.state.place, message.number, NACK)
        if entry.nack is None:
            entry.nack = refusal
        if isinstance(entry, Notice):
            entry.nacks += 1
        else:
            message.nacks += 1
        message.add_frame(refusal.frame, refusal.time_ns)
        # The nack of an announcement whose NOTIFY has passed refuses a retransmission: the message has ended otherwise.
        if message.pull is None or message.pull.notice is None or entry is message.pull.notice:
            self.state.settle(message)


def _pending(flow: Flow) -> Connect | None:
    """Return the oldest unanswered connect (R-CON-15)."""
    waiting = (each for each in flow.conversation.connects if each.side == flow.back.side)
    return next((each for each in waiting if each.answered_ns is None and each.nack is None), None)


def _refused(direction: EndpointDirection, sequence: int) -> NumberedEntry | None:
    """Return the entry with a sequence number, preferably an unacknowledged one."""
    acked: NumberedEntry | None = None
    # The latest opening first, because a nack does not name the session of the packet that it refuses.
    for conversation in reversed(direction.partners.conversations):
        stream = conversation.flows[1 - direction.side].stream
        if stream is None or (sequence ^ stream.bits) & SESSION_NUMBER_MASK:
            continue
        entry = stream.entries.get(stream.position(sequence))
        if entry is not None:
            if entry.ack is None:
                return entry
            acked = acked or entry
    return acked


def nack_name(nack_type: int) -> str:
    """Return the name of a nack type in the specification."""
    return _NAMES.get(nack_type, f"code {nack_type}")
