"""Follows numbered packets (TINY, SMALL, MEDIUM, RNDV, NOTIFY) and the acknowledgements they carry."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mxwire.rules.state.flows import Flow
from mxwire.rules.state.sequence import position_of
from mxwire.rules.state.sighting import Sighting, Status
from mxwire.rules.state.streams import NO_FRAGMENTS, Content, Message, Stream, stream_from
from mxwire.rules.state.transfers import ANNOUNCEMENTS, Announcement
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
_NO_REGION: Final = (0, 0, 0)


def look(seen: Sighting) -> None:
    """Say what the frame is: a new number, a repetition, another fragment, or none of the present stream."""
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
        _look_in(seen, flow, stream)
    elif _is_newer(flow, session, stream.session):
        seen.starts = True
    elif frame.ptype == _NOTIFY and session in flow.told:
        _look_in(seen, flow, stream)
    else:
        seen.status = Status.STALE


def _look_first(seen: Sighting, flow: Flow, session: int) -> None:
    former = flow.former
    late = seen.time_ns - flow.source.reopened_ns <= seen.within_reordering
    if late and former is not None and session not in flow.told and session == former.session:
        seen.status = Status.STALE
    else:
        seen.starts = True


def _is_newer(flow: Flow, session: int, than: int) -> bool:
    """Whether the source was told a session after another one."""
    if session not in flow.told:
        return not flow.told
    return than not in flow.told or [*flow.told].index(session) > [*flow.told].index(than)


def _look_in(seen: Sighting, flow: Flow, stream: Stream) -> None:
    number = seen.frame.lib_seqnum
    seen.position = position = position_of(number, stream.next)
    if number & SESSION_NUMBER_MASK != stream.session_bits:
        seen.starts = _may_restart(seen, flow)
        seen.status = Status.NEW if seen.starts else Status.STALE
        return
    ahead = position - stream.next
    if ahead == 0:
        # Where something before it is missing, the source may have given it up, and go on from where it was asked to.
        seen.starts = stream.complete < stream.next and _may_restart(seen, flow)
        return
    if ahead > 0:
        seen.starts = _may_restart(seen, flow)
        return
    message = stream.messages.get(position)
    if message is None:
        # In a capture it may also be one that was lost or held up on its way here, which the receiver asks for again.
        seen.starts = (seen.vantage.as_sent or flow.forgot) and _may_restart(seen, flow)
        if not seen.starts:
            forgotten = stream.first <= position < stream.floor
            seen.status = Status.STALE if forgotten else Status.LATE
    elif flow.restart and not _is_same(message, seen.frame) and _may_restart(seen, flow):
        seen.starts = True
    else:
        seen.message = message
        _look_repeat(seen, message)


def _may_restart(seen: Sighting, flow: Flow) -> bool:
    """Whether the source may have forgotten its partner, and starts again where a CONNECT asked it to."""
    if not flow.restart:
        return False
    told = flow.told.get(seen.frame.session)
    return told is not None and seen.frame.lib_seqnum in told.starts


def _is_same(message: Message, frame: Frame) -> bool:
    return content(frame) == message.content


def _look_repeat(seen: Sighting, message: Message) -> None:
    frame = seen.frame
    since = seen.time_ns - message.last_ns
    early = since < seen.resend_delay
    if message.kind == _MEDIUM and frame.ptype == _MEDIUM:
        again = bool(message.round >> frame.frag_seqnum & 1)
        if seen.vantage.as_sent:
            seen.status = Status.REPEAT if again else Status.FRAGMENT
        elif early:
            seen.status = Status.DUPLICATE if again else Status.FRAGMENT
        else:
            seen.status = Status.REPEAT
        return
    copied = not seen.vantage.as_sent and frame.lib_piggyack == message.acknowledgement
    seen.status = Status.DUPLICATE if early and copied else Status.REPEAT


def look_ack(seen: Sighting, value: int, session: int) -> None:
    """Find the position in the other direction that an acknowledgement speaks of."""
    seen.ack = value
    stream = seen.back.stream
    if stream is None or value & SESSION_NUMBER_MASK != stream.session_bits or _says_nothing(seen.back, stream, value):
        return
    receiver = seen.flow.destination
    if session != receiver.session and receiver.session is not None and (session != NO_SESSION or receiver.epoch):
        return
    seen.ack_position = position_of(value, stream.complete)


def _says_nothing(back: Flow, stream: Stream, value: int) -> bool:
    """Whether an acknowledgement only says that nothing has come yet, after a partner was given up (R-RTX-05)."""
    if value & NUMBER_MASK == FIRST_NUMBER:
        # Reset after that: number 1 is awaited, which lies ahead of those that follow a giving up (R-CLS-05).
        return stream.first & NUMBER_MASK == ABANDONED_NEXT
    if value & NUMBER_MASK != ABANDONED_DONE:
        return False
    asked = value & SESSION_NUMBER_MASK | ABANDONED_NEXT
    return any(asked in told.starts for told in back.told.values())


def content(frame: Frame) -> Content:
    """What every transmission of a numbered packet must repeat: type, length, match, region, data.

    Data of a MEDIUM is compared by fragment instead.
    """
    kind = frame.ptype
    if kind == _NOTIFY:
        return kind, frame.total_length, (frame.pulled_rdma_id, frame.pulled_rdma_seqnum), _NO_REGION, None  # type: ignore[attr-defined]
    match = (frame.match_a, frame.match_b)  # type: ignore[attr-defined]
    if kind == _RNDV:
        region = (frame.pulled_rdma_id, frame.pulled_rdma_seqnum, frame.pulled_rdma_offset)  # type: ignore[attr-defined]
        return kind, frame.msg_length, match, region, None  # type: ignore[attr-defined]
    data = None if kind == _MEDIUM else frame.data  # type: ignore[attr-defined]
    return kind, frame.length, match, _NO_REGION, data  # type: ignore[attr-defined]


def apply(seen: Sighting) -> None:
    """Remember the frame."""
    apply_ack(seen)
    status = seen.status
    if status is Status.STALE:
        seen.flow.loose = True
        return
    if status is Status.LATE and seen.position < seen.flow.stream.floor:
        seen.flow.loose = True
        return
    if status is Status.NEW or status is Status.LATE:
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


def _add(seen: Sighting) -> Message:
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
    message = Message(
        position=seen.position,
        session=frame.session,
        kind=kind,
        content=content(frame),
        first_ns=seen.time_ns,
        last_ns=seen.time_ns,
        first_number=seen.number,
        last_number=seen.number,
        frames=0 if seen.lost else seen.copies,
        exact=seen.delivered_ns is not None,
        complete=kind != _MEDIUM and acceptable and not seen.lost,
        acceptable=acceptable,
        acknowledgement=frame.lib_piggyack,
        fragments={} if kind == _MEDIUM else NO_FRAGMENTS,
    )
    stream.add(message)
    seen.message = message
    flow.unannounced = flow.unannounced or (not flow.connects and bool(flow.told))
    if kind == _RNDV:
        _announce(seen, flow)
    elif kind == _NOTIFY:
        _end(seen)
    return message


def _new_stream(seen: Sighting) -> Stream:
    """A stream that begins where the source was asked to begin, if the number fits that at all."""
    frame, flow = seen.frame, seen.flow
    session = None if frame.session == NO_SESSION else frame.session
    told = flow.told.get(frame.session)
    starts = told.starts if told else [start for each in flow.told.values() for start in each.starts]
    if frame.lib_seqnum in starts:
        return stream_from(frame.lib_seqnum, session, adopted=not flow.fresh)
    for start in reversed(starts):
        if (
            start & SESSION_NUMBER_MASK == frame.lib_seqnum & SESSION_NUMBER_MASK
            and (frame.lib_seqnum - start) & NUMBER_MASK < OUTSTANDING_MAXIMUM
        ):
            return stream_from(start, session, adopted=not flow.fresh)
    return stream_from(frame.lib_seqnum, session, adopted=not starts or not flow.fresh)


def _count(seen: Sighting, message: Message) -> None:
    """One more frame of a known message."""
    message.frames += 0 if seen.lost else seen.copies
    message.exact = message.exact and seen.delivered_ns is not None
    if seen.status is Status.DUPLICATE:
        return
    if seen.status is Status.REPEAT:
        message.transmissions += 1
        message.round = 0
    message.acknowledgement = seen.frame.lib_piggyack
    message.last_ns = seen.time_ns
    message.last_number = seen.number


def _add_fragment(seen: Sighting, message: Message) -> None:
    frame = seen.frame
    place = frame.frag_seqnum
    if seen.status is not Status.DUPLICATE:
        message.round |= 1 << place
    known = message.fragments.get(place)
    arrived = not seen.lost
    if known is not None and (known[2] or not arrived):
        return
    if known is None or arrived:
        message.fragments[place] = (frame.frag_length, seen.crc, arrived)
    if not arrived:
        return
    message.delivered_bytes += frame.frag_length
    if message.acceptable and message.delivered_bytes >= message.length:
        message.complete = True


def _announce(seen: Sighting, flow: Flow) -> None:
    frame = seen.frame
    announcements = flow.announcements
    own = flow.source.session
    key = (-1 if own is None else own, frame.pulled_rdma_id, frame.pulled_rdma_seqnum)
    announcements.pop(key, None)
    announcements[key] = Announcement(
        length=frame.msg_length,
        offset=frame.pulled_rdma_offset,
        position=seen.position,
        number=seen.number,
        time_ns=seen.time_ns,
    )
    if len(announcements) > ANNOUNCEMENTS:
        del announcements[next(iter(announcements))]
    if not seen.status:
        flow.source.region_counters[frame.pulled_rdma_id] = frame.pulled_rdma_seqnum


def _end(seen: Sighting) -> None:
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


def apply_ack(seen: Sighting) -> None:
    """Remember what the source has acknowledged."""
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


def look_liback(seen: Sighting) -> None:
    """An explicit acknowledgement."""
    frame = seen.frame
    look_ack(seen, frame.liback_lib_seqnum, frame.session)


def apply_liback(seen: Sighting) -> None:
    """Remember its number."""
    apply_ack(seen)
    flow, frame = seen.flow, seen.frame
    anew = flow.acknum_restart and frame.liback_acknum == 1
    if flow.acknum is None or frame.liback_acknum > flow.acknum or frame.session != flow.acknum_session or anew:
        flow.acknum = frame.liback_acknum
        flow.acknum_ns = seen.time_ns
    if flow.acknum_session is None or frame.session != NO_SESSION:
        flow.acknum_session = frame.session
    flow.acknum_restart = False
