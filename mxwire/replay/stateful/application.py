"""An application that repeats the calls of the recorded one, deduced from frames, on a host in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mxwire.protocol import ALL_BITS, EngineEndpoint, Node
from mxwire.replay.stateful.conversation import Region, region_of
from mxwire.replay.stateful.expectations import MESSAGES, length_of, match_of
from mxwire.replay.stateful.records import FOR_LIBRARY, Hindsight, Record, messages
from mxwire.replay.stateful.script import ReplayScript
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.wire.packets import ConnectReply, ConnectRequest, Medium, Notify, Pull, PullReply, Rndv

_GONE: Final = (NackType.ENDPT_CLOSED, NackType.BAD_ENDPT)


@dataclass
class ApplicationStep:
    """A call of the application just before a recorded frame."""

    number: int
    """Number of the frame."""
    do: Callable[[], object]


class RecordedApplication:
    """Opens, connects, sends, receives and closes on a node like the recorded host at the other end of a script.

    ``script`` is the script of the played host, ``other`` that host's present Ethernet address.
    """

    def __init__(self, node: Node, script: ReplayScript, other: bytes) -> None:
        self.node = node
        self._other = other
        self._script = script.mirrored()
        self._hindsight = Hindsight(self._script.records, script.dialect)
        self._keys = _keys(self._script.records)
        self._lengths = _ReceiveLengths(self._script.records)
        self._payload = messages(self._script.records)
        self._endpoints: dict[int, EngineEndpoint] = {}
        self._steps: list[ApplicationStep] = []
        self._openings: dict[int, int | None] = {}
        """Endpoints open at the record under examination, with their sessions where known."""
        self._last_sent: dict[int, int] = {}
        """Number of the last frame sent by each endpoint so far."""
        for record in self._script.records:
            self._read(record)
        self._steps.sort(key=lambda each: each.number)
        self._place = 0

    def run(self, number: int) -> bool:
        """Make all calls up to a recorded frame; return whether there were any."""
        begun = self._place
        while self._place < len(self._steps) and self._steps[self._place].number <= number:
            self._steps[self._place].do()
            self._place += 1
        return self._place > begun

    # Calls deduced from frames.

    def _step(self, record: Record, do: Callable[..., object], *arguments: Any) -> None:
        self._steps.append(ApplicationStep(record.number, partial(do, *arguments)))

    def _read(self, record: Record) -> None:
        frame = record.frame
        if record.is_played:
            self._read_ours(record)
        elif isinstance(frame, (*FOR_LIBRARY, Pull)):
            refused = self._open_or_close(record)
            if isinstance(frame, MESSAGES) and record.news and not refused:
                self._read_arrival(record)

    def _read_ours(self, record: Record) -> None:
        frame = record.frame
        if isinstance(frame, PullReply):
            # Its endpoint is not in the frame.
            self._last_sent.update(dict.fromkeys(self._openings, record.number))
        elif hasattr(frame, "src_endpoint"):
            self._last_sent[frame.src_endpoint] = record.number
        if isinstance(frame, ConnectRequest) and record.news:
            self._ensure(record, frame.src_endpoint, frame.src_session_id)
            self._step(record, self._connect, frame.src_endpoint, frame.dst_endpoint, frame.app_key)
        elif isinstance(frame, MESSAGES) and record.news and not (isinstance(frame, Medium) and frame.frag_seqnum):
            data = self._payload(match_of(frame), length_of(frame))
            self._step(record, self._send, frame, data)

    def _open_or_close(self, record: Record) -> bool:
        """Deduce from the answer to a frame whether its endpoint was open; return whether the answer was a refusal."""
        frame: Any = record.frame
        number = frame.dst_endpoint
        refused = self._hindsight.refusal(record)
        if refused in _GONE:
            self._shut(record, number)
        elif refused == NackType.BAD_SESSION:
            if self._openings.get(number) == getattr(frame, "session", None) is not None:
                self._shut(record, number)
                self._ensure(record, number, None)
        elif isinstance(frame, ConnectRequest):
            session = self._hindsight.answering_session(record)
            if session is not None:
                self._ensure(record, number, session)
            elif refused is None and number not in self._openings:
                # The endpoint is open, but its application does not call the library.
                self._openings[number] = None
                self._step(record, self._open, number, False)
        return refused is not None

    def _ensure(self, record: Record, number: int, session: int | None) -> None:
        """Have an endpoint open with a session."""
        if number in self._openings:
            known = self._openings[number]
            if session is None or known in (None, session):
                self._openings[number] = session if known is None else known
                if known is None:
                    self._step(record, self._work, number)
                return
            self._shut(record, number)
        self._openings[number] = session
        self._step(record, self._open, number)

    def _shut(self, record: Record, number: int) -> None:
        if self._openings.pop(number, self) is not self:
            # It was closed before the refusal: directly after the last frame that it sent.
            self._steps.append(
                ApplicationStep(min(record.number, self._last_sent.get(number, 0) + 1), partial(self._close, number))
            )

    def _read_arrival(self, record: Record) -> None:
        frame: Any = record.frame
        if isinstance(frame, Medium) and frame.frag_seqnum and not self._lengths.is_first(record):
            return
        room = self._lengths.room(record)
        if room is not None:
            self._step(record, self._receive, frame.dst_endpoint, room, match_of(frame))

    # Calls.

    def _open(self, number: int, working: bool = True) -> None:
        self._endpoints[number] = self.node.open_endpoint(number, self._keys.get(number, DEFAULT_KEY))
        self._endpoints[number].progressing = working

    def _work(self, number: int) -> None:
        self._endpoints[number].progressing = True

    def _close(self, number: int) -> None:
        self._endpoints.pop(number).close()

    def _connect(self, number: int, remote: int, key: int) -> None:
        self._endpoints[number].connect(self._other, remote, key)

    def _send(self, frame: Any, data: bytes) -> None:
        endpoint = self._endpoints.get(frame.src_endpoint)
        if endpoint is None:
            return
        partner = endpoint.partner(self.node.peer(self._other), frame.dst_endpoint)
        if partner is None:
            return
        synchronous = isinstance(frame, Rndv) and len(data) <= endpoint.medium_threshold
        endpoint.send(partner, data, match_of(frame), synchronous=synchronous)

    def _receive(self, number: int, room: int, match: int) -> None:
        if number in self._endpoints:
            self._endpoints[number].receive(bytearray(room), match, ALL_BITS)


class _ReceiveLengths:
    """Lengths of the receives of the recorded application."""

    def __init__(self, records: list[Record]) -> None:
        self._pulled: dict[int, int] = {}
        """Lengths by the number of the record that announced the message."""
        self._first: set[int] = set()
        seen: set[tuple[int, int, int]] = set()
        announced: dict[Region, int] = {}
        for record in records:
            frame = record.frame
            if not record.news:
                continue
            if record.is_played and isinstance(frame, (Pull, Notify)):
                number = announced.get(region_of(frame, frame.src_endpoint, frame.dst_endpoint))
                if number is not None:
                    self._pulled.setdefault(number, frame.total_length)
            elif not record.is_played and isinstance(frame, Rndv):
                announced[region_of(frame, frame.dst_endpoint, frame.src_endpoint)] = record.number
            elif not record.is_played and isinstance(frame, Medium):
                place = frame.src_endpoint, frame.dst_endpoint, frame.lib_seqnum
                if place not in seen:
                    self._first.add(record.number)
                seen.add(place)

    def is_first(self, record: Record) -> bool:
        """Return whether a fragment is the first of its message to arrive."""
        return record.number in self._first

    def room(self, record: Record) -> int | None:
        """Return the length of the receive in bytes; None if there was none."""
        frame: Any = record.frame
        if not isinstance(frame, Rndv):
            return None if isinstance(frame, Medium) and not self.is_first(record) else length_of(frame)
        return self._pulled.get(record.number)


def _keys(records: list[Record]) -> dict[int, int]:
    """Return the key of each endpoint: that of its first successful connect, or its own."""
    keys: dict[int, int] = {}
    requested: dict[tuple[int, int, int], int] = {}
    for record in records:
        frame = record.frame
        if isinstance(frame, ConnectRequest):
            if record.is_played:
                keys.setdefault(frame.src_endpoint, frame.app_key)
            else:
                requested[frame.dst_endpoint, frame.src_session_id, frame.connect_seqnum] = frame.app_key
        elif isinstance(frame, ConnectReply) and record.is_played and not frame.connect_status_code:
            key = requested.get((frame.src_endpoint, frame.src_session_id, frame.connect_seqnum))
            if key is not None:
                keys[frame.src_endpoint] = key
    return keys
