"""State that the processes of one user share on an interface, so that other hosts see a single host.

Endpoint numbers, and the right to answer for an interface, are claimed by locks of a file per interface, which the
kernel releases with the process. Endpoints listen on Unix sockets for the local path. The peer table is a file too
(``shared_peers.py``). All are in a folder per network namespace, below the runtime folder of the user.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.host.errors import HostError
from mxwire.host.shared_peers import SharedPeerTable, remove_unused
from mxwire.link.byte_locks import LockableFile
from mxwire.link.errors import LinkError
from mxwire.link.fork import keep_from_children
from mxwire.link.listeners import packet_sockets, program_of
from mxwire.link.local import SharedMemoryPath, owner_of
from mxwire.link.namespace import NetworkNamespace
from mxwire.link.runtime import namespace_key, runtime_folder
from mxwire.protocol import Status

_BACKLOG: Final = 1024
"""Connections to an endpoint that wait to be accepted."""
_SPEAKER: Final = 1 << 16
"""The byte of the file of an interface that the answering process locks; endpoints lock the byte of their number."""
_AGENT: Final = (1 << 16) + 1
"""The byte that the agent of an interface locks."""
_NAMESPACE: Final = re.compile(r"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+")


class MachineSharing(SharedPeerTable):
    """Interfaces of this machine, given by name, shared with the other processes of this user in the network namespace.

    The node uses it as its :class:`~mxwire.protocol.peers.Sharing`.

    Raises :class:`~mxwire.link.LinkError` if another user has a host on an interface, or could use the runtime folder.
    """

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._names = tuple(interfaces)
        for each in self._names:
            _refuse_other_users(each)
        folder = runtime_folder(make=True)
        self._namespace = NetworkNamespace()
        """The network namespace of the interfaces, whose number no other one has while it is open."""
        own = folder / namespace_key(self._namespace)
        remove_unused(each for each in folder.iterdir() if _NAMESPACE.fullmatch(each.name) and each != own)
        self._listeners: dict[tuple[int, int], socket.socket] = {}
        self._agent_listeners: list[socket.socket] = []
        self._claims: list[LockableFile] = []
        self.path = SharedMemoryPath(self._socket_of)
        """Channels to the endpoints of the other processes."""
        super().__init__(own, interfaces)
        try:
            # The folder exists only now.
            self._claims += [LockableFile(own / f"{each}.claims") for each in interfaces]
        except BaseException:
            self.close()
            raise

    # For the node.

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """True if another host has that endpoint open."""
        return self._claims[interface].is_locked(endpoint)

    def speaks(self, interface: int) -> bool:
        """True if this process answers for the interface: the first process does, and after its end the next one."""
        return self._claims[interface].try_lock(_SPEAKER)

    # For the host.

    def claim(self, interface: int, endpoint: int) -> None:
        """Claim an endpoint number on an interface.

        Raises :class:`~mxwire.host.errors.HostError` if another process has claimed it.
        """
        if not self._claims[interface].try_lock(endpoint):
            owner = self.owner(interface, endpoint) or "another process"
            raise HostError(
                Status.BUSY, f"endpoint {endpoint} of {self._names[interface]} is taken by {owner}: choose another"
            )
        try:
            listener = self._listen(self._socket_of(interface, endpoint))
        except LinkError:
            self._claims[interface].unlock(endpoint)
            raise
        self._listeners[interface, endpoint] = listener
        self.path.listen(listener)

    def release(self, interface: int, endpoint: int) -> None:
        """Release an endpoint number."""
        listener = self._listeners.pop((interface, endpoint), None)
        if listener is not None and listener.fileno() >= 0:
            self.path.ignore(listener)
            listener.close()
            # Before the claim is released: the next owner makes a socket of its own at this path.
            self._socket_of(interface, endpoint).unlink(missing_ok=True)
            self._claims[interface].unlock(endpoint)

    def listen_as_agent(self) -> list[socket.socket]:
        """Become the agent of all interfaces, and return the sockets to which applications connect.

        Raises :class:`~mxwire.host.errors.HostError` if one of them has an agent.
        """
        listeners: list[socket.socket] = []
        for place, each in enumerate(self._names):
            path = self.folder / agent_socket(each)
            if not self._claims[place].try_lock(_AGENT):
                raise HostError(
                    Status.BUSY,
                    f"{each}: {_listener_at(path)} is the agent of this interface, which has one at most: end it first",
                )
            listeners.append(self._listen(path))
            self._agent_listeners.append(listeners[-1])
        return listeners

    def _listen(self, path: Path) -> socket.socket:
        """Make a socket at a path that only this process uses, and listen on it."""
        listener = keep_from_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            # Of a process that was killed: only the owner of the claim makes this socket.
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise LinkError(f"{path}: the socket cannot be made: {error.strerror or error}") from None
        return listener

    def owner(self, interface: int, endpoint: int) -> str | None:
        """``process 1234 (mxwire, user 0)``, or None if no other host has the endpoint."""
        if not self.elsewhere(interface, endpoint):
            return None
        return _listener_at(self._socket_of(interface, endpoint))

    def close(self) -> None:
        """Release all claims, and close all channels."""
        for each in list(self._listeners):
            self.release(*each)
        for listener in self._agent_listeners:
            with suppress(OSError):
                Path(listener.getsockname()).unlink(missing_ok=True)
            listener.close()
        self._agent_listeners.clear()
        self.path.close()
        for claims in self._claims:
            claims.close()
        super().close()
        self._namespace.close()

    def _socket_of(self, interface: int, endpoint: int) -> Path:
        return self.folder / f"{self._names[interface]}-{endpoint}.sock"


def agent_socket(interface: str) -> str:
    """Name of the socket of an interface's agent, in the folder of the network namespace."""
    return f"{interface}-agent.sock"


def agent_path(interface: str) -> Path:
    """The socket of an interface's agent, in the network namespace of this process."""
    with closing(NetworkNamespace()) as namespace:
        return runtime_folder() / namespace_key(namespace) / agent_socket(interface)


def _listener_at(path: Path) -> str:
    """``process 1234 (mxwire, user 0)``: the process that listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(str(path))
            process, user = owner_of(asking)
        except OSError:
            return "another process"
    return _holder(process, user) if process != os.getpid() else "another host of this process"


def process_text(process: int) -> str:
    """``process 1234 (mxwire, user 0)``: a process of this user."""
    return _holder(process, os.geteuid())


def _holder(process: int | None, user: int) -> str:
    program = program_of(process)
    named = "another process" if process is None else f"process {process}"
    return f"{named} ({f'{program}, ' if program else ''}user {user})"


def _refuse_other_users(interface: str) -> None:
    """Refuse an interface on which another user has a host: both would answer for one Ethernet address, with indexes
    and endpoints of their own."""
    try:
        found = packet_sockets(socket.if_nametoindex(interface), ETHERTYPE_MXOE, not_of=os.geteuid())
    except OSError:
        # Not an interface of this machine, or /proc is missing; then nothing can be shared either.
        return
    for each in found:
        if not each.every_type:
            raise LinkError(
                f"{interface}: {_holder(each.process, each.user)} has a host on this interface: all hosts on an "
                f"interface must belong to one user (this is user {os.geteuid()})"
            )
