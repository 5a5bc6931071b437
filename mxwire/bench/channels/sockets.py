"""Channels through sockets of the kernel: TCP, UDP, and bare frames with a system call each."""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from mxwire.bench.channels.channel import POLLS, SILENCE, Channel, ChannelSetup, end_of_wait, silence
from mxwire.bench.errors import SilenceError
from mxwire.bench.roles.common import BARE_ETHERTYPE, CONTENT, PATIENCE
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.link.interface import read_interface

_Taken = TypeVar("_Taken")

PORT: Final = 7777
_RETRY: Final = 0.01
_ENOUGH: Final = 16 << 20
"""Size of a socket buffer: room for a whole window, so that frames are lost only if the receiver is gone."""
_BUFFERS: Final = ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32))
"""Options for the size of a buffer, and those that exceed the limit of the system (SO_RCVBUFFORCE, SO_SNDBUFFORCE)."""
_HEADERS: Final = 28
"""IP and UDP."""
_FULL: Final = (errno.EAGAIN, errno.ENOBUFS)
"""Errors of a send for which the queue of the socket or of the interface has no room."""


def _until_not_empty(take: Callable[[], _Taken]) -> _Taken:
    """Poll ``take`` until it does not raise BlockingIOError; raise ``SilenceError`` after ``SILENCE`` seconds."""
    end = 0.0
    while True:
        for _ in range(POLLS):
            try:
                return take()
            except BlockingIOError:
                continue
        end = end_of_wait(end)


def tcp_connection(address: str, port: int) -> socket.socket:
    """Connect as soon as the other side listens; raise the last error after :data:`PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return undelayed(socket.create_connection((address, port), timeout=PATIENCE))
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(_RETRY)


def undelayed(opened: socket.socket) -> socket.socket:
    """Have a connection send small segments at once."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _ip_addresses(setup: ChannelSetup) -> tuple[str, str]:
    """The addresses of a channel. Raises :class:`~mxwire.errors.MxwireError` if there are none."""
    if setup.addresses is None:
        raise MxwireError(f"{setup.carrier} needs an IPv4 address on {setup.interface} and on the other side")
    return setup.addresses


class _SocketChannel(Channel):
    """The common part of carriers that are sockets: polling, and sleeping in one system call."""

    _socket: socket.socket

    def _prepare(self, opened: socket.socket) -> None:
        self._socket = opened
        if opened.type != socket.SOCK_STREAM:
            for option, forced in _BUFFERS:
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
            return _until_not_empty(lambda: self._socket.recv_into(view))
        try:
            return self._socket.recv_into(view)
        except BlockingIOError:
            raise silence() from None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class TcpChannel(_SocketChannel):
    """A TCP connection without delay of small segments. A message without data is sent as one byte."""

    _listener: socket.socket | None

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        own, other = _ip_addresses(setup)
        if setup.active:
            self._listener = None
            self._prepare(tcp_connection(other, PORT))
        else:
            self._listener = socket.create_server((own, PORT))

    def _accept(self) -> None:
        listener = self._listener
        assert listener is not None
        listener.settimeout(PATIENCE)
        with listener:
            self._prepare(undelayed(listener.accept()[0]))
        self._listener = None

    def send(self, size: int) -> None:
        """Send a message."""
        # A stream does not show a message without bytes.
        view = memoryview(CONTENT)[: size or 1]
        while view.nbytes:  # without a deadline: reading the clock would add to the measured time
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
        there, back = memoryview(CONTENT)[: size or 1], memoryview(self.buffer)[: size or 1]
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


class _DatagramChannel(_SocketChannel):
    """A socket channel that counts the datagrams or frames that it sends and receives."""

    _sent = _received = 0

    def frames(self) -> dict[str, int]:
        """Frames, each of one datagram."""
        return {"sent": self._sent, "received": self._received}


class UdpChannel(_DatagramChannel):
    """UDP: datagrams that fit into a frame, without recovery."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        own, other = _ip_addresses(setup)
        opened = socket.socket(type=socket.SOCK_DGRAM)
        opened.bind((own, PORT))
        opened.connect((other, PORT))
        self._payload = read_interface(setup.interface).mtu - _HEADERS
        self._prepare(opened)

    def send(self, size: int) -> None:
        """Send a message as datagrams."""
        content = memoryview(CONTENT)
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


class FrameChannel(_DatagramChannel):
    """Bare frames through a packet socket, a system call per frame."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(BARE_ETHERTYPE))
        opened.bind((setup.interface, BARE_ETHERTYPE))
        self._payload = read_interface(setup.interface).mtu
        self._head = setup.other + setup.own + BARE_ETHERTYPE.to_bytes(2, "big")
        self._room = bytearray(HEADER_SIZE)
        self._prepare(opened)

    def send(self, size: int) -> None:
        """Send a message as frames; its content is read in place."""
        content, head = memoryview(CONTENT), self._head
        for start in range(0, max(size, 1), self._payload):
            part = content[start : min(start + self._payload, size)]
            padding = SHORTEST_FRAME - HEADER_SIZE - len(part)
            buffers: list[Any] = [head, part, bytes(padding)] if padding > 0 else [head, part]
            while True:
                try:
                    self._socket.sendmsg(buffers)
                    break
                except OSError as error:
                    if error.errno not in _FULL:
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
                    raise silence() from None
            self._received += 1
