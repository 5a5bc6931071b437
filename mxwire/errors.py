"""Errors caused by the user: one clear line each, with the problem, its place and the remedy.

Files that commands write are checked, written and reported here.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR
from typing import Final, Self

from mxwire.words import printable

_EFFECTIVE_IDS = os.access in os.supports_effective_ids
"""True if permissions of the effective user can be checked; the real user differs in programs that drop root."""


class MxwireError(Exception):
    """Invalid input or use; the text is one line for the user.

    Commands print it and exit with code 2.
    """


class OptionError(MxwireError):
    """Options that are wrong on every machine, so that all processes of an MPI job raise this error."""


class CaptureError(MxwireError):
    """A capture file that cannot be read or written."""


class CaptureNotFoundError(CaptureError, FileNotFoundError):
    """A capture file that does not exist."""


class OutputError(MxwireError):
    """The output cannot be written: processing more input would have no effect."""

    @classmethod
    def of(cls, name: object, error: OSError, action: str = "written") -> Self:
        """Error for a file or folder, with the reason of the operating system, and the remedy."""
        return cls(f"{printable(str(name))}: cannot be {action}: {write_failure(error)}")


class CaptureOutputError(CaptureError, OutputError):
    """A capture file that cannot be written."""


class MergeError(MxwireError):
    """The captures do not show the same traffic, or not enough of it to compare their clocks."""


class InvalidRecordError(MxwireError):
    """Shared memory with content that no correct process writes; the channel to that process ends."""


_REMEDIES: Final = {
    errno.EACCES: "choose a writable place",
    errno.EPERM: "choose a writable place",
    errno.EROFS: "choose a writable place",
    errno.ENOENT: "create its directory first",
    errno.ENOTDIR: "a part of its path is a file: choose another place",
    errno.EISDIR: "name a file in it",
    errno.EEXIST: "a file has the name of a directory: choose another place",
    errno.ENOSPC: "free some space, or choose another place",
    errno.EDQUOT: "free some space, or choose another place",
}


def write_failure(error: OSError) -> str:
    """Return the reason why a file cannot be written, and the remedy if there is a usual one."""
    reason = printable(error.strerror or str(error))
    remedy = _REMEDIES.get(error.errno or 0)
    return reason if remedy is None else f"{reason}; {remedy}"


def check_writable(path: Path) -> None:
    """Raise :class:`OutputError` if a file could not be written, without touching it."""
    try:
        if path.is_dir():
            raise _failure(errno.EISDIR)
        if not S_ISDIR(path.parent.stat().st_mode):
            raise _failure(errno.ENOTDIR)
        if not os.access(path if path.exists() else path.parent, os.W_OK, effective_ids=_EFFECTIVE_IDS):
            raise _failure(errno.EACCES)
    except OSError as error:
        raise OutputError.of(path, error) from None


def check_regular(path: Path) -> None:
    """Raise :class:`OutputError` if a file is a device or pipe.

    A finished file that is moved into its place would replace it, and reading its earlier content might never end.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OutputError(f"{path}: cannot be written: it is a device or pipe; name a regular file")


def _failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, a text as UTF-8; raise :class:`OutputError` if it cannot be written."""
    try:
        # Names of hosts come from the wire, and may have no encoding.
        path.write_bytes(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
    except OSError as error:
        raise OutputError.of(path, error) from None


def create_folder(folder: Path) -> None:
    """Create a folder and those above it, unless it exists; raise :class:`OutputError` if it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError.of(folder, error, "created") from None
