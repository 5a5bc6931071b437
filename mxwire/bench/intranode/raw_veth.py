"""Raw frames over a pair of veth interfaces: the kernel's network below any protocol, in place of a card's loopback."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from typing import Final

from mxwire.bench.intranode.mechanism import Mechanism, MechanismError, Piece
from mxwire.bench.roles.common import BARE_ETHERTYPE
from mxwire.lab.namespaces import namespaces_refusal, private_cable
from mxwire.link.interface import read_interface

_MTU: Final = 9000
_BUFFER: Final = 4 << 20
_RECEIVE_BUFFER_BY_ROOT: Final = 33
"""SO_RCVBUFFORCE, which the limit of unprivileged users does not bound."""


class RawVeth(Mechanism):
    """A socket for frames on either end. Nothing controls the flow: a message must fit the receiver's buffer."""

    def open(self) -> None:
        """Create namespaces and interfaces, and open the sockets."""
        reason = namespaces_refusal()
        if reason is not None:
            raise MechanismError(reason)
        self._held = ExitStack()
        self._sockets, self._addresses = [], []
        for port in self._held.enter_context(private_cable("intranode", _MTU)):
            with port.namespace.inside():
                each = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(BARE_ETHERTYPE))
                each.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_BY_ROOT, _BUFFER)
                each.bind((port.interface, BARE_ETHERTYPE))
                self._addresses.append((port.interface, read_interface(port.interface).address))
            self._sockets.append(each)
        self._owner = os.getpid()

    def join(self, rank: int, partner: int) -> None:
        """Take the socket of the side."""
        super().join(rank, partner)
        self._socket = self._sockets[rank]
        name, address = self._addresses[rank][0], bytes(self._addresses[1 - rank][1])
        self._destination = name, BARE_ETHERTYPE, 0, 0, address

    def give(self, piece: Piece) -> None:
        """Send the message in frames."""
        for begin in range(0, piece.size, _MTU):
            self._socket.sendto(piece.view[begin : begin + _MTU], self._destination)

    def take(self, piece: Piece) -> None:
        """Receive the frames. A frame is padded to 46 bytes, but a veth pair does not pad."""
        done = 0
        while done < piece.size:
            done += self._socket.recv_into(piece.view[done:])

    def close(self) -> None:
        """Close the sockets; the process that made the interfaces removes them."""
        for each in self._sockets:
            each.close()
        if os.getpid() == self._owner:
            self._held.close()
