"""What the live host has still to send: the recorded frames of its forerunner, found again by what they are about."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from mxwire.replay.stateful.records import Record
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
)

MESSAGES: Final = (Tiny, Small, Medium, Rndv)
_AHEAD: Final = 16
"""How many messages may be missing before one that is as recorded."""
Key = tuple[Any, ...]


@dataclass
class Expectation:
    """One recorded frame of theirs that has to come."""

    record: Record
    met: bool = False
    missed: bool = False
    """Nobody waits for it any more."""
    again: bool = False
    """Whether it was recorded before: it comes only where the first one was not taken."""

    @property
    def open(self) -> bool:
        """Whether it may still come."""
        return not self.met and not self.missed


@dataclass
class Message:
    """One recorded message of theirs: its frames."""

    pair: tuple[int, int]
    """Our endpoint and theirs."""
    number: int
    """Its recorded sequence number."""
    kind: type
    length: int
    match: int
    frames: dict[int, Expectation] = field(default_factory=dict)
    """By the number of the fragment; 0 where there is but one."""
    taken: bool = False
    """Whether a live message has been found to be it."""

    @property
    def first(self) -> Expectation:
        """Its first frame."""
        return next(iter(self.frames.values()))


def length_of(frame: Any) -> int:
    """How long the message is that a frame belongs to."""
    return int(frame.msg_length if isinstance(frame, Rndv) else frame.length)


def match_of(frame: Any) -> int:
    """Its match information."""
    return int(frame.match_a) << 32 | int(frame.match_b)


class Expectations:
    """All that the recorded host sent and that follows from what it was sent, or from its application."""

    def __init__(self, records: list[Record]) -> None:
        self.all: dict[int, Expectation] = {}
        """By the record's number."""
        self.messages: dict[tuple[int, int], list[Message]] = defaultdict(list)
        self._keyed: dict[Key, deque[Expectation]] = defaultdict(deque)
        self._transfers: dict[Key, list[Key]] = defaultdict(list)
        """The keys of all that belongs to a transfer of a large message."""
        self._passed: dict[tuple[int, int], int] = defaultdict(int)
        """How many messages of each pair are found at the beginning."""
        self._pulls: dict[tuple[int, int], list[Expectation]] = defaultdict(list)
        """PULLs by handle and magic."""
        self._openings: dict[int, int] = {}
        """The last recorded session of ours that we had told before each connect of theirs, by its record."""
        told: dict[int, int] = {}
        current: dict[tuple[int, int, int], Message] = {}
        drawn: Counter[Key] = Counter()
        for record in records:
            if record.ours:
                drawn.update(_draws(record.frame))
                if isinstance(record.frame, (ConnectRequest, ConnectReply)):
                    told[record.frame.src_endpoint] = own_session(record.frame)
            elif isinstance(record.frame, ConnectRequest) and record.frame.dst_endpoint in told:
                self._openings[record.number] = told[record.frame.dst_endpoint]
            if record.ours or not self._is_expected(record, drawn):
                continue
            made = self.all[record.number] = Expectation(record)
            frame = record.frame
            if isinstance(frame, MESSAGES):
                self._add_message(made, current)
            else:
                key = key_of(frame)
                if key not in self._keyed and isinstance(frame, (Pull, PullReply, Notify)):
                    self._transfers[_transfer(key)].append(key)
                before = self._keyed[key]
                made.again = isinstance(frame, Notify) and any(_is_same(each, frame) for each in before)
                before.append(made)
                if isinstance(frame, Pull):
                    self._pulls[frame.src_pull_handle, frame.src_magic].append(made)

    def _is_expected(self, record: Record, drawn: Counter[Key]) -> bool:
        """Whether it comes once more: it is new, or an answer to something that was sent once more."""
        frame = record.frame
        if isinstance(frame, (*MESSAGES, Notify, ConnectRequest, Pull)):
            return record.news
        key = key_of(frame)
        if isinstance(frame, PullReply):
            return key not in self._keyed
        if not drawn[key]:
            return False
        drawn[key] -= 1
        return True

    def _add_message(self, made: Expectation, current: dict[tuple[int, int, int], Message]) -> None:
        frame: Any = made.record.frame
        pair = frame.dst_endpoint, frame.src_endpoint
        place = (*pair, frame.lib_seqnum)
        fragment = frame.frag_seqnum if isinstance(frame, Medium) else 0
        message = current.get(place)
        if message is None or fragment in message.frames:
            message = Message(pair, frame.lib_seqnum, type(frame), length_of(frame), match_of(frame))
            self.messages[pair].append(message)
            current[place] = message
        message.frames[fragment] = made

    def take(self, key: Key) -> Expectation | None:
        """The recorded frame that a live one with this key is; None where there is none, or no more."""
        waiting = self._keyed.get(key)
        while waiting and len(waiting) > 1 and waiting[0].missed:
            # What was given up is not looked for where the same is expected once more.
            waiting.popleft()
        return waiting.popleft() if waiting else None

    def take_connect(self, key: Key, sessions: Mapping[int, int], present: int | None) -> Expectation | None:
        """The recorded connect of theirs that a live one is, if our endpoint has the opening now that it had then.

        ``sessions`` gives our sessions by the recorded ones, ``present`` is that of the endpoint; None: not told yet.
        """
        waiting = self._keyed.get(key)
        if not waiting:
            return None
        then = self._openings.get(waiting[0].record.number)
        if then is not None and sessions.get(then) != present:
            return None
        return self.take(key)

    def last_known(self, key: Key) -> bool:
        """Whether a frame with this key was ever recorded."""
        return key in self._keyed

    def is_pull_of_ours(self, reply: PullReply) -> bool:
        """Whether a handle is one of those that the played host pulled with."""
        return (PullReply, reply.dst_pull_handle, reply.dst_magic) in self._transfers

    def message_for(self, pair: tuple[int, int], frame: Any) -> Message | None:
        """The recorded message that a new live one is: the next that is not found yet, if it is alike."""
        messages, place = self.messages.get(pair, []), self._passed[pair]
        while place < len(messages) and messages[place].taken:
            place += 1
        self._passed[pair] = place
        wanted = length_of(frame), match_of(frame)
        left = (each for each in islice(messages, place, None) if not each.taken)
        return next((each for each in islice(left, _AHEAD) if (each.length, each.match) == wanted), None)

    def replies_to(self, pull: Any, start: int) -> set[int]:
        """Where in the message the replies lie that a PULL of ours still has to bring; ``start`` is where it begins."""
        about = PullReply, pull.src_pull_handle, pull.src_magic
        inside = range(start, start + pull.block_length)
        return {key[3] for key in self._transfers.get(about, ()) if key[3] in inside and self._keyed[key]}

    def pulls_before(self, reply: Record) -> list[Expectation]:
        """The PULLs of its transfer that were recorded before a reply and have not come."""
        frame: Any = reply.frame
        asked = self._pulls.get((frame.dst_pull_handle, frame.dst_magic), ())
        return [each for each in asked if each.open and each.record.number < reply.number]

    def pulls_of(self, pull: Expectation) -> list[Expectation]:
        """All PULLs of a transfer that have not come."""
        frame: Any = pull.record.frame
        return [each for each in self._pulls[frame.src_pull_handle, frame.src_magic] if each.open]

    def is_pulled(self, notify: Notify) -> bool:
        """Whether they have begun to pull the message that a recorded NOTIFY of theirs is about."""
        about = notify.dst_endpoint, notify.src_endpoint, notify.pulled_rdma_id, notify.pulled_rdma_seqnum
        asked = self._transfers.get((Pull, *about), ())
        return not asked or any(not self._keyed[key] for key in asked)

    def give_up(self, recorded: Any) -> Iterator[Expectation]:
        """What will not come because a frame of ours is not sent."""
        keys = _draws(recorded)
        if isinstance(recorded, Pull):
            handle = recorded.src_pull_handle, recorded.src_magic
            keys += self._transfers.get((PullReply, *handle), ())
        elif isinstance(recorded, Rndv):
            about = recorded.src_endpoint, recorded.dst_endpoint, recorded.pulled_rdma_id, recorded.pulled_rdma_seqnum
            keys += [*self._transfers.get((Pull, *about), ()), *self._transfers.get((Notify, *about), ())]
        for key in keys:
            expectation = self.take(key)
            if expectation is not None:
                expectation.missed = True
                yield expectation


def own_session(frame: ConnectRequest | ConnectReply) -> int:
    """The session that a connect, or the answer to one, tells of its sender."""
    return int(frame.src_session_id if isinstance(frame, ConnectRequest) else frame.target_session_id)


def _transfer(key: Key) -> Key:
    """What the keys of a transfer have in common: the handle of the pull, or endpoints and region."""
    return key[:3] if key[0] is PullReply else key[:5]


def _is_same(expectation: Expectation, notify: Notify) -> bool:
    was: Any = expectation.record.frame
    return bool((was.session, was.lib_seqnum) == (notify.session, notify.lib_seqnum))


def _draws(frame: Any) -> list[Key]:
    """The keys of what may answer a frame of ours, once each time that it is sent."""
    if isinstance(frame, ConnectRequest):
        pair = frame.src_endpoint, frame.dst_endpoint
        return [(ConnectReply, *pair, frame.src_session_id, frame.connect_seqnum), (NackLib, *pair, 0)]
    if isinstance(frame, (*MESSAGES, Notify)):
        return [(NackLib, frame.src_endpoint, frame.dst_endpoint, frame.lib_seqnum)]
    return [(NackMcp, frame.src_pull_handle, frame.src_magic)] if isinstance(frame, Pull) else []


def key_of(frame: Any) -> Key:
    """What a frame that is no message is about, in recorded terms: two frames with the same are the same."""
    match frame:
        case ConnectReply():
            return ConnectReply, frame.dst_endpoint, frame.src_endpoint, frame.src_session_id, frame.connect_seqnum
        case ConnectRequest():
            return ConnectRequest, frame.dst_endpoint, frame.src_endpoint
        case NackLib():
            return NackLib, frame.dst_endpoint, frame.src_endpoint, frame.lib_seqnum
        case NackMcp():
            return NackMcp, frame.src_pull_handle, frame.src_magic
        case Pull():
            region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
            return Pull, frame.dst_endpoint, frame.src_endpoint, *region, frame.frame_index
        case PullReply():
            return PullReply, frame.dst_pull_handle, frame.dst_magic, frame.msg_offset
        case Notify():
            region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
            return Notify, frame.dst_endpoint, frame.src_endpoint, *region
    return (type(frame),)
