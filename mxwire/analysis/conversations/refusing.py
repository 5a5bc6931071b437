"""Follows nacks (chapter 16 of the rules)."""

from __future__ import annotations

from mxwire.analysis.conversations.books import Books
from mxwire.analysis.conversations.message import HANDED_OUT, Entry, Message, Notice, Refusal
from mxwire.analysis.conversations.partners import Connect, Flow, Way
from mxwire.analysis.conversations.rows import Row
from mxwire.analysis.conversations.watch import Role
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import SESSION_NUMBER_MASK

_NAMES = {int(each): each.name for each in NackType}


class Refusing:
    """Handler of the nacks that libraries get."""

    def __init__(self, books: Books) -> None:
        self.books = books

    def nack_lib(self, row: Row) -> None:
        """A CONNECT or a numbered packet was refused."""
        _, _, time_ns, number, wire_length, key, nack_type, sequence = row
        way = self.books.ways.get(key) or self.books.meet(key, time_ns)
        flow = way.flow
        flow.frames += 1
        flow.bytes += wire_length
        flow.nacks += 1
        flow.conversation.last_ns = time_ns
        refusal = Refusal(number, time_ns, nack_name(nack_type))
        connect = _pending(flow) if sequence == 0 else None
        entry = None if connect is not None else _refused(way, sequence)
        if entry is not None:
            self._refuse(entry, refusal)
        elif connect is not None:
            connect.nack = refusal

    def _refuse(self, entry: Entry, refusal: Refusal) -> None:
        message = entry.message if isinstance(entry, Notice) else entry
        assert isinstance(message, Message)
        if message.state == HANDED_OUT:
            message.flow.late += 1
            return
        if entry.nack is None:
            entry.nack = refusal
        if isinstance(entry, Notice):
            entry.nacks += 1
        else:
            message.nacks += 1
        message.add_frame(refusal.frame, refusal.time_ns)
        self.books.saw(message, Role.NACK)
        if message.pull is None or message.pull.notice is None or entry is message.pull.notice:
            self.books.settle(message)


def _pending(flow: Flow) -> Connect | None:
    """The oldest connect that waits for an answer (R-CON-15)."""
    waiting = (each for each in flow.conversation.connects if each.side == flow.back.side)
    return next((each for each in waiting if each.answered_ns is None and each.nack is None), None)


def _refused(way: Way, sequence: int) -> Entry | None:
    """Return the entry of a number, preferably one without an acknowledgement."""
    acked: Entry | None = None
    for conversation in reversed(way.partners.conversations):
        stream = conversation.flows[1 - way.side].stream
        if stream is None or (sequence ^ stream.bits) & SESSION_NUMBER_MASK:
            continue
        entry = stream.entries.get(stream.position(sequence))
        if entry is not None:
            if entry.ack is None:
                return entry
            acked = acked or entry
    return acked


def nack_name(nack_type: int) -> str:
    """The specification's name of a nack type."""
    return _NAMES.get(nack_type, f"code {nack_type}")
