"""Pulls (behaviour, chapter 14)."""

from __future__ import annotations

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.transfers import ObservedTransfer
from mxwire.rules.vantage import pull_limit_most
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import BLOCKS_IN_FLIGHT, NO_SESSION, PULL_MAGIC
from mxwire.wire.packets import Pull, PullReply


@judges("R-PUL-01", Pull, also=("D-7", "D-15"), sized=True)
def block_arithmetic(seen: JudgedFrame) -> Breach | None:
    """A PULL requests one whole block, at the boundaries that the transfer's sizes determine."""
    frame, dialect = seen.frame, seen.pair.dialect
    payload, per_block, total = dialect.reply_payload, dialect.frames_per_block, frame.total_length
    index, offset, length = frame.frame_index, frame.first_frame_offset, frame.block_length
    lead = frame.pulled_rdma_offset % payload
    # The first frame begins with the message; later ones begin at multiples of P in the region (chapter 14).
    start = index * payload - lead if index else 0
    required_offset = 0 if index else lead
    required_length = min(payload * per_block - required_offset, total - start)
    if index % per_block == 0 and offset == required_offset and length == required_length and start < total:
        return None
    found = f"frame_index {index}, first_frame_offset {offset}, block_length {length}"
    if index % per_block or start >= total:
        expected = f"frame_index is a multiple of {per_block} and within {total} bytes"
    else:
        expected = f"first_frame_offset {required_offset} and block_length {required_length} for frame_index {index}"
    return Breach(expected, found, defect=_defect(seen))


def _defect(seen: JudgedFrame) -> str | None:
    """Return the defect that explains a nonsensical PULL: a real puller of fewer than 4 blocks whose timer expired."""
    transfer = seen.transfer
    if transfer is None or transfer.block_count >= BLOCKS_IN_FLIGHT:
        return None
    return "D-7" if seen.time_ns - transfer.first_ns >= seen.pull_timer else None


@judges("R-PUL-02", Pull, when=(FrameStatus.NEW,), sized=True)
def blocks_in_flight(seen: JudgedFrame) -> Breach | None:
    """At most four blocks are outstanding, counted from the oldest incomplete one."""
    transfer = seen.transfer
    # A transfer that began before the observation has blocks that were not seen.
    adopted = seen.announcement is None if transfer is None else transfer.adopted
    if seen.block is not None or adopted:
        return None
    oldest, per_block = (0, seen.pair.dialect.frames_per_block) if transfer is None else _window(transfer)
    block, over = divmod(seen.frame.frame_index, per_block)
    if (
        over
        or seen.frame.frame_index * seen.pair.dialect.reply_payload
        >= seen.frame.total_length + seen.frame.pulled_rdma_offset
    ):
        return None
    if block - oldest >= BLOCKS_IN_FLIGHT and not (transfer is not None and transfer.irregular):
        return Breach(
            f"block {oldest} is not complete, so blocks up to {oldest + BLOCKS_IN_FLIGHT - 1} may be requested",
            f"block {block}",
        )
    return None


def _window(transfer: ObservedTransfer) -> tuple[int, int]:
    return transfer.oldest, transfer.per_block


@judges("R-PUL-03", Pull)
def handle(seen: JudgedFrame) -> Breach | None:
    """A handle identifies one transfer, whose values never change; the magic is the endpoint's."""
    frame = seen.frame
    if seen.transfer is None:
        other = seen.pair.transfers.get(frame.src_pull_handle << 32 | frame.src_magic)
        if other is not None and other.adopted and seen.announcement is None and not seen.vantage.from_start:
            return None  # both may be of closed openings, whose pulls continue with equal handles (D-13, R-MEA-21)
        if other is not None and not other.ended and other.epoch == seen.flow.source.epoch:
            return Breach(
                f"handle 0x{frame.src_pull_handle:08x} is in use: only the values of the block may change",
                f"session 0x{frame.session:08x}, region {frame.pulled_rdma_id}, counter {frame.pulled_rdma_seqnum}, "
                f"offset {frame.pulled_rdma_offset}, total_length {frame.total_length}",
                frames=(other.first_number, other.last_number),
            )
    if frame.src_magic != PULL_MAGIC ^ frame.src_endpoint:
        return Breach(f"magic 0x{PULL_MAGIC ^ frame.src_endpoint:08x}", f"0x{frame.src_magic:08x}", "deviation")
    return None


@judges("R-PUL-04", Pull, also=("R-RDV-02",))
def as_announced(seen: JudgedFrame) -> Breach | None:
    """Region, counter and offset are those of a RNDV, and no more than its length is pulled."""
    frame, announcement = seen.frame, seen.announcement
    if seen.transfer is not None:
        return None
    if announcement is None:
        if not (seen.vantage.from_start or seen.back.announces(frame.session)):
            return None
        return Breach(
            "region and counter of a RNDV",
            f"no RNDV had region {frame.pulled_rdma_id}, counter {frame.pulled_rdma_seqnum}",
        )
    if frame.pulled_rdma_offset != announcement.offset:
        return Breach(
            f"pulled_rdma_offset {announcement.offset} as in the RNDV",
            f"{frame.pulled_rdma_offset}",
            frames=(announcement.number,),
        )
    if frame.total_length > announcement.length:
        return Breach(
            f"at most the {announcement.length} bytes of the RNDV",
            f"total_length {frame.total_length}",
            frames=(announcement.number,),
        )
    return None


@judges("R-PUL-08", Pull, severity="deviation", also=("R-PUL-07",), when=(FrameStatus.REPEAT,), sized=True)
def re_requested(seen: JudgedFrame) -> Breach | None:
    """A block is re-requested after 1000 ms, or once because a later one is complete (R-PUL-07)."""
    transfer, block = seen.transfer, seen.block
    if transfer is None or block is None:
        return None
    since = seen.time_ns - block.last_ns
    if since >= seen.pull_timer:
        return None
    which = block.index // transfer.per_block
    overtaken = any(other.complete for number, other in transfer.blocks.items() if number > which)
    if overtaken and not block.hurried:
        return None
    expected = "a re-request after 1000 ms, or once after a later block is complete"
    return Breach(expected, f"block {which} again after {since // MILLISECOND} ms", frames=(block.last_number,))


@judges("R-PUL-09", Pull, severity="deviation")
def time_limit(seen: JudgedFrame) -> Breach | None:
    """A pull is abandoned after about 500 s."""
    transfer = seen.transfer
    if transfer is None:
        return None
    since = seen.time_ns - transfer.first_ns
    if since > pull_limit_most(seen.vantage):
        return Breach("the pull ends after 501 to 510 s", f"{since // SECOND} s", frames=(transfer.first_number,))
    return None


@judges("R-PUL-10", Pull)
def not_after_the_end(seen: JudgedFrame) -> Breach | None:
    """No PULL follows the NOTIFY of its transfer, except one that the network delayed."""
    transfer = seen.transfer
    if transfer is None or not transfer.ended or transfer.announcement is None:
        return None
    # The RNDV may have been delivered twice, and its message is pulled for a second time (R-CON-12).
    if transfer.announcement.repeated_delivery:
        return None
    if seen.time_ns - transfer.announcement.notified_ns < seen.within_reordering:
        return None
    return Breach(
        "no PULL after the transfer has ended",
        "a PULL after the NOTIFY",
        frames=(transfer.announcement.notified_number,),
    )


@judges("R-PUL-12", PullReply, as_sent=True, sized=True)
def reply_per_pull(seen: JudgedFrame) -> Breach | None:
    """Each PULL is answered once, in order."""
    block = seen.block
    if block is None:
        return None
    if block.exact and block.answers[seen.place] >= block.deliveries:
        return Breach(
            f"one reply per delivered PULL: {block.deliveries}",
            f"reply {block.answers[seen.place] + 1} with frame {block.index + seen.place}",
            frames=(block.last_number, block.last_reply),
        )
    if seen.place and seen.place != block.last_place + 1:
        expected = f"frame {block.index + block.last_place + 1}, which is next"
        return Breach(expected, f"frame {block.index + seen.place}", "deviation", (block.last_reply,))
    return None


@judges("R-PUL-13", PullReply, sized=True)
def answers_a_pull(seen: JudgedFrame) -> Breach | None:
    """Number, length and offset follow from the PULL."""
    frame, transfer, block = seen.frame, seen.transfer, seen.block
    if transfer is None or block is None:
        return _unrequested(seen)
    place = seen.place
    index = block.index + place
    if place:
        offset = index * transfer.payload - transfer.lead
        length = transfer.payload
    else:
        offset = block.start
        length = transfer.payload - block.first_offset
    rest = block.start + block.length - offset
    if rest < length:
        length = rest
    if frame.frame_seqnum == index & 0xFF and frame.msg_offset == offset and frame.frame_length == length:
        return None
    return Breach(
        f"frame_seqnum {index & 0xFF}, msg_offset {offset}, frame_length {length}",
        f"frame_seqnum {frame.frame_seqnum}, msg_offset {frame.msg_offset}, frame_length {frame.frame_length}",
        frames=(block.last_number,),
    )


def _unrequested(seen: JudgedFrame) -> Breach | None:
    frame, vantage = seen.frame, seen.vantage
    if seen.status is FrameStatus.STALE:
        return None
    if not vantage.from_start and (seen.transfer is None or seen.transfer.adopted):
        return None
    return Breach(
        "handle, magic and offset of a PULL",
        f"no PULL requested offset {frame.msg_offset} with handle 0x{frame.dst_pull_handle:08x}",
    )


@judges("R-PUL-13", PullReply, sized=True)
def same_data(seen: JudgedFrame) -> Breach | None:
    """A re-requested frame carries the same data."""
    block = seen.block
    if block is None or not block.answers[seen.place] or block.data is None:
        return None
    known = block.data.get(seen.place)
    if known is None or known == seen.frame.data or _offers_another(seen):
        return None
    return Breach(f"frame {block.index + seen.place} with the same data as before", "other data")


def _offers_another(seen: JudgedFrame) -> bool:
    """Return whether the region already holds another message; a late PULL is still served (R-PUL-15)."""
    transfer = seen.transfer
    if transfer is None:
        return False
    counters = seen.pair.source.endpoint(transfer.owner).region_counters
    return counters.get(transfer.region, transfer.counter) != transfer.counter


@judges("R-CON-12", PullReply)
def refuses_unknown_session(seen: JudgedFrame) -> Breach | None:
    """A PULL with session 0xFFFFFFFF is refused like any other wrong session."""
    transfer = seen.transfer
    if transfer is None or transfer.session != NO_SESSION:
        return None
    return Breach("NACK_MCP 3 for session 0xFFFFFFFF", "the PULL is served", frames=(transfer.last_number,))


@judges("R-PUL-14", PullReply)
def refuses_former_session(seen: JudgedFrame) -> Breach | None:
    """A PULL that names another session than the endpoint's is refused."""
    transfer = seen.transfer
    if transfer is None:
        return None
    endpoint = seen.pair.source.endpoints.get(transfer.owner)
    if endpoint is None or transfer.session not in endpoint.past:
        return None
    puller = seen.pair.back.source.endpoints.get(transfer.puller)
    if (
        puller is not None and puller.epoch != transfer.epoch
    ):  # its handles begin again, in an unobserved PULL (R-MEA-28)
        return None
    if seen.time_ns - endpoint.reopened_ns < seen.within_reordering:
        return None
    return Breach(
        f"NACK_MCP 3: the endpoint's session is now 0x{endpoint.session or 0:08x}",
        f"a PULL with session 0x{transfer.session:08x} is served",
        frames=(transfer.last_number,),
    )
