"""SharedPeers: the one peer table that all processes in a network namespace number their peers by.

A file in memory, six bytes an address; an address has the index of the place where it stands first. It is only ever
appended to, which the kernel does for one process at a time, and it goes with the last process that uses it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import ADDRESS_SIZE

_LONGEST: Final = ADDRESS_SIZE * 65536
_PREFIX: Final = "mxwire-peers-"
_SHARED_MEMORY: Final = Path("/dev/shm")


class SharedPeers:
    """The table of the network namespace that this thread is in; ``folder`` is where it lies.

    Raises :class:`~mxwire.errors.MxwireError` where it cannot be used, since it belongs to another user.
    """

    def __init__(self, folder: Path | None = None) -> None:
        namespace = os.stat("/proc/thread-self/ns/net")  # noqa: PTH116
        folder = folder or _folder()
        self.path = folder / f"{_PREFIX}{namespace.st_dev:x}-{namespace.st_ino:x}"
        _sweep(folder)
        self._file = self._open()
        self._places: list[bytes] = []
        self._first: dict[bytes, int] = {}

    def place_of(self, address: bytes) -> int:
        """The index of a peer, entered if it is new."""
        self._read()
        if address not in self._first:
            os.write(self._file, address)
            self._read()
        return self._first[address]

    def places(self) -> Sequence[bytes]:
        """The addresses of all peers, by index; one that stands there twice has the first of its indexes."""
        self._read()
        return self._places

    def close(self) -> None:
        """Leave the table, and take it away if nobody else uses it; calling it again does nothing."""
        if self._file < 0:
            return
        _remove_if_unused(self.path, self._file)
        os.close(self._file)
        self._file = -1

    def _read(self) -> None:
        done = len(self._places) * ADDRESS_SIZE
        if os.fstat(self._file).st_size < done + ADDRESS_SIZE:
            return
        news = os.pread(self._file, _LONGEST, done)
        for start in range(0, len(news) - ADDRESS_SIZE + 1, ADDRESS_SIZE):
            address = news[start : start + ADDRESS_SIZE]
            self._first.setdefault(address, len(self._places))
            self._places.append(address)

    def _open(self) -> int:
        """Open the table and let others see that it is used; what nobody has used before is emptied."""
        while True:
            try:
                opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise MxwireError(
                    f"{self.path}: the peer table that processes share cannot be used: {error.strerror}; "
                    f"all processes on one interface must belong to the same user"
                ) from None
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(opened, 0)
            except BlockingIOError:
                pass
            fcntl.flock(opened, fcntl.LOCK_SH)
            if os.fstat(opened).st_nlink:
                return opened
            # Its last user has taken it away meanwhile.
            os.close(opened)


def _remove_if_unused(path: Path, opened: int) -> None:
    with suppress(OSError):
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Take away the tables of this user whose processes were killed."""
    for each in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            opened = os.open(each, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                _remove_if_unused(each, opened)
            finally:
                os.close(opened)


def _folder() -> Path:
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
