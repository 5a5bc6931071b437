"""Tracker of numbered packets (TINY, SMALL, MEDIUM, RNDV, NOTIFY) and of the acknowledgements that they carry.

Theory of operation

Each frame passes through three steps. ``look`` classifies it by the state that earlier frames have left, and records
its conclusions in the :class:`~mxwire.rules.state.frame.JudgedFrame`. Then the rules of its class run; they read the
conclusions and the state, and change neither. Finally ``apply`` updates the state. The order matters: a rule must
compare the frame with the state before it, as the receiving host does.

The state is a ``Flow`` per pair of endpoints and direction, and its ``back`` is the reverse direction. A flow has a
``Stream``: consecutive numbers from the start that the receiver requested in a CONNECT, until one endpoint resets its
state. Numbers on the wire have 14 bits and wrap around, so that the stream uses positions instead (see
``streams.py``). A ``Message`` per position keeps the content that every transmission repeats, and the frames that
may have reached the receiver. Positions below ``complete`` were received completely according to the observation,
those below ``acknowledged`` according to the receiver, and messages below ``floor`` are forgotten, which bounds the
memory of a long conversation.

``look`` decides between these cases:

* The number is ``stream.next``: a new message (NEW). It is also NEW if it is higher, although numbers were then left
  out: either a rule is broken, or the observer missed frames.
* The position is known: the message was retransmitted (REPEAT), or this is another fragment of the same transmission of
  a MEDIUM (FRAGMENT), or the network has duplicated the frame (DUPLICATE). An observer at the sender needs no clock for
  this, because frames have not passed through the network yet. In a capture, a frame that repeats one within the resend
  delay, with the same piggyback, is taken for a duplicate: the library never retransmits earlier (R-RTX-01), and it
  writes the current ack into every retransmission (R-ACK-03).
* The position lies below ``next`` but is unknown: the frame was lost or delayed before observation (LATE), or its
  message is already forgotten (STALE).
* The session is not that of the stream: a later session begins a new stream, an earlier one is STALE. A message with
  session 0xFFFFFFFF, and a NOTIFY, may name another session than the stream and still belong to its numbers.

Restarts are difficult to detect, because no packet announces them. A source that has forgotten its partner, by a
disconnect or because it abandoned it, numbers its messages from a start that a CONNECT requested, and these numbers may
coincide with earlier ones. ``flow.restart`` is set by every CONNECT that the source receives; while it is set, a
requested start with unexpected content, a gap before it or another session number begins a new stream (``starts``). The
flow keeps the previous stream as ``former``, because nacks and delayed frames may still refer to it. If a message of
``former`` is retransmitted although the requested start was its next number, the source has not restarted at all, and
the two streams are one again.

Acknowledgements refer to the reverse direction: ``look_ack`` finds their position in ``back.stream``, or None if they
refer to an earlier stream or an earlier session. After a partner was abandoned, an ack may carry a reserved number
that acknowledges nothing (R-RTX-05); it has no position either.

When in doubt, the tracker chooses the interpretation by which no host broke a rule. A stream whose start was not
observed is ``adopted``, and a flow with frames that could not be followed is ``loose``; rules that need certainty skip
both.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mxwire.rules.state.flows import ObservedFlow
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.streams import (
    NO_FRAGMENTS,
    NO_REGION,
    Content,
    ObservedMessage,
    ObservedStream,
    position_of,
    stream_from,
)
from mxwire.rules.state.transfers import ANNOUNCEMENTS, ObservedAnnouncement
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import (
    ABANDONED_DONE,
    ABANDONED_NEXT,
    FIRST_NUMBER,
    NO_SESSION,
    NUMBER_MASK,
    OUTSTANDING_MAXIMUM,
    SESSION_NUMBER_MASK,
)
from mxwire.wire.packets import Frame

_MEDIUM: Final = int(PacketType.MEDIUM)
_RNDV: Final = int(PacketType.RNDV)
_NOTIFY: Final = int(PacketType.NOTIFY)


def look(seen: JudgedFrame) -> None:
    """Classify a numbered packet: new number, retransmission, further fragment, duplicate, late or stale."""
    frame = seen.frame
    look_ack(seen, frame.lib_piggyack, frame.session)
    flow = seen.flow
    stream = flow.stream
    session = frame.session
    if frame.ptype == _MEDIUM:
        seen.crc = crc32(frame.data)
    if stream is None:
        _look_first(seen, flow, session)
    elif session == stream.session or session == NO_SESSION or stream.session is None:
        if flow.former is not None and _belongs_to(seen.frame, stream, flow.former):
            # The start number that a CONNECT requested was the next number anyway: this was not a restart.
            flow.former.append(stream)
            stream = flow.stream = flow.former
            flow.former = None
        _look_in(seen, flow, stream)
    elif _is_newer(flow, session, stream.session):
        seen.starts = True
    elif frame.ptype == _NOTIFY and session in flow.sessions:
        _look_in(seen, flow, stream)
    else:
        seen.status = FrameStatus.STALE


def _look_first(seen: JudgedFrame, flow: ObservedFlow, session: int) -> None:
    former = flow.former
    # A packet of the former session may have been overtaken by the CONNECT of the new one.
    late = seen.time_ns - flow.source.reopened_ns <= seen.within_reordering
    if late and former is not None and session not in flow.sessions and session == former.session:
        seen.status = FrameStatus.STALE
    else:
        seen.starts = True


def _is_newer(flow: ObservedFlow, session: int, than: int) -> bool:
    """Return whether the source learned ``session`` after the session ``than``."""
    if session not in flow.sessions:
        return not flow.sessions
    return than not in flow.sessions or [*flow.sessions].index(session) > [*flow.sessions].index(than)


def _look_in(seen: JudgedFrame, flow: ObservedFlow, stream: ObservedStream) -> None:
    number = seen.frame.lib_seqnum
    seen.position = position = position_of(number, stream.next)
    if number & SESSION_NUMBER_MASK != stream.session_bits:
        seen.starts = _may_restart(seen, flow)
        seen.status = FrameStatus.NEW if seen.starts else FrameStatus.STALE
        return
    ahead = position - stream.next
    if ahead == 0:
        # If a number before it is missing, the source may have abandoned it, and continue with a requested start.
        seen.starts = stream.complete < stream.next and _may_restart(seen, flow)
        return
    if ahead > 0:
        seen.starts = _may_restart(seen, flow)
        return
    message = stream.message(position)
    if message is None:
        # In a capture it may also be a lost or delayed packet, whose number the receiver requests again.
        seen.starts = (seen.vantage.as_sent or flow.forgot) and _may_restart(seen, flow)
        if not seen.starts:
            forgotten = stream.first <= position < stream.floor
            seen.status = FrameStatus.STALE if forgotten else FrameStatus.LATE
    elif flow.restart and not _is_same(message, seen.frame) and _may_restart(seen, flow):
        seen.starts = True
    else:
        seen.message = message
        _look_repeat(seen, message)


def _may_restart(seen: JudgedFrame, flow: ObservedFlow) -> bool:
    """Return whether the source may have forgotten its partner and restart its numbers where a CONNECT requested it."""
    if not flow.restart:
        return False
    known = flow.sessions.get(seen.frame.session)
    return known is not None and seen.frame.lib_seqnum in known.starts


def _belongs_to(frame: Frame, stream: ObservedStream, former: ObservedStream) -> bool:
    """Return whether ``frame`` repeats a message of ``former``, and ``stream`` continues the numbers of it."""
    if (former.next, former.session_bits, former.session) != (stream.first, stream.session_bits, stream.session):
        return False
    message = former.message(position_of(frame.lib_seqnum, stream.next))  # type: ignore[attr-defined]
    return message is not None and _is_same(message, frame)


def _is_same(message: ObservedMessage, frame: Frame) -> bool:
    return content(frame) == message.content


def _look_repeat(seen: JudgedFrame, message: ObservedMessage) -> None:
    frame = seen.frame
    since = seen.time_ns - message.last_ns
    early = since < seen.resend_delay
    if message.kind == _MEDIUM and frame.ptype == _MEDIUM:
        again = bool(message.round >> frame.frag_seqnum & 1)
        if seen.vantage.as_sent:
            seen.status = FrameStatus.REPEAT if again else FrameStatus.FRAGMENT
        elif early:
            seen.status = FrameStatus.DUPLICATE if again else FrameStatus.FRAGMENT
        else:
            seen.status = FrameStatus.REPEAT
        return
    copied = not seen.vantage.as_sent and frame.lib_piggyack == message.acknowledgement
    seen.status = FrameStatus.DUPLICATE if early and copied else FrameStatus.REPEAT


def look_ack(seen: JudgedFrame, value: int, session: int) -> None:
    """Find the position in the reverse direction that an acknowledgement refers to."""
    seen.ack = value
    stream = seen.back.stream
    if (
        stream is None
        or value & SESSION_NUMBER_MASK != stream.session_bits
        or _reports_nothing(seen.back, stream, value)
    ):
        return
    receiver = seen.flow.destination
    if session != receiver.session and receiver.session is not None and (session != NO_SESSION or receiver.epoch):
        return
    seen.ack_position = position_of(value, stream.complete)


def _reports_nothing(back: ObservedFlow, stream: ObservedStream, value: int) -> bool:
    """Return whether an ack only reports that nothing was received since a partner was abandoned (R-RTX-05)."""
    if value & NUMBER_MASK == FIRST_NUMBER:
        # After a reset number 1 is expected, which lies ahead of the numbers of an abandoned partner (R-CLS-05).
        return stream.first & NUMBER_MASK == ABANDONED_NEXT
    if value & NUMBER_MASK != ABANDONED_DONE:
        return False
    requested = value & SESSION_NUMBER_MASK | ABANDONED_NEXT
    return any(requested in known.starts for known in back.sessions.values())


def content(frame: Frame) -> Content:
    """Return the properties that every transmission of a numbered packet repeats: type, length, match, region, data.

    Data of a MEDIUM is compared per fragment instead.
    """
    kind = frame.ptype
    if kind == _NOTIFY:
        return kind, frame.total_length, (frame.pulled_rdma_id, frame.pulled_rdma_seqnum), NO_REGION, None  # type: ignore[attr-defined]
    match = (frame.match_a, frame.match_b)  # type: ignore[attr-defined]
    if kind == _RNDV:
        region = (frame.pulled_rdma_id, frame.pulled_rdma_seqnum, frame.pulled_rdma_offset)  # type: ignore[attr-defined]
        return kind, frame.msg_length, match, region, None  # type: ignore[attr-defined]
    data = None if kind == _MEDIUM else frame.data  # type: ignore[attr-defined]
    return kind, frame.length, match, NO_REGION, data  # type: ignore[attr-defined]


def apply(seen: JudgedFrame) -> None:
    """Remember a numbered packet: its message, its fragment, and the numbers that are now complete."""
    apply_ack(seen)
    status = seen.status
    if status is FrameStatus.STALE:
        seen.flow.loose = True
        return
    if status is FrameStatus.LATE and seen.position < seen.flow.stream.floor:
        seen.flow.loose = True
        return
    if status is FrameStatus.NEW or status is FrameStatus.LATE:
        message = _add(seen)
    else:
        assert seen.message is not None
        message = seen.message
        _count(seen, message)
    if message.kind == _MEDIUM and seen.frame.ptype == _MEDIUM:
        _add_fragment(seen, message)
    elif message.acceptable and not seen.lost and not message.complete:
        message.complete = True
    stream = seen.flow.stream
    if stream is not None and message.complete and message.position == stream.complete:
        stream.settle()


def _add(seen: JudgedFrame) -> ObservedMessage:
    frame, flow = seen.frame, seen.flow
    if seen.starts or flow.stream is None:
        flow.former = flow.stream
        flow.stream = _new_stream(seen)
        flow.restart = flow.forgot = False
        seen.position = position_of(frame.lib_seqnum, flow.stream.next)
    stream = flow.stream
    if stream.session is None and frame.session != NO_SESSION:
        stream.session = frame.session
    kind = frame.ptype
    expected = flow.destination.session
    acceptable = frame.session != NO_SESSION and (expected is None or frame.session == expected)
    message = ObservedMessage(
        position=seen.position,
        session=frame.session,
        kind=kind,
        content=content(frame),
        first_ns=seen.time_ns,
        last_ns=seen.time_ns,
        first_number=seen.number,
        last_number=seen.number,
        frames=0 if seen.lost else seen.arrivals,
        exact=seen.delivered_ns is not None,
        complete=kind != _MEDIUM and acceptable and not seen.lost,
        acceptable=acceptable,
        acknowledgement=frame.lib_piggyack,
        fragments={} if kind == _MEDIUM else NO_FRAGMENTS,
    )
    stream.add(message)
    seen.message = message
    flow.unannounced = flow.unannounced or (not flow.connects and bool(flow.sessions))
    if kind == _RNDV:
        _announce(seen, flow)
    elif kind == _NOTIFY:
        _end(seen)
    return message


def _new_stream(seen: JudgedFrame) -> ObservedStream:
    """Return a stream from the requested start, if the number is plausible for it, or else from the number itself."""
    frame, flow = seen.frame, seen.flow
    session = None if frame.session == NO_SESSION else frame.session
    known = flow.sessions.get(frame.session)
    starts = known.starts if known else [start for each in flow.sessions.values() for start in each.starts]
    if frame.lib_seqnum in starts:
        return stream_from(frame.lib_seqnum, session, flow.kept_behind, adopted=not flow.fresh)
    for start in reversed(starts):
        if (
            start & SESSION_NUMBER_MASK == frame.lib_seqnum & SESSION_NUMBER_MASK
            and (frame.lib_seqnum - start) & NUMBER_MASK < OUTSTANDING_MAXIMUM
        ):
            return stream_from(start, session, flow.kept_behind, adopted=not flow.fresh)
    return stream_from(frame.lib_seqnum, session, flow.kept_behind, adopted=not starts or not flow.fresh)


def _count(seen: JudgedFrame, message: ObservedMessage) -> None:
    """Count one more frame of a known message."""
    message.frames += 0 if seen.lost else seen.arrivals
    message.exact = message.exact and seen.delivered_ns is not None
    if seen.status is FrameStatus.DUPLICATE:
        return
    if seen.status is FrameStatus.REPEAT:
        message.transmissions += 1
        message.round = 0
    message.acknowledgement = seen.frame.lib_piggyack
    message.last_ns = seen.time_ns
    message.last_number = seen.number


def _add_fragment(seen: JudgedFrame, message: ObservedMessage) -> None:
    frame = seen.frame
    place = frame.frag_seqnum
    if seen.status is not FrameStatus.DUPLICATE:
        message.round |= 1 << place
    known = message.fragments.get(place)
    arrived = not seen.lost
    # The first fragment that was delivered counts, because a receiver ignores any further one (R-MED-03).
    if known is not None and (known[2] or not arrived):
        return
    if known is None or arrived:
        message.fragments[place] = (frame.frag_length, seen.crc, arrived)
    if not arrived:
        return
    message.delivered_bytes += frame.frag_length
    if message.acceptable and message.delivered_bytes >= message.length:
        message.complete = True


def _announce(seen: JudgedFrame, flow: ObservedFlow) -> None:
    frame = seen.frame
    announcements = flow.announcements
    own = flow.source.session
    key = (-1 if own is None else own, frame.pulled_rdma_id, frame.pulled_rdma_seqnum)
    # Entered again as the newest: the first entry is forgotten when there are too many.
    announcements.pop(key, None)
    announcements[key] = ObservedAnnouncement(
        length=frame.msg_length,
        offset=frame.pulled_rdma_offset,
        position=seen.position,
        number=seen.number,
        time_ns=seen.time_ns,
    )
    if len(announcements) > ANNOUNCEMENTS:
        del announcements[next(iter(announcements))]
    # A retransmission is not another use of the region (R-RDV-01).
    if not seen.status:
        flow.source.region_counters[frame.pulled_rdma_id] = frame.pulled_rdma_seqnum


def _end(seen: JudgedFrame) -> None:
    announcement = seen.announcement
    if announcement is None:
        return
    if seen.alike is not None:
        seen.alike.perhaps_notified = True
    if announcement.notified is not None:
        announcement.repeated_delivery = False
    announcement.notified = seen.position
    announcement.notified_as = seen.frame.lib_seqnum
    announcement.notified_number = seen.number
    announcement.notified_ns = seen.time_ns
    if announcement.transfer is not None:
        announcement.transfer.end()


def apply_ack(seen: JudgedFrame) -> None:
    """Remember the acknowledgement of the source."""
    position = seen.ack_position
    if position is None:
        return
    flow = seen.flow
    stream = seen.back.stream
    assert stream is not None
    if flow.acknowledged_stream is not stream:
        flow.acknowledged_stream = stream
        flow.acknowledged = None
    if flow.acknowledged is None or position > flow.acknowledged:
        flow.acknowledged = position
        flow.acknowledged_ns = seen.time_ns
        flow.acknowledged_number = seen.number
    if not seen.lost and position > stream.acknowledged:
        stream.acknowledge(position)


def look_liback(seen: JudgedFrame) -> None:
    """Find the position that a liback acknowledges."""
    frame = seen.frame
    look_ack(seen, frame.liback_lib_seqnum, frame.session)


def apply_liback(seen: JudgedFrame) -> None:
    """Remember the acknowledgement of a liback and its ``acknum``."""
    apply_ack(seen)
    flow, frame = seen.flow, seen.frame
    # After a reset the numbers of libacks start with 1 again (R-ACK-06).
    restarted = flow.acknum_restart and frame.liback_acknum == 1
    if flow.acknum is None or frame.liback_acknum > flow.acknum or frame.session != flow.acknum_session or restarted:
        flow.acknum = frame.liback_acknum
        flow.acknum_ns = seen.time_ns
    if flow.acknum_session is None or frame.session != NO_SESSION:
        flow.acknum_session = frame.session
    flow.acknum_restart = False
