"""Rendezvous and NOTIFY (behaviour, chapters 13 and 15)."""

from __future__ import annotations

from typing import Final

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.transfers import ObservedAnnouncement, ObservedTransfer
from mxwire.wire.packets import Notify, Pull, Rndv

FIRST_COUNTER: Final = 23
_FIRST_SIGHT: Final = (FrameStatus.NEW, FrameStatus.LATE)


@judges("R-RDV-01", Rndv, when=(FrameStatus.NEW,))
def use_counter(seen: JudgedFrame) -> Breach | None:
    """Each use of a region has the next counter, starting with 23."""
    frame = seen.frame
    counter = frame.pulled_rdma_seqnum
    last = seen.flow.source.region_counters.get(frame.pulled_rdma_id)
    if counter == last:
        return Breach(
            f"a counter other than {last} for the next use of region {frame.pulled_rdma_id}",
            f"{counter}",
            "violation" if _is_pending(seen) else "deviation",
        )
    in_use = _use_before(seen)
    if in_use is not None:
        return Breach(
            f"no use of region {frame.pulled_rdma_id} before the NOTIFY for counter {last}",
            f"a second use, with counter {counter}",
            frames=(in_use.number,),
        )
    # In a capture, uses between these two may not have been seen.
    if not seen.vantage.as_sent:
        return None
    required = FIRST_COUNTER if last is None else (last + 1) & 0xFF
    if counter != required:
        return Breach(f"use counter {required} for region {frame.pulled_rdma_id}", f"{counter}", "deviation")
    return None


def _use_before(seen: JudgedFrame) -> ObservedAnnouncement | None:
    """Return the use of the region that cannot have ended yet: no NOTIFY, no nack, and no time to abandon it, which
    takes at least one resend delay (R-NOT-02, R-RTX-03)."""
    flow, region = seen.flow, seen.frame.pulled_rdma_id
    last, own = flow.source.region_counters.get(region), flow.source.session
    if last is None or own is None or seen.starts:
        return None
    known: ObservedAnnouncement | None = flow.announced(own, region, last)
    if known is None or known.notified is not None or known.perhaps_notified:
        return None
    if seen.time_ns - known.time_ns >= seen.resend_delay:
        return None
    message = flow.stream.message(known.position) if flow.stream is not None else None
    return known if message is not None and message.first_number == known.number and not message.nacks else None


def _is_pending(seen: JudgedFrame) -> bool:
    """Return whether the NOTIFY of the last use is outstanding, so that it could complete the wrong send."""
    frame = seen.frame
    own = seen.flow.source.session
    known = None if own is None else seen.flow.announced(own, frame.pulled_rdma_id, frame.pulled_rdma_seqnum)
    return known is not None and known.notified is None


@judges("R-RDV-04", Pull, also=("R-PUL-11",), alone=True)
def not_empty(seen: JudgedFrame) -> Breach | None:
    """If there is nothing to pull, there is no PULL."""
    if seen.frame.total_length == 0 or seen.frame.block_length == 0:
        return Breach("a PULL of at least 1 byte", "an empty PULL")
    return None


@judges("R-NOT-01", Notify, when=_FIRST_SIGHT)
def announced(seen: JudgedFrame) -> Breach | None:
    """A NOTIFY ends an announced large message, once, with its region and counter."""
    frame = seen.frame
    announcement = seen.announcement
    region = f"region {frame.pulled_rdma_id}, counter {frame.pulled_rdma_seqnum}"
    if announcement is None:
        if not (seen.vantage.from_start or seen.back.announces(frame.session)):
            return None
        if frame.total_length == 0 and seen.flow.destination.unseen:
            # It may end a message of a former opening that was not observed (R-MEA-14).
            return None
        return Breach("region and counter of a RNDV", f"no RNDV had {region}")
    stream = seen.flow.stream
    unsure = (seen.starts and not seen.flow.fresh) or (stream is not None and stream.adopted)
    # The same number means the same NOTIFY, even if the start of the source's numbers is ambiguous.
    another = announcement.notified is not None and announcement.notified_as != frame.lib_seqnum
    if another and not announcement.repeated_delivery and not unsure:
        return Breach(
            f"one NOTIFY per RNDV ({region})",
            f"a second one, with lib_seqnum 0x{frame.lib_seqnum:04x}",
            frames=(announcement.number, announcement.notified_number),
        )
    return None


@judges("R-MEA-14", Notify, severity="note", when=_FIRST_SIGHT)
def to_the_next_session(seen: JudgedFrame) -> Breach | None:
    """A receiver whose pull was refused still sends its NOTIFY of 0 bytes, but to the current session."""
    frame, announcement = seen.frame, seen.announcement
    if not seen.left_behind or seen.alike is not None or announcement is None:
        return None
    return Breach(
        "a NOTIFY to the session whose RNDV it ends",
        f"a NOTIFY of 0 bytes for region {frame.pulled_rdma_id}, counter {frame.pulled_rdma_seqnum} of a former "
        f"session, to session 0x{frame.session:08x}, which ignores it",
        frames=(announcement.number,),
    )


@judges("R-NOT-01", Notify, when=_FIRST_SIGHT, sized=True)
def transferred(seen: JudgedFrame) -> Breach | None:
    """``total_length`` is the number of bytes pulled, or 0 if the pull failed."""
    announcement, total = seen.announcement, seen.frame.total_length
    if total == 0 or announcement is None:
        return None
    transfer = announcement.transfer
    if transfer is None:
        return Breach(
            "total_length 0, since nothing was pulled", f"total_length {total}", frames=(announcement.number,)
        )
    frames = (announcement.number, transfer.first_number)
    if total != transfer.total:
        return Breach(f"{transfer.total} as in the PULLs, or 0", f"total_length {total}", frames=frames)
    if _lacks_a_block(transfer) and not transfer.taken_as_success:
        return Breach(
            f"total_length 0, since block {transfer.oldest} of {transfer.block_count} was not completely sent",
            f"total_length {total}",
            frames=frames,
        )
    return None


def _lacks_a_block(transfer: ObservedTransfer) -> bool:
    return not transfer.irregular and not transfer.adopted and transfer.oldest < transfer.block_count


@judges("R-NAK-09", Notify, severity="note", when=_FIRST_SIGHT)
def refused_with_success(seen: JudgedFrame) -> Breach | None:
    """A receiver whose PULL was refused with type 0 takes the message as complete, and reports so to the sender."""
    transfer = seen.announcement.transfer if seen.announcement is not None else None
    if transfer is None or not seen.frame.total_length or not transfer.taken_as_success or not _lacks_a_block(transfer):
        return None
    return Breach(
        f"total_length 0: block {transfer.oldest} of {transfer.block_count} was not completely sent",
        f"total_length {seen.frame.total_length}, after a NACK_MCP of type 0, which means success",
        frames=(transfer.first_number,),
    )
