"""Locks of single bytes of a file, by which processes claim what they share.

These are locks of an open file description: they also exclude another opening of the file in this process, and the
kernel releases them at the end of the process. No call waits.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from pathlib import Path
from typing import Final

from mxwire.link.errors import LinkError
from mxwire.link.fork import keep_from_children

_FLOCK: Final = struct.Struct("hhqqi")
"""struct flock: type, origin, start, length, process."""


class LockableFile:
    """A file that only this user can open, created if necessary; children of a fork close it.

    Raises :class:`~mxwire.link.LinkError` if others could open it or it cannot be opened, and
    :class:`FileNotFoundError` without its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            advice = "; remove it" if path.is_symlink() or path.is_dir() else ""
            raise LinkError(f"{path}: cannot be opened: {error.strerror}{advice}") from error
        status = os.fstat(self._descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077 or not stat.S_ISREG(status.st_mode):
            self.close()
            raise LinkError(
                f"{path}: belongs to user {status.st_uid} with mode {stat.S_IMODE(status.st_mode):04o}, and must be a "
                f"file of user {os.geteuid()} with mode 0600; remove it"
            )
        keep_from_children(self)

    @property
    def descriptor(self) -> int:
        """Its descriptor. Raises :class:`~mxwire.link.LinkError` after it was closed."""
        if self.closed:
            raise LinkError(
                f"{self.path}: is closed: a host belongs to the process that opened it, not to its children"
            )
        return self._descriptor

    @property
    def closed(self) -> bool:
        """True if it was closed, in this process or because this is the child of a fork."""
        return self._descriptor < 0

    def try_lock(self, place: int, kind: int = fcntl.F_WRLCK) -> bool:
        """Lock a byte, or change its lock to another kind; return False if another opening has it locked."""
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, place, 1, 0))
        except BlockingIOError:
            return False
        return True

    def unlock(self, place: int) -> None:
        """Release a byte."""
        self.try_lock(place, fcntl.F_UNLCK)

    def is_locked(self, place: int) -> bool:
        """Return whether another opening of the file has a byte locked."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
        return bool(_FLOCK.unpack(fcntl.fcntl(self.descriptor, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK)

    def close(self) -> None:
        """Close the file, which releases its locks; closing again does nothing."""
        if not self.closed:
            os.close(self._descriptor)
            self._descriptor = -1
