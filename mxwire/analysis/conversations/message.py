"""One message: what is known of it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from mxwire.analysis.conversations.ranges import Ranges

if TYPE_CHECKING:
    from mxwire.analysis.conversations.partners import Flow
from collections.abc import Iterable
from heapq import heappop, heappush

Kind = Literal["TINY", "SMALL", "MEDIUM", "RNDV"]
How = Literal["piggyback", "liback"]
SenderKnows = Literal["acked", "notified", "truncated", "failed", "nacked", "abandoned", "open"]
"""End of a message, as known to its sender. ``open``: unknown up to the end of the capture; of a large message
``acked`` means that its announcement arrived, no more (R-MAT-05)."""
ReceiverKnows = Literal["received", "truncated", "failed", "refused", "announced", "unknown"]
"""State of a message, as known to its receiver. ``announced``: a large message was announced."""

RUNS_KEPT: Final = 4096
"""Runs of consecutive frame numbers that are remembered of one message."""
REPEATS_KEPT: Final = 256
"""Retransmissions and repeated requests of one message that are remembered with their times."""
_NO_RUNS: Final[list[int]] = []
"""Most messages have one run only; a list for each would keep the garbage collector busy."""
FLYING: Final = 0
SETTLED: Final = 1
HANDED_OUT: Final = 2


class Acknowledgement:
    """The frame that acknowledged a message, or several at once."""

    __slots__ = ("effective", "frame", "how", "time_ns")

    def __init__(self, frame: int, time_ns: int, how: How, effective: bool) -> None:
        self.frame = frame
        self.time_ns = time_ns
        self.how: How = how
        self.effective = effective
        """False where the sender must refuse it, as it names no session (R-CON-12)."""


class Refusal:
    """A nack of a message, of its NOTIFY, or of a request to pull it."""

    __slots__ = ("frame", "reason", "time_ns")

    def __init__(self, frame: int, time_ns: int, reason: str) -> None:
        self.frame = frame
        self.time_ns = time_ns
        self.reason = reason
        """The specification's name of the nack type."""


class NumberedEntry:
    """A holder of a sequence number: a message, or the NOTIFY at the end of a large one."""

    __slots__ = ("ack", "first_ns", "last_ns", "nack", "piggyack", "position", "refused_ack")

    position: int
    first_ns: int
    last_ns: int
    ack: Acknowledgement | None
    """The first acknowledgement that the other side had to accept."""
    refused_ack: Acknowledgement | None
    """The first one that it had to refuse."""
    nack: Refusal | None


class Notice(NumberedEntry):
    """The NOTIFY of a large message."""

    __slots__ = ("duplicates", "frame", "message", "nacks", "total_length", "transmissions")

    def __init__(
        self, message: CapturedMessage, position: int, frame: int, time_ns: int, total: int, piggyack: int
    ) -> None:
        self.message = message
        self.position = position
        self.frame = frame
        """Number of the first frame that carried it."""
        self.first_ns = self.last_ns = time_ns
        self.total_length = total
        """Bytes that the puller reports."""
        self.piggyack = piggyack
        self.transmissions = 1
        self.duplicates = 0
        self.nacks = 0
        self.ack = self.refused_ack = self.nack = None

    @property
    def is_refused(self) -> bool:
        """True if all frames that carried it were refused (one nack each, R-NAK-02)."""
        return self.ack is None and self.nacks >= self.transmissions + self.duplicates


class Repeat:
    """A repetition: of a message, or of a request for a block."""

    __slots__ = ("after_ns", "cause", "end", "explained", "frame", "longest_gap", "missing", "quiet_ns", "time_ns")

    def __init__(
        self,
        frame: int,
        time_ns: int,
        after_ns: int,
        cause: str,
        end: int = 0,
        missing: tuple[int, int] = (0, 0),
        explained: bool = False,
        quiet_ns: int | None = None,
    ) -> None:
        self.frame = frame
        self.time_ns = time_ns
        self.after_ns = after_ns
        """Time since it was sent before, in nanoseconds."""
        self.cause = cause
        """``resend`` of a message; of a request ``timer`` (R-PUL-08) or ``early`` (R-PUL-07)."""
        self.end = end
        """Of a request: the first byte of the message behind the block."""
        self.missing, self.longest_gap = missing
        """Of a request: how many bytes of the block had not been seen, and how many of them at a stretch."""
        self.quiet_ns = after_ns if quiet_ns is None else quiet_ns
        """Silence before it, in nanoseconds: less than ``after_ns`` where replies arrived."""
        self.explained = explained
        """Of a request: whether a later block was complete first, and had been requested first (R-MEA-15)."""


class MessagePull:
    """The pull of a large message."""

    __slots__ = (
        "asked_replies",
        "counter",
        "duplicate_pulls",
        "duplicate_replies",
        "first_pull_ns",
        "last_reply_ns",
        "nacks",
        "notice",
        "offset",
        "passed_pulls",
        "pulls",
        "ranges",
        "re_requests",
        "refusal",
        "region",
        "repeated_replies",
        "replies",
        "requested",
        "requests",
    )

    def __init__(self, region: int | None, counter: int | None, offset: int) -> None:
        self.region = region
        self.counter = counter
        """Use counter of the region; both are None where only replies were seen."""
        self.offset = offset
        self.requested: int | None = None
        """Bytes that the receiver wants: ``total_length`` of its PULLs."""
        self.pulls = 0
        """Requests, repeated ones included."""
        self.duplicate_pulls = 0
        """Copies of requests that the network or the capture made."""
        self.asked_replies = 0
        """Replies that all of the requests ask for, repeated ones and copies included (R-PUL-12)."""
        self.passed_pulls: list[tuple[int, int]] = []
        """Number and time of the first PULLs that passed after that of a later block, although no later block was
        complete."""
        self.re_requests = 0
        self.requests: list[Repeat] = []
        """The first of the repeated requests."""
        self.replies = 0
        self.repeated_replies = 0
        """Replies with bytes that were sent before, as they were re-requested."""
        self.duplicate_replies = 0
        """Replies with bytes that were seen before, without a repeated request."""
        self.ranges = Ranges()
        """The bytes that were seen."""
        self.first_pull_ns: int | None = None
        self.last_reply_ns: int | None = None
        self.notice: Notice | None = None
        self.nacks = 0
        self.refusal: Refusal | None = None
        """The first nack of a PULL."""

    @property
    def blocks_asked(self) -> int:
        """Number of different blocks requested."""
        return self.pulls - self.re_requests - self.duplicate_pulls

    @property
    def is_withdrawn(self) -> bool:
        """True if its sender reported, before any other end, that it no longer holds the message."""
        refusal, notice = self.refusal, self.notice
        if refusal is None or refusal.reason not in ("ENDPT_CLOSED", "BAD_RDMAWIN"):
            return False
        return notice is None or refusal.time_ns <= notice.first_ns or notice.is_refused


class CapturedMessage(NumberedEntry):
    """A message from one endpoint to another, with all frames that belong to it.

    Times are capture times in nanoseconds.
    """

    __slots__ = (
        "abandoned_ns",
        "bytes_seen",
        "complete_ns",
        "duplicates",
        "flow",
        "fragments",
        "frame_count",
        "half_seen",
        "kind",
        "last_sent_ns",
        "length",
        "match",
        "nacks",
        "number",
        "pull",
        "resends",
        "round",
        "run_first",
        "run_last",
        "runs",
        "settled_ns",
        "state",
        "transmissions",
    )

    def __init__(
        self,
        number: int,
        flow: Flow,
        kind: Kind,
        position: int,
        length: int | None,
        match: int | None,
        time_ns: int,
        piggyack: int,
    ) -> None:
        self.number = number
        """Its place in the order in which messages appear in the capture, from 1."""
        self.flow = flow
        """The endpoints, in the direction of the message."""
        self.kind: Kind = kind
        self.position = position
        """Its sequence number, counted on beyond 14 bits; -1 where its announcement was not seen."""
        self.length = length
        """In bytes; None if unknown."""
        self.match = match
        """Match information, 64 bits; None if unknown."""
        self.first_ns = self.last_ns = self.last_sent_ns = time_ns
        self.complete_ns: int | None = None
        """When the last of its bytes was seen."""
        self.piggyack = piggyack
        self.runs: list[int] = _NO_RUNS
        """First and last number of each run of its frames but the latest."""
        self.run_first, self.run_last = -1, -2
        """The latest run; negative before the first frame."""
        self.frame_count = 0
        """Its own frames: data or announcement, PULLs, replies, NOTIFY, nacks; no frames that only acknowledge it."""
        self.transmissions = 1
        """Number of transmissions of the message, or of its announcement."""
        self.duplicates = 0
        """Copies of its frames that the network or the capture made."""
        self.resends: Sequence[Repeat] = ()
        """The first retransmissions."""
        self.fragments = 0
        """Of a MEDIUM: the fragments seen, as bits."""
        self.round = 0
        self.bytes_seen = 0
        self.ack = self.refused_ack = self.nack = None
        self.nacks = 0
        self.pull: MessagePull | None = None
        """The pull of a large message; None for others."""
        self.abandoned_ns: int | None = None
        """Time at which one side was seen to have restarted before the message was done."""
        self.half_seen: tuple[str, ...] = ()
        """Parts of the message that the capture lacks."""
        self.state = FLYING
        self.settled_ns = 0
        """When it was done."""

    @property
    def end_ns(self) -> int:
        """When its sender could know how it ended; else when its last frame was seen."""
        ended: int | None = None
        match self.sender:
            case "acked":
                ended = self.ack.time_ns if self.ack is not None and self.pull is None else None
            case "notified" | "truncated" | "failed":
                ended = self.pull.notice.first_ns if self.pull is not None and self.pull.notice is not None else None
            case "nacked":
                ended = self.nack.time_ns if self.nack is not None else None
            case "abandoned":
                refusal = self.pull.refusal if self.pull is not None else None
                ended = refusal.time_ns if self.abandoned_ns is None and refusal is not None else self.abandoned_ns
        return self.last_ns if ended is None else max(ended, self.first_ns)

    @property
    def sender(self) -> SenderKnows:
        """The end of the message, as known to its sender."""
        starts = self._is_told
        if self.pull is not None:
            notice = self.pull.notice
            if notice is not None and not notice.is_refused and starts(notice.first_ns):
                ended = self._transferred(self.pull, notice)
                return "notified" if ended == "received" else ended
            if self.pull.is_withdrawn:
                return "abandoned"
        if self.nack is not None and (self.ack is None or self.nack.time_ns <= self.ack.time_ns):
            return "nacked"
        if self.ack is not None and (self.pull is None or self.abandoned_ns is None) and starts(self.ack.time_ns):
            return "acked"
        return "open" if self.abandoned_ns is None else "abandoned"

    @property
    def receiver(self) -> ReceiverKnows:
        """The end of the message, as known to its receiver."""
        acked = self.ack is not None or self.refused_ack is not None
        if self.pull is None:
            return "received" if acked else "refused" if self._is_refused else "unknown"
        if self.pull.notice is not None:
            return self._transferred(self.pull, self.pull.notice)
        if acked or self.pull.pulls:
            return "announced"
        return "refused" if self._is_refused else "unknown"

    @property
    def _is_refused(self) -> bool:
        """True if all of its frames were refused."""
        return self.nacks > 0 and 2 * self.nacks >= self.frame_count

    def _is_told(self, time_ns: int) -> bool:
        """Return whether the sender still wanted to know at that time."""
        return self.abandoned_ns is None or time_ns <= self.abandoned_ns

    def _transferred(self, pull: MessagePull, notice: Notice) -> Literal["received", "truncated", "failed"]:
        """Return the meaning of a NOTIFY: nothing wanted if there was no pull (R-RDV-04), else failure (R-NOT-01)."""
        if self.length is None or notice.total_length >= self.length:
            return "received"
        return "failed" if pull.pulls and not notice.total_length else "truncated"

    @property
    def retransmissions(self) -> int:
        """Number of retransmissions of the message, or of its announcement."""
        return self.transmissions - 1

    @property
    def repeated_frames(self) -> int:
        """Number of frames with its data or announcement that repeated others."""
        if self.kind == "MEDIUM":
            return self.frame_count - self.nacks - self.fragments.bit_count()
        return max(self.transmissions - 1, 0) + self.duplicates

    @property
    def is_done(self) -> bool:
        """True if it was handed out: what comes later does not belong to it any more."""
        return self.state == HANDED_OUT

    @property
    def is_incomplete(self) -> bool:
        """True if the capture does not show all of it, or not how it ended."""
        return bool(self.half_seen) or self.sender != ("acked" if self.pull is None else "notified")

    @property
    def frames(self) -> Iterator[tuple[int, int]]:
        """First and last number of each run of its frames, ascending, up to a bounded number."""
        if self.run_first < 0:
            return
        runs = sorted([*zip(self.runs[::2], self.runs[1::2], strict=True), (self.run_first, self.run_last)])
        first, last = runs[0]
        for one, other in runs[1:]:
            if one > last + 1:
                yield first, last
                first = one
            last = max(last, other)
        yield first, last

    def add_frame(self, number: int, time_ns: int) -> None:
        """One more frame of it."""
        self.frame_count += 1
        if time_ns > self.last_ns:
            self.last_ns = time_ns
        if number == self.run_last + 1:
            self.run_last = number
        else:
            self._begin_run(number, number)

    def add_run(self, first: int, last: int) -> None:
        """Frames with consecutive numbers."""
        if first == self.run_last + 1:
            self.run_last = last
        else:
            self._begin_run(first, last)

    def _begin_run(self, first: int, last: int) -> None:
        if self.run_first >= 0:
            if len(self.runs) >= 2 * RUNS_KEPT:
                return
            if not self.runs:
                self.runs = []
            self.runs += (self.run_first, self.run_last)
        self.run_first, self.run_last = first, last

    def lacks(self, text: str) -> None:
        """Note a part that the capture lacks."""
        if text not in self.half_seen:
            self.half_seen = (*self.half_seen, text)


WAITING: Final = 1 << 16
"""Messages that wait for one before them; beyond that they are handed out although it is not done."""


class MessageSorter:
    """Takes messages as they are done and gives them back by number, as far as a bounded memory allows."""

    def __init__(self, waiting: int = WAITING) -> None:
        self._limit = waiting
        self._heap: list[tuple[int, CapturedMessage]] = []
        self._next = 1

    def put(self, messages: Iterable[CapturedMessage]) -> Iterator[CapturedMessage]:
        """More messages; returns those that are next."""
        heap = self._heap
        for message in messages:
            heappush(heap, (message.number, message))
            while heap and (heap[0][0] <= self._next or len(heap) > self._limit):
                yield self._pop()

    def rest(self) -> Iterator[CapturedMessage]:
        """There are no more: returns those that still waited."""
        while self._heap:
            yield self._pop()

    def _pop(self) -> CapturedMessage:
        number, message = heappop(self._heap)
        self._next = max(self._next, number + 1)
        return message
