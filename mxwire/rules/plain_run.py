"""Runs of plain frames: TINYs, SMALLs and libacks that only continue their conversation are judged together.

This is the fast path; :meth:`mxwire.rules.judge.Judge.observe` defines the result per frame, and judges every frame
that is not plainly correct.

Theory of operation
-------------------
A run has no frames of other types. Therefore its conversations (two endpoints of two hosts, in both directions) are
independent of each other: a plain frame changes the two streams of its conversation and nothing else. Each conversation
is plain up to its first frame that is not; that one and its successors in the run are left to the judge.

1. *Lanes.* Each direction is a lane, and frames are sorted by conversation. The state of both lanes is a row of columns
   (:class:`FlowTable`): what the next frames must contain for every tracker to take the branch of a new number, and for
   every rule to be met. A lane with a pending restart, a gap or an unknown partner has no plain frames. A stream may
   begin in a run, with the number that the receiver requested.
2. *Comparison.* Numbers are those of the first message plus the number of messages before it in the lane; acks are
   compared with the number of messages in the other lane. All frames are compared at once. Duplicates that the network
   made of messages and libacks are plain, too; retransmissions are left to the judge.
3. *Records.* The columns advance, and only the messages that their streams still remember are kept. Before the judge
   sees a frame of a host, its flows and streams are brought up to date: TINYs packed, until a frame refers to them.
   SMALLs are objects at once. With many hosts, most conversations are never written; those that began with an ordinary
   handshake do not even have objects (:mod:`mxwire.rules.handshakes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

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
from mxwire.structured import concatenated
from mxwire.wire.codes import LIMIT
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

if TYPE_CHECKING:
    from mxwire.rules.handshakes import Handshakes
    from mxwire.rules.judge import Judge

LIBACK: Final = 2
"""``kind`` of a liback; a TINY is 0 and a SMALL 1."""
_HOST_BITS: Final = 20
"""Bits for the code of a host in the number of a lane; tables of hosts have fewer entries
(:data:`mxwire.wire.codes.LIMIT`)."""
_ENDS_BITS: Final = 16
"""Bits for both endpoints."""
LARGEST: Final = 256
"""Bytes that no plain frame exceeds."""
_HALF: Final = SESSION_NUMBER_STEP // 2
MOST_OUTSTANDING: Final = OUTSTANDING_MAXIMUM - KEPT_BEHIND
"""Unacknowledged messages from which a stream may forget some of them."""
_POSITION_BITS: Final = 44
"""Bits for a position in a key of lane and position."""
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
class OrderedFrames:
    """Frames in order, by columns; arrays of shape (n,)."""

    place: _Integers
    time_ns: _Integers
    number: _Integers

    def part(self, which: Any) -> Self:
        """Return some of the frames."""
        return type(self)(*(getattr(self, each.name)[which] for each in fields(self)))


@dataclass(slots=True, eq=False)
class PlainFrames(OrderedFrames):
    """Frames in order that break no rule by themselves; arrays of shape (n,)."""

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


Pairs = Callable[[int, int], ObservedPair | None]
"""Function that returns the pair of two hosts from the addresses of source and destination, if it was seen."""
_Flows = tuple[ObservedFlow, ObservedFlow] | None


class FrameData(Protocol):
    """The data of TINYs and SMALLs of a batch, as far as it was captured, by place and length."""

    def data(self, places: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return the data of frames."""

    def columns(
        self, places: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the first ``width`` bytes of the data of frames, shape (n, width), 0 where there are none; and the
        number of captured bytes of each."""


_LANE: Final = np.dtype(
    [
        ("next", "i8"), ("bits", "i8"), ("session", "i8"), ("index", "i8"), ("sends", "?"), ("acks", "?"),
        ("acknowledged", "i8"), ("outgoing", "i8"), ("kept", "i8"), ("acknum", "i8"), ("acknum_ns", "i8"),
        ("reserved", "?"), ("first", "?"), ("begins", "?"), ("floor", "i8"), ("read", "i8"),
        ("ack_ns", "i8"), ("ack_number", "i8"), ("raised", "?"), ("numbered", "?"),
    ]
)  # fmt: skip
"""A lane: position of the next message and its session bits; session and index; whether messages and acks can be plain;
the highest position that it has acknowledged, and that its partner has; number of remembered messages behind the
latter; number and time of the last liback, ``_LONG_AGO`` if no frame can be a duplicate of it; whether the acks
``ABANDONED_DONE`` and ``FIRST_NUMBER`` report nothing; whether its stream may begin; position below which its messages
are forgotten. Then the changes since it was read: the next position at that time; time and frame of the ack that raised
``acknowledged``, and whether there is one; whether there was a liback."""
_WRITTEN: Final = (
    "next", "read", "outgoing", "floor", "raised", "numbered", "acknowledged", "ack_ns", "ack_number", "acknum",
    "acknum_ns", "session",
)  # fmt: skip
"""The columns that are written to flows and streams."""
_MESSAGE: Final = np.dtype([("lane", "i8"), ("position", "i8"), ("packed", _PACKED)])


class FlowTable:
    """The lanes that runs continue, as columns that stay between runs, so that many hosts take little longer than two.

    A conversation has a number n, and lanes 2 n and 2 n + 1. It is read from the state of the judge when a run has its
    first frame, and written before the judge sees a frame of one of its hosts (:meth:`release`). A conversation that
    began with an ordinary handshake is not read: its CONNECTs are passed to the judge when it is first written.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge, self.vantage = judge, judge.vantage
        self._numbers: dict[int, int] = {}
        """Conversations by the lower of the numbers of their lanes."""
        self._lanes = np.zeros((0, 2), _LANE)
        self._flows: list[_Flows] = []
        """None for those that only a handshake describes."""
        self._hosts = np.zeros((2, 0), np.intp)
        """Codes of the hosts of each conversation."""
        self._held = np.zeros(0, np.bool_)
        """Conversations whose columns are valid."""
        self._hosts_held = np.zeros(LIMIT + 1, np.bool_)
        """By code, hosts that may have such conversations."""
        self._messages = np.zeros(0, _MESSAGE)
        """The messages since their lanes were read that are still remembered."""
        self._handshakes: dict[int, tuple[Handshakes, int]] = {}
        """Conversations without flows."""

    def take(self, frames: PlainFrames, data: FrameData) -> NDArray[np.bool_]:
        """Record the plain frames of a run; return which they are. The caller passes the others to the judge, in
        order."""
        conversation = np.minimum(frames.lane, frames.reverse)
        order = np.argsort(conversation, kind="stable")
        conversation = conversation[order]
        begins = np.flatnonzero(np.diff(conversation, prepend=conversation[0] - 1))
        lengths = np.diff(begins, append=len(order))
        mine = frames.part(order)
        side = (mine.lane != conversation).astype(np.intp)
        numbers = self._find(mine, begins, conversation[begins])
        known = numbers >= 0
        lanes = np.zeros((len(numbers), 2), _LANE)
        lanes["session"] = _NONE
        lanes[known] = self._lanes.take(numbers[known], axis=0)
        run = _JudgedRun(mine, begins, np.repeat(np.arange(len(begins)), lengths), side, lanes)
        taken = run.plain(self, numbers, data)
        if not taken.all():
            run.keep(taken)
        if known.any():
            run.advance(lanes)
            self._lanes[numbers[known]] = lanes[known]
            self._remember(run, numbers, data)
        found = np.zeros(len(order), np.bool_)
        found[order] = taken
        return found

    def add(self, handshakes: Handshakes) -> None:
        """Add the conversations of handshakes, whose hosts have no others."""
        lanes = np.zeros((len(handshakes), 2), _LANE)
        lanes["session"], lanes["index"] = handshakes.session, handshakes.index
        lanes["next"] = lanes["outgoing"] = lanes["floor"] = lanes["read"] = FIRST_NUMBER + SESSION_NUMBER_STEP
        lanes["sends"] = lanes["acks"] = lanes["begins"] = True
        lanes["acknowledged"], lanes["acknum_ns"] = _NONE, _LONG_AGO
        lanes["kept"] = np.array(self._judge.reserve_flows(len(handshakes)))[:, None]
        numbers = self._append(handshakes.conversation, handshakes.hosts.T, lanes, [None] * len(handshakes))
        self._handshakes.update((number, (handshakes, at)) for at, number in enumerate(numbers))

    def release(self, *hosts: NDArray[np.intp]) -> None:
        """Write the conversations of hosts, by code, to the state of the judge, before it changes."""
        if not any(self._hosts_held[each].any() for each in hosts):
            return
        released = np.zeros(LIMIT + 1, np.bool_)
        for each in hosts:
            released[each] = True
        numbers = np.flatnonzero(self._held & released[self._hosts].any(0))
        self._write(numbers)
        self._held[numbers] = False
        self._hosts_held &= ~released

    def release_all(self) -> None:
        """Write all conversations to the state of the judge."""
        self.release(self._hosts)

    def new_ones(self, handshakes: Handshakes, others: int) -> Handshakes:
        """Return the handshakes of hosts that the judge does not know; none if it would remember fewer messages of
        conversations that begin later, and up to ``others`` begin among these."""
        vantage, count = self.vantage, len(handshakes)
        unordered = not others or self._judge.remembers_alike(count + others)
        if not unordered or vantage.from_start or vantage.as_sent:
            return handshakes.part(np.zeros(count, np.bool_))
        known = np.array([self._judge.knows(each) for each in handshakes.addresses.reshape(-1).tolist()], np.bool_)
        new = ~(known.reshape(-1, 2) | np.isin(handshakes.hosts, self._hosts))
        return handshakes.part(new[:, 0] & new[:, 1])

    def message(self, number: int, side: int, position: int) -> ObservedMessage | None:
        """Return a message of a lane of a conversation, as the judge knows it."""
        self._write(np.array([number]))
        stream = self._stream(number, side)
        return None if stream is None else stream.message(position)

    def _append(
        self, keys: NDArray[np.int64], hosts: NDArray[np.intp], lanes: NDArray[Any], flows: list[_Flows]
    ) -> range:
        """Add conversations; return their numbers."""
        numbers = range(len(self._flows), len(self._flows) + len(flows))
        self._numbers.update(zip(keys.tolist(), numbers, strict=True))
        self._flows += flows
        self._lanes = concatenated([self._lanes, lanes])
        self._hosts = np.concatenate([self._hosts, hosts], axis=1)
        self._held = np.concatenate([self._held, np.ones(len(flows), np.bool_)])
        self._hosts_held[hosts] = True
        return numbers

    def _find(self, frames: PlainFrames, begins: NDArray[np.intp], keys: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the numbers of conversations, each with its first frame and its key; -1 if one is unknown or
        strange. Those that are not held are read."""
        numbers = np.array([self._numbers.get(each, _NONE) for each in keys.tolist()], np.intp)
        absent = np.flatnonzero(~self._held[numbers] | (numbers < 0)) if len(self._held) else np.arange(len(numbers))
        flows = [_flows(frames, at, self._judge.plain_pair) for at in begins[absent].tolist()]
        numbers[absent] = _NONE
        known = [(place, both) for place, both in zip(absent.tolist(), flows, strict=True) if both is not None]
        if not known:
            return numbers
        rows = [row for _, both in known for row in _read(both, self.vantage)]
        lanes = np.array(rows, _LANE).reshape(-1, 2)
        new = []
        for row, (place, both) in enumerate(known):
            number = self._numbers.get(int(keys[place]))
            if number is None:
                new.append(row)
                continue
            numbers[place] = number
            self._lanes[number], self._flows[number], self._held[number] = lanes[row], both, True
            self._hosts_held[self._hosts[:, number]] = True
        at = np.array([known[row][0] for row in new], np.intp)
        numbers[at] = self._append(keys[at], hosts_of(keys[at]), lanes[new], [known[row][1] for row in new])
        return numbers

    def _remember(self, run: _JudgedRun, numbers: NDArray[np.intp], data: FrameData) -> None:
        """Add the messages of a run, and discard those that their streams do not remember."""
        floors = self._lanes["floor"].reshape(-1)
        frames, of_lane = run.frames, 2 * numbers[run.which] + run.side
        at = np.flatnonzero(run.sends)
        at = at[run.number[at] >= floors[of_lane[at]]]
        rows = np.zeros(len(at), _MESSAGE)
        rows["lane"], rows["position"] = of_lane[at], run.number[at]
        tiny = (frames.kind[at] == 0) & (frames.length[at] <= TINY_MAXIMUM)
        rows["packed"] = _packed(frames, at, tiny, data)
        former = self._messages
        kept = former["position"] >= floors[former["lane"]]
        self._messages = concatenated([former.compress(kept), rows])
        repeats = np.flatnonzero(run.behind)
        at = at[~tiny]
        if not len(at) and not len(repeats):
            return
        # Messages that are objects, and those that a frame repeats, change at once.
        self._write(numbers[run.which[np.concatenate([at, repeats])]])
        for place, content in zip(at.tolist(), _contents(frames, at, data), strict=True):
            stream, position = self._stream(*divmod(int(of_lane[place]), 2)), int(run.number[place])
            assert stream is not None
            values = frames.session[place], frames.time_ns[place], frames.number[place], frames.ack[place]
            session, *others = map(int, values)
            stream.messages[position] = ObservedMessage.of_one_frame(position, session, content, *others)
        for place in repeats.tolist():
            stream = self._stream(*divmod(int(of_lane[place]), 2))
            message = None if stream is None else stream.message(int(run.number[place]))
            if message is not None:
                message.frames += 1

    def _stream(self, number: int, side: int) -> ObservedStream | None:
        both = self._flows[number]
        return None if both is None else both[side].stream

    def _write(self, numbers: NDArray[np.intp]) -> None:
        """Bring the state of the judge up to date; the columns stay valid until it changes."""
        lanes = self._lanes.take(numbers, axis=0)
        changed = ((lanes["next"] > lanes["read"]) | lanes["raised"] | lanes["numbered"]).any(1)
        if self._handshakes:
            changed |= np.array([number in self._handshakes for number in numbers.tolist()], np.bool_)
        numbers = numbers[changed]
        if not len(numbers):
            return
        written = np.zeros(len(self._flows), np.bool_)
        written[numbers] = True
        numbers = np.flatnonzero(written)
        which = written[self._messages["lane"] >> 1]
        rows = self._messages.compress(which)
        self._messages = self._messages.compress(~which)
        rows = rows.take(np.lexsort((rows["position"], rows["lane"])))
        begins, ends = (np.searchsorted(rows["lane"], 2 * numbers + side, "left") for side in (0, 2))
        packed, positions = rows["packed"].tobytes(), rows["position"].tolist()
        middles = np.searchsorted(rows["lane"], 2 * numbers + 1, "left")
        columns = numbers, begins, middles, ends
        for number, begin, middle, end in zip(*(each.tolist() for each in columns), strict=True):
            both = self._flows[number]
            if both is None:
                both = self._flows[number] = self._observe(number)
            _write_lanes(both, self._lanes[number], self.vantage)
            for flow, first, last in zip(both, (begin, middle), (middle, end), strict=True):
                if flow.stream is not None and last > first:
                    flow.stream.pack(positions[first], packed[PACKED.size * first : PACKED.size * last])
        for name, value in (("read", self._lanes["next"][numbers]), ("raised", False), ("numbered", False)):
            self._lanes[name][numbers] = value

    def _observe(self, number: int) -> tuple[ObservedFlow, ObservedFlow]:
        """Pass the handshake of a conversation to the judge; return its flows."""
        handshakes, at = self._handshakes.pop(number)
        flow = handshakes.observe(at, self._judge)
        flow.kept_behind, flow.back.kept_behind = self._lanes["kept"][number].tolist()
        return flow, flow.back


def lanes_of(source: _Integers, destination: _Integers, ends: _Integers) -> _Integers:
    """Return the numbers of the lanes of frames, from the codes of their hosts and from their endpoints."""
    return (source << _HOST_BITS | destination) << _ENDS_BITS | ends


def hosts_of(lanes: _Integers) -> NDArray[np.intp]:
    """Return the codes of both hosts of lanes, shape (2, n)."""
    return np.stack([lanes >> _HOST_BITS + _ENDS_BITS, lanes >> _ENDS_BITS & (1 << _HOST_BITS) - 1])


def ends_of(lane: int) -> int:
    """Return the endpoints of a lane, as :attr:`PlainFrames.ends`."""
    return lane & (1 << _ENDS_BITS) - 1


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


def _read(both: tuple[ObservedFlow, ObservedFlow], vantage: Vantage) -> list[tuple[Any, ...]]:
    """Return the rows of ``_LANE`` of the flows of a conversation."""
    streams = [each.stream or _beginning(each, vantage) for each in both]
    return [
        _lane(flow, stream, other, vantage.from_start)
        for flow, stream, other in zip(both, streams, reversed(streams), strict=True)
    ]


def _lane(
    flow: ObservedFlow, stream: ObservedStream | None, other: ObservedStream | None, from_start: bool
) -> tuple[Any, ...]:
    """Return the row of a flow, from its stream and the ``other`` one, which may be yet to begin."""
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
        stream is not None and flow.stream is None,
        0 if stream is None else stream.floor,
        0 if stream is None else stream.next,
        0,
        0,
        False,
        False,
    )


def _write_lanes(both: tuple[ObservedFlow, ObservedFlow], lanes: NDArray[Any], vantage: Vantage) -> None:
    """Bring the flows and streams of a conversation up to date, but for messages."""
    rows = lanes[[*_WRITTEN]].tolist()
    for flow, (next_, read, acknowledged, floor, *_) in zip(both, rows, strict=True):
        stream = flow.stream
        if stream is None and next_ > read:
            stream = flow.stream = _beginning(flow, vantage)
            flow.restart = flow.forgot = False
        if stream is not None:
            if next_ > read:
                stream.next = stream.complete = next_
            stream.acknowledged, stream.floor = acknowledged, floor
            stream.discard()
    for flow, (*_, raised, numbered, highest, ack_ns, ack_number, acknum, acknum_ns, session) in zip(
        both, rows, strict=True
    ):
        if raised:
            flow.acknowledged_stream, flow.acknowledged = flow.back.stream, highest
            flow.acknowledged_ns, flow.acknowledged_number = ack_ns, ack_number
        if numbered:
            flow.acknum, flow.acknum_ns, flow.acknum_session, flow.acknum_restart = acknum, acknum_ns, session, False


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
        lanes: NDArray[np.void],
    ) -> None:
        self.frames = frames
        self.begins = begins
        """The first frame of each conversation."""
        self.which = which
        """The conversation of each frame."""
        self.side = side
        # The state before the run.
        lane = 2 * which + side
        mine, other = lanes.reshape(-1).take(lane), lanes.reshape(-1).take(lane ^ 1)
        self.mine = mine
        self._other = other
        self._order = LaneOrder(which, side)
        self.behind: _Integers = np.zeros(len(frames), np.int64)
        """Number of messages from each duplicate to the next message of its lane; 0 for other frames."""

    def plain(self, table: FlowTable, numbers: NDArray[np.intp], data: FrameData) -> NDArray[np.bool_]:
        """Return which frames are plain, as are all before them in their conversation; ``numbers`` are those of the
        conversations in the ``table``."""
        vantage = table.vantage
        plain = self._examine(vantage)
        if not plain.all():
            frames = self.frames
            repeats, behind = self._order.repeats(frames.sequence, self.mine["next"], frames.kind < LIBACK)
            if repeats.any():
                self.behind = np.where(repeats, behind, 0)
                plain = self._examine(vantage)
                at = np.flatnonzero(repeats & self._until_first(plain))
                plain[at] &= self._are_duplicates(at, table, numbers, data)
        return self._until_first(plain)

    def _until_first(self, plain: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which frames precede the first of their conversation that is not ``plain``."""
        broken = np.cumsum(~plain)
        found: NDArray[np.bool_] = broken - (broken - ~plain)[self.begins[self.which]] == 0
        return found

    def _examine(self, vantage: Vantage) -> NDArray[np.bool_]:
        """Find the positions of all frames; return which are plain, if those before are."""
        frames, mine, other = self.frames, self.mine, self._other
        self.sends = (frames.kind < LIBACK) & (self.behind == 0)
        self.sent, partners = self._order.before(self.sends)
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
        self.number: _Integers = mine["next"] + self.sent - self.behind
        """Position of the message in each frame."""
        acknowledged = self._order.last(position, mine["outgoing"], other=True)
        acknowledged = np.maximum(acknowledged, mine["outgoing"])
        sends = mine["sends"] & (frames.sequence == (self.number & NUMBER_MASK | mine["bits"]))
        sends &= self.number + 1 - acknowledged <= MOST_OUTSTANDING
        sends &= (self.behind == 0) | (self.number >= acknowledged - mine["kept"])
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
        self, at: NDArray[np.intp], table: FlowTable, numbers: NDArray[np.intp], data: FrameData
    ) -> NDArray[np.bool_]:
        """Return which of the frames ``at``, whose numbers were seen before, repeat the message at once, unchanged."""
        resend_delay = resend_delay_least(table.vantage)
        frames, lanes = self.frames, 2 * self.which + self.side
        sent = np.flatnonzero(self.sends)
        sent = sent[np.argsort(lanes[sent], kind="stable")]
        ahead = self.sent[at] - self.behind[at]
        of_run = ahead >= 0
        original = at.copy()
        original[of_run] = sent[np.searchsorted(lanes[sent], lanes[at[of_run]]) + ahead[of_run]]
        same: NDArray[np.bool_] = frames.time_ns[at] - frames.time_ns[original] < resend_delay
        for column in (frames.kind, frames.length, frames.match, frames.ack):
            same &= column[at] == column[original]
        places = (data.data(frames.place[each].tolist(), frames.length[each].tolist()) for each in (at, original))
        same &= np.array([one == other for one, other in zip(*places, strict=True)], np.bool_)
        for place in np.flatnonzero(~of_run).tolist():
            frame = int(at[place])
            number, side = int(numbers[self.which[frame]]), int(self.side[frame])
            message = table.message(number, side, int(self.number[frame]))
            same[place] = (
                message is not None
                and message.complete
                and message.session == int(frames.session[frame])
                and int(frames.time_ns[frame]) - message.last_ns < resend_delay
                and message.acknowledgement == int(frames.ack[frame])
                and message.content == _contents(frames, np.array([frame]), data)[0]
            )
        return same

    def keep(self, taken: NDArray[np.bool_]) -> None:
        """Discard the other frames; conversations keep their numbers."""
        self.frames, self.which, self.side = self.frames.part(taken), self.which[taken], self.side[taken]
        self.position = self.position[taken]
        self.sends, self.behind, self.number = self.sends[taken], self.behind[taken], self.number[taken]

    def advance(self, lanes: NDArray[Any]) -> None:
        """Advance the lanes of all conversations, shape (conversations, 2)."""
        frames, lane, rows = self.frames, 2 * self.which + self.side, lanes.reshape(-1)
        order = np.argsort(lane, kind="stable")
        if not len(order):
            return
        lane = lane[order]
        begins, ends = _edges(lane)
        at, position = lane[begins], self.position[order]
        mine, other = rows.take(at), rows.take(at ^ 1)
        sent = np.add.reduceat(self.sends[order], begins, dtype=np.int64)
        mine["begins"] &= sent == 0
        mine["next"] += sent
        last, latest = position[ends - 1], order[_latest(begins, ends, position)]
        raised = last > mine["acknowledged"]
        mine["raised"] |= raised
        changes = last, frames.time_ns[latest], frames.number[latest]
        for name, values in zip(("acknowledged", "ack_ns", "ack_number"), changes, strict=True):
            mine[name] = np.where(raised, values, mine[name])
        rows[at] = mine
        # Both lanes of a conversation may be among these: each changes what the other does not.
        raises = last > other["outgoing"]
        rows["outgoing"][at ^ 1] = np.where(raises, last, other["outgoing"])
        floor, kept, keys = other["floor"], other["kept"], (lane << _POSITION_BITS) + position
        while len(left := np.flatnonzero(raises & (last - floor > 2 * kept))):
            wanted = (at[left] << _POSITION_BITS) + floor[left] + 2 * kept[left]
            floor[left] = position[np.searchsorted(keys, wanted, side="right")] - kept[left]
        rows["floor"][at ^ 1] = floor
        self._number(rows, order[frames.kind[order] == LIBACK])

    def _number(self, rows: NDArray[Any], libacks: NDArray[np.intp]) -> None:
        """Record the numbers of the ``libacks``, which are sorted by lane."""
        frames, lane = self.frames, (2 * self.which + self.side)[libacks]
        begins, ends = _edges(lane)
        latest = libacks[_latest(begins, ends, frames.acknum[libacks])]
        mine = rows.take(lane[begins])
        new = (frames.acknum[latest] != mine["acknum"]) | (mine["acknum_ns"] == _LONG_AGO)
        mine["acknum_ns"] = np.where(new, frames.time_ns[latest], mine["acknum_ns"])
        mine["acknum"], mine["numbered"] = frames.acknum[latest], True
        rows[lane[begins]] = mine


def _contents(frames: PlainFrames, at: NDArray[np.intp], data: FrameData) -> list[Content]:
    """Return the contents of the messages in the frames ``at``."""
    match = frames.match[at]
    kinds, lengths = frames.kind[at].tolist(), frames.length[at].tolist()
    high, low = (match >> np.uint64(32)).tolist(), (match & np.uint64(0xFFFF_FFFF)).tolist()
    columns = kinds, lengths, high, low, data.data(frames.place[at].tolist(), lengths)
    return [
        (_TYPES[kind], length, (one, other), NO_REGION, held)
        for kind, length, one, other, held in zip(*columns, strict=True)
    ]


def _packed(frames: PlainFrames, at: NDArray[np.intp], tiny: NDArray[np.bool_], data: FrameData) -> NDArray[Any]:
    """Return the messages in the frames ``at``, packed if they are ``tiny``."""
    rows = np.zeros(len(at), _PACKED)
    values = frames.match[at], frames.time_ns[at], frames.number[at], frames.ack[at], frames.session[at]
    for name, column in zip(_PACKED.names or (), values, strict=False):
        rows[name] = column
    rows["length"] = np.where(tiny, frames.length[at], UNPACKED)
    octets, rows["held"] = data.columns(frames.place[at], np.where(tiny, frames.length[at], 0), TINY_MAXIMUM)
    rows["data"] = octets.view(rows["data"].dtype)[:, 0]
    return rows


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
