"""Runtime folder: where the processes of one user keep the files and sockets through which they share interfaces.

The folder depends on the user and the machine only, and on no variable of a login session: a program finds the same
one under sudo, under ssh, as a service, and in a session. Other users cannot enter it, so they cannot take a name in
it, lock or fill a file, or connect to a socket.
"""

from __future__ import annotations

import ctypes
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from mxwire.link.errors import LinkError
from mxwire.link.namespace import NetworkNamespace

RUNTIME_VARIABLE: Final = "MXWIRE_RUNTIME_DIR"
"""The variable that names another folder, for containers that share a network namespace, for example."""
_SYSTEM: Final = Path("/run")
_TEMPORARY: Final = Path("/tmp")
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_LETTERS: Final = 8


def runtime_folder(*, make: bool = False) -> Path:
    """Return the runtime folder of this user; with ``make``, create it if necessary.

    It is ``/run/mxwire`` for root, and ``/run/user/UID/mxwire`` for others. Where that directory is not the user's own,
    it is ``/tmp/mxwire-UID``; once that exists, users other than root keep to it. ``MXWIRE_RUNTIME_DIR`` names another
    folder, except in programs with privileges that their user does not have. Raises :class:`~mxwire.link.LinkError` if
    others could have put files there: it is not a folder, belongs to another user, or is accessible to others.
    """
    folder = _chosen() or _usual()
    try:
        if make:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        status = folder.lstat()
        parent = folder.parent.stat()
    except FileNotFoundError as error:
        if make:
            raise LinkError(f"{folder}: {error.strerror}; {_ADVICE}") from None
        return folder
    except OSError as error:
        raise LinkError(f"{folder}: {error.strerror}; {_ADVICE}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise LinkError(f"{folder}: is not a folder, and belongs to user {status.st_uid}; {_ADVICE}")
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise LinkError(
            f"{folder}: belongs to user {status.st_uid} with mode {stat.S_IMODE(status.st_mode):04o}, and must belong "
            f"to user {os.geteuid()} with mode 0700; {_ADVICE}"
        )
    if parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX:
        raise LinkError(f"{folder}: any user may replace it; chmod +t {folder.parent}")
    return folder


_ADVICE: Final = f"remove it, or set {RUNTIME_VARIABLE} to a folder of yours for all programs on the interface"


def namespace_key(namespace: NetworkNamespace) -> str:
    """Name of a network namespace that no other one has, on this machine and since it was started."""
    device, number = namespace.identity
    try:
        boot = _BOOT.read_text()[:_BOOT_LETTERS]
    except OSError:
        boot = "0"
    return f"{boot}-{device:x}-{number:x}"


def _chosen() -> Path | None:
    # Unlike os.environ, this is empty in a program that runs with privileges of a file (AT_SECURE).
    get = ctypes.CDLL(None).secure_getenv
    get.restype = ctypes.c_char_p
    value = get(RUNTIME_VARIABLE.encode())
    if not value:
        return None
    chosen = Path(os.fsdecode(value))
    if not chosen.is_absolute():
        raise LinkError(f"{RUNTIME_VARIABLE}={chosen}: is not an absolute path")
    return chosen


def _usual() -> Path:
    user = os.geteuid()
    temporary = _TEMPORARY / f"mxwire-{user}"
    base = _SYSTEM if user == 0 else _SYSTEM / "user" / str(user)
    # A process that was started before the first login of its user may still use the temporary folder.
    remains = user != 0 and _is_own(temporary)
    return base / "mxwire" if not remains and _is_own(base) else temporary


def _is_own(folder: Path) -> bool:
    """True if only this user can make files in a folder."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return stat.S_ISDIR(status.st_mode) and own and os.access(folder, os.W_OK | os.X_OK)
