"""The puller: fetches the bytes of a large message block by block (behaviour, section 14.1).

A transfer is cut into frames of P bytes; with r the region offset modulo P, frame 0 carries the first P - r bytes of
the message and frame k starts at message offset k x P - r. Up to four blocks of B frames are under way at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.buffers import Segments
from mxwire.protocol.counters import Counter
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import Defect
from mxwire.protocol.status import Status
from mxwire.wire.numbers import PULL_MAGIC
from mxwire.wire.packets import Pull as PullFrame

if TYPE_CHECKING:
    from mxwire.protocol.card.endpoint import CardEndpoint

OUT_OF_ORDER_SHARE: Final = 1 / 16
"""Share of the transfers whose first PULLs leave out of order with R-MEA-15: between the 1 of 80 and the 9 of 40 that
were counted on busy hosts."""
_PUNCTUAL: Final = 2
"""How many of the first PULLs of such a transfer leave before the replies to the first one are handled."""


class PullState(StrEnum):
    """How far a pull is."""

    READY = "ready"
    RUNNING = "running"
    ORPHANED = "orphaned"
    ENDED = "ended"


class PullEvent(StrEnum):
    """What can happen to a pull."""

    START = "start"
    LAST_FRAME = "last frame"
    EXPIRED = "timer expired"
    OVERDUE = "time limit passed"
    NACKED = "nacked"
    OUTSIDE = "data outside of the buffer"
    CLOSED = "endpoint closed"


PULL: Final = Table(
    "pull",
    PullState.READY,
    (
        Row(PullState.READY, PullEvent.START, PullState.RUNNING, "_request_first", ("R-PUL-01", "R-PUL-02")),
        Row(PullState.RUNNING, PullEvent.LAST_FRAME, PullState.ENDED, "_end", ("R-PUL-10",)),
        Row(PullState.RUNNING, PullEvent.EXPIRED, PullState.RUNNING, "_request_again", ("R-PUL-08",)),
        Row(PullState.RUNNING, PullEvent.OVERDUE, PullState.ENDED, "_end", ("R-PUL-09",)),
        Row(PullState.RUNNING, PullEvent.NACKED, PullState.ENDED, "_end", ("R-NAK-09",)),
        Row(PullState.RUNNING, PullEvent.OUTSIDE, PullState.ENDED, "_end", ("R-PUL-05",)),
        Row(PullState.RUNNING, PullEvent.CLOSED, PullState.ORPHANED, "", ("R-CLS-08",)),
        Row(PullState.ORPHANED, PullEvent.EXPIRED, PullState.ORPHANED, "_request_again", ("R-CLS-08",)),
        Row(PullState.ORPHANED, PullEvent.OVERDUE, PullState.ENDED, "_vanish", ("R-CLS-08",)),
    ),
)


@dataclass(slots=True, eq=False)
class Block:
    """What one PULL asks for."""

    first: int
    """Number of its first frame in the transfer (``frame_index``)."""
    frames: int
    offset: int
    """``first_frame_offset`` in bytes."""
    length: int
    """``block_length`` in bytes."""
    missing: int
    """Bit i is set while frame ``first`` + i has not arrived."""
    asked_again: bool = False
    """Whether it was requested again since the last expiry (R-PUL-07)."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to pull from: what the RNDV said."""

    peer: Peer
    endpoint: int
    session: int
    """``rev`` of the partner (R-PUL-04)."""
    region: int
    use: int
    offset: int
    """``pulled_rdma_offset`` in bytes."""


@dataclass(frozen=True, slots=True)
class Replies:
    """Several PULL_REPLYs of one pull that arrived in a row, field by field."""

    sequences: list[int]
    """``frame_seqnum`` of each."""
    offsets: list[int]
    """``msg_offset`` of each, in bytes."""
    lengths: list[int]
    """``frame_length`` of each, in bytes."""
    starts: list[int]
    """Where in ``buffer`` the data of each starts."""
    buffer: NDArray[np.uint8]


class Pull(Machine):
    """One transfer under way."""

    __slots__ = (
        "_late",
        "_next_frame",
        "_request_frame",
        "_requested",
        "_reserve",
        "blocks",
        "context",
        "deadline",
        "endpoint",
        "handle",
        "memory",
        "source",
        "started",
        "total",
    )

    table = PULL

    def __init__(
        self, endpoint: CardEndpoint, handle: int, source: Source, memory: Segments, total: int, context: Any
    ) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.handle = handle
        """``src_pull_handle`` (R-PUL-03)."""
        self.source = source
        self.memory = memory
        self.total = total
        """T: bytes to transfer (R-RDV-04)."""
        self.context = context
        self.blocks: deque[Block] = deque()
        """The blocks under way, oldest first."""
        self.started = 0
        self.deadline = 0
        """When the timer expires, in ns."""
        self._late: list[Block] = []
        """Blocks in the window whose first PULL has not left yet (R-MEA-15)."""
        self._requested = 0
        self._next_frame = 0
        self._reserve = source.offset % endpoint.dialect.reply_payload
        self._request_frame: tuple[int, bytes] | None = None

    @property
    def asked(self) -> int:
        """How much has been asked for so far, in bytes."""
        return self._requested

    # What the table's rows do.

    def _request_first(self, now: int) -> None:
        self.started = now
        self._advance(now, self.endpoint.late_pulls())

    def _request_again(self, now: int) -> None:
        """Ask again for the oldest block and every other incomplete one; forget R-PUL-07's memory."""
        self._late.clear()
        for place, block in enumerate(self.blocks):
            block.asked_again = False
            if block.missing or place == 0:
                counter = Counter.PULL_TIMEOUT_NON_FIRST_BLOCK if place else Counter.PULL_TIMEOUT_FIRST_BLOCK
                self.endpoint.interface.counters[counter] += 1
                self._request(block)
        self.deadline = now + self.endpoint.profile.pull_timer

    def _end(self, status: Status) -> None:
        """Tell the library; the handle dies at once (R-PUL-10)."""
        transferred = self.total if status == Status.SUCCESS else 0
        self.endpoint.pull_ended(self, status, transferred)

    def _vanish(self, _status: Status) -> None:
        self.endpoint.pull_vanished(self)

    # Blocks.

    def _advance(self, now: int, late: bool = False) -> None:
        """Retire the complete blocks at the front and request as many new ones (R-PUL-02).

        With ``late`` all but the first two of them are requested behind the next ones (R-MEA-15), if there are any.
        """
        while self.blocks and not self.blocks[0].missing:
            self.blocks.popleft()
        before = len(self.blocks)
        while len(self.blocks) < self.endpoint.profile.blocks_in_flight and self._requested < self.total:
            block = self._next_block()
            self.blocks.append(block)
            if not (late and len(self.blocks) - before > _PUNCTUAL):
                self._request(block)
            else:
                self._late.append(block)
        if self._late and not (late and self._requested < self.total):
            self._request_late()
        self.deadline = now + self.endpoint.profile.pull_timer

    def _request_late(self) -> None:
        """Request the blocks whose PULL has not left yet."""
        late, self._late = self._late, []
        for block in late:
            if block.missing:
                self._request(block)

    def _next_block(self) -> Block:
        """The block behind the last one requested (R-PUL-01)."""
        dialect = self.endpoint.dialect
        offset = self._reserve if not self._requested else 0
        length = min(dialect.block_length - offset, self.total - self._requested)
        frames = -(-(offset + length) // dialect.reply_payload)
        block = Block(self._next_frame, frames, offset, length, (1 << frames) - 1)
        self._requested += length
        self._next_frame += frames
        return block

    def _request(self, block: Block) -> None:
        """Send a PULL: the first one of this transfer, with what the block asks for put into its place."""
        interface = self.endpoint.interface
        index = self.source.peer.index_for(interface.number)
        if self._request_frame is None or self._request_frame[0] != index:
            self._request_frame = index, self._first_request(index)
        frame = self._request_frame[1]
        at, asked = interface.pull_block
        interface.counters[Counter.SEND_PULL_REQUEST] += 1
        interface.outgoing.put(
            frame[:at] + asked.pack(block.offset, block.length, block.first) + frame[at + asked.size :]
        )

    def _first_request(self, index: int) -> bytes:
        """A PULL that asks for nothing yet, for a peer that knows us by ``index``."""
        source, endpoint = self.source, self.endpoint
        return endpoint.interface.codec.build(
            PullFrame(
                dst_mac=source.peer.address,
                src_mac=endpoint.interface.address,
                dst_src_peer_index=index,
                dst_endpoint=source.endpoint,
                src_endpoint=endpoint.number,
                session=source.session,
                total_length=self.total,
                pulled_rdma_id=source.region,
                pulled_rdma_seqnum=source.use,
                pulled_rdma_offset=source.offset,
                src_pull_handle=self.handle,
                src_magic=PULL_MAGIC ^ endpoint.number,
                first_frame_offset=0,
                block_length=0,
                frame_index=0,
            )
        )

    # Frames.

    def reply(self, sequence: int, offset: int, data: NDArray[np.uint8], now: int) -> Counter | None:
        """Take one PULL_REPLY: ``frame_seqnum``, ``msg_offset`` and the data. Returns why it was dropped, or None.

        The checks and their order are those of R-PUL-05, from step 4 on; "outside" is outside of the buffer (R-MEA-08).
        """
        payload = self.endpoint.dialect.reply_payload
        blocks = self.blocks
        first = blocks[0].first
        ahead = (sequence - first) & 0xFF
        if -(-offset // payload) != first + ahead:
            return Counter.DROP_REPLY_WRAP_AROUND
        place, within = 0, ahead
        while within >= blocks[place].frames:
            within -= blocks[place].frames
            place += 1
            if place == len(blocks):
                return Counter.DROP_REPLY_BAD_SEQUENCE
        block = blocks[place]
        bit = 1 << within
        if not block.missing & bit:
            return Counter.DROP_REPLY_DUPLICATE
        if not self.endpoint.lenient and (offset, len(data)) != self._expected(first + ahead):
            return Counter.DROP_BAD_DATA_LENGTH
        if offset + len(data) > self.memory.length:
            self.fire(PullEvent.OUTSIDE, Status.MESSAGE_ABORTED)
            return Counter.PULL_REPLY_FILL_FAILED
        block.missing ^= bit
        self.memory.put(offset, data)
        self.deadline = now + self.endpoint.profile.pull_timer
        if not block.missing:
            self._completed(place, now)
        return None

    def replies(self, run: Replies, now: int) -> list[Counter]:
        """Take several PULL_REPLYs in a row; what :meth:`reply` would do with one after the other.

        Returns why some of them were dropped. Those that follow each other as a replier sends them are taken a block
        at a time, their data copied by one array operation.
        """
        dropped: list[Counter] = []
        place, count = 0, len(run.sequences)
        regular = self._follow_each_other(run)
        while place < count and self.state is PullState.RUNNING:
            taken = self._take_together(run, place, now) if regular else 0
            if not taken:
                taken = 1
                start, length = run.starts[place], run.lengths[place]
                reason = self.reply(run.sequences[place], run.offsets[place], run.buffer[start : start + length], now)
                if reason is not None:
                    dropped.append(reason)
            place += taken
        dropped += [Counter.DROP_REPLY_BAD_HANDLE] * (count - place)
        return dropped

    def _follow_each_other(self, run: Replies) -> bool:
        """Whether the frames are full ones with consecutive numbers, all but the last, and evenly spaced."""
        payload = self.endpoint.dialect.reply_payload
        count = len(run.offsets)
        first, gap = run.offsets[0], run.starts[1] - run.starts[0]
        return (
            (first + self._reserve) % payload == 0
            and run.offsets == list(range(first, first + count * payload, payload))
            and run.starts == list(range(run.starts[0], run.starts[0] + count * gap, gap))
            and run.lengths[:-1] == [payload] * (count - 1)
            and run.sequences == [each & 0xFF for each in range(run.sequences[0], run.sequences[0] + count)]
            and 0 <= gap - payload <= run.starts[0]
        )

    def _take_together(self, run: Replies, place: int, now: int) -> int:
        """Take the full frames from ``place`` on that blocks wait for; returns how many, 0 if any is unusual."""
        payload = self.endpoint.dialect.reply_payload
        offset = run.offsets[place]
        frame = (offset + self._reserve) // payload
        count = len(run.offsets) - place - (run.lengths[-1] != payload)
        parts, count = self._awaited(frame, count)
        view = self.memory.view(offset, count * payload) if offset + count * payload <= self.total else None
        if count < 2 or view is None or run.sequences[place] != frame & 0xFF:
            return 0
        start, gap = run.starts[place], run.starts[1] - run.starts[0]
        head = gap - payload
        rows = run.buffer[start - head : start - head + count * gap].reshape(count, gap)
        view.reshape(count, payload)[:] = rows[:, head:]
        self.deadline = now + self.endpoint.profile.pull_timer
        for block, mask in parts:
            block.missing ^= mask
            if not block.missing:
                self._completed(self.blocks.index(block), now)
        return count

    def _awaited(self, frame: int, count: int) -> tuple[list[tuple[Block, int]], int]:
        """Which blocks wait for ``frame`` and those behind it, with their bits; and how many of ``count`` these are."""
        parts: list[tuple[Block, int]] = []
        found = 0
        for block in self.blocks:
            within = frame + found - block.first
            if not 0 <= within < block.frames or found == count:
                continue
            length = min(count - found, block.frames - within)
            mask = ((1 << length) - 1) << within
            if block.missing & mask != mask:
                break
            parts.append((block, mask))
            found += length
        return parts, found

    def _expected(self, frame: int) -> tuple[int, int]:
        """Offset in the message and length of a frame, in bytes (R-PUL-13)."""
        payload = self.endpoint.dialect.reply_payload
        start = max(0, frame * payload - self._reserve)
        return start, min(self.total, (frame + 1) * payload - self._reserve) - start

    def _completed(self, place: int, now: int) -> None:
        """A block has no frame missing any more."""
        if place == 0:
            self._advance(now)
            if not self.blocks:
                self.fire(PullEvent.LAST_FRAME, Status.SUCCESS)
            return
        self.endpoint.interface.counters[Counter.PULL_OUT_OF_ORDER] += 1
        for older in list(self.blocks)[:place]:
            # Optimistic re-request: what overtook it shows that something of it was lost (R-PUL-07).
            if older.missing and not older.asked_again:
                older.asked_again = True
                self._request(older)
        if self._late:
            self._request_late()


def is_lenient(defects: frozenset[Defect]) -> bool:
    """Whether a reply of an unexpected length counts as complete (D-10)."""
    return Defect.REPLY_LENGTH_UNCHECKED in defects
