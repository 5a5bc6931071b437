"""Tracker of pulls of large messages: PULLs, their replies and their nacks (chapter 14 of the rules)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.acks import nack_name
from mxwire.analysis.conversations.frame_marks import (
    DUPLICATE,
    EARLY_RE_REQUEST,
    GAP,
    NACK,
    NACKED,
    OBSOLETE,
    OUT_OF_ORDER,
    PULL,
    RE_REQUEST,
    REPEATED,
    RETRANSMISSION,
)
from mxwire.analysis.conversations.message import REPEATS_KEPT, REPORTED, CapturedMessage, MessagePull, Refusal, Repeat
from mxwire.analysis.conversations.numbered_packets import announce
from mxwire.analysis.conversations.partners import Conversation, Flow
from mxwire.analysis.conversations.rows import Replies, ReplyKey, Row
from mxwire.analysis.conversations.state import PULL_TIMER_NS, REORDER_NS, FollowerState
from mxwire.wire.byteorder import PULL_MAGIC_PREFIX
from mxwire.wire.dialect import Dialect

TRANSFERS: Final = 1 << 13
"""Maximum number of pulls that are remembered, of all conversations."""
PASSED_KEPT: Final = 4
"""Maximum number of PULLs out of order that are remembered per message."""
CURSORS_KEPT: Final = 8
"""Maximum number of requests per block whose replies are checked for order."""
BLOCKS: Final = 256
"""Maximum number of blocks that are remembered per pull, complete or not."""
_MAGIC: Final = PULL_MAGIC_PREFIX << 8 | 0x80


class RequestedBlock:
    """A block as requested by a PULL."""

    __slots__ = ("cursors", "done_ns", "end", "requested_ns", "requests", "start", "time_ns")

    def __init__(self, start: int, end: int, time_ns: int) -> None:
        self.start = start
        self.end = end
        self.requested_ns = self.time_ns = time_ns
        """Times of its first and last request."""
        self.done_ns: int | None = None
        """Time of the reply that completed it; None if bytes were not seen."""
        self.requests = 1
        self.cursors = [start]
        """Per request, the offset after its latest reply, as tracked by :meth:`PullTracker._mark_order`."""


class Transfer:
    """A pull, identified by its handle."""

    __slots__ = ("blocks", "highest", "identity", "key", "lead", "message", "payload", "per_block")

    def __init__(self, key: ReplyKey, message: CapturedMessage, dialect: Dialect) -> None:
        self.key = key
        self.message = message
        self.payload = dialect.reply_payload
        self.per_block = dialect.frames_per_block
        self.lead = 0
        """Number of bytes of its first frame that precede the message (chapter 14: r)."""
        self.identity: tuple[int, ...] | None = None
        """Session, length, region, its use counter and offset; None if no PULL was seen."""
        self.blocks: dict[int, RequestedBlock] = {}
        """By ``frame_index``."""
        self.highest = 0
        """Start of the latest requested block."""


class PullTracker:
    """Tracker of PULLs, runs of their replies, and their nacks."""

    def __init__(self, state: FollowerState) -> None:
        self.state = state
        state.take_replies = self._take_all
        self.transfers: dict[ReplyKey, Transfer] = {}
        self._of_message: dict[int, list[Transfer]] = {}
        self._strays: dict[ReplyKey, Conversation] = {}
        self._pending: dict[ReplyKey, Replies] = {}
        self._dialects: tuple[Dialect, ...] = ()

    def begin(self, replies: dict[ReplyKey, Replies], dialects: tuple[Dialect, ...]) -> list[Replies]:
        """Begin a batch with the PULL_REPLYs ``replies``; return those that belong to an unknown request."""
        self._pending = replies
        self._dialects = dialects
        return [each for key, each in replies.items() if key not in self.transfers]

    def end(self) -> None:
        """End the batch, after all frames except replies were processed."""
        for key, replies in self._pending.items():
            transfer = self.transfers.get(key)
            if transfer is not None:
                self._take(transfer, replies, None)

    # Requests

    def pull(self, row: Row) -> None:
        """Process a PULL: a request for a block."""
        (
            _, _, time_ns, number, wire_length, direction, session, total, region, counter, offset, handle, magic,
            first, length, index, dialect,
        ) = row  # fmt: skip
        state = self.state
        flow = state.flow(direction, session, time_ns, wire_length)
        # The replier first, as in the key of its replies.
        key = direction[1], direction[0] >> 16, handle << 32 | magic
        identity = session, total, region, counter, offset
        transfer = self.transfers.get(key)
        if transfer is None or transfer.identity != identity:
            transfer = self._begin(key, flow, identity, transfer, self._dialects[dialect])
        message = transfer.message
        marks = state.marks
        if message.state == REPORTED:
            known = transfer.blocks.get(index)
            again = DUPLICATE if known is not None and time_ns - known.time_ns <= REORDER_NS else RE_REQUEST
            state.note_late(flow, message, PULL, again | OBSOLETE)
            return
        pull = message.pulled
        pull.pulls += 1
        # The first frame of a block may begin at an offset, and then carries less.
        pull.requested_replies += -(-(first + length) // transfer.payload)
        message.add_frame(number, time_ns)
        flags = (NACKED if pull.refusal is not None else 0) | (OBSOLETE if pull.notice is not None else 0)
        block = transfer.blocks.get(index)
        if block is None:
            start = index * transfer.payload - transfer.lead + first
            transfer.blocks[index] = block = RequestedBlock(start, start + length, time_ns)
            if start >= transfer.highest:
                transfer.highest = start
            else:
                self._note_passed(transfer, block, pull, number)
            if len(transfer.blocks) > BLOCKS:
                self._prune(transfer)
        else:
            self._take_before(key)
            flags |= self._request_again(transfer, block, time_ns, number, flow)
        if marks is not None:
            marks.mark(row[0], message.number, PULL, flags, block.requests - 1 if flags & RE_REQUEST else 0)

    def _begin(
        self, key: ReplyKey, flow: Flow, identity: tuple[int, ...], known: Transfer | None, dialect: Dialect
    ) -> Transfer:
        """Return the transfer of a PULL, which may be new, be identified by this PULL, or reuse a handle (D-13)."""
        self._take_before(key)
        _, total, region, counter, offset = identity
        message = flow.back.announced.get((region, counter))
        # Reported without an announcement: the region and its counter, which wraps around, are in use again.
        if message is not None and message.state == REPORTED and message.position < 0:
            message = None
        if known is not None and known.identity is None and known.message.state != REPORTED:
            transfer = known
            message = self._recognise(known, flow.back, message, region, counter, offset)
        else:
            if message is None:
                message = self.state.adopt(flow.back, MessagePull(region, counter, offset))
                announce(flow.back, message, message.pulled)
            transfer = Transfer(key, message, dialect)
            self._remember(transfer)
        pull = message.pulled
        transfer.identity = identity
        transfer.payload, transfer.per_block = dialect.reply_payload, dialect.frames_per_block
        transfer.lead = offset % dialect.reply_payload
        if pull.requested is None:
            pull.requested = total
        if pull.first_pull_ns is None:
            pull.first_pull_ns = self.state.now_ns
        return transfer

    def _recognise(
        self, transfer: Transfer, flow: Flow, message: CapturedMessage | None, region: int, counter: int, offset: int
    ) -> CapturedMessage:
        """Return the message of replies seen before their first PULL: the capture began later, or is disordered."""
        stray = transfer.message
        pull = stray.pulled
        if message is None:
            stray.flow.messages["RNDV"] -= 1
            flow.messages["RNDV"] += 1
            stray.flow = flow
            pull.region, pull.counter, pull.offset = region, counter, offset
            announce(flow, stray, pull)
            return stray
        _merge(message, stray)
        self.state.withdraw(stray)
        transfer.message = message
        self._of_message.pop(stray.number, None)
        self._of_message.setdefault(message.number, []).append(transfer)
        return message

    def _remember(self, transfer: Transfer) -> None:
        self.transfers.pop(transfer.key, None)
        self.transfers[transfer.key] = transfer
        self._of_message.setdefault(transfer.message.number, []).append(transfer)
        if len(self.transfers) > TRANSFERS:
            forgotten = self.transfers.pop(next(iter(self.transfers)))
            self._of_message.pop(forgotten.message.number, None)

    def _prune(self, transfer: Transfer) -> None:
        """Discard the blocks that were completed first; if none is complete, discard the oldest."""
        self._take_before(transfer.key)
        done = [at for at, each in transfer.blocks.items() if each.done_ns is not None]
        for at in done[: BLOCKS // 2] or list(transfer.blocks)[: BLOCKS // 2]:
            del transfer.blocks[at]

    def _note_passed(self, transfer: Transfer, block: RequestedBlock, pull: MessagePull, number: int) -> None:
        """Record a PULL that passes after the PULL for a later block, unless an earlier PULL for its own block may have
        been lost.
        """
        if len(pull.passed_pulls) >= PASSED_KEPT:
            return
        self._take_before(transfer.key)
        passed_ns = min(each.requested_ns for each in transfer.blocks.values() if each.start >= block.start)
        if not _is_overtaken(transfer, block) and block.requested_ns - passed_ns < PULL_TIMER_NS:
            pull.passed_pulls.append((number, block.requested_ns))

    def _request_again(self, transfer: Transfer, block: RequestedBlock, time_ns: int, number: int, flow: Flow) -> int:
        """Note a re-request and its cause: a later block that is complete, or the timer (R-PUL-07, R-PUL-08).

        Returns the flags of the PULL.
        """
        pull = transfer.message.pulled
        since = time_ns - block.time_ns
        # Every accepted reply restarts the timer (R-PUL-06).
        quiet = time_ns - max(block.time_ns, pull.last_reply_ns or 0)
        if quiet >= PULL_TIMER_NS:
            cause = "timer"
        elif _is_overtaken(transfer, block):
            cause = "early"
        elif since >= PULL_TIMER_NS:
            # The puller received the replies but dropped them, so they did not restart its timer (R-PUL-06, R-CLS-08).
            cause = "timer"
        elif since > REORDER_NS:
            cause = "unknown"
        else:
            pull.duplicate_pulls += 1
            flow.duplicates += 1
            return DUPLICATE
        block.time_ns = time_ns
        block.requests += 1
        pull.re_requests += 1
        flow.re_requests += 1
        if len(pull.requests) < REPEATS_KEPT:
            missing = pull.ranges.missing(block.start, block.end)
            pull.requests.append(
                Repeat(number, time_ns, since, cause, quiet, block.end, *missing, _was_passed(transfer, block))
            )
        # Only marks need the places of earlier answers.
        if self.state.marks is not None and len(block.cursors) < CURSORS_KEPT:
            block.cursors.append(block.start)
        return RE_REQUEST | EARLY_RE_REQUEST if cause == "early" else RE_REQUEST

    # Replies

    def first_reply(self, row: Row) -> None:
        """Process the first reply to a request that was not captured."""
        replies: Replies = row[6]
        # A PULL of this batch, before the reply, has begun the transfer.
        if replies.key in self.transfers:
            return
        replier, puller, pull = replies.key
        magic = pull & 0xFFFFFFFF
        # The magic contains the number of the puller's endpoint (R-PUL-03).
        endpoint = (magic ^ _MAGIC) if (magic ^ _MAGIC) <= 0xFF else None
        conversation = self._stray_conversation(replier, puller, magic, endpoint)
        message = self.state.adopt(conversation.flows[0], MessagePull(None, None, 0))
        self._remember(Transfer(replies.key, message, self._dialects[replies.dialect]))

    def _stray_conversation(self, replier: int, puller: int, magic: int, endpoint: int | None) -> Conversation:
        """Return the conversation of messages of which only replies were seen: replies do not contain endpoints."""
        state = self.state
        key = replier, puller, magic
        conversation = self._strays.get(key)
        if conversation is None or conversation.number not in state.conversations:
            conversation = state.open(((replier, None), (puller, endpoint)), state.now_ns)
            self._strays[key] = conversation
            if len(self._strays) > TRANSFERS:
                del self._strays[next(iter(self._strays))]
        return conversation

    def _take_all(self, message: CapturedMessage) -> None:
        """Process all replies of a message that precede the current frame."""
        for each in self._of_message.get(message.number, ()):
            if each.key in self._pending and self.transfers.get(each.key) is each:
                self._take(each, self._pending[each.key], self.state.place)

    def _take_before(self, key: ReplyKey) -> None:
        """Process the replies to a pull that precede the current frame."""
        replies, transfer = self._pending.get(key), self.transfers.get(key)
        if replies is not None and transfer is not None:
            self._take(transfer, replies, self.state.place)

    def _take(self, transfer: Transfer, replies: Replies, before: int | None) -> None:
        end = len(replies.place) if before is None else int(np.searchsorted(replies.place, before))
        start = replies.done
        if end <= start:
            return
        replies.done = end
        which = slice(start, end)
        message, flow = transfer.message, transfer.message.flow
        flow.frames += end - start
        flow.bytes += int(replies.wire_length[which].sum())
        flow.conversation.last_ns = max(flow.conversation.last_ns, int(replies.time_ns[end - 1]))
        marks = self.state.marks
        if message.state == REPORTED:
            flow.late += end - start
            if marks is not None:
                marks.mark_replies(replies.place[which], message.number, OBSOLETE)
                marks.late += replies.place[which].tolist()
            return
        pull = message.pulled
        pull.replies += end - start
        message.frame_count += end - start
        message.last_ns = max(message.last_ns, int(replies.time_ns[end - 1]))
        pull.last_reply_ns = int(replies.time_ns[end - 1])
        for first, last in _runs(replies.number[which], 1):
            message.add_run(int(replies.number[start + first]), int(replies.number[start + last]))
        flags = None if marks is None else np.full(end - start, OBSOLETE if pull.notice is not None else 0, np.uint32)
        self._place(transfer, pull, replies, which, flags)
        if marks is not None and flags is not None:
            marks.mark_replies(replies.place[which], message.number, flags)

    def _place(
        self, transfer: Transfer, pull: MessagePull, replies: Replies, which: slice, flags: NDArray[np.uint32] | None
    ) -> None:
        """Note the received bytes, a run of consecutive replies at a time; set ``flags``, one per reply."""
        offset, length = replies.offset[which], replies.length[which]
        for first, last in _runs(offset, length[:-1]):
            start, end = int(offset[first]), int(offset[last] + length[last])
            before = pull.ranges.total
            # Only a run that overlaps known bytes may contain repeated ones, and is placed reply by reply.
            if pull.ranges.touches(start, end):
                for each in range(first, last + 1):
                    flag = self._place_one(transfer, pull, int(offset[each]), int(length[each]))
                    if flags is not None and flag:
                        flags[each] |= flag
            else:
                pull.ranges.add(start, end)
            if flags is not None:
                self._mark_order(transfer, offset[first : last + 1], end, flags[first : last + 1])
            # Repeated bytes complete neither a block nor the message.
            if pull.ranges.total > before:
                self._note_blocks(
                    transfer, pull, offset[first : last + 1], replies.time_ns[which][first : last + 1], end
                )
                self._note_complete(transfer.message, pull, int(replies.time_ns[which.start + last]))

    def _note_blocks(
        self, transfer: Transfer, pull: MessagePull, offset: NDArray[np.int64], time_ns: NDArray[np.int64], end: int
    ) -> None:
        """Set the completion times of the blocks that a run of replies completes."""
        frame = (int(offset[0]) + transfer.lead) // transfer.payload
        last = (end - 1 + transfer.lead) // transfer.payload
        for index in range(frame - frame % transfer.per_block, last + 1, transfer.per_block):
            block = transfer.blocks.get(index)
            if block is not None and block.done_ns is None and pull.ranges.holds(block.start, block.end):
                at = int(np.searchsorted(offset, block.end)) - 1
                block.done_ns = int(time_ns[at])
                if self.state.flights is not None:
                    frames = (block.end - 1 + transfer.lead) // transfer.payload - index + 1
                    size = block.end - block.start
                    self.state.flights.append(
                        (block.requested_ns, block.done_ns, size, frames, transfer.message.number)
                    )

    @staticmethod
    def _mark_order(transfer: Transfer, offset: NDArray[np.int64], end: int, flags: NDArray[np.uint32]) -> None:
        """Mark gaps and disorder in a run of replies that ends before byte ``end``.

        A reply is expected where an earlier reply to a request for its block ended. A reply beyond all of these places
        leaves a gap; one before all of them is out of order. Repeated bytes count as neither.
        """
        payload, per_block, lead = transfer.payload, transfer.per_block, transfer.lead
        at, count = 0, len(offset)
        while at < count:
            frame = (int(offset[at]) + lead) // payload
            index = frame - frame % per_block
            stop = at + int(np.searchsorted(offset[at:], (index + per_block) * payload - lead))
            block = transfer.blocks.get(index)
            if block is None:
                at = stop
                continue
            cursors, low = block.cursors, int(offset[at])
            passed = [place for place, each in enumerate(cursors) if each <= low]
            if not passed:
                stop = min(stop, at + int(np.searchsorted(offset[at:], min(cursors))))
                flags[at:stop][flags[at:stop] & REPEATED == 0] |= np.uint32(OUT_OF_ORDER)
            else:
                place = max(passed, key=lambda each: cursors[each])
                if cursors[place] < low and not flags[at] & REPEATED:
                    flags[at] |= np.uint32(GAP)
                cursors[place] = end if stop == count else int(offset[stop])
            at = stop

    @staticmethod
    def _place_one(transfer: Transfer, pull: MessagePull, offset: int, length: int) -> int:
        """Note a reply that may hold bytes that were seen before; returns its flags."""
        if pull.ranges.add(offset, offset + length):
            return 0
        flow = transfer.message.flow
        place = (offset + transfer.lead) // transfer.payload
        block = transfer.blocks.get(place - place % transfer.per_block)
        if block is not None and block.requests > 1:
            pull.repeated_replies += 1
            flow.retransmissions += 1
            return RETRANSMISSION
        pull.duplicate_replies += 1
        flow.duplicates += 1
        return DUPLICATE

    @staticmethod
    def _note_complete(message: CapturedMessage, pull: MessagePull, time_ns: int) -> None:
        length = pull.requested if pull.requested is not None else message.length
        if length is not None and message.complete_ns is None and pull.ranges.holds(0, length):
            message.complete_ns = time_ns

    # Nacks

    def nack_mcp(self, row: Row) -> None:
        """Process the nack of a PULL."""
        _, _, time_ns, number, wire_length, direction, nack_type, handle, magic = row
        transfer = self.transfers.get((direction[0], direction[1], handle << 32 | magic))
        if transfer is None:
            if self.state.marks is not None:
                self.state.marks.mark(row[0], 0, NACK)
            return
        self._take_before(transfer.key)
        message = transfer.message
        flow = message.flow
        flow.count(time_ns, wire_length)
        flow.nacks += 1
        if message.state == REPORTED:
            self.state.note_late(flow, message, NACK)
            return
        if self.state.marks is not None:
            self.state.marks.mark(row[0], message.number, NACK)
        pull = message.pulled
        pull.nacks += 1
        if pull.refusal is None:
            pull.refusal = Refusal(number, time_ns, nack_name(nack_type))
        message.add_frame(number, time_ns)


def _runs(values: NDArray[np.int64], step: NDArray[np.int64] | int) -> list[tuple[int, int]]:
    """Return the first and last place of each run in which every value exceeds its predecessor by ``step``."""
    if len(values) == 1:
        return [(0, 0)]
    breaks = np.flatnonzero(np.diff(values) != step)
    if not len(breaks):
        return [(0, len(values) - 1)]
    first = [0, *(breaks + 1).tolist()]
    return list(zip(first, [*breaks.tolist(), len(values) - 1], strict=True))


def _is_overtaken(transfer: Transfer, block: RequestedBlock) -> bool:
    """Return whether a later block was completed before this one."""
    done = [each.done_ns for each in transfer.blocks.values() if each.start > block.start]
    return any(each is not None and (block.done_ns is None or each < block.done_ns) for each in done)


def _was_passed(transfer: Transfer, block: RequestedBlock) -> bool:
    """Return whether a later block that had been requested before this one was completed before it.

    Replies are transmitted in the order of their PULLs (R-PUL-12), so the re-request (R-PUL-07) does not imply a loss.
    """
    return any(
        each.start > block.start
        and each.requested_ns < block.requested_ns
        and each.done_ns is not None
        and (block.done_ns is None or each.done_ns < block.done_ns)
        for each in transfer.blocks.values()
    )


def _merge(message: CapturedMessage, stray: CapturedMessage) -> None:
    """Add the frames of ``stray``, seen before its message was recognised, to ``message``."""
    pull, other = message.pulled, stray.pulled
    pull.replies += other.replies
    pull.repeated_replies += other.repeated_replies
    pull.duplicate_replies += other.duplicate_replies
    pull.last_reply_ns = other.last_reply_ns
    for start, end in other.ranges:
        pull.ranges.add(start, end)
    message.frame_count += stray.frame_count
    for first, last in stray.frames:
        message.add_run(first, last)
