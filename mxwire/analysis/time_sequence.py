"""Time-sequence graphs: the offsets in the messages of one direction against time, as tcptrace draws them for TCP.

::

    trace = FrameTrace()
    for decoded in decoder.decode_all(capture):
        messages = follower.observe(decoded)  # Follower(marks=True)
        trace.observe(decoded, follower.take_marks(decoded))
        trace.take(messages)
    trace.take(follower.finish())
    graph = trace.of_message(3)

A message begins at the offset at which the previous message of its direction ends, so that a conversation has one
ascending curve per direction. The window is the end of the last requested block: only pulled data has one, since eager
messages are transmitted without waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.conversations.frame_marks import (
    ACK,
    DATA,
    DUPLICATE,
    GAP,
    NACK,
    NOTIFY,
    PULL,
    RE_REQUEST,
    REPLY,
    RETRANSMISSION,
    RNDV,
    FrameMarks,
)
from mxwire.analysis.diagnosis.finding import Party
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import Dialect

TRACED: Final = 2_000_000
"""Maximum number of frames, and of messages, that are remembered; later ones are not drawn."""
GAPS_LOCATED: Final = 2000
"""Maximum number of gaps per graph whose missing bytes are located."""
POINTS: Final = 4000
"""Maximum number of points per graph, unless the caller chooses another."""
_NEVER: Final = np.iinfo(np.int64).max
_SHIFT_MASK: Final = 31
"""A pipeline above 31 is invalid; the receiver's shift is 32 bits wide."""

KINDS: Final = (
    "data",
    "retransmission",
    "duplicate",
    "lost",
    "announcement",
    "request",
    "re-request",
    "ack",
    "notify",
    "nack",
)
"""Kinds of points. ``lost`` are bytes that are missing when a later reply of the block arrives."""
_DATA, _RETRANSMITTED, _DUPLICATE, _LOST, _ANNOUNCED, _REQUESTED, _RE_REQUESTED, _ACKED, _NOTIFIED, _NACKED = range(
    len(KINDS)
)

_FRAME: Final = np.dtype(
    [
        ("time_ns", np.int64),
        ("frame", np.int64),
        ("message", np.int64),
        ("offset", np.int64),
        ("length", np.int64),
        ("role", np.uint8),
        ("flags", np.uint32),
    ]
)
_MESSAGE: Final = np.dtype([("number", np.int64), ("length", np.int64), ("flow", np.int64), ("pulled", np.bool_)])
POINT: Final = np.dtype(
    [
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("low", np.int64),
        ("high", np.int64),
        ("kind", np.uint8),
        ("frame", np.int64),
        ("last_frame", np.int64),
        ("message", np.int64),
    ]
)
"""A point of a graph: a frame, or a run of frames of one kind whose bytes follow each other."""


@dataclass(frozen=True, slots=True)
class SequenceGraph:
    """The messages of one direction, or one of them."""

    source: Party
    destination: Party
    messages: tuple[int, ...]
    """Numbers of the messages."""
    length: int
    """Sum of their lengths in bytes."""
    points: NDArray[Any]
    """Array of :data:`POINT`, in the order of the frames."""
    acked: NDArray[np.int64]
    """Shape (n, 2): times in nanoseconds, and the offset below which all is acknowledged from then on."""
    window: NDArray[np.int64]
    """Shape (n, 2): times in nanoseconds, and the offset up to which data is requested from then on."""
    omitted: int = 0
    """Number of points left out to limit their number."""


class FrameTrace:
    """Accumulator of the frames of all messages, in compact form and within :data:`TRACED` frames."""

    def __init__(self, most: int = TRACED) -> None:
        self._most = most
        self._frames: list[NDArray[Any]] = []
        self._messages: list[NDArray[Any]] = []
        self._count = self._message_count = 0
        self._flows: dict[tuple[int, int], int] = {}
        """Indexes of the flows by conversation and side."""
        self._ends: list[tuple[Party, Party]] = []
        """Sender and receiver by index of the flow."""
        self._sorted: tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]] | None = None
        self._numbers = self._of_frames = np.zeros(0, np.int64)
        """Sorted numbers of the messages, and the message number of each frame."""
        self.omitted = 0
        """Number of frames beyond the limit."""

    def observe(self, decoded: DecodedBatch, marks: FrameMarks) -> None:
        """Add the frames of a batch with their marks."""
        if self._count >= self._most:
            self.omitted += int(np.count_nonzero(marks.message))
            return
        offset, length = _extents(decoded)
        places = np.flatnonzero((marks.message > 0) & (marks.role != ACK))
        acks = marks.acks
        rows = np.zeros(len(places) + len(acks), _FRAME)
        at = np.concatenate([places, acks[:, 0]])
        rows["time_ns"], rows["frame"] = decoded.batch.timestamp_ns[at], decoded.batch.number[at]
        rows["message"] = np.concatenate([marks.message[places], acks[:, 1]])
        rows["offset"][: len(places)], rows["length"][: len(places)] = offset[places], length[places]
        rows["role"][: len(places)], rows["flags"][: len(places)] = marks.role[places], marks.flags[places]
        rows["role"][len(places) :] = ACK
        rows = rows[np.argsort(at, kind="stable")]
        self._sorted = None
        self._frames.append(rows)
        self._count += len(rows)

    def take(self, messages: Iterable[CapturedMessage]) -> None:
        """Add messages, as the follower reports them."""
        rows: list[tuple[int, int, int, bool]] = []
        for each in messages:
            if self._message_count + len(rows) >= self._most:
                break
            key = each.flow.conversation.number, each.flow.side
            known = self._flows.get(key)
            if known is None:
                one, other = (Party(flow.address, flow.endpoint) for flow in (each.flow, each.flow.back))
                known = self._flows[key] = len(self._flows)
                self._ends.append((one, other))
            rows.append((each.number, each.length or 0, known, each.pull is not None))
        if rows:
            self._message_count += len(rows)
            self._sorted = None
            self._messages.append(np.array(rows, _MESSAGE))

    def of_message(self, number: int, most: int = POINTS) -> SequenceGraph | None:
        """Return the graph of one message; None if there is no message with this number."""
        messages, *_ = self._settled()
        first, after = (int(np.searchsorted(self._numbers, number, side)) for side in ("left", "right"))
        return self._graph(messages[first:after], most) if after > first else None

    def of_conversation(self, number: int, most: int = POINTS) -> list[SequenceGraph]:
        """Return one graph per direction of a conversation that has messages."""
        messages, *_ = self._settled()
        sequences = []
        for side in (0, 1):
            flow = self._flows.get((number, side))
            chosen = messages[messages["flow"] == flow] if flow is not None else messages[:0]
            if len(chosen):
                sequences.append(self._graph(chosen, most))
        return sequences

    def frames_of(self, number: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.uint32], int]:
        """Return the numbers and flags of up to ``most`` frames of a message, acks included, and how many it has.

        Of a message with more, they are the first, the last, and marked ones in between.
        """
        _, frames, _ = self._settled()
        first, after = (int(np.searchsorted(self._of_frames, number, side)) for side in ("left", "right"))
        mine = frames[first:after]
        if len(mine) > most:
            chosen = np.zeros(len(mine), np.bool_)
            chosen[: most // 2] = chosen[len(mine) - most // 4 :] = True
            chosen[np.flatnonzero((mine["flags"] != 0) & ~chosen)[: most // 4]] = True
            mine = mine[chosen]
        # A NOTIFY that acknowledges its own message is listed twice.
        numbers, places = np.unique(mine["frame"], return_index=True)
        return numbers, mine["flags"][places], after - first

    def conversations(self) -> list[int]:
        """Return the numbers of the conversations with messages, those with the most bytes first."""
        messages, *_ = self._settled()
        # One more than its length, so that messages of 0 bytes count, too.
        sizes = np.bincount(messages["flow"], weights=messages["length"] + 1, minlength=len(self._flows))
        totals: Counter[int] = Counter()
        for (conversation, _side), flow in self._flows.items():
            totals[conversation] += int(sizes[flow])
        return [number for number, _ in totals.most_common()]

    def _settled(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
        """Return all messages in the order of their numbers, all frames in that order, and their places in time."""
        if self._sorted is None:
            messages = np.concatenate([np.zeros(0, _MESSAGE), *self._messages])
            frames = np.concatenate([np.zeros(0, _FRAME), *self._frames])
            order = np.argsort(frames["message"], kind="stable")
            self._sorted = messages[np.argsort(messages["number"], kind="stable")], frames[order], order
            self._messages, self._frames = [messages], [frames]
            # Searched for every message: a field of a structured array would be copied each time.
            self._numbers = np.ascontiguousarray(self._sorted[0]["number"])
            self._of_frames = np.ascontiguousarray(self._sorted[1]["message"])
        return self._sorted

    def _graph(self, messages: NDArray[Any], most: int) -> SequenceGraph:
        _, frames, order = self._settled()
        numbers, lengths = messages["number"], messages["length"]
        first, after = (np.searchsorted(self._of_frames, numbers, side) for side in ("left", "right"))
        counts = after - first
        which = np.repeat(np.arange(len(numbers)), counts)
        mine = np.arange(len(which)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        in_time = np.argsort(order[mine])
        rows, which = frames[mine[in_time]], which[in_time]
        starts = np.cumsum(lengths) - lengths
        start = starts[which]
        # For columns of NDArray[Any], mypy tries all overloads of NumPy's operators, for seconds.
        points: Any = np.zeros(len(rows), POINT)
        points["start_ns"] = points["end_ns"] = rows["time_ns"]
        points["frame"] = points["last_frame"] = rows["frame"]
        points["message"] = rows["message"]
        points["low"], points["kind"] = start + rows["offset"], _kinds(rows)
        points["high"] = points["low"] + rows["length"]
        ended = np.isin(points["kind"], (_ACKED, _NOTIFIED))
        # The ack of an announcement does not acknowledge the data of its message (R-MAT-05).
        announced = ended & (points["kind"] == _ACKED) & messages["pulled"][which]
        points["low"][ended] = points["high"][ended] = (start + lengths[which])[ended]
        points["low"][announced] = points["high"][announced] = start[announced]
        requested = points[np.isin(points["kind"], (_REQUESTED, _RE_REQUESTED))]
        lost = _lost(points, rows)
        times = np.full(len(numbers), _NEVER, np.int64)
        # The first of repeated acks ends the message.
        np.minimum.at(times, which[ended & ~announced], rows["time_ns"][ended & ~announced])
        # An offset is acknowledged once its message and all earlier messages are.
        times = np.maximum.accumulate(times)
        settled = times < _NEVER
        everything = np.concatenate([points, lost])
        # A gap is found when the reply after it arrives: both have the same frame.
        thinned, omitted = thin(everything[np.argsort(everything["start_ns"], kind="stable")], most)
        flow = self._ends[int(messages["flow"][0])]
        return SequenceGraph(
            *flow,
            tuple(numbers.tolist()),
            int(lengths.sum()),
            thinned,
            _steps(times[settled], (starts + lengths)[settled], most),
            _steps(requested["start_ns"], requested["high"], most),
            omitted,
        )


def _extents(decoded: DecodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offset and length in its message of the data that each frame carries, requests or reports."""
    offset, length = np.zeros(len(decoded), np.int64), np.zeros(len(decoded), np.int64)
    for block in decoded.columns.blocks:
        place, name = block.place, block.layout.name
        if name in ("tiny", "small"):
            length[place] = block["length"]
        elif name == "medium":
            length[place] = block["frag_length"]
            offset[place] = _fragment_offsets(decoded, block)
        elif name == "pull_reply":
            offset[place], length[place] = block["msg_offset"], block["frame_length"]
        elif name == "pull":
            payload = _per_dialect(decoded, place, "reply_payload")
            lead = block["pulled_rdma_offset"].astype(np.int64) % payload
            offset[place] = block["frame_index"].astype(np.int64) * payload - lead + block["first_frame_offset"]
            length[place] = block["block_length"]
    return offset, length


def _fragment_offsets(decoded: DecodedBatch, block: LayoutBlock) -> NDArray[np.int64]:
    number = block["frag_seqnum"].astype(np.int64)
    if "frag_pipeline" in block.names:
        piped: NDArray[np.int64] = number << (block["frag_pipeline"].astype(np.int64) & _SHIFT_MASK)
        return piped
    return number * _per_dialect(decoded, block.place, "fragment_payload")


def _per_dialect(decoded: DecodedBatch, place: NDArray[np.intp], name: str) -> NDArray[np.int64]:
    dialects: tuple[Dialect, ...] = decoded.assignment.dialects
    values: NDArray[np.int64] = np.array([getattr(each, name) for each in dialects], np.int64)
    return values[decoded.assignment.which[place]]


def _kinds(rows: NDArray[Any]) -> NDArray[np.uint8]:
    role, flags = rows["role"], rows["flags"]
    kind = np.zeros(len(rows), np.uint8)
    for each, value in ((RNDV, _ANNOUNCED), (PULL, _REQUESTED), (ACK, _ACKED), (NOTIFY, _NOTIFIED), (NACK, _NACKED)):
        kind[role == each] = value
    kind[(role == PULL) & (flags & (RE_REQUEST | DUPLICATE) != 0)] = _RE_REQUESTED
    carries = np.isin(role, (DATA, RNDV, REPLY))
    kind[carries & (flags & RETRANSMISSION != 0)] = _RETRANSMITTED
    kind[carries & (flags & DUPLICATE != 0)] = _DUPLICATE
    return kind


def _lost(points: Any, rows: Any) -> Any:
    """Return one point for each gap before a reply: the bytes after the previous data of its block."""
    gaps = np.flatnonzero((rows["role"] == REPLY) & (rows["flags"] & GAP != 0))[:GAPS_LOCATED]
    found = points[gaps]
    found["kind"] = _LOST
    carries = points["kind"] <= _DUPLICATE
    asks = np.isin(points["kind"], (_REQUESTED, _RE_REQUESTED))
    for place, gap in enumerate(gaps.tolist()):
        low, before = points["low"][gap], points[:gap]
        covered = before["high"][carries[:gap] & (before["high"] <= low)]
        block = before["low"][asks[:gap] & (before["low"] <= low) & (before["high"] > low)]
        found["high"][place] = low
        found["low"][place] = max(covered.max(initial=0), block.max(initial=0))
    return found[found["high"] > found["low"]]


def thin(points: Any, most: int) -> tuple[NDArray[Any], int]:
    """Return at most ``most`` points, and the number of those left out.

    Runs of one kind whose bytes follow each other become one point each; if that is not enough, points of the most
    frequent kinds are left out at regular distances.
    """
    omitted = 0
    if len(points) > most:
        same = np.ones(len(points), np.bool_)
        same[0] = False
        for name in ("kind", "message"):
            same[1:] &= points[name][1:] == points[name][:-1]
        same[1:] &= points["low"][1:] == points["high"][:-1]
        # Long runs are split, so that their curve stays visible.
        first = np.flatnonzero(~same)
        index = np.arange(len(points)) - np.repeat(first, np.diff(np.append(first, len(points))))
        piece = max(-(-len(points) // most), 2) * 2
        starts = np.flatnonzero(~same | (index % piece == 0))
        ends = np.append(starts[1:], len(points)) - 1
        merged = points[starts].copy()
        for name in ("end_ns", "high", "last_frame"):
            merged[name] = points[name][ends]
        points = merged
    if len(points) > most:
        counts = np.bincount(points["kind"], minlength=len(KINDS))
        share = np.minimum(counts, max(most // len(KINDS), 1))
        room = most - int(share.sum())
        extra = np.maximum(counts - share, 0)
        share = share + (extra * room // max(int(extra.sum()), 1) if room > 0 else 0)
        kept = [
            np.flatnonzero(points["kind"] == kind)[np.linspace(0, count - 1, int(share[kind])).astype(np.intp)]
            for kind, count in enumerate(counts.tolist())
            if count and share[kind]
        ]
        omitted = len(points) - sum(map(len, kept))
        points = points[np.sort(np.concatenate(kept))]
    return points, omitted


def _steps(times: NDArray[np.int64], values: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return up to ``most`` of the times at which the running maximum of ``values`` rises, with that maximum."""
    if not len(times):
        return np.zeros((0, 2), np.int64)
    highest = np.maximum.accumulate(values)
    rises = np.flatnonzero(np.diff(highest, prepend=-1) > 0)
    if len(rises) > most:
        rises = rises[np.linspace(0, len(rises) - 1, most).astype(np.intp)]
    return np.stack([times[rises], highest[rises]], axis=1)
