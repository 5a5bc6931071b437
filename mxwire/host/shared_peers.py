"""The peer table that the processes of one user share in a network namespace: a file in their runtime folder.

Theory of operation
===================

Each network namespace has a folder below the runtime folder, with the file ``peers``. Each row of it is a peer of one
interface. Rows are only ever appended, which the kernel does for one process at a time, and a peer has the number of
the first row with its address as its index. So an index means the same peer in all processes, also in those with
several interfaces, and a process sees the peers of its own interfaces only. A row also holds the name of the peer, once
a process has learnt it, and the times of the last two host queries for it: a host is queried by one process for all.

A process holds a shared lock of one byte while it uses the table. The folder is removed with the last process that uses
it; if that was killed, by the next process that is started.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxwire.link.byte_locks import LockableFile
from mxwire.link.errors import LinkError
from mxwire.protocol.peers import query_is_due
from mxwire.wire.numbers import NO_PEER_INDEX

_ROW: Final = struct.Struct("=6s16s2xqqB79s8x")
"""A row: address, interface, times in ns of the last query but one and of the last one, length of the name, name. Its
size divides that of a page, so a file system that is full takes whole rows or none."""
_STATE: Final = struct.Struct("=qqB79s")
_STATE_AT: Final = 24
_NAME_MAXIMUM: Final = 79
_IN_USE: Final = 1 << 40
"""The byte that each process locks while it uses the table; it is beyond the end of the file."""
_OF_ROW: Final = _IN_USE + 1
"""The byte that is locked while the state of the first row is read and changed; those of other rows follow."""
_LOCKED_FOR: Final = 1.0
"""Seconds to wait for the table, which other processes lock only while they open or remove it."""
_TABLE: Final = "peers"


@dataclass(slots=True)
class _State:
    """The part of a row that changes."""

    before: int
    """Time of the host query before the last one, in ns; 0 without one."""
    last: int
    """Time of the last host query."""
    name: bytes
    """Name of the peer; empty while unknown."""


class SharedPeerTable:
    """The peers of ``interfaces``, in the folder of their network namespace, which is created if necessary.

    Raises :class:`~mxwire.link.LinkError` if the file belongs to another user, is locked, or the memory is full.
    """

    def __init__(self, folder: Path, interfaces: Sequence[str]) -> None:
        self.folder = folder
        self._interfaces = [each.encode()[:16].ljust(16, b"\0") for each in interfaces]
        self._file = self._open()
        self._rows: dict[tuple[bytes, bytes], int] = {}
        """The numbers of rows, by address and interface."""
        self._first: dict[bytes, int] = {}
        self._read_rows = 0
        self._visible: dict[bytes, None] = {}
        self._places: list[tuple[int, bytes]] = []

    def place_of(self, address: bytes) -> int:
        """Index of a peer, added to all interfaces if it is new."""
        self._read()
        for each in self._interfaces:
            if (address, each) not in self._rows:
                self._append(_ROW.pack(address, each, 0, 0, 0, b""))
        self._read()
        place = self._first.get(address)
        if place is None:
            raise LinkError(f"{self._file.path}: another program has changed the shared peer table; end it")
        if place >= NO_PEER_INDEX:
            raise LinkError(f"{self._file.path}: the shared peer table is full")
        return place

    def places(self) -> Sequence[tuple[int, bytes]]:
        """Indexes and addresses of the peers of the interfaces, in the order in which they were added."""
        self._read()
        return self._places

    def name_of(self, address: bytes) -> str | None:
        """The name of a peer that a process has learnt."""
        for interface in range(len(self._interfaces)):
            with self._state(interface, address) as state:
                if state is not None and state.name:
                    return state.name.decode(errors="replace")
        return None

    def learn(self, address: bytes, name: str | None) -> None:
        """Store the name of a peer, or forget it."""
        text = (name or "").encode()
        if len(text) > _NAME_MAXIMUM:
            return
        for interface in range(len(self._interfaces)):
            with self._state(interface, address) as state:
                if state is not None:
                    state.name = text

    def may_query(self, interface: int, address: bytes, now: int, interval: int) -> bool:
        """Return whether a host query for a peer may leave an interface now, and if so, note that one does."""
        with self._state(interface, address) as state:
            if state is None or not query_is_due(state.before, state.last, now, interval):
                return False
            state.before, state.last = state.last, now
        return True

    def close(self) -> None:
        """Leave the table, and remove the folder if no other process uses it; closing it again does nothing."""
        if not self._file.closed:
            _remove_if_unused(self.folder, self._file)
            self._file.close()

    @contextmanager
    def _state(self, interface: int, address: bytes) -> Iterator[_State | None]:
        """The state of a peer, written back if it is changed; None while another process has it."""
        name = self._interfaces[interface]
        if (address, name) not in self._rows:
            self.place_of(address)
        place = self._rows[address, name]
        if not self._file.try_lock(_OF_ROW + place):
            yield None
            return
        try:
            at = place * _ROW.size + _STATE_AT
            found = os.pread(self._file.descriptor, _STATE.size, at)
            before, last, length, text = _STATE.unpack(found.ljust(_STATE.size, b"\0"))
            state = _State(before, last, text[:length])
            yield state
            changed = _STATE.pack(state.before, state.last, len(state.name), state.name)
            if changed != found:
                os.pwrite(self._file.descriptor, changed, at)
        finally:
            self._file.unlock(_OF_ROW + place)

    def _append(self, row: bytes) -> None:
        try:
            written = os.pwritev(self._file.descriptor, [row], 0, os.RWF_APPEND)
        except OSError as error:
            raise self._refusal(error) from error
        if written < len(row):
            raise self._refusal(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def _refusal(self, error: OSError) -> LinkError:
        return LinkError(f"{self.folder / _TABLE}: the shared peer table cannot be used: {error.strerror}")

    def _read(self) -> None:
        done = self._read_rows * _ROW.size
        left = os.fstat(self._file.descriptor).st_size - done
        if left < _ROW.size:
            return
        added = os.pread(self._file.descriptor, left, done)
        for place, row in enumerate(_ROW.iter_unpack(added[: len(added) // _ROW.size * _ROW.size]), self._read_rows):
            address, interface = row[:2]
            first = self._first.setdefault(address, place)
            self._rows.setdefault((address, interface), place)
            if interface in self._interfaces and address not in self._visible:
                self._visible[address] = None
                self._places.append((first, address))
            self._read_rows = place + 1

    def _open(self) -> LockableFile:
        """Open the file with a shared lock, which marks it as used; empty it if no other process has one."""
        until = time.monotonic() + _LOCKED_FOR
        while True:
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                opened = LockableFile(self.folder / _TABLE)
            except FileNotFoundError:
                # The last process that used the folder has just removed it.
                opened = None
            except FileExistsError:
                raise LinkError(f"{self.folder}: is not a folder; remove it") from None
            except OSError as error:
                raise self._refusal(error) from error
            if opened is not None:
                if opened.try_lock(_IN_USE):
                    os.ftruncate(opened.descriptor, 0)
                if opened.try_lock(_IN_USE, fcntl.F_RDLCK) and os.fstat(opened.descriptor).st_nlink:
                    return opened
                opened.close()
            if time.monotonic() > until:
                raise LinkError(f"{self.folder / _TABLE}: another process has locked the shared peer table; end it")
            time.sleep(0.001)


def remove_unused(folders: Iterator[Path]) -> None:
    """Remove the folders of network namespaces whose processes were killed."""
    for each in folders:
        if (each / _TABLE).exists():
            with suppress(OSError, LinkError):
                opened = LockableFile(each / _TABLE)
                _remove_if_unused(each, opened)
                opened.close()
        else:
            with suppress(OSError):
                each.rmdir()


def _remove_if_unused(folder: Path, opened: LockableFile) -> None:
    with suppress(OSError):
        if opened.try_lock(_IN_USE):
            # The table is last: a process that finds it waits for its lock, and then makes another folder.
            for each in sorted(folder.iterdir(), key=lambda found: found.name == _TABLE):
                each.unlink(missing_ok=True)
            folder.rmdir()
