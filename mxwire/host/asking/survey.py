"""Survey: which hosts are out there, what they are called, and what else they tell without an application."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.host.asking.listening import Heard, Listener
from mxwire.host.asking.pause import pause
from mxwire.host.asking.questions import dialect_answer, dialect_question, host_query
from mxwire.host.core import Core
from mxwire.host.host import Host
from mxwire.host.watcher import Watcher
from mxwire.protocol import Peer
from mxwire.wire.detection import Detector
from mxwire.wire.dialect import Dialect
from mxwire.wire.encapsulation import locate
from mxwire.wire.numbers import NO_PEER_INDEX
from mxwire.wire.packets import Announcement, HostQuery, HostReply, NackMcp

ROUND: Final = 0.5
"""Seconds between two rounds of questions."""
_HEAD_START: Final = 0.2
_SURE: Final = 0.8
"""Confidence from which the dialect of a host's own frames is reported."""
_MAGICS: Final = 0x6D78_0000
"""Magics of our own questions begin here, among those of probes (``mxwire.wire.probes``)."""


@dataclass(slots=True)
class Sighting:
    """What was found out about a host."""

    address: str
    """Its Ethernet address."""
    name: str | None
    """Its host name, like ``alpha:0``; None while it has not told."""
    index: int | None
    """The index it gave us in its peer table; None while it has not told."""
    our_index: int
    """Its index in our table."""
    dialect: str | None
    """``mxoe`` or ``omx``, as it understands PULLs, with the frame limit (``omx:9000``) once frames that the host sent
    have shown it; None while not known. No answer to a question depends on the frame limit."""
    answer_ns: int | None
    """The shortest time in which it has answered a host query, in nanoseconds."""
    queries: int
    """Host queries that it was sent."""
    answers: int
    """How many of them it has answered."""
    announced: bool
    """Whether it announces itself."""
    heard: bool
    """Whether anything has come from it; if not, it is only known since a user or another process has named it."""
    long_frames: bool | None
    """Whether frames of the length that was tried reach it; None where none was tried."""

    @property
    def complete(self) -> bool:
        """Whether it has told and answered all that it was asked."""
        return None not in (self.name, self.answer_ns, self.dialect)


@dataclass(slots=True)
class _Notes:
    asked: dict[int, int] = field(default_factory=dict)
    """When a query left, in ns, by its magic."""
    queries: int = 0
    answers: int = 0
    best: int | None = None
    dialect: str | None = None
    announced: bool = False
    heard: bool = False
    long_asked: bool = False
    long_answered: bool = False


class Survey:
    """Asks all hosts that are heard of, round by round.

    Without ``ask_dialect`` nothing but host queries is sent. With ``length`` it is also tried whether frames of that
    many bytes reach the hosts.
    """

    def __init__(self, host: Host, *, ask_dialect: bool = True, length: int | None = None) -> None:
        self._host = host
        self._core = host.core
        self._ask_dialect = ask_dialect
        self._length = length
        self._notes: dict[bytes, _Notes] = {}
        self._magic = _MAGICS
        self.impostors = 0
        """Frames that came with our own address, and were not ours."""
        self.echoes = 0
        """Frames of our own that came back."""
        self._serials: set[int] = set()
        self._own = {each.address for each in self._core.links}
        self._detector = Detector(by_sender=True)
        self._traffic = _Traffic(self._core, self.observe)
        self._listener = Listener(self._core, self._hear, self._meet)

    def rounds(self, seconds: float, every: float = ROUND) -> Iterator[list[Sighting]]:
        """Ask for so many seconds, at least once; gives what is known after each round."""
        end = time.monotonic() + seconds
        # The first announcements need a moment to be heard.
        pause(self._host, min(_HEAD_START, seconds))
        left = seconds
        while left > 0:
            self._ask()
            pause(self._host, min(every, left))
            yield self.sightings()
            left = end - time.monotonic()

    def sightings(self) -> list[Sighting]:
        """All hosts that are known, ours excepted."""
        with self._core.section:
            heard = set(self._host.hosting.heard())
            spoken = self._spoken()
            return [self._sighting(each, heard, spoken) for each in self._core.node.peers if each.own is None]

    def observe(self, batch: FrameBatch) -> None:
        """Learn the dialects of the hosts that sent ``batch``, such as frames that a tap has seen between others."""
        with self._core.section:
            self._detector.observe(locate(batch))

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        self._traffic.close()

    # Asking.

    def _ask(self) -> None:
        own = self._core.links[0].address
        with self._core.section:
            self._core.must_be_open()
            # Other processes on our interfaces may know hosts that have said all they had to say.
            self._host.hosting.meet_others()
            self._core.node.ask_names()
            frames = [each for peer in self._core.node.peers if peer.own is None for each in self._questions(own, peer)]
            if frames:
                self._core.send(FrameBatch.from_frames(frames))

    def _questions(self, own: bytes, peer: Peer) -> Iterator[bytes]:
        notes = self._of(peer.address)
        self._magic += 1
        notes.queries += 1
        yield host_query(own, peer, self._magic)
        if peer.index_for(0) == NO_PEER_INDEX:
            return
        if notes.dialect is None and self._ask_dialect:
            yield dialect_question(own, peer)
        elif self._length is not None and not notes.long_answered:
            notes.long_asked = True
            yield dialect_question(own, peer, self._length)

    # Listening.

    def _of(self, address: bytes) -> _Notes:
        return self._notes.setdefault(address, _Notes())

    def _meet(self, address: bytes) -> None:
        """Somebody has spoken to us, so it knows us; or to all, and then it may get to know us."""
        if address in self._own:
            self.impostors += 1
        else:
            self._enter(address)
            self._of(address).heard = True

    def _enter(self, address: bytes) -> None:
        peers = self._core.node.peers
        if peers.by_address(address) is None and len(peers) < peers.maximum and not address[0] & 1:
            self._core.node.add_peer(address)

    def _hear(self, heard: Heard) -> None:
        frame = heard.frame
        if heard.sent:
            if isinstance(frame, Announcement):
                self._serials.add(frame.serial)
            elif isinstance(frame, HostQuery) and frame.magic >> 16 == _MAGICS >> 16:
                self._of(frame.dst_mac).asked[frame.magic] = heard.time_ns
        elif isinstance(frame, Announcement):
            self._announced(frame)
        elif isinstance(frame, HostReply):
            self._answered(frame, heard.time_ns)
        elif isinstance(frame, NackMcp):
            self._refused(frame)

    def _announced(self, frame: Announcement) -> None:
        address = ((frame.nic_id_hi & 0xFFFF) << 32 | frame.nic_id_lo).to_bytes(6, "big")
        if address not in self._own:
            self._enter(address)
            notes = self._of(address)
            notes.heard = notes.announced = True
        elif frame.serial in self._serials and frame.src_mac in self._own:
            self.echoes += 1
            self.impostors -= 1

    def _answered(self, frame: HostReply, now: int) -> None:
        notes = self._of(frame.src_mac)
        asked = notes.asked.pop(frame.magic, None)
        if asked is not None:
            notes.answers += 1
            took = max(0, now - asked)
            notes.best = took if notes.best is None else min(notes.best, took)

    def _refused(self, frame: NackMcp) -> None:
        answer = dialect_answer(frame)
        if answer is not None:
            notes = self._of(frame.src_mac)
            notes.dialect, padded = answer
            notes.long_answered |= padded

    def _spoken(self) -> dict[bytes, Dialect]:
        """The dialects that the frames of hosts have shown, by address."""
        return {
            each.hosts[0].to_bytes(6, "big"): each.dialect
            for each in self._detector.detections()
            if each.dialect is not None and each.confidence >= _SURE
        }

    def _sighting(self, peer: Peer, heard: set[Peer], spoken: dict[bytes, Dialect]) -> Sighting:
        notes = self._of(peer.address)
        index = peer.index_for(0)
        return Sighting(
            address=mac_text(peer.address),
            name=peer.name,
            index=None if index == NO_PEER_INDEX else index,
            our_index=peer.index,
            dialect=_dialect(notes.dialect, spoken.get(peer.address)),
            answer_ns=notes.best,
            queries=notes.queries,
            answers=notes.answers,
            announced=notes.announced,
            heard=notes.heard or peer in heard,
            long_frames=notes.long_answered if notes.long_asked else None,
        )


class _Traffic(Watcher):
    """Passes on all frames that arrive."""

    def __init__(self, core: Core, observe: Callable[[FrameBatch], None]) -> None:
        self._observe = observe
        super().__init__(core)

    def _watch(self, batch: FrameBatch, sent: bool) -> None:
        if not sent:
            self._observe(batch)


def _dialect(answered: str | None, spoken: Dialect | None) -> str | None:
    """The name of a host's dialect by its answer to a question; its frames add the rest where they agree with it."""
    if spoken is not None and answered in (None, spoken.family):
        return spoken.name
    return answered
