"""Survey: discovery of the hosts on the network, and of the properties that their protocol stacks reveal without an
application."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.host.control_frames import ControlFrameObserver, ObservedFrame, dialect_answer, dialect_query, host_query
from mxwire.host.core import FrameObserver
from mxwire.host.host import Host
from mxwire.protocol import Peer
from mxwire.wire.detection import Detector
from mxwire.wire.dialect import Dialect
from mxwire.wire.encapsulation import locate
from mxwire.wire.enums import hostname_text
from mxwire.wire.numbers import NO_PEER_INDEX
from mxwire.wire.packets import Announcement, HostQuery, HostReply, NackMcp

ROUND: Final = 0.5
"""Seconds between two rounds of queries."""
_HEAD_START: Final = 0.2
"""Seconds for announcements to arrive before the first round."""
_CONFIDENT: Final = 0.8
"""Confidence from which the dialect of a host's own frames is reported."""
_MAGICS: Final = 0x6D78_0000
"""First magic of the host queries, among those reserved for probes (``mxwire.wire.probes``)."""


@dataclass(slots=True)
class SurveyedHost:
    """Findings about a host."""

    address: str
    """Ethernet address."""
    name: str | None
    """Host name, like ``alpha:0``; None while unknown."""
    index: int | None
    """Index of this host in its peer table; None while unknown."""
    our_index: int
    """Its index in the peer table of this host."""
    dialect: str | None
    """``mxoe`` or ``omx``, by its answer to a PULL, with the frame limit (``omx:9000``) once frames of the host have
    shown it; None while unknown. No answer to a query depends on the frame limit."""
    answer_ns: int | None
    """Shortest round trip time of a host query in nanoseconds; None without an answer."""
    queries: int
    """Number of host queries sent to it."""
    answers: int
    """Number of host queries answered."""
    announced: bool
    """True if it announces itself."""
    heard: bool
    """True if any frame was received from it; otherwise it is known only from a user or another process."""
    long_frames: bool | None
    """True if frames of the tested length reach it; None if not tested."""

    @property
    def complete(self) -> bool:
        """True if it has answered all queries."""
        return None not in (self.name, self.answer_ns, self.dialect)


@dataclass(slots=True)
class _HostNotes:
    sent: dict[int, int] = field(default_factory=dict)
    """Transmission time of each query in ns, by magic."""
    queries: int = 0
    answers: int = 0
    best: int | None = None
    name: str | None = None
    """Its name in an answer. The engine queries for it, too, but with other processes, and therefore rarely."""
    dialect: str | None = None
    announced: bool = False
    heard: bool = False
    long_queried: bool = False
    long_answered: bool = False


class Survey:
    """Queries all known hosts, round by round.

    Without ``ask_dialect`` only host queries are sent. ``length`` tests whether frames of that many bytes reach the
    hosts.
    """

    def __init__(self, host: Host, *, ask_dialect: bool = True, length: int | None = None) -> None:
        self._host = host
        self._core = host.core
        self._ask_dialect = ask_dialect
        self._length = length
        self._notes: dict[bytes, _HostNotes] = {}
        self._magic = _MAGICS
        self.impostors = 0
        """Frames with this host's address that it has not sent."""
        self.echoes = 0
        """Frames of this host that were received back."""
        self._serials: set[int] = set()
        self._own = {each.address for each in self._core.links}
        self._detector = Detector(by_sender=True)
        self._traffic = FrameObserver(self._core, lambda batch, sent: None if sent else self.observe(batch))
        self._observer = ControlFrameObserver(self._core, self._observe, self._meet)

    def rounds(self, seconds: float, every: float = ROUND) -> Iterator[list[SurveyedHost]]:
        """Query for ``seconds``, at least once; yield the known hosts after each round."""
        end = time.monotonic() + seconds
        self._host.driver.pause(min(_HEAD_START, seconds))
        left = seconds
        while left > 0:
            self._query()
            self._host.driver.pause(min(every, left))
            yield self.hosts()
            left = end - time.monotonic()

    def hosts(self) -> list[SurveyedHost]:
        """All known hosts except this one."""
        with self._core.section:
            heard = set(self._host.heard_peers())
            dialects = self._dialects()
            return [self._surveyed(each, heard, dialects) for each in self._core.node.peers if each.own is None]

    def observe(self, batch: FrameBatch) -> None:
        """Learn the dialects of the hosts that sent ``batch``, such as frames that a tap has seen between others."""
        with self._core.section:
            self._detector.observe(locate(batch))

    def close(self) -> None:
        """Stop observing."""
        self._observer.close()
        self._traffic.close()

    def _query(self) -> None:
        own = self._core.links[0].address
        with self._core.section:
            self._core.must_be_open()
            # Other processes on these interfaces may know hosts that do not announce themselves any more.
            self._host.query_shared_peers()
            self._core.node.ask_names()
            frames = [each for peer in self._core.node.peers if peer.own is None for each in self._queries(own, peer)]
            if frames:
                self._core.inject(FrameBatch.from_frames(frames))

    def _queries(self, own: bytes, peer: Peer) -> Iterator[bytes]:
        notes = self._of(peer.address)
        self._magic += 1
        notes.queries += 1
        yield host_query(own, peer, self._magic)
        if peer.index_for(0) == NO_PEER_INDEX:
            return
        if notes.dialect is None and self._ask_dialect:
            yield dialect_query(own, peer)
        elif self._length is not None and not notes.long_answered:
            notes.long_queried = True
            yield dialect_query(own, peer, self._length)

    def _of(self, address: bytes) -> _HostNotes:
        """The notes on a host; those on a source that has no place in the peer table are not kept."""
        peers = self._core.node.peers
        if address not in self._notes and peers.by_address(address) is None:
            return _HostNotes()
        if len(self._notes) >= 2 * peers.maximum:
            # In a full peer table, hosts give way to new ones.
            self._notes = {host: notes for host, notes in self._notes.items() if peers.by_address(host) is not None}
        return self._notes.setdefault(address, _HostNotes())

    def _meet(self, address: bytes) -> None:
        """Add the source of a frame as a peer: it has this host in its peer table, or adds it on receipt of a query."""
        if address in self._own:
            self.impostors += 1
        else:
            self._enter(address)
            self._of(address).heard = True

    def _enter(self, address: bytes) -> None:
        if self._core.node.peers.by_address(address) is None and not address[0] & 1:
            self._core.node.discover_peer(address)

    def _observe(self, observed: ObservedFrame) -> None:
        frame = observed.frame
        if observed.sent:
            if isinstance(frame, Announcement):
                self._serials.add(frame.serial)
            elif isinstance(frame, HostQuery) and frame.magic >> 16 == _MAGICS >> 16:
                self._of(frame.dst_mac).sent[frame.magic] = observed.time_ns
        elif isinstance(frame, Announcement):
            self._announced(frame)
        elif isinstance(frame, HostReply):
            self._answered(frame, observed.time_ns)
        elif isinstance(frame, NackMcp):
            self._refused(frame)

    def _announced(self, frame: Announcement) -> None:
        address = ((frame.nic_id_hi & 0xFFFF) << 32 | frame.nic_id_lo).to_bytes(6, "big")
        if address not in self._own:
            self._enter(address)
            notes = self._of(address)
            notes.heard = notes.announced = True
        elif frame.serial in self._serials and frame.src_mac in self._own:
            # ``_meet`` has counted the frame as that of an impostor.
            self.echoes += 1
            self.impostors -= 1

    def _answered(self, frame: HostReply, now: int) -> None:
        notes = self._of(frame.src_mac)
        sent = notes.sent.pop(frame.magic, None)
        if sent is not None:
            notes.answers += 1
            took = max(0, now - sent)
            notes.name = hostname_text(frame.hostname)
            notes.best = took if notes.best is None else min(notes.best, took)
            peer = self._core.node.peers.by_address(frame.src_mac)
            # The engine takes replies to its own queries only, and queries no host whose name another process shares.
            if peer is not None and peer.index_for(0) == NO_PEER_INDEX:
                peer.learn(0, frame.src_dst_peer_index)

    def _refused(self, frame: NackMcp) -> None:
        answer = dialect_answer(frame)
        if answer is not None:
            notes = self._of(frame.src_mac)
            notes.dialect, padded = answer
            notes.long_answered |= padded

    def _dialects(self) -> dict[bytes, Dialect]:
        """Dialects that the frames of hosts have shown, by address."""
        return {
            each.hosts[0].to_bytes(6, "big"): each.dialect
            for each in self._detector.detections()
            if each.dialect is not None and each.confidence >= _CONFIDENT
        }

    def _surveyed(self, peer: Peer, heard: set[Peer], dialects: dict[bytes, Dialect]) -> SurveyedHost:
        notes = self._of(peer.address)
        index = peer.index_for(0)
        return SurveyedHost(
            address=mac_text(peer.address),
            name=peer.name or notes.name,
            index=None if index == NO_PEER_INDEX else index,
            our_index=peer.index,
            dialect=_dialect(notes.dialect, dialects.get(peer.address)),
            answer_ns=notes.best,
            queries=notes.queries,
            answers=notes.answers,
            announced=notes.announced,
            heard=notes.heard or peer in heard,
            long_frames=notes.long_answered if notes.long_queried else None,
        )


def _dialect(answered: str | None, detected: Dialect | None) -> str | None:
    """Name of a host's dialect by its answer to a query; its frames add the frame limit unless they contradict it."""
    if detected is not None and answered in (None, detected.family):
        return detected.name
    return answered
