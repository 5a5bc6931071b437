"""Tracker of large messages: PULLs, their replies, and the NOTIFY at the end."""

from __future__ import annotations

from mxwire.rules.state import numbered
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.transfers import TRANSFERS, ObservedAnnouncement, ObservedBlock, ObservedTransfer
from mxwire.wire.enums import NackType


def look_pull(seen: JudgedFrame) -> None:
    """Find the transfer and the block that a PULL belongs to."""
    frame = seen.frame
    key = frame.src_pull_handle << 32 | frame.src_magic
    seen.announcement = seen.back.announced(frame.session, frame.pulled_rdma_id, frame.pulled_rdma_seqnum)
    transfer = seen.pair.transfers.get(key)
    # The pull of a dead process may continue with the same handle (D-13).
    while transfer is not None and not _belongs(seen, transfer):
        transfer = transfer.older
    if transfer is None:
        return
    seen.transfer = transfer
    block = transfer.blocks.get(frame.frame_index // transfer.per_block)
    if block is None:
        if frame.frame_index // transfer.per_block < transfer.oldest:
            seen.status = FrameStatus.STALE
        return
    seen.block = block
    copied = not seen.vantage.as_sent and seen.time_ns - block.last_ns < seen.within_reordering
    seen.status = FrameStatus.DUPLICATE if copied else FrameStatus.REPEAT


def _belongs(seen: JudgedFrame, transfer: ObservedTransfer) -> bool:
    frame = seen.frame
    return bool(
        transfer.session == frame.session
        and transfer.total == frame.total_length
        and transfer.region == frame.pulled_rdma_id
        and transfer.counter == frame.pulled_rdma_seqnum
        and transfer.offset == frame.pulled_rdma_offset
        and transfer.owner == frame.dst_endpoint
        and transfer.puller == frame.src_endpoint
    )


def apply_pull(seen: JudgedFrame) -> None:
    """Remember the block that a PULL requests."""
    frame = seen.frame
    transfer = seen.transfer or _start(seen)
    arrivals = 0 if seen.lost else seen.arrivals
    exact = seen.delivered_ns is not None
    transfer.last_ns = seen.time_ns
    transfer.last_number = seen.number
    transfer.deliveries += arrivals
    transfer.exact = transfer.exact and exact
    if seen.status is FrameStatus.STALE:
        return
    block = seen.block
    if block is not None and (block.index, block.first_offset, block.length) == (
        frame.frame_index,
        frame.first_frame_offset,
        frame.block_length,
    ):
        if seen.status is FrameStatus.REPEAT:
            _request_again(seen, transfer, block)
        block.deliveries += arrivals
        block.exact = block.exact and exact
        block.last_ns = seen.time_ns
        block.last_number = seen.number
        return
    place, over = divmod(frame.frame_index, transfer.per_block)
    frames = -(-(frame.first_frame_offset + frame.block_length) // transfer.payload)
    if block is not None or over or not 0 < frames <= transfer.per_block:
        transfer.irregular = True
        return
    start = frame.frame_index * transfer.payload - transfer.lead + frame.first_frame_offset
    transfer.blocks[place] = ObservedBlock(
        index=frame.frame_index,
        first_offset=frame.first_frame_offset,
        length=frame.block_length,
        frames=frames,
        start=start,
        last_ns=seen.time_ns,
        last_number=seen.number,
        deliveries=arrivals,
        exact=exact,
        answers=[0] * frames,
        data={},
    )
    transfer.highest = max(transfer.highest, place)


def _request_again(seen: JudgedFrame, transfer: ObservedTransfer, block: ObservedBlock) -> None:
    """Remember the cause of a re-request; the timer clears the memory of early re-requests (R-PUL-08)."""
    if seen.time_ns - block.last_ns < seen.pull_timer:
        block.hurried = True
        return
    for each in transfer.blocks.values():
        each.hurried = False


def _start(seen: JudgedFrame) -> ObservedTransfer:
    frame, pair = seen.frame, seen.pair
    dialect = pair.dialect
    key = frame.src_pull_handle << 32 | frame.src_magic
    older = pair.transfers.pop(key, None)
    if older is not None:
        # Only one older transfer is kept, so that reused handles do not fill the memory.
        older.older = None
    transfer = ObservedTransfer(
        handle=frame.src_pull_handle,
        magic=frame.src_magic,
        session=frame.session,
        puller=frame.src_endpoint,
        owner=frame.dst_endpoint,
        region=frame.pulled_rdma_id,
        counter=frame.pulled_rdma_seqnum,
        offset=frame.pulled_rdma_offset,
        total=frame.total_length,
        payload=dialect.reply_payload,
        per_block=dialect.frames_per_block,
        epoch=seen.flow.source.epoch,
        first_ns=seen.time_ns,
        last_ns=seen.time_ns,
        first_number=seen.number,
        last_number=seen.number,
        lead=frame.pulled_rdma_offset % dialect.reply_payload,
        announcement=seen.announcement,
        adopted=seen.announcement is None,
        older=older,
    )
    if seen.announcement is not None:
        seen.announcement.transfer = transfer
    pair.transfers[key] = transfer
    if len(pair.transfers) > TRANSFERS:
        del pair.transfers[next(iter(pair.transfers))]
    return transfer


def look_reply(seen: JudgedFrame) -> None:
    """Find the block that a PULL_REPLY belongs to."""
    frame = seen.frame
    newest = transfer = seen.pair.back.transfers.get(frame.dst_pull_handle << 32 | frame.dst_magic)
    while transfer is not None:
        if transfer is not newest and _is_outlived(seen, transfer):
            return
        place = (frame.msg_offset + transfer.lead) // transfer.payload
        which = place // transfer.per_block
        block = transfer.blocks.get(which)
        if block is not None and place - block.index < block.frames:
            seen.transfer = transfer
            seen.block = block
            seen.place = place - block.index
            return
        seen.transfer = transfer
        if which < transfer.oldest or transfer.irregular or transfer.ended:
            seen.status = FrameStatus.STALE
        transfer = transfer.older


def _is_outlived(seen: JudgedFrame, transfer: ObservedTransfer) -> bool:
    """Return whether the session of either endpoint changed since the last PULL, so that the handle is another's."""
    owner = seen.pair.source.endpoints.get(transfer.owner)
    puller = seen.pair.back.source.endpoints.get(transfer.puller)
    return any(each is not None and each.reopened_ns > transfer.last_ns for each in (owner, puller))


def apply_reply(seen: JudgedFrame) -> None:
    """Remember that a frame of a block was sent, and received if that is known."""
    block, transfer = seen.block, seen.transfer
    if block is None or transfer is None:
        return
    place = seen.place
    block.answers[place] += 1
    block.last_place = place
    block.last_reply = seen.number
    data = block.data
    if data is not None and place not in data:
        data[place] = seen.frame.data
    if not seen.lost:
        block.seen |= 1 << place
        if block.seen == (1 << block.frames) - 1:
            transfer.settle()


def look_notify(seen: JudgedFrame) -> None:
    """Classify a NOTIFY, which is numbered like a message, and find the message that it ends.

    A NOTIFY of 0 bytes may end a message of the former opening, with the session of the present one (R-MEA-14). Both
    openings count the uses of their regions from the same number, so that their messages may look alike.
    """
    numbered.look(seen)
    frame = seen.frame
    region, counter = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
    seen.announcement = announcement = seen.back.announced(frame.session, region, counter)
    if frame.total_length or frame.session != seen.flow.destination.session or _was_refused(announcement):
        return
    left_behind = seen.back.left_behind(region, counter)
    if left_behind is not None:
        seen.announcement, seen.alike = left_behind, announcement
        seen.left_behind = True


def _was_refused(announcement: ObservedAnnouncement | None) -> bool:
    """Return whether a NOTIFY of 0 bytes is expected for a message, or was seen."""
    if announcement is None:
        return False
    transfer = announcement.transfer
    return announcement.notified is not None or (transfer is not None and transfer.nacks > 0)


def look_nack_mcp(seen: JudgedFrame) -> None:
    """Find the refused transfer."""
    frame = seen.frame
    seen.transfer = seen.pair.back.transfers.get(frame.src_pull_handle << 32 | frame.src_magic)


def apply_nack_mcp(seen: JudgedFrame) -> None:
    """Count the refusals of a transfer."""
    if seen.transfer is not None:
        seen.transfer.nacks += 1
        if seen.frame.nack_type == NackType.NONE and not seen.lost:
            seen.transfer.taken_as_success = True
