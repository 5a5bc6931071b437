"""A captured message with its frames, acknowledgements and outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Literal

from mxwire.analysis.conversations.ranges import Ranges

if TYPE_CHECKING:
    from mxwire.analysis.conversations.partners import Flow

Kind = Literal["TINY", "SMALL", "MEDIUM", "RNDV"]
How = Literal["piggyback", "liback"]
SenderKnows = Literal["acked", "notified", "truncated", "failed", "nacked", "abandoned", "open"]
"""Outcome of a message, as known to its sender. ``open``: still unknown at the end of the capture. For a large message
``acked`` only means that its announcement arrived (R-MAT-05)."""
ReceiverKnows = Literal["received", "truncated", "failed", "refused", "announced", "unknown"]
"""State of a message, as known to its receiver. ``announced``: only the announcement of a large message arrived."""

RUNS_KEPT: Final = 4096
"""Maximum number of runs of consecutive frame numbers that are remembered per message."""
REPEATS_KEPT: Final = 256
"""Maximum number of retransmissions and re-requests that are remembered with their times, per message."""
FLYING: Final = 0
SETTLED: Final = 1
REPORTED: Final = 2


@dataclass(slots=True, eq=False)
class Acknowledgement:
    """A frame that acknowledged one or more messages."""

    frame: int
    time_ns: int
    how: How
    effective: bool
    """False if the sender must refuse the frame because it names no session (R-CON-12)."""


@dataclass(slots=True, eq=False)
class Refusal:
    """A nack of a message, of its NOTIFY, or of a request to pull it."""

    frame: int
    time_ns: int
    reason: str
    """Name of the nack type in the specification."""


@dataclass(slots=True, eq=False, repr=False)
class NumberedEntry:
    """A holder of a sequence number: a message, or the NOTIFY at the end of a large one."""

    position: int
    """Sequence number, extended beyond 14 bits; -1 if the announcement of the message was not seen."""
    first_ns: int
    piggyack: int
    last_ns: int = field(init=False)
    ack: Acknowledgement | None = field(default=None, init=False)
    """The first acknowledgement that the sender had to accept."""
    refused_ack: Acknowledgement | None = field(default=None, init=False)
    """The first acknowledgement that the sender had to refuse."""
    nack: Refusal | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with the time of the first frame."""
        self.last_ns = self.first_ns


@dataclass(slots=True, eq=False, repr=False)
class Notice(NumberedEntry):
    """The NOTIFY of a large message."""

    message: CapturedMessage
    frame: int
    """Number of the first frame that carried the NOTIFY."""
    total_length: int
    """Number of bytes received, as reported by the puller."""
    transmissions: int = 1
    duplicates: int = 0
    nacks: int = 0

    @property
    def is_refused(self) -> bool:
        """True if all frames that carried the NOTIFY were refused (one nack per frame, R-NAK-02)."""
        return self.ack is None and self.nacks >= self.transmissions + self.duplicates


@dataclass(slots=True, eq=False)
class Repeat:
    """A retransmission of a message, or a re-request of a block."""

    frame: int
    time_ns: int
    after_ns: int
    """Time since the previous transmission, in nanoseconds."""
    cause: str
    """``resend`` for a message; for a request ``timer`` (R-PUL-08) or ``early`` (R-PUL-07)."""
    quiet_ns: int
    """Time without a frame before the repetition, in nanoseconds: less than ``after_ns`` if replies arrived."""
    end: int = 0
    """For a request: the offset of the first byte of the message after the block."""
    missing: int = 0
    """For a request: bytes of the block that had not been seen."""
    longest_gap: int = 0
    """For a request: the longest contiguous gap among the missing bytes."""
    explained: bool = False
    """For a request: True if a later block was completed first, and had been requested first (R-MEA-15)."""


@dataclass(slots=True, eq=False, repr=False)
class MessagePull:
    """The pull of a large message."""

    region: int | None
    counter: int | None
    """Use counter of the region; region and counter are None if only replies were seen."""
    offset: int
    requested: int | None = None
    """Bytes that the receiver requests: ``total_length`` of its PULLs."""
    pulls: int = 0
    """Number of requests, including re-requests."""
    duplicate_pulls: int = 0
    """Duplicates of requests, made by the network or by the capture."""
    requested_replies: int = 0
    """Number of replies due to all requests, including re-requests and duplicates (R-PUL-12)."""
    passed_pulls: list[tuple[int, int]] = field(default_factory=list)
    """Frame number and time of the first PULLs that passed after the PULL for a later block, although no later
    block was complete."""
    re_requests: int = 0
    requests: list[Repeat] = field(default_factory=list)
    """The first re-requests."""
    replies: int = 0
    repeated_replies: int = 0
    """Replies with bytes transmitted before, in answer to a re-request."""
    duplicate_replies: int = 0
    """Replies with bytes that were seen before, without a re-request."""
    ranges: Ranges = field(default_factory=Ranges)
    """The bytes that were seen."""
    first_pull_ns: int | None = None
    last_reply_ns: int | None = None
    notice: Notice | None = None
    nacks: int = 0
    refusal: Refusal | None = None
    """The first nack of a PULL."""

    @property
    def requested_blocks(self) -> int:
        """Number of different blocks requested."""
        return self.pulls - self.re_requests - self.duplicate_pulls

    @property
    def timed_out(self) -> list[Repeat]:
        """The re-requests by the timer of 1000 ms (R-PUL-08): until it expired the transfer was stalled."""
        return [each for each in self.requests if each.cause == "timer"]

    @property
    def is_withdrawn(self) -> bool:
        """True if its sender reported, before any other outcome, that it no longer holds the message."""
        refusal, notice = self.refusal, self.notice
        if refusal is None or refusal.reason not in ("ENDPT_CLOSED", "BAD_RDMAWIN"):
            return False
        return notice is None or refusal.time_ns <= notice.first_ns or notice.is_refused


@dataclass(slots=True, eq=False, repr=False)
class CapturedMessage(NumberedEntry):
    """A message from one endpoint to another, with all frames that belong to it.

    Times are capture times in nanoseconds.
    """

    number: int
    """Number of the message in the order in which messages appear in the capture, from 1."""
    flow: Flow
    """The endpoints, in the direction of the message."""
    kind: Kind
    length: int | None
    """Length in bytes; None if unknown."""
    match: int | None
    """Match information, 64 bits; None if unknown."""
    last_sent_ns: int = field(init=False)
    complete_ns: int | None = None
    """Time of the frame with the last missing bytes; None if bytes were not seen."""
    runs: list[int] | None = None
    """First and last frame number of each run of its frames except the latest; None if there are none, because most
    messages have a single run, and a list each would burden the garbage collector."""
    run_first: int = -1
    run_last: int = -2
    """First and last frame number of the latest run; negative before the first frame."""
    frame_count: int = 0
    """Number of frames of the message: data or announcement, PULLs, replies, NOTIFY, nacks; pure acks do not
    count."""
    transmissions: int = 1
    """Number of transmissions of the message, or of its announcement."""
    duplicates: int = 0
    """Number of duplicates of its frames, made by the network or by the capture."""
    resends: Sequence[Repeat] = ()
    """The first retransmissions."""
    fragments: int = 0
    """For a MEDIUM: the fragments seen, as bits."""
    round: int = 0
    bytes_seen: int = 0
    nacks: int = 0
    pull: MessagePull | None = None
    """The pull of a large message; None for others."""
    abandoned_ns: int | None = None
    """Time at which one side was seen to have restarted before the message was finished."""
    half_seen: tuple[str, ...] = ()
    """Parts of the message that are missing from the capture."""
    state: int = FLYING
    settled_ns: int = 0
    """Time at which it was settled."""

    def __post_init__(self) -> None:
        """Begin with the time of the first frame."""
        self.last_ns = self.last_sent_ns = self.first_ns

    @property
    def pulled(self) -> MessagePull:
        """The pull of a large message, for callers that know it to be one."""
        assert self.pull is not None
        return self.pull

    @property
    def end_ns(self) -> int:
        """Time at which the sender could know the outcome; time of the last frame if it never could."""
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
        """The outcome of the message, as known to its sender."""
        starts = self._is_waiting
        if self.pull is not None:
            notice = self.pull.notice
            if notice is not None and not notice.is_refused and starts(notice.first_ns):
                ended = self._transferred(self.pull, notice)
                return "notified" if ended == "received" else ended
            if self.pull.is_withdrawn:
                return "abandoned"
        # A nack after the ack refuses a retransmission of a message that had arrived.
        if self.nack is not None and (self.ack is None or self.nack.time_ns <= self.ack.time_ns):
            return "nacked"
        # The ack of an announcement ends no large message (R-MAT-05), so that a restart after it still abandons the
        # message.
        if self.ack is not None and (self.pull is None or self.abandoned_ns is None) and starts(self.ack.time_ns):
            return "acked"
        return "open" if self.abandoned_ns is None else "abandoned"

    @property
    def receiver(self) -> ReceiverKnows:
        """The state of the message, as known to its receiver."""
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
        # A refused frame and its nack are two frames of the message (one nack per frame, R-NAK-02).
        return self.nacks > 0 and 2 * self.nacks >= self.frame_count

    def _is_waiting(self, time_ns: int) -> bool:
        """Return whether the sender was still waiting for the outcome at ``time_ns``."""
        return self.abandoned_ns is None or time_ns <= self.abandoned_ns

    def _transferred(self, pull: MessagePull, notice: Notice) -> Literal["received", "truncated", "failed"]:
        """Return the outcome that a NOTIFY reports. A NOTIFY of 0 bytes without a pull means that no data was requested
        (R-RDV-04); after a pull it means that the transfer failed (R-NOT-01).
        """
        if self.length is None or notice.total_length >= self.length:
            return "received"
        return "failed" if pull.pulls and not notice.total_length else "truncated"

    @property
    def retransmissions(self) -> int:
        """Number of retransmissions of the message, or of its announcement."""
        return self.transmissions - 1

    @property
    def repeated_frames(self) -> int:
        """Number of frames that repeated data of the message or its announcement."""
        if self.kind == "MEDIUM":
            return self.frame_count - self.nacks - self.fragments.bit_count()
        return max(self.transmissions - 1, 0) + self.duplicates

    @property
    def is_done(self) -> bool:
        """True if the message has been reported: later frames no longer belong to it."""
        return self.state == REPORTED

    @property
    def is_incomplete(self) -> bool:
        """True if the capture lacks part of the message, or its outcome."""
        return bool(self.half_seen) or self.sender != ("acked" if self.pull is None else "notified")

    @property
    def frames(self) -> Iterator[tuple[int, int]]:
        """First and last frame number of each run of its frames, ascending; at most ``RUNS_KEPT`` runs."""
        if self.run_first < 0:
            return
        others = self.runs or []
        runs = sorted([*zip(others[::2], others[1::2], strict=True), (self.run_first, self.run_last)])
        first, last = runs[0]
        for one, other in runs[1:]:
            if one > last + 1:
                yield first, last
                first = one
            last = max(last, other)
        yield first, last

    def add_frame(self, number: int, time_ns: int) -> None:
        """Add a frame."""
        self.frame_count += 1
        if time_ns > self.last_ns:
            self.last_ns = time_ns
        if number == self.run_last + 1:
            self.run_last = number
        else:
            self._begin_run(number, number)

    def add_run(self, first: int, last: int) -> None:
        """Add frames with consecutive numbers."""
        if first == self.run_last + 1:
            self.run_last = last
        else:
            self._begin_run(first, last)

    def _begin_run(self, first: int, last: int) -> None:
        if self.run_first >= 0:
            if self.runs is None:
                self.runs = []
            if len(self.runs) >= 2 * RUNS_KEPT:
                return
            self.runs += (self.run_first, self.run_last)
        self.run_first, self.run_last = first, last

    def lacks(self, text: str) -> None:
        """Record that the capture lacks a part of the message."""
        if text not in self.half_seen:
            self.half_seen = (*self.half_seen, text)


WAITING: Final = 1 << 16
"""Maximum number of messages that wait for an earlier one; beyond it, messages are yielded without waiting."""


class MessageSorter:
    """Sorter of messages by number, which receives them in order of completion; memory is bounded."""

    def __init__(self, waiting: int = WAITING) -> None:
        self._limit = waiting
        self._heap: list[tuple[int, CapturedMessage]] = []
        self._next = 1

    def put(self, messages: Iterable[CapturedMessage]) -> Iterator[CapturedMessage]:
        """Add messages; yield those that are next in order."""
        heap = self._heap
        for message in messages:
            heappush(heap, (message.number, message))
            # A number may be missing without end: messages that turn out to be part of another one are never reported.
            while heap and (heap[0][0] <= self._next or len(heap) > self._limit):
                yield self._pop()

    def rest(self) -> Iterator[CapturedMessage]:
        """Yield the messages that still wait, after the last message was added."""
        while self._heap:
            yield self._pop()

    def _pop(self) -> CapturedMessage:
        number, message = heappop(self._heap)
        self._next = max(self._next, number + 1)
        return message
