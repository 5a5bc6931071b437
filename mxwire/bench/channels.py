"""Channels: messages between two sides over mxwire's hosts, TCP, UDP or bare frames, with one face for all studies.

Both sides know the size of each message, so that carriers without messages (TCP, frames) need no header, and none is
slower for it. Bare frames and UDP are the null model: the same frames and calls, and no protocol. They do not recover
from losses: a side that waits without success for :data:`SILENCE` raises :class:`SilenceError`, and the round is
repeated and marked.
"""

from __future__ import annotations

import mmap
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from mxwire.bench.processors import SpinWork
from mxwire.bench.roles.common import PATIENCE, PATTERNS
from mxwire.bench.roles.hosts import OVER_XDP
from mxwire.bench.roles.sockets import PORT
from mxwire.bench.roles.tcp import connect
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.frames import FrameBatch
from mxwire.host import Endpoint, Host, HostError
from mxwire.linerate.messages import MESSAGE_COUNTERS, frames_needed
from mxwire.link import FewLink, Link, MemoryNetwork, open_link
from mxwire.link.interface import read_interface
from mxwire.protocol import Partner
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

ETHERTYPE: Final = 0x88B6
"""EtherType of bare frames: the second for local experiments."""
SILENCE: Final = 3.0
"""Seconds after which a message that has not arrived is lost."""
LARGEST: Final = 4 << 20
"""Maximum size of a message: the length of the content that is sent."""
_ENOUGH: Final = 16 << 20
"""Socket buffer: room for a whole window, so that only a receiver that is not there loses frames."""
_POLLS: Final = 512
"""Polls between two reads of the clock."""
_HEADERS: Final = 28
"""IP and UDP."""
_PAGE: Final = 4096


class SilenceError(MxwireError):
    """A message did not arrive: frames were lost, or the other side is gone."""


@dataclass(frozen=True)
class ChannelSetup:
    """A side of a channel."""

    carrier: str
    """``mxoe``, ``omx:M``, ``tcp``, ``udp``, ``frames`` (recv), ``ring`` (mapped ring), ``xdp``, ``shared memory``; or
    a dialect followed by ``over xdp``: a host with AF_XDP."""
    interface: str
    own: bytes
    other: bytes
    active: bool
    addresses: tuple[str, str] | None = None
    """Local and remote IPv4 address, for TCP and UDP."""
    spin: bool = True
    """Poll for messages, instead of sleeping until one arrives."""
    size: int = 0
    """Size of the largest message."""
    depth: int = 2
    """Messages that may be in flight in one direction."""
    network: MemoryNetwork | None = None
    """The network in memory, instead of an interface."""


class Channel(ABC):
    """One side of a conversation. Not thread-safe."""

    frame_payload: ClassVar[int] = 0

    def __init__(self, setup: ChannelSetup) -> None:
        self.setup = setup
        self.active = setup.active
        self._spin = SpinWork()
        self.buffer = bytearray(max(setup.size, 64))
        """The last received message."""

    def clock(self) -> int:
        """The time in ns."""
        return time.perf_counter_ns()

    def work(self, duration: int) -> None:
        """Spin for ``duration`` ns, without looking at the channel."""
        self._spin.work(duration)

    def spin_error(self, duration: int) -> float:
        """Relative error of :meth:`work`."""
        return self._spin.error(duration)

    @abstractmethod
    def send(self, size: int) -> None:
        """Send a message of ``size`` bytes."""

    @abstractmethod
    def receive(self, size: int) -> None:
        """Wait for the next message, which has ``size`` bytes, in :attr:`buffer`.

        Raises :class:`SilenceError` if it does not arrive.
        """

    def exchange(self, size: int) -> None:
        """Send and receive a message of ``size`` bytes, as the other side does at the same time."""
        self.send(size)
        self.receive(size)

    def frames(self) -> dict[str, int]:
        """Frames sent and received so far, dropped ones and retransmitted ones, as far as they can be counted."""
        return {}

    def barrier(self) -> None:
        """Return when both sides have called it; the active side returns last."""
        if self.active:
            self.send(0)
            self.receive(0)
        else:
            self.receive(0)
            self.send(0)

    def check(self, size: int) -> None:
        """Compare the last received message with the content that was sent."""
        if memoryview(self.buffer)[:size] != memoryview(PATTERNS[0])[:size]:
            raise AssertionError(f"{self.setup.carrier}: a message of {size} bytes is not what was sent")

    @abstractmethod
    def close(self) -> None:
        """Release everything."""


def _until_not_empty(take: Callable[[], Any]) -> Any:
    """Poll ``take`` until it does not raise BlockingIOError; raise :class:`SilenceError` after :data:`SILENCE`."""
    end = None
    while True:
        for _ in range(_POLLS):
            try:
                return take()
            except BlockingIOError:
                continue
        now = time.monotonic()
        if end is None:
            end = now + SILENCE
        elif now > end:
            raise SilenceError(f"no message within {SILENCE:g} s")


def ip_addresses(setup: ChannelSetup) -> tuple[str, str]:
    """The addresses of a channel. Raises :class:`~mxwire.errors.MxwireError` if there are none."""
    if setup.addresses is None:
        raise MxwireError(f"{setup.carrier} needs an IPv4 address on {setup.interface} and on the other side")
    return setup.addresses


class _SocketChannel(Channel):
    """The common part of carriers that are sockets: polling, and sleeping in one system call."""

    _socket: socket.socket

    def _prepare(self, opened: socket.socket) -> None:
        self._socket = opened
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            forced = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}[option]
            if opened.type != socket.SOCK_STREAM:
                try:
                    opened.setsockopt(socket.SOL_SOCKET, forced, _ENOUGH)
                except OSError:
                    opened.setsockopt(socket.SOL_SOCKET, option, _ENOUGH)
        if self.setup.spin:
            opened.setblocking(False)
        else:
            opened.setblocking(True)
            # Not settimeout: that would add a call of poll to each receive.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(SILENCE), 0))

    def _take(self, view: memoryview) -> int:
        if self.setup.spin:
            return int(_until_not_empty(lambda: self._socket.recv_into(view)))
        try:
            return self._socket.recv_into(view)
        except BlockingIOError:
            raise SilenceError(f"no message within {SILENCE:g} s") from None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class TcpChannel(_SocketChannel):
    """A TCP connection without delay of small segments. A message without data is sent as one byte."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        own, other = ip_addresses(setup)
        if setup.active:
            opened = socket.socket()
            connect(opened, other)
            self._start(opened)
        else:
            self._listener: socket.socket | None = socket.socket()
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((own, PORT))
            self._listener.listen()

    def _start(self, opened: socket.socket) -> None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._prepare(opened)
        # Sends wait for room in any case: a sender that polls would read the clock of the receiver.
        self._listener = None

    def _accept(self) -> None:
        listener = self._listener
        assert listener is not None
        listener.settimeout(PATIENCE)
        with listener:
            self._start(listener.accept()[0])

    def send(self, size: int) -> None:
        """Send a message."""
        view = memoryview(PATTERNS[0])[: size or 1]
        while view.nbytes:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                continue

    def receive(self, size: int) -> None:
        """Receive a message."""
        if self._listener is not None:
            self._accept()
        view = memoryview(self.buffer)[: size or 1]
        while view.nbytes:
            count = self._take(view)
            if not count:
                raise SilenceError("the other side has closed the connection")
            view = view[count:]

    def exchange(self, size: int) -> None:
        """Send and receive at the same time: a message may be larger than the buffers of both sides."""
        there, back = memoryview(PATTERNS[0])[: size or 1], memoryview(self.buffer)[: size or 1]
        self._socket.setblocking(False)
        end = time.monotonic() + PATIENCE
        while there.nbytes or back.nbytes:
            if there.nbytes:
                with suppress(BlockingIOError):
                    there = there[self._socket.send(there) :]
            if back.nbytes:
                with suppress(BlockingIOError):
                    count = self._socket.recv_into(back)
                    if not count:
                        raise SilenceError("the other side has closed the connection")
                    back = back[count:]
            if time.monotonic() > end:
                raise SilenceError(f"no progress within {PATIENCE:g} s")
        self._socket.setblocking(not self.setup.spin)

    def close(self) -> None:
        """Close the connection."""
        for each in (self._listener, getattr(self, "_socket", None)):
            if each is not None:
                each.close()


class UdpChannel(_SocketChannel):
    """UDP: datagrams that fit into a frame, without recovery."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        own, other = ip_addresses(setup)
        opened = socket.socket(type=socket.SOCK_DGRAM)
        opened.bind((own, PORT))
        opened.connect((other, PORT))
        self._payload = interface_mtu(setup.interface) - _HEADERS
        self._prepare(opened)
        self._sent = self._received = 0

    def send(self, size: int) -> None:
        """Send a message as datagrams."""
        content = memoryview(PATTERNS[0])
        for start in range(0, max(size, 1), self._payload):
            part = content[start : min(start + self._payload, size)]
            while True:
                try:
                    self._socket.send(part)
                    break
                except BlockingIOError:
                    continue
                except ConnectionRefusedError:
                    raise SilenceError("the other side has closed its socket") from None
            self._sent += 1

    def receive(self, size: int) -> None:
        """Receive the datagrams of a message."""
        view = memoryview(self.buffer)
        for start in range(0, max(size, 1), self._payload):
            try:
                self._take(view[start : max(size, 1)])
            except ConnectionRefusedError:
                raise SilenceError("the other side has closed its socket") from None
            self._received += 1

    def frames(self) -> dict[str, int]:
        """Datagrams, each of which is a frame."""
        return {"sent": self._sent, "received": self._received}


class FrameChannel(_SocketChannel):
    """Bare frames through a packet socket, a system call per frame."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        opened.bind((setup.interface, ETHERTYPE))
        self._payload = interface_mtu(setup.interface)
        self._head = setup.other + setup.own + ETHERTYPE.to_bytes(2, "big")
        self._room = bytearray(HEADER_SIZE)
        self._prepare(opened)
        self._sent = self._received = 0

    def send(self, size: int) -> None:
        """Send a message as frames; its content is read in place."""
        content, head = memoryview(PATTERNS[0]), self._head
        for start in range(0, max(size, 1), self._payload):
            part = content[start : min(start + self._payload, size)]
            padding = SHORTEST_FRAME - HEADER_SIZE - len(part)
            buffers: list[Any] = [head, part, bytes(padding)] if padding > 0 else [head, part]
            while True:
                try:
                    self._socket.sendmsg(buffers)
                    break
                except (BlockingIOError, OSError) as error:
                    # The queue of the interface is full.
                    if not isinstance(error, BlockingIOError) and error.errno != 105:
                        raise
            self._sent += 1

    def receive(self, size: int) -> None:
        """Receive the frames of a message into its buffer."""
        view, head = memoryview(self.buffer), self._room
        receive, spin = self._socket.recvmsg_into, self.setup.spin
        for start in range(0, max(size, 1), self._payload):
            parts: list[Any] = [head, view[start : max(size, 1)]]
            if spin:
                _until_not_empty(partial(receive, parts))
            else:
                try:
                    receive(parts)
                except BlockingIOError:
                    raise SilenceError(f"no frame within {SILENCE:g} s") from None
            self._received += 1

    def frames(self) -> dict[str, int]:
        """Frames."""
        return {"sent": self._sent, "received": self._received}


class LinkChannel(Channel):
    """Bare frames through a link of mxwire: AF_PACKET with a mapped ring, AF_XDP, or a network in memory."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        if setup.network is not None:
            self._link: Link = setup.network.attach(setup.interface, setup.own)
        else:
            kind = "xdp" if setup.carrier == "xdp" else "packet"
            self._link = open_link(setup.interface, kind, spin=setup.spin, ethertype=ETHERTYPE)
        self._payload = self._link.mtu
        ethertype = ETHERTYPE if setup.network is None else setup.network.ethertype
        self._head = setup.other + setup.own + ethertype.to_bytes(2, "big")
        self._batches: dict[int, FrameBatch | list[bytes]] = {}
        self._pending: deque[Any] = deque()

    def _batch(self, size: int) -> FrameBatch | list[bytes]:
        """The frames of a message, built once per size."""
        content = PATTERNS[0]
        made = []
        for start in range(0, max(size, 1), self._payload):
            frame = self._head + content[start : min(start + self._payload, size)]
            made.append(frame.ljust(SHORTEST_FRAME, b"\0"))
        few = len(made) == 1 and isinstance(self._link, FewLink)
        return made if few else FrameBatch.from_frames(made)

    def send(self, size: int) -> None:
        """Send the frames of a message in one batch."""
        batch = self._batches.get(size)
        if batch is None:
            batch = self._batches[size] = self._batch(size)
        if isinstance(batch, list):
            self._link.send_few(batch)  # type: ignore[attr-defined]
            return
        place = 0
        # A full queue refuses the rest of a batch; the receiver makes room.
        while place < len(batch):
            place += self._link.send(batch if not place else batch.select(np.arange(place, len(batch))))

    def receive(self, size: int) -> None:
        """Receive the frames of a message, and copy their content."""
        view, pending = memoryview(self.buffer), self._pending
        for start in range(0, max(size, 1), self._payload):
            while not pending:
                self._fetch()
            frame = pending.popleft()
            end = min(start + self._payload, size)
            view[start:end] = frame[HEADER_SIZE : HEADER_SIZE + end - start]

    def _fetch(self) -> None:
        """Wait for frames. Those that are not used at once are copied: the ring is reused by the next call."""
        link, end, polls = self._link, 0.0, 0
        spinning = self.setup.spin and self.setup.network is None
        while True:
            found = link.receive_few() if spinning else link.receive(SILENCE)  # type: ignore[attr-defined]
            if len(found):
                break
            polls += 1
            if not spinning:
                raise SilenceError(f"no frame within {SILENCE:g} s")
            if polls % _POLLS == 0:
                now = time.monotonic()
                end = end or now + SILENCE
                if now > end:
                    raise SilenceError(f"no frame within {SILENCE:g} s")
        if isinstance(found, list):
            self._pending.extend(found)
        elif len(found) == 1:
            self._pending.append(found.buffer[int(found.offset[0]) :].data)
        else:
            self._pending.extend(found.frame(place) for place in range(len(found)))

    def frames(self) -> dict[str, int]:
        """The counters of the link."""
        counters = self._link.statistics()
        return {"sent": counters.sent, "received": counters.received, "dropped": counters.dropped}

    def close(self) -> None:
        """Close the link."""
        self._link.close()


class SharedChannel(Channel):
    """Memory that two processes of one machine share: a counter and a message in each direction, for ping-pong only.

    A message is in place before its counter changes, and processors with a strong memory order show them in this order.
    """

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        name = f"mxwire-bench-{(setup.own if setup.active else setup.other).hex()}"
        self._path = Path("/dev/shm", name)
        whole = 2 * (_PAGE + LARGEST)
        with self._path.open("r+b" if setup.active else "w+b") as file:
            if not setup.active:
                file.truncate(whole)
            self._memory = mmap.mmap(file.fileno(), whole)
        halves = [memoryview(self._memory)[start : start + whole // 2] for start in (0, whole // 2)]
        out, into = halves if setup.active else halves[::-1]
        self._views = [*halves, out[:8].cast("Q"), out[_PAGE:], into[:8].cast("Q"), into[_PAGE:]]
        self._sent = self._received = 0

    def send(self, size: int) -> None:
        """Copy a message into the shared memory, and change the counter."""
        if size:
            self._views[3][:size] = memoryview(PATTERNS[0])[:size]
        self._sent += 1
        self._views[2][0] = self._sent

    def receive(self, size: int) -> None:
        """Poll the counter, and copy the message."""
        counter, wanted = self._views[4], self._received + 1
        end = None
        while counter[0] != wanted:
            for _ in range(_POLLS):
                if counter[0] == wanted:
                    break
            else:
                now = time.monotonic()
                end = end or now + SILENCE
                if now > end:
                    raise SilenceError(f"no message within {SILENCE:g} s")
        self._received = wanted
        if size:
            self.buffer[:size] = self._views[5][:size]

    def close(self) -> None:
        """Release the memory."""
        for each in reversed(self._views):
            each.release()
        self._memory.close()
        self._path.unlink(missing_ok=True)


class HostChannel(Channel):
    """mxwire: an endpoint of a host on each side, driven by the calls of this thread."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        dialect = setup.carrier.removesuffix(OVER_XDP)
        options: dict[str, Any] = {
            "name": "alpha" if setup.active else "beta",
            "dialect": dialect,
            "peers": {setup.other: "beta:0" if setup.active else "alpha:0"},
            "announce": False,
            "background": False,
        }
        if setup.network is not None:
            self._host = Host(setup.network.attach(setup.interface, setup.own), **options)
        else:
            kind = "packet" if dialect == setup.carrier else "xdp"
            self._host = Host.open(setup.interface, spin=setup.spin, link=kind, **options)
        self._endpoint: Endpoint = self._host.open_endpoint(0)
        self._partner: Partner | None = None
        self._posted: deque[tuple[Any, bytearray]] = deque()
        for _ in range(setup.depth):
            self._post(bytearray(len(self.buffer)))
        self._sends: deque[Any] = deque()
        self._dialect = as_dialect(dialect)
        self._needed = 0
        if setup.active:
            self._partner = self._connected()

    def _connected(self) -> Partner:
        try:
            return self._endpoint.connect("beta", 0, timeout=PATIENCE)
        except HostError as error:
            raise SilenceError(f"no connection: {error}") from None

    def _post(self, memory: bytearray) -> None:
        self._posted.append((self._endpoint.ireceive(buffer=memory), memory))

    def send(self, size: int) -> None:
        """Post a send; large ones are waited for when as many are in flight as may be."""
        if self._partner is None:
            # The passive side answers the first message before it knows the partner.
            raise AssertionError("the passive side has received nothing yet")
        request = self._endpoint.isend(self._partner, memoryview(PATTERNS[0])[:size])
        self._needed += frames_needed(size, self._dialect)
        if size > RENDEZVOUS_THRESHOLD:
            self._sends.append(request)
            if len(self._sends) > self.setup.depth:
                self._wait(self._sends.popleft())

    def receive(self, size: int) -> None:
        """Wait for the oldest posted receive, and post its buffer again."""
        request, memory = self._posted.popleft()
        message = self._wait(request)
        if message.length != size:
            raise AssertionError(f"{self.setup.carrier}: received {message.length} bytes instead of {size}")
        if self._partner is None:
            self._partner = message.partner
        self.buffer = memory
        self._post(memory)

    def _wait(self, request: Any) -> Any:
        try:
            return self._endpoint.wait(request, PATIENCE)
        except HostError as error:
            raise SilenceError(str(error)) from None

    def frames(self) -> dict[str, int]:
        """The counters of the link, and the frames transmitted beyond those that the messages need."""
        counters = self._host.core.links[0].statistics()
        found = {"sent": counters.sent, "received": counters.received, "dropped": counters.dropped}
        transmitted = sum(self._host.core.node.counters[each] for each in MESSAGE_COUNTERS)
        return found | {"retransmitted": max(transmitted - self._needed, 0)}

    def close(self) -> None:
        """Close endpoint and host, after the acks of the other side."""
        with suppress(HostError):
            self._endpoint.close(0.2)
        self._host.close()


_CARRIERS: Final[dict[str, type[Channel]]] = {
    "tcp": TcpChannel,
    "udp": UdpChannel,
    "frames": FrameChannel,
    "ring": LinkChannel,
    "xdp": LinkChannel,
    "shared memory": SharedChannel,
}


def is_host(carrier: str) -> bool:
    """Return whether a carrier is a host of mxwire; it may still be none at all."""
    return carrier.startswith(("mxoe", "omx"))


def check_carrier(carrier: str) -> str:
    """Return the name of a carrier. Raises :class:`~mxwire.errors.MxwireError` if there is none of that name."""
    if carrier not in _CARRIERS:
        if not is_host(carrier):
            names = ", ".join(_CARRIERS)
            raise MxwireError(f"there is no carrier {carrier!r}: use mx, mxoe, omx:M, {names}")
        as_dialect(carrier.removesuffix(OVER_XDP))
    return carrier


def open_channel(setup: ChannelSetup) -> Channel:
    """Open one side of a channel, the passive one first.

    Raises :class:`~mxwire.errors.MxwireError` if the carrier cannot be used here.
    """
    return _CARRIERS.get(setup.carrier, HostChannel)(setup)


def interface_mtu(name: str) -> int:
    """The MTU of an interface of this namespace."""
    return read_interface(name).mtu
