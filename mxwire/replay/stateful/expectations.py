"""Expectations: the recorded frames that the live host still has to send, found by their meaning."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from mxwire.replay.stateful.records import Record, own_session
from mxwire.wire import packets

MESSAGES: Final = (packets.Tiny, packets.Small, packets.Medium, packets.Rndv)
_AHEAD: Final = 16
"""Maximum number of messages that may be missing before one that matches the recording."""
Key = tuple[Any, ...]


@dataclass
class Expectation:
    """One recorded frame that the live host has to send."""

    record: Record
    met: bool = False
    missed: bool = False
    """True if the script no longer waits for it."""
    again: bool = False
    """True if it is a recorded repetition, which is sent only if the first one was not accepted."""

    @property
    def open(self) -> bool:
        """True if it may still come."""
        return not self.met and not self.missed


@dataclass
class RecordedMessage:
    """One recorded message to the played host, with its frames."""

    pair: tuple[int, int]
    """Endpoints of the played and the live host."""
    number: int
    """Its recorded sequence number."""
    kind: type
    length: int
    match: int
    frames: dict[int, Expectation] = field(default_factory=dict)
    """By fragment number; 0 if there is only one frame."""
    taken: bool = False
    """True if a live message has been matched to it."""

    @property
    def first(self) -> Expectation:
        """Its first frame."""
        return next(iter(self.frames.values()))


def length_of(frame: Any) -> int:
    """Return the length of the message that a frame belongs to."""
    return int(frame.msg_length if isinstance(frame, packets.Rndv) else frame.length)


def match_of(frame: Any) -> int:
    """Return the match information of the message that a frame belongs to."""
    return int(frame.match_a) << 32 | int(frame.match_b)


class Expectations:
    """All frames that the recorded host sent because of received frames or its application."""

    def __init__(self, records: list[Record]) -> None:
        self.all: dict[int, Expectation] = {}
        """By the number of the record."""
        self.messages: dict[tuple[int, int], list[RecordedMessage]] = defaultdict(list)
        self._keyed: dict[Key, deque[Expectation]] = defaultdict(deque)
        self._transfers: dict[Key, list[Key]] = defaultdict(list)
        """Keys of all frames of a transfer of a large message, by the key of the transfer."""
        self._passed: dict[tuple[int, int], int] = defaultdict(int)
        """Number of messages of each pair at the beginning that have been matched."""
        self._pulls: dict[tuple[int, int], list[Expectation]] = defaultdict(list)
        """PULLs by handle and magic."""
        self._openings: dict[int, int] = {}
        """The last recorded session of the played endpoint sent before each connect of the live host, by record."""
        sessions: dict[int, int] = {}
        current: dict[tuple[int, int, int], RecordedMessage] = {}
        drawn: Counter[Key] = Counter()
        for record in records:
            if record.is_played:
                drawn.update(_draws(record.frame))
                if isinstance(record.frame, (packets.ConnectRequest, packets.ConnectReply)):
                    sessions[record.frame.src_endpoint] = own_session(record.frame)
            elif isinstance(record.frame, packets.ConnectRequest) and record.frame.dst_endpoint in sessions:
                self._openings[record.number] = sessions[record.frame.dst_endpoint]
            if record.is_played or not self._is_expected(record, drawn):
                continue
            expectation = self.all[record.number] = Expectation(record)
            frame = record.frame
            if isinstance(frame, MESSAGES):
                self._add_message(expectation, current)
            else:
                key = key_of(frame)
                if key not in self._keyed and isinstance(frame, (packets.Pull, packets.PullReply, packets.Notify)):
                    self._transfers[_transfer(key)].append(key)
                before = self._keyed[key]
                expectation.again = isinstance(frame, packets.Notify) and any(_is_same(each, frame) for each in before)
                before.append(expectation)
                if isinstance(frame, packets.Pull):
                    self._pulls[frame.src_pull_handle, frame.src_magic].append(expectation)

    def _is_expected(self, record: Record, drawn: Counter[Key]) -> bool:
        """Return whether the live host must send a frame: it is new, or answers a repeated frame."""
        frame = record.frame
        if isinstance(frame, (*MESSAGES, packets.Notify, packets.ConnectRequest, packets.Pull)):
            return record.news
        key = key_of(frame)
        if isinstance(frame, packets.PullReply):
            return key not in self._keyed
        if not drawn[key]:
            return False
        drawn[key] -= 1
        return True

    def _add_message(self, made: Expectation, current: dict[tuple[int, int, int], RecordedMessage]) -> None:
        frame: Any = made.record.frame
        pair = frame.dst_endpoint, frame.src_endpoint
        place = (*pair, frame.lib_seqnum)
        fragment = frame.frag_seqnum if isinstance(frame, packets.Medium) else 0
        message = current.get(place)
        if message is None or fragment in message.frames:
            message = RecordedMessage(pair, frame.lib_seqnum, type(frame), length_of(frame), match_of(frame))
            self.messages[pair].append(message)
            current[place] = message
        message.frames[fragment] = made

    def take(self, key: Key) -> Expectation | None:
        """Return the recorded frame for a live frame with this key; None if there is none left."""
        waiting = self._keyed.get(key)
        while waiting and len(waiting) > 1 and waiting[0].missed:
            # An abandoned frame is skipped if the same frame is expected again later.
            waiting.popleft()
        return waiting.popleft() if waiting else None

    def take_connect(self, key: Key, sessions: Mapping[int, int], present: int | None) -> Expectation | None:
        """Return the recorded connect for a live one, if the played endpoint has had the same number of openings.

        ``sessions`` maps recorded sessions of the played host to present ones; ``present`` is that of the
        endpoint, None before it has been sent.
        """
        waiting = self._keyed.get(key)
        if not waiting:
            return None
        then = self._openings.get(waiting[0].record.number)
        if then is not None and sessions.get(then) != present:
            return None
        return self.take(key)

    def last_known(self, key: Key) -> bool:
        """Return whether a frame with this key was ever recorded."""
        return key in self._keyed

    def is_played_pull(self, reply: packets.PullReply) -> bool:
        """Return whether the played host pulled with the handle of a reply."""
        return (packets.PullReply, reply.dst_pull_handle, reply.dst_magic) in self._transfers

    def message_for(self, pair: tuple[int, int], frame: Any) -> RecordedMessage | None:
        """Return the recorded message for a new live one: the next unmatched one, if it is similar."""
        messages, place = self.messages.get(pair, []), self._passed[pair]
        while place < len(messages) and messages[place].taken:
            place += 1
        self._passed[pair] = place
        envelope = length_of(frame), match_of(frame)
        left = (each for each in islice(messages, place, None) if not each.taken)
        return next((each for each in islice(left, _AHEAD) if (each.length, each.match) == envelope), None)

    def replies_to(self, pull: Any, start: int) -> set[int]:
        """Return the offsets of the outstanding replies to a PULL of the played host that begins at ``start``."""
        transfer = packets.PullReply, pull.src_pull_handle, pull.src_magic
        inside = range(start, start + pull.block_length)
        return {key[3] for key in self._transfers.get(transfer, ()) if key[3] in inside and self._keyed[key]}

    def pulls_before(self, reply: Record) -> list[Expectation]:
        """Return the outstanding PULLs of the same transfer recorded before a reply."""
        frame: Any = reply.frame
        requested = self._pulls.get((frame.dst_pull_handle, frame.dst_magic), ())
        return [each for each in requested if each.open and each.record.number < reply.number]

    def pulls_of(self, pull: Expectation) -> list[Expectation]:
        """Return the outstanding PULLs of a transfer."""
        frame: Any = pull.record.frame
        return [each for each in self._pulls[frame.src_pull_handle, frame.src_magic] if each.open]

    def is_pulled(self, notify: packets.Notify) -> bool:
        """Return whether the live host has begun to pull the message of a recorded NOTIFY."""
        region = notify.dst_endpoint, notify.src_endpoint, notify.pulled_rdma_id, notify.pulled_rdma_seqnum
        requested = self._transfers.get((packets.Pull, *region), ())
        return not requested or any(not self._keyed[key] for key in requested)

    def give_up(self, recorded: Any) -> Iterator[Expectation]:
        """Yield the frames that will not be received because a frame of the played host is not sent."""
        keys = _draws(recorded)
        if isinstance(recorded, packets.Pull):
            handle = recorded.src_pull_handle, recorded.src_magic
            keys += self._transfers.get((packets.PullReply, *handle), ())
        elif isinstance(recorded, packets.Rndv):
            region = recorded.src_endpoint, recorded.dst_endpoint, recorded.pulled_rdma_id, recorded.pulled_rdma_seqnum
            for kind in (packets.Pull, packets.Notify):
                keys += self._transfers.get((kind, *region), ())
        for key in keys:
            expectation = self.take(key)
            if expectation is not None:
                expectation.missed = True
                yield expectation


def _transfer(key: Key) -> Key:
    """Return the part shared by the keys of a transfer: the pull's handle, or endpoints and region."""
    return key[:3] if key[0] is packets.PullReply else key[:5]


def _is_same(expectation: Expectation, notify: packets.Notify) -> bool:
    was: Any = expectation.record.frame
    return bool((was.session, was.lib_seqnum) == (notify.session, notify.lib_seqnum))


def _draws(frame: Any) -> list[Key]:
    """Return the keys of possible answers to a frame of the played host; each transmission may yield one."""
    if isinstance(frame, packets.ConnectRequest):
        pair = frame.src_endpoint, frame.dst_endpoint
        return [(packets.ConnectReply, *pair, frame.src_session_id, frame.connect_seqnum), (packets.NackLib, *pair, 0)]
    if isinstance(frame, (*MESSAGES, packets.Notify)):
        return [(packets.NackLib, frame.src_endpoint, frame.dst_endpoint, frame.lib_seqnum)]
    return [(packets.NackMcp, frame.src_pull_handle, frame.src_magic)] if isinstance(frame, packets.Pull) else []


def key_of(frame: Any) -> Key:
    """Return the identity of a frame other than a message, in recorded terms; equal keys mean the same frame."""
    match frame:
        case packets.ConnectReply():
            about = frame.src_session_id, frame.connect_seqnum
            return packets.ConnectReply, frame.dst_endpoint, frame.src_endpoint, *about
        case packets.ConnectRequest():
            return packets.ConnectRequest, frame.dst_endpoint, frame.src_endpoint
        case packets.NackLib():
            return packets.NackLib, frame.dst_endpoint, frame.src_endpoint, frame.lib_seqnum
        case packets.NackMcp():
            return packets.NackMcp, frame.src_pull_handle, frame.src_magic
        case packets.Pull():
            region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
            return packets.Pull, frame.dst_endpoint, frame.src_endpoint, *region, frame.frame_index
        case packets.PullReply():
            return packets.PullReply, frame.dst_pull_handle, frame.dst_magic, frame.msg_offset
        case packets.Notify():
            region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
            return packets.Notify, frame.dst_endpoint, frame.src_endpoint, *region
    return (type(frame),)
