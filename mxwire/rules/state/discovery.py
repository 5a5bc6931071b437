"""Tracker of hosts: announcements, names, peer indexes, and the endpoint numbers that they accept."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.rules.state.flows import ANY_INDEX
from mxwire.rules.state.frame import JudgedFrame
from mxwire.rules.state.hosts import AnnouncementSeries, ObservedHost
from mxwire.rules.state.streams import position_of
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import NO_PEER_INDEX, QUERY_MAGICS, SESSION_NUMBER_MASK

MAGICS = 16
"""Different magics of HOST_QUERYs that are remembered per pair."""


def apply_index(seen: JudgedFrame) -> None:
    """Discard the indexes before the one that the sender has used, because it has learned that one since; called only
    if several are possible.

    If it has learned it at this moment, another process of the host may just have sent a frame that it had queued.
    """
    pair = seen.pair
    index = seen.frame.dst_src_peer_index
    if index in pair.indexes:
        place = pair.indexes.index(index)
        if seen.vantage.as_sent and pair.taught_ns[place] != seen.time_ns:
            del pair.indexes[:place], pair.taught_ns[:place]
    elif ANY_INDEX in pair.indexes and index != NO_PEER_INDEX:
        pair.indexes[pair.indexes.index(ANY_INDEX)] = index


def teach(seen: JudgedFrame) -> None:
    """Remember that the sender teaches the receiver its index in the sender's peer table (wire format, section 5)."""
    if not seen.lost:
        seen.pair.back.teach(seen.frame.src_dst_peer_index, seen.delivered_ns)
        seen.pair.back.lesson_ns = seen.time_ns


def apply_query(seen: JudgedFrame) -> None:
    """Remember a HOST_QUERY."""
    pair = seen.pair
    magic = seen.frame.magic
    if not seen.lost:
        pair.queries[magic] = pair.queries.get(magic, 0) + seen.arrivals
        if len(pair.queries) > MAGICS:
            del pair.queries[next(iter(pair.queries))]
    probe = not seen.vantage.as_sent and magic in QUERY_MAGICS
    if not probe and seen.time_ns - pair.query_times[1] >= seen.within_reordering:
        # Duplicates are measured from the first of them, or a host that queries continuously would never be noticed.
        pair.query_times = (pair.query_times[1], seen.time_ns)
        pair.query_numbers = (pair.query_numbers[1], seen.number)
    if not probe:
        pair.source.magic = magic
    pair.query_index = seen.frame.src_dst_peer_index
    teach(seen)


def apply_host_reply(seen: JudgedFrame) -> None:
    """Remember a HOST_REPLY."""
    seen.pair.replies += 1
    teach(seen)


def announce(seen: JudgedFrame, hosts: Iterable[ObservedHost]) -> None:
    """Remember an announcement; a new one allows every other host to announce itself again."""
    frame, source = seen.frame, seen.pair.source
    known = source.announced
    if known is not None and known.serial == frame.serial and seen.time_ns - known.time_ns < seen.within_reordering:
        return
    if known is None or known.serial != frame.serial:
        for each in hosts:
            if each.announced is not None:
                each.announced.provoked = True
    source.announced = AnnouncementSeries(frame.serial, seen.time_ns, seen.number)


def look_nack_lib(seen: JudgedFrame) -> None:
    """Find the refused connect or message."""
    frame = seen.frame
    flow = seen.pair.back.flows.get(frame.dst_endpoint << 8 | frame.src_endpoint)
    seen.flow = flow
    if flow is None:
        return
    for stream in (flow.stream, flow.former):
        if stream is not None and frame.lib_seqnum & SESSION_NUMBER_MASK == stream.session_bits:
            seen.message = stream.message(position_of(frame.lib_seqnum, stream.next))
            if seen.message is not None:
                break
    # The nack of a CONNECT names number 0 (R-CON-15).
    if frame.lib_seqnum == 0:
        sent = [*flow.connects.values(), *([flow.replied] if flow.replied is not None else [])]
        waiting = [each for each in sent if each.nacks < each.deliveries]
        seen.connect = next(iter(waiting or sent), None)


def apply_nack_lib(seen: JudgedFrame) -> None:
    """Remember the refusal, and its implication for the host's endpoint limit."""
    frame, host = seen.frame, seen.pair.source
    if frame.nack_type == NackType.BAD_ENDPT:
        host.limit_at_most = min(host.limit_at_most, frame.src_endpoint)
    elif frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_SESSION):
        host.limit_above = max(host.limit_above, frame.src_endpoint)
    if seen.message is not None and not (seen.connect is not None and seen.message.nacks >= seen.message.frames):
        seen.message.nacks += 1
        if frame.nack_type == NackType.BAD_SESSION and (seen.flow is None or seen.flow.former is None):
            # Otherwise it may be a late nack of the same number in the previous stream.
            deny(seen, frame.src_endpoint, seen.message.session)
    elif seen.connect is not None:
        seen.connect.nacks += 1


DENIED = 8


def deny(seen: JudgedFrame, endpoint: int, session: int) -> None:
    """Remember that the host denies that an endpoint has this session now."""
    denied = seen.pair.source.endpoint(endpoint).denied
    denied[session] = (seen.number, seen.time_ns)
    if len(denied) > DENIED:
        del denied[next(iter(denied))]
