"""Follow the packets that consume sequence numbers: TINY, SMALL, MEDIUM, RNDV and NOTIFY (R-SEQ-04).

Theory of operation
-------------------
A capture shows packets, not messages. Each numbered packet is placed in four steps, and at most one message is created
or extended by it.

1. Conversation. Endpoint numbers are reused, so a conversation lasts from one opening of both endpoints to the next:
   the session in the packet selects it (``FollowerState.flow``). Each of its two flows has the packets of one
   direction.
2. Stream. Within a flow the numbers of 14 bits count up in one stream. A stream ends, and another one begins, when the
   two bits of the session number change (the sender abandoned its partner, R-RTX-05), when a known number carries
   another packet (the sender restarted without a visible CONNECT), or when a CONNECT requested the number and it is not
   the next one. If a packet has the former session number and repeats a known packet, it still belongs to the former
   stream, because the network may deliver it after the change.
3. Position. The number is extended beyond 14 bits, relative to the next expected one (``Stream.position``). Later
   steps compare positions only, so the wrap from 16383 to 0 needs no further care. Positions are dictionary keys:
   packets may arrive in any order, and a gap remains visible as a missing key.
4. Entry. A position without an entry is a new message (or, for NOTIFY, the end of a message of the other direction). A
   packet for a position with an entry is a retransmission or a duplicate. Since no field distinguishes the two, time
   and content decide: a library retransmits after 500 ms at the earliest (R-RTX-01) and updates the piggybacked ack. A
   packet with an unchanged ack within that time is a duplicate made by the network or by the capture; any other packet
   is a retransmission. The fragments of one MEDIUM share a number, so a fragment that has not been seen in the current
   transmission continues that transmission if it arrives within 500 ms, and otherwise begins the next one.

Piggybacked acks are processed before the packet is placed: they concern the opposite flow, and a message may be
acknowledged and repeated in the same exchange.

Memory is bounded. A settled message is kept for little more than a second, to recognise late duplicates, and is then
reported; later packets with its number only count as late. The oldest entries of a stream are dropped when it
holds more than a sender may have outstanding.

``mxwire.rules.state.numbered`` makes the same decisions for ``verify``, per frame and more cautiously: in doubt it does
not judge a packet, while this module begins a stream. ``tests/analysis/test_placement.py`` compares the two.
"""

from __future__ import annotations

from mxwire.analysis.conversations.acks import acknowledge
from mxwire.analysis.conversations.frame_marks import (
    DATA,
    DUPLICATE,
    NACKED,
    NOTIFY,
    OBSOLETE,
    RETRANSMISSION,
    RNDV,
    THROTTLED,
)
from mxwire.analysis.conversations.message import (
    REPEATS_KEPT,
    REPORTED,
    CapturedMessage,
    Kind,
    MessagePull,
    Notice,
    NumberedEntry,
    Repeat,
)
from mxwire.analysis.conversations.partners import Flow
from mxwire.analysis.conversations.rows import Row
from mxwire.analysis.conversations.state import ANNOUNCED, REORDER_NS, RESEND_NS, FollowerState
from mxwire.analysis.conversations.streams import Stream, stream_at
from mxwire.wire.numbers import NO_SESSION, OUTSTANDING_MAXIMUM, SESSION_NUMBER_MASK


class NumberedTracker:
    """Tracker of the numbered packets, with one handler per layout."""

    def __init__(self, state: FollowerState) -> None:
        self.state = state

    def tiny(self, row: Row) -> None:
        """Process a TINY."""
        self._inline(row, "TINY")

    def small(self, row: Row) -> None:
        """Process a SMALL."""
        self._inline(row, "SMALL")

    def _inline(self, row: Row, kind: Kind) -> None:
        _, _, time_ns, number, _, _, _, ack, _, length, match = row
        flow, stream, position, entry, flags = self._arrive(row, (kind, length, match))
        if entry is None:
            message = self._create(flow, stream, kind, position, length, match)
            message.complete_ns = time_ns
            message.bytes_seen = length
            message.piggyack = ack
        else:
            assert isinstance(entry, CapturedMessage)
            message = entry
            if self._is_late(entry, message, DATA):
                return
            flags = count_repeat(message, time_ns, number, ack)
        self._add_frame(row, stream, message, message, DATA, flags)

    def medium(self, row: Row) -> None:
        """Process a fragment of a MEDIUM."""
        _, _, time_ns, number, _, _, _, _, _, length, match, fragment, size = row
        flow, stream, position, entry, flags = self._arrive(row, ("MEDIUM", length, match))
        bit = 1 << fragment
        if entry is None:
            message = self._create(flow, stream, "MEDIUM", position, length, match)
        else:
            assert isinstance(entry, CapturedMessage)
            message = entry
            if self._is_late(entry, message, DATA):
                return
            flags = self._another_fragment(message, bit, time_ns, number)
        message.round |= bit
        if not message.fragments & bit:
            message.fragments |= bit
            message.bytes_seen += size
            if message.bytes_seen >= length and message.complete_ns is None:
                message.complete_ns = time_ns
        self._add_frame(row, stream, message, message, DATA, flags)

    @staticmethod
    def _another_fragment(message: CapturedMessage, bit: int, time_ns: int, number: int) -> int:
        """Count a fragment that continues a transmission, begins one, or is a duplicate (R-MED-03, R-RTX-02).

        Returns its flags.
        """
        since = time_ns - message.last_sent_ns
        flow = message.flow
        if since >= RESEND_NS:
            message.transmissions += 1
            message.round = 0
            _note_resend(message, number, time_ns, since)
        elif message.round & bit:
            message.duplicates += 1
            flow.duplicates += 1
            return DUPLICATE
        message.last_sent_ns = time_ns
        # A fragment that is new here was lost before the capture; nothing that passed is repeated.
        if message.fragments & bit:
            flow.retransmissions += 1
        return RETRANSMISSION if message.transmissions > 1 else 0

    def rndv(self, row: Row) -> None:
        """Process the announcement of a large message."""
        _, _, time_ns, number, _, _, _, ack, _, length, match, region, counter, offset = row
        flow, stream, position, entry, flags = self._arrive(row, ("RNDV", length, match))
        if entry is None:
            message = self._announce(flow, stream, position, length, match, MessagePull(region, counter, offset))
            message.piggyack = ack
        else:
            assert isinstance(entry, CapturedMessage)
            message = entry
            if self._is_late(entry, message, RNDV):
                return
            flags = count_repeat(message, time_ns, number, ack)
        self._add_frame(row, stream, message, message, RNDV, flags)

    def _announce(
        self, flow: Flow, stream: Stream, position: int, length: int, match: int, pull: MessagePull
    ) -> CapturedMessage:
        """Create an announced large message; in a disordered capture its other frames may have been seen before."""
        state = self.state
        place = pull.region, pull.counter
        message = flow.announced.get(place)
        if message is not None and message.position < 0 and state.now_ns - message.first_ns <= REORDER_NS:
            message.position, message.length, message.match = position, length, match
            message.transmissions = 1
            message.last_sent_ns = state.now_ns
            flow.message_bytes += length
            self._add(flow, stream, message)
            return message
        message = self._create(flow, stream, "RNDV", position, length, match)
        message.pull = pull
        announce(flow, message, pull)
        return message

    def notify(self, row: Row) -> None:
        """Process a NOTIFY: a numbered packet that ends a large message of the opposite direction."""
        _, _, time_ns, number, _, _, _, ack, _, total, region, counter = row
        flow, stream, position, entry, flags = self._arrive(row, ("NOTIFY", total, region << 8 | counter))
        if entry is None:
            message = flow.back.announced.get((region, counter))
            # If it was reported without an announcement, the region is in use again, with a counter that has wrapped
            # around.
            if message is None or (message.state == REPORTED and message.position < 0):
                message = self.state.adopt(flow.back, MessagePull(region, counter, 0))
                announce(flow.back, message, message.pulled)
            # Replies are processed in runs: those that passed before the NOTIFY must count before it ends the message.
            self.state.take_replies(message)
            notice = Notice(position, time_ns, ack, message, number, total)
            self._add(flow, stream, notice)
            self._end(message, notice)
        else:
            assert isinstance(entry, Notice)
            notice, message = entry, entry.message
            if self._is_late(entry, message, NOTIFY):
                return
            flags = self._repeat_notice(notice, time_ns, ack)
        self._add_frame(row, stream, message, notice, NOTIFY, flags)

    @staticmethod
    def _end(message: CapturedMessage, notice: Notice) -> None:
        pull = message.pull
        assert pull is not None
        if pull.notice is None:
            pull.notice = notice
            if message.complete_ns is None and not notice.total_length:
                message.complete_ns = notice.first_ns if message.length == 0 else None

    @staticmethod
    def _repeat_notice(notice: Notice, time_ns: int, ack: int) -> int:
        """Count a retransmission or a duplicate of a NOTIFY; returns its flags."""
        flow = notice.message.flow.back
        if time_ns - notice.last_ns < RESEND_NS and ack == notice.piggyack:
            notice.duplicates += 1
            flow.duplicates += 1
            return DUPLICATE
        notice.transmissions += 1
        notice.last_ns, notice.piggyack = time_ns, ack
        flow.retransmissions += 1
        return RETRANSMISSION

    # Common to all handlers

    def _arrive(self, row: Row, content: tuple[str, int, int]) -> tuple[Flow, Stream, int, NumberedEntry | None, int]:
        """Count a packet and take its piggyback; return its flow, stream and position, the known entry, and the flags
        of a new number."""
        _, _, time_ns, _, wire_length, key, sequence, ack, session, *_ = row
        state = self.state
        flow = state.flow(key, session, time_ns, wire_length)
        answered = flow.back.stream
        # Most packets repeat the previous ack, which changes nothing.
        if answered is None or ack != answered.ack_value:
            acknowledge(state, row, flow.back, ack, "piggyback", effective=True, confirmed=session != NO_SESSION)
        stream, position, entry = self._find(flow, sequence, content)
        flags = 0 if entry is not None or state.marks is None else stream.arrival(position)
        return flow, stream, position, entry, flags

    def _find(
        self, flow: Flow, sequence: int, content: tuple[str, int, int]
    ) -> tuple[Stream, int, NumberedEntry | None]:
        """Return stream, position and known entry of a number; begin a stream if the number does not fit the last
        one.
        """
        stream = flow.stream
        if stream is None:
            stream = flow.stream = stream_at(sequence, flow.starts[-1] if flow.starts else None)
            flow.restart = False
            return stream, stream.position(sequence), None
        if (sequence ^ stream.bits) & SESSION_NUMBER_MASK:
            former = flow.former
            if former is not None and not (sequence ^ former.bits) & SESSION_NUMBER_MASK:
                position = former.position(sequence)
                entry = former.entries.get(position)
                if entry is not None and _is_same(entry, content):
                    return former, position, entry
            return self._begin(flow, sequence)
        position = stream.position(sequence)
        entry = stream.entries.get(position)
        if entry is not None and not _is_same(entry, content):
            return self._begin(flow, sequence)
        # A repeated CONNECT requests the number that its sender lacks, so this packet fills a gap and begins no stream.
        outside = not stream.acked <= position <= stream.next
        if flow.restart and entry is None and outside and sequence in flow.starts:
            return self._begin(flow, sequence)
        return stream, position, entry

    def _begin(self, flow: Flow, sequence: int) -> tuple[Stream, int, None]:
        """Begin a stream: the sender abandoned its partner, or restarted for a reason that was not captured."""
        self.state.end_stream(flow, abandoned=True)
        if flow.former is not None:
            flow.unseen += flow.former.missing
        flow.former = flow.stream
        flow.stream = stream_at(sequence, sequence)
        flow.restart = False
        return flow.stream, flow.stream.position(sequence), None

    def _create(
        self, flow: Flow, stream: Stream, kind: Kind, position: int, length: int, match: int
    ) -> CapturedMessage:
        message = self.state.create(flow, kind, position, length, match)
        self._add(flow, stream, message)
        return message

    def _add(self, flow: Flow, stream: Stream, entry: NumberedEntry) -> None:
        state = self.state
        evicted = stream.add(entry)
        if stream.next - stream.acked > flow.most_outstanding:
            flow.most_outstanding = stream.next - stream.acked
        if isinstance(evicted, CapturedMessage):
            state.settle(evicted)
        # Acknowledged before it was seen, in a capture with another order than the wire.
        if entry.ack is not None and isinstance(entry, CapturedMessage) and entry.kind != "RNDV":
            state.settle(entry)

    def _is_late(self, entry: CapturedMessage | Notice, message: CapturedMessage, role: int) -> bool:
        if message.state != REPORTED:
            return False
        sent_ns = entry.last_ns if isinstance(entry, Notice) else entry.last_sent_ns
        flags = DUPLICATE if self.state.now_ns - sent_ns < RESEND_NS else RETRANSMISSION | OBSOLETE
        self.state.note_late(message.flow, message, role, flags)
        return True

    def _add_frame(
        self, row: Row, stream: Stream, message: CapturedMessage, entry: CapturedMessage | Notice, role: int, flags: int
    ) -> None:
        """Add the current frame, which carries ``entry``, the message or its NOTIFY; mark it."""
        message.add_frame(row[3], row[2])
        marks = self.state.marks
        if marks is None:
            return
        if entry.nack is not None:
            flags |= NACKED
        if stream.next - stream.confirmed >= OUTSTANDING_MAXIMUM:
            flags |= THROTTLED
        repeat = 0
        if flags & RETRANSMISSION:
            repeat = entry.transmissions - 1
            if entry.position < stream.confirmed and entry.position not in stream.forgotten:
                flags |= OBSOLETE
        # Transmitted again since the receiver forgot it, so that from now on a repetition is obsolete again.
        stream.forgotten.discard(entry.position)
        marks.mark(self.state.place, message.number, role, flags, repeat)


def count_repeat(message: CapturedMessage, time_ns: int, number: int, ack: int) -> int:
    """Count a retransmission or a duplicate of a message or of its announcement; returns its flags."""
    since = time_ns - message.last_sent_ns
    if since < RESEND_NS and ack == message.piggyack:
        message.duplicates += 1
        message.flow.duplicates += 1
        return DUPLICATE
    message.transmissions += 1
    message.last_sent_ns = time_ns
    message.piggyack = ack
    message.flow.retransmissions += 1
    _note_resend(message, number, time_ns, since)
    return RETRANSMISSION


def _note_resend(message: CapturedMessage, number: int, time_ns: int, since: int) -> None:
    if len(message.resends) < REPEATS_KEPT:
        message.resends = (*message.resends, Repeat(number, time_ns, since, "resend", since))


def _is_same(entry: NumberedEntry, content: tuple[str, int, int]) -> bool:
    """Return whether a frame repeats or continues the known entry with its number."""
    kind, length, match = content
    if isinstance(entry, CapturedMessage):
        return entry.kind == kind and entry.length == length and entry.match == match
    assert isinstance(entry, Notice)
    pull = entry.message.pull
    if kind != "NOTIFY" or pull is None or entry.total_length != length:
        return False
    return pull.region is None or pull.counter is None or pull.region << 8 | pull.counter == match


def announce(flow: Flow, message: CapturedMessage, pull: MessagePull) -> None:
    """Assign subsequent PULLs and NOTIFYs with the region and use counter of ``pull`` to ``message``."""
    assert pull.region is not None and pull.counter is not None
    place = pull.region, pull.counter
    flow.announced.pop(place, None)
    flow.announced[place] = message
    if len(flow.announced) > ANNOUNCED:
        del flow.announced[next(iter(flow.announced))]
