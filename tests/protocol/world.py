"""A small network for tests: hosts on one wire, a log of every frame, and hooks that drop or change frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from mxwire.ethernet import BROADCAST
from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Event, EventKind, Node, Partner, Request, Status
from mxwire.protocol.library.receive import Receive
from mxwire.protocol.profile import OPEN_MX_1_5, Profile
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.packets import Frame, Pull, Rndv
from tests.frames import FrameT, make_frame

KEY = 0x12345678
REFUSED_CONNECTS = [
    (2, 1, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY),
    (3, KEY, Status.REMOTE_ENDPOINT_CLOSED),
    (99, KEY, Status.REMOTE_ENDPOINT_BAD_ID),
]
"""Number, key and resulting status of connects to a host with one open endpoint, 2, and the key KEY."""
HOP = 1000
"""Nanoseconds that a frame takes."""

FrameType = TypeVar("FrameType", bound=Frame)


def address(host: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, host + 1])


@dataclass
class Line:
    """A frame in the log."""

    time: int
    host: int
    frame: Any
    delivered: bool


@dataclass
class World:
    """Hosts that know each other by name, unless ``acquainted`` is false."""

    hosts: int = 2
    dialect: Dialect = MXOE
    profile: Profile = OPEN_MX_1_5
    profiles: tuple[Profile, ...] = ()
    acquainted: bool = True
    announce: bool = False
    now: int = 10 * SECOND
    lose: Callable[[int, Any], bool] = lambda _host, _frame: False
    """Returns True for a frame that is lost."""
    log: list[Line] = field(default_factory=list)
    one_by_one: bool = False
    """True if frames arrive in batches of one, so that only the scalar path is taken."""
    deferred: bool = False
    """True if unexpected handlers are called after the pass, as by live hosts."""

    def __post_init__(self) -> None:
        self.nodes = [self._node(host) for host in range(self.hosts)]
        self.happened: list[list[Event]] = [[] for _ in self.nodes]
        self.codec = codec_of(self.dialect)

    def _node(self, host: int) -> Node:
        others = {address(each): f"host{each}:0" for each in range(self.hosts) if each != host}
        node = Node(
            address(host),
            f"host{host}",
            dialect=self.dialect,
            profile=self.profiles[host] if self.profiles else self.profile,
            rng=Random(host),
            peers=others if self.acquainted else None,
            announce=self.announce,
        )
        node.handler_calls.deferred = self.deferred
        return node

    # Time.

    def step(self) -> bool:
        """Transmit the frames of every host; return False if there are none."""
        moved = False
        for host, node in enumerate(self.nodes):
            batch = node.transmit(self.now)
            for frame in self._pass(host, batch):
                moved = True
                self.now += HOP
                self._deliver(host, frame)
        for host, node in enumerate(self.nodes):
            moved |= self._call_handlers(node)
            self.happened[host] += node.events()
        return moved

    def _call_handlers(self, node: Node) -> bool:
        offered = bool(node.offering)
        while node.offering:
            endpoint = next(iter(node.offering))
            message = endpoint.next_offer()
            if message is not None:
                assert endpoint.matching.handler is not None and not endpoint.works
                endpoint.resolve(message, bool(endpoint.matching.handler(message)))
        return offered

    def _pass(self, host: int, batch: FrameBatch) -> list[list[bytes]]:
        kept = []
        for place in range(len(batch)):
            raw = batch.frame(place)
            frame = self.codec.parse(raw)
            lost = self.lose(host, frame)
            self.log.append(Line(self.now, host, frame, not lost))
            if not lost:
                kept.append(raw)
        if not kept:
            return [[]] if len(batch) else []
        return [[each] for each in kept] if self.one_by_one else [kept]

    def _deliver(self, host: int, frames: list[bytes]) -> None:
        for other, node in enumerate(self.nodes):
            theirs = [each for each in frames if each[:6] in (address(other), BROADCAST)]
            if other != host and theirs:
                node.receive(FrameBatch.from_frames(theirs), self.now)

    def settle(self) -> None:
        """Continue until no host has anything to send."""
        for _ in range(100_000):
            if not self.step():
                return
        raise AssertionError("the hosts never come to rest")

    def sleep(self, duration: int) -> None:
        """Let time pass, timers included."""
        end = self.now + duration
        while True:
            self.settle()
            due = [each for node in self.nodes if (each := node.deadline()) is not None]
            at = max(min(due), self.now + 1) if due else end
            if at >= end:
                break
            self.now = at
        self.now = max(self.now, end)
        self.settle()

    def milliseconds(self, duration: float) -> None:
        self.sleep(int(duration * MILLISECOND))

    def seconds(self, duration: float) -> None:
        self.sleep(int(duration * SECOND))

    # Observations.

    def sent(self, kind: type[FrameType], host: int | None = None) -> list[FrameType]:
        """The frames of a type, in order, by one host or all."""
        return [each.frame for each in self.log if type(each.frame) is kind and host in (None, each.host)]

    def times(self, kind: type[Frame], host: int | None = None) -> list[int]:
        return [each.time for each in self.log if type(each.frame) is kind and host in (None, each.host)]

    def reported(self, kind: EventKind, host: int | None = None) -> list[Event]:
        hosts = range(len(self.nodes)) if host is None else [host]
        return [event for each in hosts for event in self.happened[each] if event.kind is kind]

    def clear(self) -> None:
        self.log.clear()

    # Shortcuts.

    def open(self, host: int, number: int = 1, **options: Any) -> EngineEndpoint:
        return self.nodes[host].open_endpoint(number, KEY, **options)

    def connect(self, source: EngineEndpoint, target: EngineEndpoint, host: int) -> Partner:
        """Connect, and expect success."""
        request = source.connect(address(host), target.number, KEY)
        self.settle()
        assert request.status is Status.SUCCESS
        assert request.partner is not None
        return request.partner

    def pair(self) -> tuple[EngineEndpoint, EngineEndpoint, Partner, Partner]:
        """An endpoint on each of the first two hosts, connected both ways."""
        one, two = self.open(0), self.open(1, 2)
        there, back = self.connect(one, two, 1), self.connect(two, one, 0)
        self.clear()
        return one, two, there, back

    def inject(self, host: int, *frames: Frame | bytes) -> None:
        """Deliver frames to a host that no host has sent."""
        raw = [each if isinstance(each, bytes) else self.codec.build(each) for each in frames]
        self.nodes[host].receive(FrameBatch.from_frames(raw), self.now)


def pullable(world: World, length: int, block_length: int = 8192) -> Pull:
    """A PULL by which the second host may pull a message that the first one has announced."""
    one, _, there, _ = world.pair()
    one.send(there, pattern(length))
    world.seconds(1)
    rndv = world.sent(Rndv)[0]
    world.clear()
    return frame_to(
        one,
        Pull,
        total_length=length,
        pulled_rdma_id=rndv.pulled_rdma_id,
        pulled_rdma_seqnum=rndv.pulled_rdma_seqnum,
        pulled_rdma_offset=rndv.pulled_rdma_offset,
        src_pull_handle=77,
        src_magic=88,
        block_length=block_length,
    )


def frame_to(endpoint: EngineEndpoint, kind: type[FrameT], source: int = 2, host: int = 0, **changes: Any) -> FrameT:
    """A frame to an endpoint of one of the first two hosts from endpoint ``source`` of the other."""
    ends = {"dst_mac": address(host), "src_mac": address(1 - host), "dst_src_peer_index": 1}
    ends |= {"dst_endpoint": endpoint.number, "src_endpoint": source, "session": endpoint.session}
    return make_frame(kind, ends, **changes)


def gaps(times: list[int]) -> list[int]:
    """The differences between successive times, in ns."""
    return [later - earlier for earlier, later in pairwise(times)]


@cache
def pattern(length: int, seed: int = 0) -> bytes:
    """Bytes that differ from place to place."""
    return Random((length << 8) | seed).randbytes(length)


def lose_first(kind: type[Frame], count: int = 1) -> Callable[[int, Any], bool]:
    """Lose the first frames of a type."""
    left = [count]

    def lose(_host: int, frame: Any) -> bool:
        if type(frame) is kind and left[0]:
            left[0] -= 1
            return True
        return False

    return lose


def statuses(*requests: Request) -> list[Status | None]:
    return [each.status for each in requests]


def deliver(
    settle: Callable[[], None],
    source: EngineEndpoint,
    partner: Partner,
    target: EngineEndpoint,
    length: int,
    *,
    expected: bool,
    synchronous: bool,
) -> Receive:
    """Send a message to an endpoint of the same host, whose receive is posted before it if ``expected``, else after."""
    buffer = bytearray(length)
    receive = target.receive(buffer, 5) if expected else None
    send = source.send(partner, pattern(length), 5, synchronous=synchronous)
    settle()
    assert send.done is (expected or (length <= 4096 and not synchronous))
    receive = receive or target.receive(buffer, 5)
    settle()
    assert statuses(send, receive) == [Status.SUCCESS] * 2
    assert bytes(buffer) == pattern(length)
    return receive
