"""Sharing: what the hosts of several processes on one machine must agree in, so that others see one host.

What is claimed is claimed by names of sockets that the network namespace knows, and that go with their process.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Final, Protocol

from mxwire.errors import MxwireError
from mxwire.host.errors import HostError
from mxwire.host.shared_peers import SharedPeers
from mxwire.protocol import Status
from mxwire.protocol.sharing import Sharing as NodeSharing

_BELIEVED: Final = 0.1
"""Seconds for which it is believed that another process has an endpoint open."""
_FOUND: Final = 0.02
_QUESTIONS: Final = 1024
_CREDENTIALS: Final = struct.Struct("3i")


class Sharing(NodeSharing, Protocol):
    """What a host asks besides what its node does."""

    def claim(self, interface: int, endpoint: int) -> None:
        """Take an endpoint's number on an interface, counted from 0.

        Raises :class:`~mxwire.host.errors.HostError` where another process has it.
        """

    def release(self, interface: int, endpoint: int) -> None:
        """Give an endpoint's number back."""

    def owner(self, interface: int, endpoint: int) -> str | None:
        """Which other process has an endpoint, in words; None where none has."""

    def close(self) -> None:
        """Give everything back."""


class MachineSharing:
    """Interfaces of this machine, given by name, shared with the other processes in the network namespace.

    Raises :class:`~mxwire.errors.MxwireError` where the peer table of the other processes cannot be shared.
    """

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._interfaces = tuple(interfaces)
        self._claims: dict[str, _Claim] = {}
        self._believed: dict[str, tuple[float, bool]] = {}
        self._peers = SharedPeers()

    # For the node.

    def place_of(self, address: bytes) -> int:
        """The index of a peer in the peer tables of all processes."""
        return self._peers.place_of(address)

    def places(self) -> Sequence[bytes]:
        """The addresses of all peers, by index."""
        return self._peers.places()

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """Whether another process has an endpoint of that number open; a moment ago is good enough."""
        name = self._endpoint(interface, endpoint)
        until, answer = self._believed.get(name, (0.0, False))
        now = time.monotonic()
        if now >= until:
            answer = self._is_taken(name)
            self._believed[name] = (now + (_BELIEVED if answer else _FOUND), answer)
        return answer

    def speaks(self, interface: int) -> bool:
        """Whether it is this process that answers for the interface: the first, and when that has gone, the next."""
        name = f"{self._interfaces[interface]}/host"
        return name in self._claims or self._bind(name)

    # For the host.

    def claim(self, interface: int, endpoint: int) -> None:
        """Take an endpoint's number on an interface.

        Raises :class:`~mxwire.host.errors.HostError` where another process has it.
        """
        if not self._bind(self._endpoint(interface, endpoint)):
            who = self.owner(interface, endpoint) or "another process"
            raise HostError(
                Status.BUSY, f"endpoint {endpoint} of {self._interfaces[interface]} is taken by {who}: choose another"
            )

    def release(self, interface: int, endpoint: int) -> None:
        """Give an endpoint's number back."""
        claim = self._claims.pop(self._endpoint(interface, endpoint), None)
        if claim is not None:
            claim.close()

    def owner(self, interface: int, endpoint: int) -> str | None:
        """``process 1234``, or None where no other process has the endpoint."""
        name = self._endpoint(interface, endpoint)
        if name in self._claims or not self._is_taken(name):
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asking:
            try:
                asking.connect(_address(name))
                found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            except OSError:
                return "another process"
        process = _CREDENTIALS.unpack(found)[0]
        return f"process {process}" if process != os.getpid() else "another host of this process"

    def close(self) -> None:
        """Give everything back."""
        for each in self._claims.values():
            each.close()
        self._claims.clear()
        self._peers.close()

    # Inside.

    def _endpoint(self, interface: int, endpoint: int) -> str:
        return f"{self._interfaces[interface]}/{endpoint}"

    def _bind(self, name: str) -> bool:
        try:
            self._claims[name] = _Claim(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MxwireError(f"{name} cannot be claimed: {error.strerror}") from None
            return False
        return True

    def _is_taken(self, name: str) -> bool:
        """Whether somebody has claimed a name; he does not notice the question."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            try:
                asking.connect(_address(name))
            except ConnectionRefusedError:
                return False
            except OSError:
                return True
        return True


class _Claim:
    """Two sockets of one name: that of datagrams is the claim, the other tells whose it is.

    A stream that nobody accepts tells whoever connects which process listens, up to a number of times.
    """

    def __init__(self, name: str) -> None:
        self._sockets = [socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)]
        try:
            for each in self._sockets:
                each.bind(_address(name))
            self._sockets[1].listen(_QUESTIONS)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Give the name back."""
        for each in self._sockets:
            each.close()


def _address(name: str) -> str:
    return f"\0mxwire/{name}"
