"""Streams of bytes through the kernel: pipes, Unix sockets, and TCP over the loopback interface."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from mxwire.bench.intranode.mechanism import POLLS, Mechanism, Piece, checked, library
from mxwire.link.sendmmsg import IoVector

_BUFFER: Final = 1 << 20
"""Buffer of a pipe in bytes."""
# A packet must fit into the socket's buffer, which by default has about 208 KiB.
_LONGEST_PACKET: Final = 65536


class ByteStream(Mechanism):
    """The kernel copies in and out, through the descriptors of a side."""

    _read: int
    _write: int

    def give(self, piece: Piece) -> None:
        """Write the message."""
        view = piece.view
        while view:
            view = view[os.write(self._write, view) :]

    def take(self, piece: Piece) -> None:
        """Read the message."""
        view = piece.view
        while view:
            # A read would return new bytes, and so add a copy of Python to that of the kernel.
            count = os.readv(self._read, [view])
            if not count:
                raise EOFError
            view = view[count:]


class Pipe(ByteStream):
    """A pipe per direction, written and read."""

    def open(self) -> None:
        """Open the pipes; an unprivileged user may not be allowed the large buffer."""
        self._pipes = [os.pipe(), os.pipe()]
        for _, writing in self._pipes:
            with suppress(PermissionError):
                fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _BUFFER)

    def join(self, rank: int, partner: int) -> None:
        """Take the ends of the side, so that the end of the other side is seen."""
        super().join(rank, partner)
        self._write, self._read = self._pipes[rank][1], self._pipes[1 - rank][0]
        for each in (self._pipes[rank][0], self._pipes[1 - rank][1]):
            os.close(each)
        self._pipes = []

    def close(self) -> None:
        """Close the pipes."""
        ends = [each for pipe in self._pipes for each in pipe] or [self._write, self._read]
        for each in ends:
            os.close(each)


class Vmsplice(Pipe):
    """Pages of the source are lent to the pipe, and the destination copies out of them.

    The source must leave them alone until they were read, which no call reports; here the answer of the other side
    does.
    """

    def open(self) -> None:
        """Open the pipes."""
        super().open()
        (self._splice,) = library("vmsplice")
        self._segment = IoVector()

    def give(self, piece: Piece) -> None:
        """Lend the pages of the message."""
        segment, done = self._segment, 0
        while done < piece.size:
            segment.base, segment.length = piece.address + done, piece.size - done
            count = self._splice(self._write, ctypes.byref(segment), ctypes.c_ulong(1), 0)
            done += checked(count, "vmsplice")


class UnixStream(ByteStream):
    """A pair of connected stream sockets."""

    def open(self) -> None:
        """Open the pair."""
        self._sockets: tuple[socket.socket, ...] = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def join(self, rank: int, partner: int) -> None:
        """Take the side's socket, and close the other one."""
        super().join(rank, partner)
        self._socket = self._sockets[rank]
        self._sockets[1 - rank].close()
        self._write = self._read = self._socket.fileno()

    def close(self) -> None:
        """Close the sockets."""
        for each in self._sockets:
            each.close()


class PolledUnixStream(UnixStream):
    """The same without blocking: both sides poll, as those of shared memory do."""

    def open(self) -> None:
        """Open the pair."""
        super().open()
        for each in self._sockets:
            each.setblocking(False)

    def give(self, piece: Piece) -> None:
        """Write the message, again and again while there is no room."""
        _poll(self._socket.send, piece.view)

    def take(self, piece: Piece) -> None:
        """Read the message, again and again while there is no data."""
        _poll(self._socket.recv_into, piece.view)


def _poll(call: Callable[[memoryview], int], view: memoryview) -> None:
    """Pass all bytes to a call that does not block. Raises :class:`EOFError` if the other side has closed."""
    polls = 0
    while view:
        try:
            count = call(view)
        except BlockingIOError:
            polls += 1
            # The other side may have no processor of its own.
            if not polls % POLLS:
                os.sched_yield()
            continue
        if not count:
            raise EOFError
        view = view[count:]


class UnixPackets(UnixStream):
    """A pair of sockets that keep the bounds of packets; a longer message is several."""

    def open(self) -> None:
        """Open the pair."""
        self._sockets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def give(self, piece: Piece) -> None:
        """Send the message in packets."""
        for begin in range(0, piece.size, _LONGEST_PACKET):
            self._socket.send(piece.view[begin : begin + _LONGEST_PACKET])


class LoopbackTcp(UnixStream):
    """A connection over ``lo``, without Nagle's delay."""

    def open(self) -> None:
        """Connect; nothing listens afterwards."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            near = socket.create_connection(listener.getsockname())
            # Another process of this machine could connect first.
            far, address = listener.accept()
            if address != near.getsockname():
                near.close()
                far.close()
                raise ConnectionError("another process has connected to the loopback port")
        self._sockets = near, far
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
