"""Sockets of one machine: Unix stream, Unix sequenced packets, and TCP over the loopback interface."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import POLLS, Mechanism, MechanismFacts, Piece
from mxwire.bench.intranode.pipe import read_all, write_all

_LONGEST_PACKET: Final = 65536


class UnixStream(Mechanism):
    """A pair of connected stream sockets."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(copies=2, actor="both")

    def open(self) -> None:
        """Open the pair."""
        self._sockets: tuple[socket.socket, ...] = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def join(self, rank: int, partner: int) -> None:
        """Take the side's socket, and close the other one."""
        super().join(rank, partner)
        self._socket = self._sockets[rank]
        self._sockets[1 - rank].close()
        self._descriptor = self._socket.fileno()

    def give(self, piece: Piece) -> None:
        """Write the message."""
        write_all(self._descriptor, piece.view)

    def take(self, piece: Piece) -> None:
        """Read the message."""
        read_all(self._descriptor, piece.view)

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
