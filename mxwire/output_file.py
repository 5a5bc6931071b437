"""Files that commands write: checked beforehand, written, and reported with the remedy if they cannot be."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISDIR

from mxwire.errors import OutputError

_EFFECTIVE_IDS = os.access in os.supports_effective_ids
"""True if permissions of the effective user can be checked; the real user differs in programs that drop root."""


def check_writable(path: Path) -> None:
    """Raise :class:`~mxwire.errors.OutputError` if a file could not be written, without touching it."""
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
    """Raise :class:`~mxwire.errors.OutputError` if a file is a device or pipe.

    A finished file that is moved into its place would replace it, and reading its earlier content might never end.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OutputError(f"{path}: cannot be written: it is a device or pipe; name a regular file")


def _failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, a text as UTF-8; raise :class:`~mxwire.errors.OutputError` if it cannot be written."""
    try:
        # Names of hosts come from the wire, and may have no encoding.
        path.write_bytes(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
    except OSError as error:
        raise OutputError.of(path, error) from None


def create_folder(folder: Path) -> None:
    """Create a folder and those above it, unless it exists; raise :class:`~mxwire.errors.OutputError` if it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError.of(folder, error, "created") from None
