"""Tracker of CONNECT requests and replies: the sessions and starting numbers that they teach."""

from __future__ import annotations

from mxwire.rules.state.flows import ObservedConnect, ObservedFlow
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.hosts import ObservedEndpoint
from mxwire.wire.numbers import SESSION_NUMBER_MASK


def look_request(seen: JudgedFrame) -> None:
    """Classify a request as new, retransmitted or duplicate."""
    frame, flow = seen.frame, seen.flow
    if _is_stale(seen, flow.source, frame.src_session_id):
        return
    known = flow.connects.get(frame.connect_seqnum)
    if known is None or flow.source.session != frame.src_session_id or known.session != frame.src_session_id:
        return
    if known.target_epoch != flow.destination.epoch and frame.connect_seqnum in (0, flow.connect_next):
        # The target was restarted, and the requester may have detected it: then it numbers its connects from 0 again.
        return
    if seen.vantage.as_sent and _restarts_count(seen, known):
        return
    if (known.start ^ frame.target_recv_seqnum_start) & SESSION_NUMBER_MASK:
        # The requester has abandoned its partner since then, and numbers its connects from 0 again (R-RTX-05).
        return
    early = seen.time_ns - known.last_ns < seen.resend_delay
    seen.connect = known
    if known.answered and frame.connect_seqnum == 0 and seen.time_ns - known.first_ns > seen.within_reordering:
        # The connect number starts again: the requester disconnected in between.
        again = not early and flow.connect_next == 1 and known.key == frame.app_key
        seen.status = FrameStatus.REPEAT if again else FrameStatus.NEW
    elif known.key != frame.app_key and known.answered:
        seen.status = FrameStatus.NEW
    elif early and not seen.vantage.as_sent:
        seen.status = FrameStatus.DUPLICATE
    elif known.answered and frame.connect_seqnum == flow.connect_next:
        seen.status = FrameStatus.NEW
    else:
        seen.status = FrameStatus.REPEAT


def _restarts_count(seen: JudgedFrame, known: ObservedConnect) -> bool:
    """Return whether the number of a request belongs to a new count, after the requester forgot its partner
    (R-CLS-03)."""
    frame = seen.frame
    if frame.connect_seqnum == seen.flow.connect_next:
        return True
    return known.nacks > 0 and (frame.connect_seqnum == 0 or known.key != frame.app_key)


def look_reply(seen: JudgedFrame) -> None:
    """Find the request that a reply answers."""
    frame, flow = seen.frame, seen.flow
    if _is_stale(seen, flow.source, frame.target_session_id):
        return
    known = seen.back.connects.get(frame.connect_seqnum)
    if known is not None and known.session == frame.src_session_id:
        seen.connect = known
        seen.status = FrameStatus.REPEAT if known.replies else FrameStatus.NEW


def _is_stale(seen: JudgedFrame, endpoint: ObservedEndpoint, session: int) -> bool:
    """Return whether a frame of a former opening is late."""
    seen.endpoint = endpoint
    if session not in endpoint.past or session == endpoint.session:
        return False
    if seen.vantage.as_sent or seen.time_ns - endpoint.reopened_ns > seen.vantage.reorder_ns:
        return False
    seen.status = FrameStatus.STALE
    return True


def _renew(seen: JudgedFrame, flow: ObservedFlow, session: int) -> None:
    """Remember the source's own session, and reset the flow if it is a new one."""
    flow.source.open(session, seen.time_ns)
    if flow.source.epoch != flow.epoch:
        flow.renew(flow.source.epoch)
        seen.connect = None
        seen.status = FrameStatus.NEW
    host = seen.pair.source
    # An endpoint that connects is open, and so below the limit of its host (R-EP-01).
    host.limit_above = max(host.limit_above, flow.source_number)


def _disturb(seen: JudgedFrame, flow: ObservedFlow) -> None:
    """Forget the acknowledgements, because a CONNECT may have reset the numbers of both endpoints (R-CON-10,
    R-CON-05)."""
    flow.requested, flow.requested_ns = seen.frame.target_recv_seqnum_start, seen.time_ns
    for each in (flow, flow.back):
        each.acknowledged = None
        each.acknum_restart = True


def apply_request(seen: JudgedFrame) -> None:
    """Remember a request, and the session and number that it teaches its target."""
    frame, flow = seen.frame, seen.flow
    if seen.status is FrameStatus.STALE:
        return
    _renew(seen, flow, frame.src_session_id)
    known = seen.connect
    arrivals = 0 if seen.lost else seen.arrivals
    exact = seen.delivered_ns is not None
    if seen.status is FrameStatus.NEW or known is None:
        former = flow.connects.get(frame.connect_seqnum)
        other_keys = False
        if flow.connect_next and frame.connect_seqnum == 0:
            flow.restart = True
            flow.forgot = former is None or seen.time_ns - former.last_ns >= seen.within_reordering
            for each in seen.back.announcements.values():
                each.repeated_delivery = True
        # connect_seqnum counts modulo 256 (wire format, 6.5).
        flow.connect_next = (frame.connect_seqnum + 1) & 0xFF
        if former is not None and former.session == frame.src_session_id:
            # A suspended target also answers earlier requests of the same number, which it had received before.
            arrivals += max(0, former.deliveries - former.replies)
            exact = exact and former.exact
            unanswered = former.deliveries > former.replies or not exact
            other_keys = unanswered and (former.other_keys or former.key != frame.app_key)
        flow.connects[frame.connect_seqnum] = ObservedConnect(
            session=frame.src_session_id,
            key=frame.app_key,
            start=frame.target_recv_seqnum_start,
            first_ns=seen.time_ns,
            last_ns=seen.time_ns,
            number=seen.number,
            deliveries=arrivals,
            exact=exact,
            target_epoch=flow.destination.epoch,
            other_keys=other_keys,
        )
    else:
        known.deliveries += arrivals
        known.exact = known.exact and exact
        known.start = frame.target_recv_seqnum_start
        if seen.status is not FrameStatus.DUPLICATE:
            known.requests += 1
            known.last_ns = seen.time_ns
    _disturb(seen, flow)
    if not seen.lost:
        seen.back.learn(frame.src_session_id, frame.target_recv_seqnum_start, by_request=True)
        # The target may expect number 1 again, and treat messages that it already received as new (R-CON-12).
        for each in flow.announcements.values():
            each.repeated_delivery = True


def _count_reply(seen: JudgedFrame, connect: ObservedConnect) -> None:
    """Remember that a reply was sent, since it may be refused."""
    flow = seen.flow
    arrivals = 0 if seen.lost else seen.arrivals
    if flow.replied is None:
        flow.replied = ObservedConnect(
            session=connect.session,
            key=connect.key,
            start=connect.start,
            first_ns=seen.time_ns,
            last_ns=seen.time_ns,
            number=seen.number,
            deliveries=0,
        )
    flow.replied.deliveries += arrivals
    flow.replied.exact = flow.replied.exact and seen.delivered_ns is not None


def apply_reply(seen: JudgedFrame) -> None:
    """Remember a reply, and the session and number that it teaches the requester."""
    frame, flow = seen.frame, seen.flow
    if seen.status is FrameStatus.STALE:
        return
    connect = seen.connect
    _renew(seen, flow, frame.target_session_id)
    if connect is not None:
        if connect.session not in flow.sessions and connect.session == flow.destination.session:
            # A duplicate of a request that a former opening answered: the reply shows that this opening received it
            # too.
            flow.learn(connect.session, connect.start, by_request=True)
        connect.replies += 1
        if not seen.lost:
            connect.answered = True
        _count_reply(seen, connect)
        if connect.reply is None:
            connect.reply = (frame.target_session_id, frame.connect_status_code)
        if frame.connect_status_code == 0 and not connect.other_keys:
            flow.source.key = connect.key
    _disturb(seen, flow)
    if frame.connect_status_code == 0 and not seen.lost:
        seen.back.learn(frame.target_session_id, frame.target_recv_seqnum_start, by_request=False)
