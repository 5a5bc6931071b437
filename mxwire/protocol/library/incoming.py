"""What is done with the packet that is next in sequence, by its type (behaviour, sections 9, 10, 13 and 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxwire.protocol.corridor import Arrival, Fragments
from mxwire.protocol.library.acks import AckEvent
from mxwire.protocol.library.matching import Unexpected
from mxwire.protocol.library.reassembly import FRAGMENTS_MAXIMUM, Reassembly
from mxwire.wire.packets import Medium, Notify, Rndv

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import Partner


def handle(partner: Partner, arrival: Arrival | Fragments) -> bool:
    """Handle a packet in sequence; False where there is no memory for it: as if it had been lost (R-ORD-03).

    Each type may carry any length that its format allows (R-SND-02).
    """
    frame: Any = arrival.frame
    kind = type(frame)
    if kind is Notify:
        return _notify(partner, frame)
    if kind is Medium:
        return _medium(partner, arrival)
    if kind is Rndv:
        return _rendezvous(partner, frame)
    return _eager(partner, frame)


def handled(partner: Partner, arrival: Arrival | Fragments) -> None:
    """After a packet was handled: a NOTIFY may want its ack at once (R-ACK-08)."""
    if type(arrival.frame) is not Notify or partner.incomplete:
        return
    profile = partner.endpoint.profile
    at_once = profile.notify_acked_at_once
    if at_once if at_once is not None else partner.endpoint.card.dialect.family == "mxoe":
        partner.acks.fire(AckEvent.AT_ONCE)


def match_info_of(frame: Any) -> int:
    """The 64 bits of match information of a message."""
    info: int = (frame.match_a << 32) | frame.match_b
    return info


def _eager(partner: Partner, frame: Any) -> bool:
    """TINY and SMALL: the whole message is there."""
    matching = partner.endpoint.matching
    info = match_info_of(frame)
    receive = matching.arrive(info)
    if receive is not None:
        receive.take_message(partner, info, frame.data)
        return True
    return matching.keep(Unexpected(partner, info, len(frame.data), data=frame.data))


def _medium(partner: Partner, arrival: Arrival | Fragments) -> bool:
    """The first fragment to arrive, whichever it is, triggers matching (R-MED-01)."""
    frame = arrival.frame
    endpoint = partner.endpoint
    if frame.length > endpoint.card.dialect.fragment_payload * FRAGMENTS_MAXIMUM:
        return False
    info = match_info_of(frame)
    reassembly = Reassembly(partner, frame.lib_seqnum, info, frame.length)
    receive = endpoint.matching.arrive(info)
    if receive is not None:
        receive.take_fragments(partner, info, reassembly)
    elif not endpoint.matching.keep(Unexpected(partner, info, frame.length, reassembly=reassembly)):
        return False
    else:
        reassembly.buffer_it()
    partner.incomplete[frame.lib_seqnum] = reassembly
    reassembly.add(arrival)
    return True


def _rendezvous(partner: Partner, frame: Rndv) -> bool:
    """A message to be pulled: it is pulled when it has been matched (R-RDV-03, R-MAT-05)."""
    endpoint = partner.endpoint
    info = match_info_of(frame)
    receive = endpoint.matching.arrive(info)
    if receive is not None:
        receive.take_rendezvous(partner, info, frame)
        return True
    return endpoint.matching.keep(Unexpected(partner, info, frame.msg_length, rendezvous=frame))


def _notify(partner: Partner, frame: Notify) -> bool:
    """The end of a large send of ours, if its region and use are those of one (R-NOT-02)."""
    send = partner.large_sends.get((frame.pulled_rdma_id, frame.pulled_rdma_seqnum))
    if send is not None:
        send.notified(frame.total_length)
    return True
