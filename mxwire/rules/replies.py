"""Runs of PULL_REPLYs: replies that each continue the one before are judged together, by their common properties.

This is the fast path; :meth:`mxwire.rules.judge.Judge.observe` defines the result per frame, and judges every frame
that is not plainly correct.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mxwire.rules.state.flows import ObservedPair
from mxwire.rules.state.transfers import ObservedBlock, ObservedTransfer
from mxwire.wire.dialect import PULL_REPLY_DATA_OFFSET
from mxwire.wire.numbers import NO_SESSION

_NUMBERS: Final = 256


@dataclass(slots=True)
class ReplyRun:
    """Complete replies to one pull, one directly after the other: numbers and offsets are consecutive, and all lengths
    are equal.
    """

    source: bytes
    destination: bytes
    pull: int
    """Handle x 2^32 + magic."""
    time_ns: int
    """Time at which the first reply was seen."""
    sequence: int
    """``frame_seqnum`` of the first reply."""
    offset: int
    """``msg_offset`` of the first reply."""
    length: int
    """``frame_length`` of each reply; the Ethernet frames are 32 bytes longer."""
    numbers: list[int]
    """Numbers of the frames in findings."""
    whole: memoryview
    """Memory that holds all captured bytes of these frames."""
    begins: list[int]
    ends: list[int]
    """Offsets in ``whole`` at which each frame begins and ends."""


def take(run: ReplyRun, pair: ObservedPair) -> int:
    """Record replies from the beginning of a run while they break no rule, and return their number."""
    transfer = pair.back.transfers.get(run.pull)
    if transfer is None or not _is_plain(run, pair, transfer):
        return 0
    taken, count = 0, len(run.numbers)
    while taken < count:
        place, over = divmod(run.offset + taken * run.length + transfer.lead, transfer.payload)
        which = place // transfer.per_block
        block = transfer.blocks.get(which)
        if over or block is None or (run.sequence + taken - place) % _NUMBERS:
            break
        first = place - block.index
        end = _end(block, first, run, taken)
        if end <= taken:
            break
        _remember(block, first, run, taken, end)
        if block.complete and which == transfer.oldest:
            transfer.settle()
        elif block.data is not None:
            for each in range(taken, end):
                block.data[first + each - taken] = run.whole[
                    run.begins[each] + PULL_REPLY_DATA_OFFSET : run.ends[each]
                ].tobytes()
        taken = end
    if taken and pair.known_ns is None:
        pair.known_ns = run.time_ns
    return taken


def _is_plain(run: ReplyRun, pair: ObservedPair, transfer: ObservedTransfer) -> bool:
    """Return whether a pull as a whole is unremarkable, so that its replies can be judged by arithmetic alone."""
    if run.length != transfer.payload or run.length + PULL_REPLY_DATA_OFFSET > pair.dialect.frame_limit:
        return False
    if transfer.irregular or transfer.session == NO_SESSION:
        return False
    owner = pair.source.endpoints.get(transfer.owner)
    return owner is None or transfer.session not in owner.past


def _end(block: ObservedBlock, first: int, run: ReplyRun, taken: int) -> int:
    """Return the index after the last consecutive reply, starting at ``taken``, that lies in the block and is seen for
    the first time.
    """
    # A first frame that starts at an offset is shorter than the others (R-PUL-13).
    if not 0 <= first < block.frames or (first == 0 and block.first_offset):
        return 0
    # The last frame of a message is shorter, and left to the judge.
    whole = (block.start + block.length - run.offset) // run.length
    end = min(len(run.numbers), taken + block.frames - first, whole)
    # Retransmitted frames, and their data, are for the judge (R-PUL-12, R-PUL-13).
    return 0 if any(block.answers[first : first + end - taken]) else end


def _remember(block: ObservedBlock, first: int, run: ReplyRun, taken: int, end: int) -> None:
    count = end - taken
    block.answers[first : first + count] = [1] * count
    block.seen |= (1 << count) - 1 << first
    block.last_place = first + count - 1
    block.last_reply = run.numbers[end - 1]
