"""State that the processes on one machine share, so that other hosts see a single host.

Endpoint numbers, and the right to answer for an interface, are claimed by binding abstract Unix sockets: their names
belong to the network namespace, and the kernel frees them with their process. The peer table is a file in memory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import ADDRESS_SIZE
from mxwire.host.errors import HostError
from mxwire.link.errors import LinkError
from mxwire.link.fork import keep_from_children
from mxwire.link.local import SharedMemoryPath
from mxwire.link.namespace import NetworkNamespace
from mxwire.protocol import Status

_CLAIMED_FOR: Final = 0.1
"""Seconds for which a found claim of another process is cached; frames for it are then ignored."""
_FREE_FOR: Final = 0.02
"""Seconds for which the absence of a claim is cached: shorter, so that a new endpoint of another
process is not refused for long."""
_BACKLOG: Final = 1024
"""Connections to a claim that wait to be accepted."""
_CREDENTIALS: Final = struct.Struct("3i")
"""struct ucred: process, user and group."""
_FOREIGN: Final = (errno.EACCES, errno.EPERM, errno.ELOOP)
"""Errors of opening a file of another user."""
_LONGEST: Final = ADDRESS_SIZE * 65536
_LOCKED_FOR: Final = 1.0
"""Seconds to wait for a lock, which other processes hold only while they open or remove the file."""
_PREFIX: Final = "mxwire-peers-"
_SHARED_MEMORY: Final = Path("/dev/shm")


class MachineSharing:
    """Interfaces of this machine, given by name, shared with the other processes in the network namespace.

    The node uses it as its :class:`~mxwire.protocol.peers.Sharing`.

    Raises :class:`~mxwire.link.LinkError` if the peer table belongs to another user.
    """

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._interfaces = tuple(interfaces)
        self._claims: dict[str, _Claim] = {}
        self._cache: dict[str, tuple[float, bool]] = {}
        self._namespace = NetworkNamespace()
        """The network namespace of the interfaces; threads that move to another namespace later still claim in this
        one."""
        self._peers = SharedPeerTable()
        self.path = SharedMemoryPath(self._address_of, self._socket)
        """Channels to the endpoints of the other processes."""

    # For the node.

    def place_of(self, address: bytes) -> int:
        """Index of a peer in the peer table of all processes."""
        return self._peers.place_of(address)

    def places(self) -> Sequence[bytes]:
        """Addresses of all peers, by index."""
        return self._peers.places()

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """True if another process has that endpoint open; cached for up to 0.1 s."""
        name = self._endpoint(interface, endpoint)
        until, answer = self._cache.get(name, (0.0, False))
        now = time.monotonic()
        if now >= until:
            answer = self._is_taken(name)
            self._cache[name] = (now + (_CLAIMED_FOR if answer else _FREE_FOR), answer)
        return answer

    def speaks(self, interface: int) -> bool:
        """True if this process answers for the interface: the first process does, and after its end the next one."""
        name = f"{self._interfaces[interface]}/host"
        return name in self._claims or self._bind(name)

    # For the host.

    def claim(self, interface: int, endpoint: int) -> None:
        """Claim an endpoint number on an interface.

        Raises :class:`~mxwire.host.errors.HostError` if another process has claimed it.
        """
        if not self._bind(self._endpoint(interface, endpoint)):
            owner = self.owner(interface, endpoint) or "another process"
            raise HostError(
                Status.BUSY, f"endpoint {endpoint} of {self._interfaces[interface]} is taken by {owner}: choose another"
            )
        self.path.listen(self._claims[self._endpoint(interface, endpoint)].identity)

    def release(self, interface: int, endpoint: int) -> None:
        """Release an endpoint number."""
        claim = self._claims.pop(self._endpoint(interface, endpoint), None)
        if claim is not None:
            self.path.ignore(claim.identity)
            claim.close()

    def owner(self, interface: int, endpoint: int) -> str | None:
        """``process 1234``, or None if no other process has the endpoint."""
        name = self._endpoint(interface, endpoint)
        if name in self._claims or not self._is_taken(name):
            return None
        with self._socket(socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asking:
            try:
                asking.connect(_address(name))
                found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            except OSError:
                return "another process"
        process = _CREDENTIALS.unpack(found)[0]
        return f"process {process}" if process != os.getpid() else "another host of this process"

    def close(self) -> None:
        """Release all claims, and close all channels."""
        self.path.close()
        for each in self._claims.values():
            each.close()
        self._claims.clear()
        self._peers.close()
        self._namespace.close()

    def _endpoint(self, interface: int, endpoint: int) -> str:
        return f"{self._interfaces[interface]}/{endpoint}"

    def _address_of(self, interface: int, endpoint: int) -> str:
        return _address(self._endpoint(interface, endpoint))

    def _bind(self, name: str) -> bool:
        try:
            self._claims[name] = _Claim(name, self._socket)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise LinkError(f"{name} cannot be claimed: {error.strerror}") from None
            return False
        return True

    def _is_taken(self, name: str) -> bool:
        """True if a name is claimed. Connecting a datagram socket leaves no trace at the owner."""
        with self._socket(socket.SOCK_DGRAM) as asking:
            try:
                asking.connect(_address(name))
            except ConnectionRefusedError:
                return False
            except OSError:
                return True
        return True

    def _socket(self, kind: int) -> socket.socket:
        """A Unix socket in the namespace of the interfaces, to which its name belongs."""
        try:
            with self._namespace.visited():
                return keep_from_children(socket.socket(socket.AF_UNIX, kind))
        except PermissionError:
            raise MxwireError(
                f"{', '.join(self._interfaces)}: this thread has left the network namespace of the interface, and may "
                f"not enter it again: call the host from another thread, or with CAP_SYS_ADMIN"
            ) from None


class _Claim:
    """Two sockets with one name: the datagram socket is the claim, the stream socket identifies its owner.

    SO_PEERCRED at the side that connects to the stream socket shows the process; the channels of the local path begin
    with such a connection.
    """

    def __init__(self, name: str, make: Callable[[int], socket.socket]) -> None:
        self._sockets = [make(kind) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)]
        try:
            for each in self._sockets:
                each.bind(_address(name))
            self.identity = self._sockets[1]
            self.identity.listen(_BACKLOG)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Release the name."""
        for each in self._sockets:
            each.close()


def _address(name: str) -> str:
    return f"\0mxwire/{name}"


class SharedPeerTable:
    """The peer table of the network namespace that this thread is in, a file in ``folder``.

    All processes take peer indexes from it. It holds six bytes per address; an address has the index of its first
    entry. Entries are only ever appended, which the kernel does for one process at a time, and the file is removed
    with the last process that uses it. Raises :class:`~mxwire.link.LinkError` if it belongs to another user, or the
    memory is full.
    """

    def __init__(self, folder: Path | None = None) -> None:
        with NetworkNamespace() as namespace:
            device, number = namespace.identity
        folder = folder or _folder()
        self.path = folder / f"{_PREFIX}{device:x}-{number:x}"
        _sweep(folder)
        self._file = self._open()
        self._places: list[bytes] = []
        self._first: dict[bytes, int] = {}

    def place_of(self, address: bytes) -> int:
        """Index of a peer, added if it is new."""
        self._read()
        if address not in self._first:
            try:
                os.write(self._file, address)
            except OSError as error:
                raise self._refusal(error) from error
            self._read()
        return self._first[address]

    def places(self) -> Sequence[bytes]:
        """Addresses of all peers, by index; an address that is listed twice has the first index."""
        self._read()
        return self._places

    def close(self) -> None:
        """Leave the table, and remove the file if no other process uses it; closing it again does nothing."""
        if self._file < 0:
            return
        _remove_if_unused(self.path, self._file)
        os.close(self._file)
        self._file = -1

    def _refusal(self, error: OSError) -> LinkError:
        others = "; all processes on one interface must belong to the same user" if error.errno in _FOREIGN else ""
        return LinkError(f"{self.path}: the shared peer table cannot be used: {error.strerror}{others}")

    def _read(self) -> None:
        done = len(self._places) * ADDRESS_SIZE
        if os.fstat(self._file).st_size < done + ADDRESS_SIZE:
            return
        added = os.pread(self._file, _LONGEST, done)
        for start in range(0, len(added) - ADDRESS_SIZE + 1, ADDRESS_SIZE):
            address = added[start : start + ADDRESS_SIZE]
            self._first.setdefault(address, len(self._places))
            self._places.append(address)

    def _open(self) -> int:
        """Open the file with a shared lock, which marks it as used; empty it if no other process has one."""
        while True:
            try:
                opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise self._refusal(error) from error
            try:
                self._lock(opened)
            except LinkError:
                os.close(opened)
                raise
            if os.fstat(opened).st_nlink:
                return opened
            # The last process that used the file has just removed it, so open its successor.
            os.close(opened)

    def _lock(self, opened: int) -> None:
        """Take the shared lock of a file that only this user can open; others could hold the lock indefinitely."""
        status = os.fstat(opened)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077 or not stat.S_ISREG(status.st_mode):
            raise LinkError(
                f"{self.path}: the shared peer table belongs to user {status.st_uid} with mode "
                f"{stat.S_IMODE(status.st_mode):04o}, and must be a file of user {os.geteuid()} with mode 0600: "
                "remove it"
            )
        with suppress(BlockingIOError):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(opened, 0)
        until = time.monotonic() + _LOCKED_FOR
        while True:
            try:
                return fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise LinkError(f"{self.path}: another process has locked the shared peer table: end it") from None
                time.sleep(0.001)


def _remove_if_unused(path: Path, opened: int) -> None:
    with suppress(OSError):
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove the tables of this user whose processes were killed."""
    for each in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            opened = os.open(each, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                _remove_if_unused(each, opened)
            finally:
                os.close(opened)


def _folder() -> Path:
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
