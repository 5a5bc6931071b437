"""The peer table that the processes of one user share in a network namespace: a file in their runtime folder.

Theory of operation
===================

Each network namespace has a folder below the runtime folder, with the file ``peers``. Each row of it is a peer of one
interface, and a peer has the number of the first row with its address as its index. So an index means the same peer in
all processes, also in those with several interfaces, and a process sees the peers of its own interfaces only. A row
also holds the name of the peer, once a process has learnt it, and the times of the last two host queries for it: a host
is queried by one process for all.

A process that has a peer in its own table holds a shared lock of one byte for it. When the last one has left it, the
row becomes blank, and its number the index of another peer; rows of processes that were killed become blank when there
would be too many. Rows change under a lock, and with each change the number in front of them does, by which the other
processes notice. The file is so small, whatever hosts are announced, that all of it is read then.

A process holds a shared lock of one byte while it uses the table. The folder is removed with the last process that uses
it; if that was killed, by the next process that is started.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import time
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxwire.link.byte_locks import LockableFile
from mxwire.link.errors import LinkError
from mxwire.protocol.peers import query_is_due
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, NO_PEER_INDEX

_NAME_MAXIMUM: Final = HOST_NAME_MAXIMUM - 1
_KEY: Final = struct.Struct("=6s16s2x")
"""Address and interface of a row."""
_STATE: Final = struct.Struct(f"=qqB{_NAME_MAXIMUM}s")
"""Times in ns of the last query but one and of the last one, length of the name, name; behind the key."""
_ROW: Final = struct.Struct(f"{_KEY.format}{_STATE.format[1:]}8x")
"""A row. Its size divides that of a page, so a file system that is full takes whole rows or none."""
_HEADER: Final = struct.Struct("=Q")
"""The number of changes of addresses; the first row is behind it, at the size of a row."""
_BLANK: Final = bytes(_ROW.size)
_COMPARED: Final = 32 * _ROW.size
"""Bytes that are compared at once with those of the last reading."""
_ROWS_MAXIMUM: Final = 16384
"""Rows from which those of killed processes become blank; more are added if none can."""
_IN_USE: Final = 1 << 40
"""The byte that each process locks while it uses the table; it is beyond the end of the file."""
_CHANGE: Final = _IN_USE + 1
"""The byte that is locked while addresses change."""
_HELD: Final = _IN_USE + 2
"""The byte that processes lock that have the peer with index 0; those of other indexes follow."""
_OF_ROW: Final = _HELD + NO_PEER_INDEX + 1
"""The byte that is locked while the state of the first row is read and changed; those of other rows follow."""
_CHANGED_FOR: Final = 1.0
"""Seconds to wait for another process that changes addresses: on a busy machine it may not run for a while."""
_LOCKED_FOR: Final = 1.0
"""Seconds to wait for the table, which other processes lock only while they open or remove it."""
_TABLE: Final = "peers"


@dataclass(slots=True)
class _RowState:
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
        self._interfaces = [each.encode()[:16] for each in interfaces]
        self._file = self._open()
        # systemd-tmpfiles removes old files in /tmp, but none of a folder with a lock.
        self._folder_lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(BlockingIOError):
            fcntl.flock(self._folder_lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._is_stuck = False
        """True if another process has not ended its change within the time to wait for it."""
        self._changes = -1
        self._content = bytearray()
        """The rows as they were last read or written."""
        self._where: list[tuple[bytes, bytes]] = []
        """Address and interface of each row; blank rows have no interface."""
        self._rows: dict[bytes, list[int]] = {}
        """The numbers of rows by address, in ascending order."""
        self._blank: dict[int, None] = {}
        """The numbers of blank rows; an ordered set."""
        self._held: set[bytes] = set()
        """The peers of this process."""
        self._news: dict[bytes, None] = {}
        """The addresses that were added since the last call of :meth:`news`; an ordered set."""

    def place_of(self, address: bytes) -> int | None:
        """Index of a peer, which is added to all interfaces if it is new, and keeps the index until :meth:`leave`.

        None if all indexes are taken, or another process does not end its change of the table.
        """
        with self._changing() as may_change:
            if not may_change:
                return None
            for each in self._interfaces:
                if self._row_of(address, each) is None and not self._add(address, each):
                    return None
            place = self._rows[address][0]
            if not self._file.try_lock(_HELD + place, fcntl.F_RDLCK):
                return None
            self._held.add(address)
            return place

    def leave(self, address: bytes) -> None:
        """Leave the index of a peer to another one, unless another process has the peer."""
        if address not in self._held:
            return
        self._held.remove(address)
        # Before the row is cleared, which is done only if no process holds it.
        self._file.unlock(_HELD + self._rows[address][0])
        with self._changing() as may_change:
            if may_change:
                self._clear(address)

    def index_of(self, address: bytes) -> int | None:
        """Index of a peer of the interfaces that another process has, or None."""
        self._read()
        rows = self._rows.get(address)
        if not rows or not any(self._where[each][1] in self._interfaces for each in rows):
            return None
        return rows[0] if self._file.is_locked(_HELD + rows[0]) else None

    def address_at(self, index: int) -> bytes | None:
        """Address of the peer with an index that another process has, or None."""
        self._read()
        address = self._where[index][0] if index < len(self._where) else b""
        return address if self.index_of(address) == index else None

    def news(self) -> Sequence[bytes]:
        """Addresses of the peers that other processes have added to the interfaces since the last call."""
        self._read()
        news, self._news = self._news, {}
        return [each for each in news if self.index_of(each) is not None]

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
        if self._folder_lock >= 0:
            os.close(self._folder_lock)
            self._folder_lock = -1

    @contextmanager
    def _state(self, interface: int, address: bytes) -> Iterator[_RowState | None]:
        """The state of a peer, written back if it is changed; None while another process has it."""
        name = self._interfaces[interface]
        if self._row_of(address, name) is None:
            self.place_of(address)
        place = self._row_of(address, name)
        if place is None:
            yield None
            return
        if not self._file.try_lock(_OF_ROW + place):
            yield None
            return
        try:
            at = (place + 1) * _ROW.size + _KEY.size
            found = os.pread(self._file.descriptor, _STATE.size, at)
            before, last, length, text = _STATE.unpack(found.ljust(_STATE.size, b"\0"))
            state = _RowState(before, last, text[:length])
            yield state
            changed = _STATE.pack(state.before, state.last, len(state.name), state.name)
            if changed != found:
                os.pwrite(self._file.descriptor, changed, at)
        finally:
            self._file.unlock(_OF_ROW + place)

    def _row_of(self, address: bytes, interface: bytes) -> int | None:
        for place in self._rows.get(address, ()):
            if self._where[place][1] == interface:
                return place
        return None

    @contextmanager
    def _changing(self) -> Iterator[bool]:
        """Let no other process change addresses; False if one does so for too long, as if it was stopped. Do not wait
        for that process again until it has ended its change."""
        until = time.monotonic() + (0 if self._is_stuck else _CHANGED_FOR)
        while not self._file.try_lock(_CHANGE):
            if time.monotonic() > until:
                self._is_stuck = True
                yield False
                return
            time.sleep(0.0001)
        self._is_stuck = False
        try:
            self._read()
            yield True
        finally:
            self._file.unlock(_CHANGE)

    def _add(self, address: bytes, interface: bytes) -> bool:
        """Add a row; return False if all numbers are taken."""
        # The first row, whose number is the index, must stay the first one.
        first = self._rows[address][0] if address in self._rows else -1
        if not self._blank and len(self._where) >= _ROWS_MAXIMUM:
            for each in list(self._rows):
                self._clear(each)
        place = next((each for each in self._blank if each > first), len(self._where))
        if place >= NO_PEER_INDEX:
            return False
        self._write(place, _ROW.pack(address, interface, 0, 0, 0, b""))
        self._note(place, address, interface)
        # News are the peers that others add.
        self._news.pop(address, None)
        return True

    def _clear(self, address: bytes) -> None:
        """Make the rows of a peer blank that no process has."""
        rows = self._rows.get(address)
        if rows and address not in self._held and not self._file.is_locked(_HELD + rows[0]):
            for place in list(rows):
                self._write(place, _BLANK)
                self._note(place, b"", b"")

    def _write(self, place: int, row: bytes) -> None:
        try:
            if os.fstat(self._file.descriptor).st_size < len(self._where) * _ROW.size:
                raise LinkError(f"{self._file.path}: another program has changed the shared peer table; end it")
            written = os.pwrite(self._file.descriptor, row, (place + 1) * _ROW.size)
            if written < len(row):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            # After the row: a process that sees the new number must find the new row.
            self._content[place * _ROW.size : (place + 1) * _ROW.size] = row
            self._changes += 1
            os.pwrite(self._file.descriptor, _HEADER.pack(self._changes), 0)
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> LinkError:
        return LinkError(f"{self.folder / _TABLE}: the shared peer table cannot be used: {error.strerror}")

    def _read(self) -> None:
        """Read the rows that have changed."""
        changes = int.from_bytes(os.pread(self._file.descriptor, _HEADER.size, 0), sys.byteorder)
        if changes == self._changes:
            return
        self._changes = changes
        # Whole rows only: another process may be about to append one.
        size = os.fstat(self._file.descriptor).st_size // _ROW.size * _ROW.size
        content = os.pread(self._file.descriptor, max(0, size - _ROW.size), _ROW.size)
        for start in range(0, len(content), _COMPARED):
            part = content[start : start + _COMPARED]
            if part != self._content[start : start + _COMPARED]:
                for place, row in enumerate(_ROW.iter_unpack(part), start // _ROW.size):
                    self._note(place, row[0], row[1].rstrip(b"\0"))
        self._content = bytearray(content)

    def _note(self, place: int, address: bytes, interface: bytes) -> None:
        """Note the content of a row."""
        while place >= len(self._where):
            self._blank[len(self._where)] = None
            self._where.append((b"", b""))
        now = (address, interface) if interface else (b"", b"")
        before, self._where[place] = self._where[place], now
        if before == now:
            return
        if before[1]:
            rows = self._rows[before[0]]
            rows.remove(place)
            if not rows:
                del self._rows[before[0]]
        if not interface:
            self._blank[place] = None
            return
        self._blank.pop(place, None)
        insort(self._rows.setdefault(address, []), place)
        if interface in self._interfaces:
            self._news[address] = None

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
                raise LinkError(
                    f"{self.folder / _TABLE}: another process of this user has locked the shared peer table: end it "
                    "(fuser prints its number)"
                )
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
