"""Errors caused by the user: one clear line each, with the problem, its place and the remedy."""

from __future__ import annotations

import errno
from typing import Final, Self

from mxwire.words import printable


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
