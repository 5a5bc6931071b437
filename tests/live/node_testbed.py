"""The engine of mxwire, without any network, on the other side of the independent peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from mxwire.ethernet import BROADCAST
from mxwire.frames import FrameBatch
from mxwire.protocol import ALL_BITS, EngineEndpoint, Event, EventKind, Node, Request, RequestKind, Status
from mxwire.protocol.profile import OPEN_MX_1_5, Profile
from mxwire.wire.dialect import Dialect

from .independent import frames
from .referee import Watched

NODE_MAC = bytes.fromhex("02000000000a")
PEER_MAC = bytes.fromhex("02000000000b")
NODE_ENDPOINT, PEER_ENDPOINT = 9, 5
PEER_PLACE = 0x0103
"""Of the node in the peer's table. None of these numbers looks like another, or like an empty byte."""
NOISE = 0x5A
KEY = 0x12345678
HOP_NS = 10_000
"""Travel time of a frame."""
LONGEST = 1 << 21


class NodeTransport:
    """A substitute for a network: a frame sent reaches the node at once, and virtual time passes in each wait."""

    def __init__(
        self,
        node: Node,
        application: Callable[[list[Event]], None],
        alter: Callable[[bytes], bytes] = lambda frame: frame,
    ) -> None:
        """``alter`` may change what the node sends."""
        self.node = node
        self._alter = alter
        self.lose: Callable[[bytes], bool] = lambda frame: False
        """Returns True for a frame that does not arrive; it is watched nevertheless."""
        self._held: list[bytes] | None = None
        self.watched: list[Watched] = []
        """Every frame in the order of sending."""
        self._application = application
        self._now = 1_000_000_000
        self._arriving: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.watched.append((self._now, frame))
        self._now += HOP_NS
        if frame[:6] not in (NODE_MAC, BROADCAST) or self.lose(frame):
            return
        if self._held is not None:
            self._held.append(frame)
            return
        self.node.receive(FrameBatch.from_frames([frame]), self._now)
        self._turn()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Frames sent in that time arrive at the end, all at once."""
        self._held = []
        yield
        held, self._held = self._held, None
        self.node.receive(FrameBatch.from_frames(held), self._now)
        self._turn()

    def receive(self, timeout: float) -> bytes | None:
        end = self._now + max(1, round(timeout * 1e9))
        while True:
            self._turn()
            if self._arriving:
                self._now += HOP_NS
                return self._arriving.pop(0)
            if self._now >= end:
                return None
            due = self.node.deadline()
            self._now = end if due is None else min(end, max(due, self._now + 1))

    def now(self) -> float:
        return self._now / 1e9

    def _turn(self) -> None:
        """The application acts upon what has happened, and the node sends what it has."""
        self._application(self.node.events())
        batch = self.node.transmit(self._now)
        for place in range(len(batch)):
            frame = self._alter(bytes(batch.frame(place)))
            self.watched.append((self._now, frame))
            if frame[:6] in (PEER_MAC, BROADCAST) and not self.lose(frame):
                self._arriving.append(frame)


def noisy(spoken: frames.Dialect) -> Callable[[bytes], bytes]:
    """Writes noise where the specification defines nothing, as the node's host might if it did not clear its memory: so
    nothing is read from there that should be elsewhere."""
    formats = frames.formats(spoken)
    codec = frames.Codec(spoken)

    def add(raw: bytes) -> bytes:
        frame = codec.read(raw)
        defined = formats[frame.kind].defined
        header = bytes(byte if mask else NOISE for byte, mask in zip(raw, defined, strict=False))
        end = len(defined) + len(frame.data)
        return header + raw[len(defined) : end] + bytes([NOISE]) * (len(raw) - end)

    return add


def node(dialect: Dialect, profile: Profile = OPEN_MX_1_5) -> Node:
    """A host called ``alpha:0`` that announces itself."""
    return Node(NODE_MAC, "alpha", dialect=dialect, profile=profile, rng=Random(1), announce=True)


class Echo:
    """An application on the node that sends back whatever comes."""

    def __init__(self, endpoint: EngineEndpoint, longest: int = LONGEST) -> None:
        """Messages of more than ``longest`` bytes are truncated, and not sent back."""
        self.ended: list[Request] = []
        self._endpoint = endpoint
        self._buffer = bytearray(longest)
        self._post()

    def __call__(self, events: list[Event]) -> None:
        for event in events:
            if event.kind is not EventKind.COMPLETED or event.request is None:
                continue
            self.ended.append(event.request)
            if event.request.kind is RequestKind.RECEIVE and event.request.status is Status.SUCCESS:
                assert event.request.partner is not None
                data = bytes(self._buffer[: event.request.transferred])
                self._endpoint.send(event.request.partner, data, event.request.match_info)
                self._post()

    def _post(self) -> None:
        self._endpoint.receive(self._buffer, 0, 0)


class Caller:
    """An application on the node that connects to the peer as soon as it has announced its name, sends one message,
    and takes the echo."""

    def __init__(self, endpoint: EngineEndpoint, name: str, data: bytes, match: int, *, synchronous: bool) -> None:
        self.ended: list[Request] = []
        self.echo: bytes | None = None
        self._endpoint = endpoint
        self._name = name
        self._data = data
        self._match = match
        self._synchronous = synchronous
        self._buffer = bytearray(LONGEST)
        endpoint.receive(self._buffer, match, ALL_BITS)

    def __call__(self, events: list[Event]) -> None:
        for event in events:
            if event.kind is EventKind.PEER_NAMED and event.peer is not None and event.peer.name == self._name:
                self._endpoint.connect(event.peer, PEER_ENDPOINT, KEY)
            if event.kind is EventKind.COMPLETED and event.request is not None:
                self._completed(event.request)

    def _completed(self, request: Request) -> None:
        self.ended.append(request)
        if request.kind is RequestKind.CONNECT and request.status is Status.SUCCESS:
            assert request.partner is not None
            self._endpoint.send(request.partner, self._data, self._match, synchronous=self._synchronous)
        if request.kind is RequestKind.RECEIVE:
            self.echo = bytes(self._buffer[: request.transferred])
