"""Sockets of one machine: Unix stream, Unix sequenced packets, and TCP over the loopback interface."""

from __future__ import annotations

import socket
from typing import ClassVar, Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismFacts, Piece
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
