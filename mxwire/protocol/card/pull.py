"""The puller: fetches the bytes of a large message block by block (behaviour, section 14.1).

Theory of operation
===================

The library starts a pull when a receive has matched a RNDV, and the card runs it to its end without the library: the
application need not make any call. The pull ends with an entry in the endpoint's ring, and the library then sends the
NOTIFY.

*Geometry.* A transfer is divided into frames of P bytes, the payload of a full PULL_REPLY. With r the region offset
modulo P, frame 0 carries the first P - r bytes of the message, and frame k > 0 starts at message offset k x P - r.
Frames are thus aligned with the sender's region, not with the message, which is why the first one is shorter. A block
is up to B consecutive frames, requested by one PULL.

*Window.* Up to four blocks (``blocks_in_flight``) are requested in parallel. Blocks are retired in order from the
front, and each retired block is replaced by a new request (``_advance``). Each block has a bit per missing frame, so a
duplicate and a frame outside of the window are detected without further state.

*Frame numbers* on the wire have 8 bits only. A reply is therefore identified by its distance from the oldest block,
and the distance must agree with its message offset (``reply``), which has 32 bits.

*Losses* are repaired in two ways:

1. If a block completes before an older one, something of the older block was probably lost: the older block is
   re-requested at once, but only once between two expiries of the timer (R-PUL-07), since the frames may merely be
   reordered.
2. If no useful frame arrives within the pull timer, all incomplete blocks are re-requested (R-PUL-08). Every accepted
   frame restarts the timer; a dropped one does not (R-PUL-06).

A replier answers every PULL in full, so a re-requested block may be received twice: duplicates are counted and dropped.

*End.* A pull ends with its last frame, with a NACK_MCP, with data outside of the buffer, or when it expires after its
time limit. Its handle is dead from then on: late replies find no pull. When the endpoint closes, its pulls continue as
orphans that accept no data (no endpoint has their handle any more) but re-request until the limit, as the real driver
does (R-CLS-08).

*Three paths.* ``reply`` handles one frame and defines the result; ``replies`` handles a run of frames in a batch, and
copies the data of consecutive full frames by one array operation; ``reply_run`` handles a run of single frames, whose
data is copied by one call of the native module.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.replies import REPLY_FORM, REPLY_HEADER
from mxwire.protocol.counters import Counter
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import Profile
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import Status
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import PULL_MAGIC

if TYPE_CHECKING:
    from mxwire.protocol.card.endpoint import CardEndpoint

_PULL: Final = int(PacketType.PULL)
OUT_OF_ORDER_SHARE: Final = 1 / 16
"""Share of the transfers whose first PULLs are transmitted out of order with R-MEA-15: between 1 of 80 and 9 of 40, the
shares counted on busy hosts."""
_PUNCTUAL: Final = 2
"""Number of PULLs of such a transfer that are transmitted before the replies to the first one are handled."""


class PullState(StrEnum):
    """States of a pull."""

    READY = "ready"
    RUNNING = "running"
    ORPHANED = "orphaned"
    ENDED = "ended"


class PullEvent(StrEnum):
    """Events of a pull."""

    START = "start"
    LAST_FRAME = "last frame"
    EXPIRED = "timer expired"
    OVERDUE = "time limit passed"
    NACKED = "nacked"
    OUTSIDE = "data outside of the buffer"
    CLOSED = "endpoint closed"


def _request_first(pull: PullTransfer, now: int) -> None:
    pull.started = now
    pull.advance(now, pull.endpoint.late_pulls())


def _request_again(pull: PullTransfer, now: int) -> None:
    """Re-request the oldest block and every other incomplete one; allow optimistic re-requests again (R-PUL-07)."""
    pull.withdraw_late()
    for place, block in enumerate(pull.blocks):
        block.rerequested = False
        if block.missing or place == 0:
            counter = Counter.PULL_TIMEOUT_NON_FIRST_BLOCK if place else Counter.PULL_TIMEOUT_FIRST_BLOCK
            pull.endpoint.port.counters[counter] += 1
            pull.request(block)
    pull.deadline = now + pull.endpoint.profile.pull_timer


def _end(pull: PullTransfer, status: Status) -> None:
    """Notify the library; the handle is invalid from now on (R-PUL-10)."""
    pull.endpoint.pull_ended(pull, status, pull.total if status == Status.SUCCESS else 0)


def _vanish(pull: PullTransfer, _status: Status) -> None:
    pull.endpoint.pull_vanished(pull)


PULL: Final = TransitionTable(
    "pull",
    PullState.READY,
    (
        (PullState.READY, PullEvent.START, PullState.RUNNING, _request_first, ("R-PUL-01", "R-PUL-02")),
        (PullState.RUNNING, PullEvent.LAST_FRAME, PullState.ENDED, _end, ("R-PUL-10",)),
        (PullState.RUNNING, PullEvent.EXPIRED, PullState.RUNNING, _request_again, ("R-PUL-08",)),
        (PullState.RUNNING, PullEvent.OVERDUE, PullState.ENDED, _end, ("R-PUL-09",)),
        (PullState.RUNNING, PullEvent.NACKED, PullState.ENDED, _end, ("R-NAK-09",)),
        (PullState.RUNNING, PullEvent.OUTSIDE, PullState.ENDED, _end, ("R-PUL-05",)),
        (PullState.RUNNING, PullEvent.CLOSED, PullState.ORPHANED, None, ("R-CLS-08",)),
        (PullState.ORPHANED, PullEvent.EXPIRED, PullState.ORPHANED, _request_again, ("R-CLS-08",)),
        (PullState.ORPHANED, PullEvent.OVERDUE, PullState.ENDED, _vanish, ("R-CLS-08",)),
    ),
)


class PullBlock:
    """A block, the range of frames that one PULL requests."""

    __slots__ = ("first", "frames", "length", "missing", "offset", "rerequested")

    def __init__(self, first: int, frames: int, offset: int, length: int) -> None:
        self.first = first
        """Number of its first frame in the transfer (``frame_index``)."""
        self.frames = frames
        self.offset = offset
        """``first_frame_offset`` in bytes."""
        self.length = length
        """``block_length`` in bytes."""
        self.missing = (1 << frames) - 1
        """Bit i is set while frame ``first`` + i is missing."""
        self.rerequested = False
        """True if it was re-requested since the last expiry (R-PUL-07)."""


class PullSource:
    """The region to pull from, as announced by the RNDV."""

    __slots__ = ("endpoint", "offset", "peer", "region", "session", "use")

    def __init__(self, peer: Peer, endpoint: int, session: int, region: int, use: int, offset: int) -> None:
        self.peer = peer
        self.endpoint = endpoint
        self.session = session
        """``rev`` of the partner (R-PUL-04)."""
        self.region = region
        self.use = use
        self.offset = offset
        """``pulled_rdma_offset`` in bytes."""


@dataclass(frozen=True, slots=True)
class PullReplyRun:
    """Consecutive PULL_REPLYs of one pull, as one list per field."""

    sequences: list[int]
    """``frame_seqnum`` of each."""
    offsets: list[int]
    """``msg_offset`` of each, in bytes."""
    lengths: list[int]
    """``frame_length`` of each, in bytes."""
    starts: list[int]
    """Offset in ``buffer`` of the data of each."""
    buffer: NDArray[np.uint8]


class PullTransfer(StateMachine):
    """One running transfer."""

    __slots__ = (
        "_late",
        "_next_frame",
        "_request_frame",
        "_reserve",
        "blocks",
        "context",
        "deadline",
        "endpoint",
        "handle",
        "limit",
        "memory",
        "requested",
        "source",
        "started",
        "total",
    )

    table = PULL

    def __init__(
        self, endpoint: CardEndpoint, handle: int, source: PullSource, memory: Segments, total: int, context: Any
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
        self.blocks: deque[PullBlock] = deque()
        """The requested blocks that are not retired, oldest first."""
        self.started = 0
        self.limit = endpoint.pull_limit
        """Time in ns after which an expiry of the timer ends the pull as failed (R-PUL-09)."""
        self.deadline = 0
        """Time at which the timer expires, in ns."""
        self._late: list[PullBlock] = []
        """Blocks in the window whose first PULL is delayed (R-MEA-15)."""
        self.requested = 0
        """Number of bytes requested so far."""
        self._next_frame = 0
        self._reserve = source.offset % endpoint.dialect.reply_payload
        self._request_frame: tuple[int, bytes, bytes] | None = None
        """The local host's index in the peer's table, and what is before and behind the block in a PULL."""

    # Blocks.

    def advance(self, now: int, late: bool = False) -> None:
        """Retire the complete blocks at the front and request new ones in their place (R-PUL-02).

        If ``late``, all new blocks except the first two are requested only after the blocks of the next call
        (R-MEA-15), if any are left to request.
        """
        while self.blocks and not self.blocks[0].missing:
            self.blocks.popleft()
        before = len(self.blocks)
        while len(self.blocks) < self.endpoint.profile.blocks_in_flight and self.requested < self.total:
            block = self._next_block()
            self.blocks.append(block)
            if not (late and len(self.blocks) - before > _PUNCTUAL):
                self.request(block)
            else:
                self._late.append(block)
        if self._late and not (late and self.requested < self.total):
            self._request_late()
        self.deadline = now + self.endpoint.profile.pull_timer

    def _request_late(self) -> None:
        """Request the blocks whose PULL was delayed."""
        late, self._late = self._late, []
        for block in late:
            if block.missing:
                self.request(block)

    def withdraw_late(self) -> None:
        """Cancel the delay of PULLs: the expiry of the timer requests all blocks anyway."""
        self._late.clear()

    def _next_block(self) -> PullBlock:
        """Create the block after the last one requested (R-PUL-01)."""
        offset = self._reserve if not self.requested else 0
        length = min(self.endpoint.port.block_length - offset, self.total - self.requested)
        frames = -(-(offset + length) // self.endpoint.dialect.reply_payload)
        block = PullBlock(self._next_frame, frames, offset, length)
        self.requested += length
        self._next_frame += frames
        return block

    def request(self, block: PullBlock) -> None:
        """Queue a PULL: a prepared frame of this transfer, with the fields of the block filled in."""
        port = self.endpoint.port
        index = self.source.peer.index_for(port.number)
        at, requested = port.pull_block
        if self._request_frame is None or self._request_frame[0] != index:
            frame = self._first_request(index)
            self._request_frame = index, frame[:at], frame[at + requested.size :]
        _, before, behind = self._request_frame
        port.pulls_sent.count += 1
        port.outgoing.put(before + requested.pack(block.offset, block.length, block.first) + behind)

    def _first_request(self, index: int) -> bytes:
        """Build a PULL without a block; ``index`` is the local host's index in the peer's table."""
        source, endpoint = self.source, self.endpoint
        port = endpoint.port
        frame: bytes = port.pull.pack(
            source.peer.address,
            port.address,
            ETHERTYPE_MXOE,
            index,
            _PULL,
            source.endpoint,
            endpoint.number,
            source.session,
            self.total,
            source.region,
            source.use,
            source.offset,
            self.handle,
            PULL_MAGIC ^ endpoint.number,
            0,
            0,
            0,
        )
        return frame

    # Frames.

    def reply(
        self, sequence: int, offset: int, data: NDArray[np.uint8] | bytes | memoryview, now: int
    ) -> Counter | None:
        """Take one PULL_REPLY: ``frame_seqnum``, ``msg_offset`` and data. Return the reason if it is dropped, or None.

        The checks and their order are those of R-PUL-05 from step 4; "outside" means outside of the buffer (R-MEA-08).
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

    def reply_run(self, frames: list[bytes], place: int, sequence: int, offset: int, length: int, now: int) -> int:
        """Take the PULL_REPLY at ``place``, whose fields are given, and those after it that continue it.

        The effect is that of :meth:`reply` for each frame, in a fraction of the time. Return the number of frames; 0 if
        the first is not full, not missing or not where it belongs, or if the memory has several segments. The memory of
        another process is written by one call.
        """
        payload = self.endpoint.dialect.reply_payload
        frame, left = divmod(offset + self._reserve, payload)
        memory = self.memory.only
        remote = memory is None and self.memory.remote
        if left or length != payload or sequence != frame & 0xFF or (memory is None and not remote):
            return 0
        room = min(len(frames) - place, (self.total - offset) // payload)
        parts, count = self._awaited(frame, room) if room > 0 else ([], 0)
        if not count:
            return 0
        found: int = REPLY_FORM.fill(frames, place, count, memory, offset)
        if remote:
            end = REPLY_HEADER + payload
            run = [memoryview(each)[REPLY_HEADER:end] for each in frames[place : place + found]]
            if not self.memory.put_rows(offset, run):
                return 0
        if found < count:
            parts, _ = self._awaited(frame, found)
        if found:
            self._took(parts, now)
        return found

    def _took(self, parts: list[tuple[PullBlock, int]], now: int) -> None:
        """Note that frames, given as their blocks and bits, have been stored."""
        self.deadline = now + self.endpoint.profile.pull_timer
        for block, mask in parts:
            block.missing ^= mask
            if not block.missing:
                # Its place now: the completion of an earlier part may have retired the blocks before it.
                self._completed(self.blocks.index(block), now)

    def replies(self, run: PullReplyRun, now: int) -> list[Counter]:
        """Take consecutive PULL_REPLYs, with the same result as one call of :meth:`reply` per frame.

        Return the reason for each dropped frame. Regular runs, as a replier transmits them, are taken one block at a
        time, and their data is copied by one array operation.
        """
        dropped: list[Counter] = []
        place, count = 0, len(run.sequences)
        regular = count > 1 and self._follow_each_other(run)
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

    def _follow_each_other(self, run: PullReplyRun) -> bool:
        """Return whether the frames have consecutive numbers, are full except the last, and are evenly spaced."""
        payload = self.endpoint.dialect.reply_payload
        count = len(run.offsets)
        first, gap = run.offsets[0], run.starts[1] - run.starts[0]
        return (
            (first + self._reserve) % payload == 0
            and run.offsets == list(range(first, first + count * payload, payload))
            and run.starts == list(range(run.starts[0], run.starts[0] + count * gap, gap))
            and run.lengths[:-1] == [payload] * (count - 1)
            and run.sequences == [each & 0xFF for each in range(run.sequences[0], run.sequences[0] + count)]
            # ``_take_together`` views each frame with what is before its data, so there must be as much before the
            # first.
            and 0 <= gap - payload <= run.starts[0]
        )

    def _take_together(self, run: PullReplyRun, place: int, now: int) -> int:
        """Take the missing full frames from ``place``; return their number, 0 if any is unusual."""
        payload = self.endpoint.dialect.reply_payload
        offset = run.offsets[place]
        frame = (offset + self._reserve) // payload
        count = len(run.offsets) - place - (run.lengths[-1] != payload)
        parts, count = self._awaited(frame, count)
        if count < 2 or offset + count * payload > self.total or run.sequences[place] != frame & 0xFF:
            return 0
        start, gap = run.starts[place], run.starts[1] - run.starts[0]
        head = gap - payload
        rows = run.buffer[start - head : start - head + count * gap].reshape(count, gap)
        if not self.memory.put_rows(offset, rows[:, head:]):
            return 0
        self._took(parts, now)
        return count

    def _awaited(self, frame: int, count: int) -> tuple[list[tuple[PullBlock, int]], int]:
        """The blocks that miss ``frame`` and the frames after it, each with its bits; and the number of these frames,
        at most ``count``."""
        parts: list[tuple[PullBlock, int]] = []
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
        """Handle the completion of the block at ``place``."""
        if place == 0:
            self.advance(now)
            if not self.blocks:
                self.fire(PullEvent.LAST_FRAME, Status.SUCCESS)
            return
        self.endpoint.port.counters[Counter.PULL_OUT_OF_ORDER] += 1
        for older in list(self.blocks)[:place]:
            # Optimistic re-request: a newer block overtook this one, so a frame of it was probably lost (R-PUL-07).
            if older.missing and not older.rerequested:
                older.rerequested = True
                self.request(older)
        if self._late:
            self._request_late()


class PullTimers:
    """The timers of the pulls of an interface (R-PUL-06, R-PUL-08, R-PUL-09).

    The heap has one entry per pull. An accepted reply moves the deadline of its pull without touching the heap: an
    entry that turns out to be too early is pushed again with the actual deadline.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._heap: list[tuple[int, int, PullTransfer]] = []
        self._order = 0
        self._live: dict[PullTransfer, None] = {}

    def __len__(self) -> int:
        """Number of running pulls, orphans included."""
        return len(self._live)

    def __iter__(self) -> Iterator[PullTransfer]:
        """Iterate over the running pulls, in the order of their start."""
        return iter(self._live)

    def watch(self, pull: PullTransfer) -> None:
        """Watch the timer of a pull until :meth:`forget`."""
        self._live[pull] = None
        self._push(pull)

    def forget(self, pull: PullTransfer) -> None:
        """Stop watching a pull that has ended; its heap entry is removed when it is due."""
        self._live.pop(pull, None)

    def deadline(self) -> int | None:
        """Time at which the next timer expires, in ns; None without a pull."""
        heap = self._heap
        while heap:
            deadline, _, pull = heap[0]
            if pull in self._live and pull.deadline == deadline:
                return deadline
            heapq.heappop(heap)
            if pull in self._live:
                self._push(pull)
        return None

    def expire(self, now: int) -> None:
        """Fire every timer that is due: the pull re-requests, or ends at its time limit."""
        while (deadline := self.deadline()) is not None and deadline <= now:
            _, _, pull = heapq.heappop(self._heap)
            if now - pull.started > pull.limit:
                pull.fire(PullEvent.OVERDUE, Status.REMOTE_ENDPOINT_UNREACHABLE)
            else:
                pull.fire(PullEvent.EXPIRED, now)
            if pull.state != PullState.ENDED:
                self._push(pull)

    def _push(self, pull: PullTransfer) -> None:
        self._order += 1
        heapq.heappush(self._heap, (pull.deadline, self._order, pull))
