"""Runs of plain frames: TINYs, SMALLs and libacks that only continue their conversation are judged together.

This is the fast path; :meth:`mxwire.rules.judge.Judge.observe` defines the result per frame, and judges every frame
that is not plainly correct.

Theory of operation
-------------------
A run has no frames of other types. Therefore its conversations (two endpoints of two hosts, in both directions) are
independent of each other: a plain frame changes the two streams of its conversation and nothing else. Each conversation
is plain up to its first frame that is not; that one and its successors in the run are left to the judge.

1. *Lanes.* Each direction is a lane, and frames are sorted by conversation. The state of both lanes is read once
   (:func:`_lane`): what the next frames must contain for every tracker to take the branch of a new number, and for
   every rule to be met. A lane with a pending restart, a gap or an unknown partner has no plain frames. A stream may
   begin in a run, with the number that the receiver requested.
2. *Comparison.* Numbers are those of the first message plus the number of messages before it in the lane; acks are
   compared with the number of messages in the other lane. All frames are compared at once. Duplicates that the network
   made of messages and libacks are plain, too; retransmissions are left to the judge.
3. *Records.* The streams advance, and only the messages that they still remember are kept: TINYs packed, until a frame
   refers to them, and others as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.rules.lanes import LaneOrder
from mxwire.rules.state.flows import ObservedFlow, ObservedPair
from mxwire.rules.state.streams import (
    KEPT_BEHIND,
    NO_REGION,
    PACKED,
    UNPACKED,
    Content,
    ObservedMessage,
    ObservedStream,
    stream_from,
)
from mxwire.rules.vantage import Vantage, resend_delay_least, slack
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import (
    ABANDONED_DONE,
    ABANDONED_NEXT,
    FIRST_NUMBER,
    NO_SESSION,
    NUMBER_MASK,
    OUTSTANDING_MAXIMUM,
    SESSION_NUMBER_MASK,
    SESSION_NUMBER_STEP,
    TINY_MAXIMUM,
)

LIBACK: Final = 2
"""``kind`` of a liback; a TINY is 0 and a SMALL 1."""
LARGEST: Final = 256
"""Bytes that no plain frame exceeds."""
_HALF: Final = SESSION_NUMBER_STEP // 2
MOST_OUTSTANDING: Final = OUTSTANDING_MAXIMUM - KEPT_BEHIND
"""Unacknowledged messages from which a stream may forget some of them."""
_NONE: Final = -1
_LONG_AGO: Final = -(1 << 62)
_PACKED: Final = np.dtype(
    [
        ("match", "<u8"), ("time_ns", "<i8"), ("number", "<i8"), ("ack", "<i4"), ("session", "<u4"), ("length", "u1"),
        ("held", "u1"), ("data", "S32"),
    ]
)  # fmt: skip
"""The fields of ``PACKED``."""
_TYPES: Final = int(PacketType.TINY), int(PacketType.SMALL)
_Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class PlainFrames:
    """Frames in order that break no rule by themselves; arrays of shape (n,)."""

    place: _Integers
    time_ns: _Integers
    number: _Integers
    source: NDArray[np.uint64]
    """Address of the sender."""
    destination: NDArray[np.uint64]
    ends: _Integers
    """Endpoint of the source x 256 + endpoint of the destination."""
    lane: _Integers
    """A number of source, destination and endpoints."""
    reverse: _Integers
    """That number of the frames in the other direction."""
    kind: NDArray[np.uint8]
    index: _Integers
    """``dst_src_peer_index``"""
    session: _Integers
    ack: _Integers
    sequence: _Integers
    """This field and the next two are 0 for libacks."""
    length: _Integers
    match: NDArray[np.uint64]
    acknum: _Integers
    """Of libacks, else 0."""

    def __len__(self) -> int:
        """The number of frames."""
        return len(self.place)

    @property
    def conversations(self) -> int:
        """The number of conversations."""
        # Without counts or indices, NumPy loads its masked arrays, which takes as long as thousands of frames.
        return len(np.unique(np.minimum(self.lane, self.reverse), return_counts=True)[0])

    def part(self, which: Any) -> PlainFrames:
        """Return some of the frames."""
        return PlainFrames(*(getattr(self, each.name)[which] for each in fields(self)))


Pairs = Callable[[int, int], ObservedPair | None]
"""Function that returns the pair of two hosts from the addresses of source and destination, if it was seen."""
_Flows = tuple[ObservedFlow, ObservedFlow] | None
Data = Callable[[Sequence[int], Sequence[int]], list[bytes]]
"""Function that returns the data of frames from their places and lengths."""

_EXPECTED: Final = np.dtype(
    [
        ("next", "i8"), ("bits", "i8"), ("session", "i8"), ("index", "i8"), ("sends", "?"), ("acks", "?"),
        ("acknowledged", "i8"), ("outgoing", "i8"), ("kept", "i8"), ("acknum", "i8"), ("acknum_ns", "i8"),
        ("reserved", "?"), ("first", "?"), ("begins", "?"),
    ]
)  # fmt: skip
"""The contents of plain frames of a lane, given the state before them: position of the next message and its session
bits; session and index; whether messages and acks can be plain; the highest position that it has acknowledged, and that
its partner has; number of remembered messages behind the latter; number and time of the last liback, ``_LONG_AGO`` if
no frame can be a duplicate of it; whether the acks ``ABANDONED_DONE`` and ``FIRST_NUMBER`` report nothing; whether its
stream may begin."""


def take(frames: PlainFrames, pairs: Pairs, data: Data, vantage: Vantage) -> NDArray[np.bool_]:
    """Record the plain frames of a run; return which they are. The caller passes the others to the judge, in order."""
    conversation = np.minimum(frames.lane, frames.reverse)
    order = np.argsort(conversation, kind="stable")
    conversation = conversation[order]
    begins = np.flatnonzero(np.diff(conversation, prepend=conversation[0] - 1))
    which = np.zeros(len(order), np.intp)
    which[begins[1:]] = 1
    which = np.cumsum(which)
    mine = frames.part(order)
    side = (mine.lane != conversation).astype(np.intp)
    flows = [_flows(mine, at, pairs) for at in begins.tolist()]
    expected = np.zeros((len(flows), 2), _EXPECTED)
    expected["session"] = _NONE
    known = [number for number, each in enumerate(flows) if each is not None]
    if not known:
        return np.zeros(len(order), np.bool_)
    both_lanes = [flow for both in flows if both is not None for flow in both]
    begun = {id(flow): stream for flow in both_lanes if (stream := _beginning(flow, vantage)) is not None}
    rows = [_lane(flow, begun, vantage.from_start) for flow in both_lanes]
    expected[known] = np.array(rows, _EXPECTED).reshape(-1, 2)
    run = _JudgedRun(mine, begins, which, side, expected)
    taken = run.plain(flows, data, vantage)
    if not taken.all():
        run.keep(taken)
    run.record(flows, begun, data)
    found = np.zeros(len(order), np.bool_)
    found[order] = taken
    return found


def _flows(frames: PlainFrames, at: int, pairs: Pairs) -> _Flows:
    """Return the flows of the lanes of a conversation, from one of its frames; None if it is unknown or strange."""
    pair = pairs(int(frames.source[at]), int(frames.destination[at]))
    flow = None if pair is None else pair.flows.get(int(frames.ends[at]))
    if flow is None or flow.epoch != flow.source.epoch or flow.back.epoch != flow.back.source.epoch:
        return None
    return (flow, flow.back) if frames.lane[at] < frames.reverse[at] else (flow.back, flow)


def _beginning(flow: ObservedFlow, vantage: Vantage) -> ObservedStream | None:
    """Return the first stream of a flow, with the number that the receiver requested; None if that is unknown."""
    session = flow.destination.session
    known = None if session is None or vantage.from_start else flow.sessions.get(session)
    if known is None or not known.starts or flow.stream is not None or flow.former is not None:
        return None
    return stream_from(known.starts[-1], session, flow.kept_behind, adopted=not flow.fresh)


def _lane(flow: ObservedFlow, begun: dict[int, ObservedStream], from_start: bool) -> tuple[Any, ...]:
    """Return the row of ``_EXPECTED`` of a flow; ``begun`` are the streams that may begin, by the identity of their
    flows."""
    stream, other = (each.stream or begun.get(id(each)) for each in (flow, flow.back))
    session, pair = flow.destination.session, flow.pair
    if session is None:
        session = flow.acknum_session if stream is None else stream.session
    # A session that no frame announced is accepted in a capture that may have begun later (R-EP-02).
    known = session in flow.sessions if flow.sessions or from_start else session is not None
    if not known or session == NO_SESSION or pair.known_ns is None or pair.dialect.frame_limit < LARGEST:
        session = _NONE
    acknowledged = flow.acknowledged if other is not None and flow.acknowledged_stream is other else None
    return (
        0 if stream is None else stream.next,
        0 if stream is None else stream.session_bits,
        session,
        pair.indexes[-1],
        stream is not None and stream.session == session and _is_regular(stream, flow),
        not from_start if other is None else other.complete == other.next,
        _NONE if acknowledged is None else acknowledged,
        0 if stream is None else stream.acknowledged,
        0 if stream is None else stream.kept_behind,
        0 if flow.acknum is None else flow.acknum,
        _LONG_AGO if flow.acknum_restart or flow.acknum_session != session else flow.acknum_ns,
        other is not None and _reserves(flow.back, other),
        other is not None and other.first & NUMBER_MASK == ABANDONED_NEXT,
        id(flow) in begun,
    )


def _is_regular(stream: ObservedStream, flow: ObservedFlow) -> bool:
    """Return whether the next number of a stream is simply its next message, and the sender was connected."""
    former = flow.former
    return (
        stream.complete == stream.next
        and not (
            former is not None
            and (former.next, former.session_bits, former.session)
            == (stream.first, stream.session_bits, stream.session)
        )
        and (flow.unannounced or bool(flow.connects) or not flow.sessions)
    )


def _reserves(back: ObservedFlow, stream: ObservedStream) -> bool:
    requested = stream.session_bits | ABANDONED_NEXT
    return any(requested in known.starts for known in back.sessions.values())


class _JudgedRun:
    """The frames of a run, sorted by conversation. Arrays have shape (n,)."""

    def __init__(
        self,
        frames: PlainFrames,
        begins: NDArray[np.intp],
        which: NDArray[np.intp],
        side: NDArray[np.intp],
        expected: NDArray[np.void],
    ) -> None:
        self.frames = frames
        self.begins = begins
        """The first frame of each conversation."""
        self.which = which
        """The conversation of each frame."""
        self.side = side
        self.expected = expected
        """The state before the run, shape (conversations, 2)."""
        mine, other = expected[which, side], expected[which, 1 - side]
        self.mine = mine
        self._other = other
        self._order = LaneOrder(which, side)
        self._behind: _Integers = np.zeros(len(frames), np.int64)
        """Number of messages from each duplicate to the next message of its lane; 0 for other frames."""

    def plain(self, flows: Sequence[_Flows], data: Data, vantage: Vantage) -> NDArray[np.bool_]:
        """Return which frames are plain, as are all before them in their conversation."""
        plain = self._examine(vantage)
        if not plain.all():
            frames = self.frames
            repeats, behind = self._order.repeats(frames.sequence, self.mine["next"], frames.kind < LIBACK)
            if repeats.any():
                self._behind = np.where(repeats, behind, 0)
                plain = self._examine(vantage)
                at = np.flatnonzero(repeats & self._until_first(plain))
                plain[at] &= self._are_duplicates(at, flows, data, resend_delay_least(vantage))
        return self._until_first(plain)

    def _until_first(self, plain: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which frames precede the first of their conversation that is not ``plain``."""
        broken = np.cumsum(~plain)
        found: NDArray[np.bool_] = broken - (broken - ~plain)[self.begins[self.which]] == 0
        return found

    def _examine(self, vantage: Vantage) -> NDArray[np.bool_]:
        """Find the positions of all frames; return which are plain, if those before are."""
        frames, mine, other = self.frames, self.mine, self._other
        self._sends = (frames.kind < LIBACK) & (self._behind == 0)
        self.sent, partners = self._order.before(self._sends)
        """Number of messages before each frame in its lane."""
        near = other["next"] + partners
        # Without messages of the partner there is nothing to compare an ack with.
        self.compared: NDArray[np.bool_] = (other["next"] > 0) & ~(other["begins"] & (partners == 0))
        position: _Integers = near + ((frames.ack - near + _HALF) & NUMBER_MASK) - _HALF
        self.position: _Integers = np.where(self.compared, position, _NONE)
        """Position that each frame acknowledges; -1 if it acknowledges nothing."""
        position = self.position
        plain: NDArray[np.bool_] = (frames.session == mine["session"]) & (frames.index == mine["index"])
        number = frames.ack & NUMBER_MASK
        idle = ~(mine["first"] & (number == FIRST_NUMBER) | mine["reserved"] & (number == ABANDONED_DONE))
        before = self._order.last(position, mine["acknowledged"])
        acks = ((frames.ack ^ other["bits"]) & SESSION_NUMBER_MASK == 0) & idle
        acks &= (position <= near) & (position >= before)
        plain &= mine["acks"] & (acks | ~self.compared)
        mine_next = mine["next"] + self.sent - self._behind
        acknowledged = self._order.last(position, mine["outgoing"], other=True)
        acknowledged = np.maximum(acknowledged, mine["outgoing"])
        sends = mine["sends"] & (frames.sequence == (mine_next & NUMBER_MASK | mine["bits"]))
        sends &= mine_next + 1 - acknowledged <= MOST_OUTSTANDING
        sends &= (self._behind == 0) | (mine_next >= acknowledged - mine["kept"])
        plain &= np.where(frames.kind < LIBACK, sends, self._follows(slack(vantage)))
        return plain

    def _follows(self, reordering: int) -> NDArray[np.bool_]:
        """Return which libacks have a higher number than the one before in their lane, or are duplicates of it."""
        frames, mine = self.frames, self.mine
        found = np.zeros(len(frames), np.bool_)
        at = np.flatnonzero(frames.kind == LIBACK)
        # Sorted by lane, because numbers increase per lane.
        lane = (2 * self.which + self.side)[at]
        at = at[np.argsort(lane, kind="stable")]
        begins = np.diff(np.sort(lane), prepend=-1) != 0
        number, time_ns = frames.acknum[at], frames.time_ns[at]
        former, former_ns = np.roll(number, 1), np.roll(time_ns, 1)
        former[begins], former_ns[begins] = mine["acknum"][at[begins]], mine["acknum_ns"][at[begins]]
        new = number > former
        once = begins | np.roll(new, 1)
        found[at] = new | (number == former) & (number > 0) & once & (time_ns - former_ns < reordering)
        return found

    def _are_duplicates(
        self, at: NDArray[np.intp], flows: Sequence[_Flows], data: Data, resend_delay: int
    ) -> NDArray[np.bool_]:
        """Return which of the frames ``at``, whose numbers were seen before, repeat the message at once, unchanged."""
        frames, lanes = self.frames, 2 * self.which + self.side
        sent = np.flatnonzero(self._sends)
        sent = sent[np.argsort(lanes[sent], kind="stable")]
        ahead = self.sent[at] - self._behind[at]
        of_run = ahead >= 0
        original = at.copy()
        original[of_run] = sent[np.searchsorted(lanes[sent], lanes[at[of_run]]) + ahead[of_run]]
        same: NDArray[np.bool_] = frames.time_ns[at] - frames.time_ns[original] < resend_delay
        for column in (frames.kind, frames.length, frames.match, frames.ack):
            same &= column[at] == column[original]
        places = (data(frames.place[each].tolist(), frames.length[each].tolist()) for each in (at, original))
        same &= np.array([one == other for one, other in zip(*places, strict=True)], np.bool_)
        for place in np.flatnonzero(~of_run).tolist():
            frame = int(at[place])
            stream = _stream(flows, int(lanes[frame]))
            position = int(self.mine["next"][frame] + ahead[place])
            message = None if stream is None else stream.message(position)
            same[place] = (
                message is not None
                and message.complete
                and message.session == int(frames.session[frame])
                and int(frames.time_ns[frame]) - message.last_ns < resend_delay
                and message.acknowledgement == int(frames.ack[frame])
                and message.content == self._contents(np.array([frame]), data)[0]
            )
        return same

    def _contents(self, at: NDArray[np.intp], data: Data) -> list[Content]:
        """Return the contents of the messages in the frames ``at``."""
        frames, match = self.frames, self.frames.match[at]
        kinds, lengths = frames.kind[at].tolist(), frames.length[at].tolist()
        high, low = (match >> np.uint64(32)).tolist(), (match & np.uint64(0xFFFF_FFFF)).tolist()
        columns = kinds, lengths, high, low, data(frames.place[at].tolist(), lengths)
        return [
            (_TYPES[kind], length, (one, other), NO_REGION, held)
            for kind, length, one, other, held in zip(*columns, strict=True)
        ]

    def keep(self, taken: NDArray[np.bool_]) -> None:
        """Discard the other frames; conversations keep their numbers."""
        self.frames, self.which, self.side = self.frames.part(taken), self.which[taken], self.side[taken]
        self.position, self.mine, self.sent = self.position[taken], self.mine[taken], self.sent[taken]
        self.compared, self._sends = self.compared[taken], self._sends[taken]
        self._behind = self._behind[taken]

    def record(self, flows: Sequence[_Flows], begun: dict[int, ObservedStream], data: Data) -> None:
        """Advance the streams of all conversations; ``begun`` are those that may begin, by the identity of their
        flows."""
        frames, lanes = self.frames, 2 * self.which + self.side
        order = np.argsort(lanes, kind="stable")
        if not len(order):
            return
        lanes = lanes[order]
        begins, ends = _edges(lanes)
        at = _latest(begins, ends, self.position[order])
        sent = np.add.reduceat(self._sends[order], begins, dtype=np.int64)
        columns = (
            lanes[begins],
            begins,
            ends,
            sent,
            *(each[order[at]] for each in (self.position, frames.time_ns, frames.number)),
        )
        for lane in lanes[begins[sent > 0]].tolist() if begun else ():
            both = flows[lane >> 1]
            assert both is not None
            flow = both[lane & 1]
            if flow.stream is None:
                flow.stream = begun[id(flow)]
                flow.restart = flow.forgot = False
        for lane, begin, end, count, *ack in zip(*(each.tolist() for each in columns), strict=True):
            both = flows[lane >> 1]
            assert both is not None
            flow = both[lane & 1]
            self._acknowledge(flow, order[begin:end], *ack)
            if count:
                stream = flow.stream
                assert stream is not None
                stream.next += count
                stream.complete = stream.next
                flow.unannounced = flow.unannounced or (not flow.connects and bool(flow.sessions))
        libacks = frames.kind[order] == LIBACK
        self._number(flows, lanes[libacks], order[libacks])
        self._create(flows, data)
        at = np.flatnonzero(self._behind)
        position = self.mine["next"][at] + self.sent[at] - self._behind[at]
        for lane, place in zip((2 * self.which + self.side)[at].tolist(), position.tolist(), strict=True):
            stream = _stream(flows, lane)
            message = None if stream is None else stream.message(place)
            if message is not None:
                message.frames += 1

    def _number(self, flows: Sequence[_Flows], lanes: NDArray[np.intp], libacks: NDArray[np.intp]) -> None:
        """Record the numbers of the ``libacks``, which are sorted by lane."""
        frames = self.frames
        begins, ends = _edges(lanes)
        at = _latest(begins, ends, frames.acknum[libacks])
        columns = lanes[begins], *(each[libacks[at]] for each in (frames.acknum, frames.time_ns, frames.session))
        for lane, number, time_ns, session in zip(*(each.tolist() for each in columns), strict=True):
            both = flows[lane >> 1]
            assert both is not None
            flow = both[lane & 1]
            if number != flow.acknum or flow.acknum_restart or flow.acknum_session != session:
                flow.acknum_ns = time_ns
            flow.acknum, flow.acknum_session, flow.acknum_restart = number, session, False

    def _acknowledge(self, flow: ObservedFlow, part: NDArray[np.intp], last: int, time_ns: int, number: int) -> None:
        """Record the acks of the frames ``part`` of a lane, the ``last`` of which is that of the frame ``number``."""
        stream = flow.back.stream
        if stream is None or last == _NONE:
            return
        if flow.acknowledged_stream is not stream:
            flow.acknowledged_stream = stream
            flow.acknowledged = None
        if flow.acknowledged is None or last > flow.acknowledged:
            flow.acknowledged, flow.acknowledged_ns, flow.acknowledged_number = last, time_ns, number
        if last > stream.acknowledged:
            stream.acknowledged = last
            kept = stream.kept_behind
            # In steps, so that the floor ends where single frames would have moved it.
            while last - stream.floor > 2 * kept:
                positions = self.position[part]
                at = int(np.searchsorted(positions, stream.floor + 2 * kept, side="right"))
                stream.floor = int(positions[at]) - kept

    def _create(self, flows: Sequence[_Flows], data: Data) -> None:
        """Create the messages that their streams remember, and discard those that they do not."""
        frames, at = self.frames, np.flatnonzero(self._sends)
        position = self.mine["next"][at] + self.sent[at]
        lanes = 2 * self.which[at] + self.side[at]
        streams = {lane: _stream(flows, lane) for lane in np.unique(lanes, return_counts=True)[0].tolist()}
        acked = {lane ^ 1 for lane in np.unique(2 * self.which + self.side, return_counts=True)[0].tolist()}
        for lane in acked | streams.keys():
            stream = _stream(flows, lane)
            if stream is not None:
                stream.discard()
        floors = np.zeros(2 * len(flows), np.int64)
        for lane, stream in streams.items():
            floors[lane] = stream.floor if stream is not None else 0
        kept = position >= floors[lanes]
        at, position, lanes = at[kept], position[kept], lanes[kept]
        order = np.argsort(lanes, kind="stable")
        at, position, lanes = at[order], position[order], lanes[order]
        tiny = (frames.kind[at] == 0) & (frames.length[at] <= TINY_MAXIMUM)
        packed = self._packed(at, tiny, data)
        begins, ends = _edges(lanes)
        columns = lanes[begins], position[begins], PACKED.size * begins, PACKED.size * ends
        for lane, first, begin, end in zip(*(each.tolist() for each in columns), strict=True):
            stream = streams[lane]
            assert stream is not None
            stream.pack(first, packed[begin:end])
        self._create_objects(at[~tiny], position[~tiny], [streams[lane] for lane in lanes[~tiny].tolist()], data)

    def _packed(self, at: NDArray[np.intp], tiny: NDArray[np.bool_], data: Data) -> bytes:
        """Return the messages in the frames ``at``, packed if they are ``tiny``."""
        frames, rows = self.frames, np.zeros(len(at), _PACKED)
        values = frames.match[at], frames.time_ns[at], frames.number[at], frames.ack[at], frames.session[at]
        for name, column in zip(_PACKED.names or (), values, strict=False):
            rows[name] = column
        rows["length"] = np.where(tiny, frames.length[at], UNPACKED)
        held = data(frames.place[at].tolist(), np.where(tiny, frames.length[at], 0).tolist())
        rows["held"] = [*map(len, held)]
        rows["data"] = held
        return rows.tobytes()

    def _create_objects(
        self, at: NDArray[np.intp], position: _Integers, streams: Sequence[ObservedStream | None], data: Data
    ) -> None:
        """Create the messages in the frames ``at``."""
        frames = self.frames
        columns = (
            position.tolist(), frames.session[at].tolist(), self._contents(at, data),
            frames.time_ns[at].tolist(), frames.number[at].tolist(), frames.ack[at].tolist(),
        )  # fmt: skip
        for stream, place, *values in zip(streams, *columns, strict=True):
            assert stream is not None
            stream.messages[place] = ObservedMessage.of_one_frame(place, *values)


def _edges(lanes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return first place and end of each lane in ``lanes``, which are sorted."""
    begins = np.flatnonzero(np.diff(lanes, prepend=-1))
    return begins, np.append(begins[1:], len(lanes))[: len(begins)]


def _latest(begins: NDArray[np.intp], ends: NDArray[np.intp], values: _Integers) -> NDArray[np.intp]:
    """Return the first place with the last of the ``values`` of each lane; the values of a lane ascend."""
    new = np.diff(values, prepend=0) != 0
    new[begins] = True
    latest: NDArray[np.intp] = np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))[ends - 1]
    return latest


def _stream(flows: Sequence[_Flows], lane: int) -> ObservedStream | None:
    both = flows[lane >> 1]
    assert both is not None
    return both[lane & 1].stream
