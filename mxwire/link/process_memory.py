"""Memory of other processes, accessed by process_vm_readv and writev or through /proc, and the permission for it.

Each of two processes announces the address of a token of random bytes, and the other checks whether it can read them. A
container or the user may forbid it, and so may Yama unless the owner of the memory permits it (prctl).
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

TOKEN_SIZE: Final = 16
_CHUNK: Final = 1 << 26
"""Bytes per call of process_vm_readv and process_vm_writev."""
_ADDRESSES: Final = 1 << 63
"""Addresses above the user's half do not exist."""
_YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_PR_SET_PTRACER: Final = 0x59616D61
_PR_SET_PTRACER_ANY: Final = ctypes.c_ulong(-1).value
_token: Final = bytearray(secrets.token_bytes(TOKEN_SIZE))
_token_view: Final = (ctypes.c_char * TOKEN_SIZE).from_buffer(_token)


def _load(name: str) -> Any:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_ssize_t
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    return function


_readv: Final = _load("process_vm_readv")
_writev: Final = _load("process_vm_writev")


def copy_from(
    process: int, places: list[tuple[int, int]], memory: list[tuple[int, int]], length: int, offset: int = 0
) -> bool:
    """Copy the bytes from ``offset`` up to ``length`` from the memory of another process; both are lists of addresses
    and lengths.

    Return False if the kernel does not permit it, or if any of the memory does not exist.
    """
    if _readv is None or process <= 0:
        return False
    return _copy(_readv, process, memory, places, length, offset)


def _copy(
    call: Any, process: int, own: list[tuple[int, int]], other: list[tuple[int, int]], length: int, offset: int = 0
) -> bool:
    """Copy between memory of this process and of another one, in the direction of ``call``."""
    done = offset
    while done < length:
        count = min(_CHUNK, length - done)
        here, there = _vector(own, done, count), _vector(other, done, count)
        # Pass the arrays, not their addresses, because compiled code would release them after their last use, before
        # the call.
        if call(process, here, len(here) // 2, there, len(there) // 2, 0) != count:
            return False
        done += count
    return True


def _vector(places: list[tuple[int, int]], offset: int, count: int) -> ctypes.Array[ctypes.c_ulong]:
    """The part of some memory from ``offset`` as an array of struct iovec."""
    vector: list[int] = []
    for start, size in places:
        if offset >= size:
            offset -= size
            continue
        part = min(size - offset, count)
        vector.append(start + offset)
        vector.append(part)
        count -= part
        offset = 0
        if not count:
            break
    return (ctypes.c_ulong * len(vector))(*vector)


def own_token() -> tuple[bytes, int]:
    """The token of this process, and its address."""
    return bytes(_token), ctypes.addressof(_token_view)


def can_read(process: int, token: bytes, place: int) -> bool:
    """Return whether this process may read the memory of another process, which has ``token`` at the address
    ``place``."""
    memory = array("B", bytes(TOKEN_SIZE))
    copied = copy_from(process, [(place, TOKEN_SIZE)], [memory.buffer_info()], TOKEN_SIZE)
    return copied and memory.tobytes() == token


class ProcessMemory:
    """The memory of another process, opened once: it stays that of this process, whose id may be reused after its end.

    ``process`` must have ``token`` at the address ``place``. Raises :class:`OSError` if the memory may not be opened,
    or is that of another process.
    """

    def __init__(self, process: int, token: bytes, place: int) -> None:
        self._descriptor = os.open(f"/proc/{process}/mem", os.O_RDWR | os.O_CLOEXEC)
        found = bytearray(TOKEN_SIZE)
        if not self.read(place, [found]) or found != token:
            self.close()
            raise PermissionError(f"the memory of process {process} is not the announced one")

    def read(self, place: int, parts: list[Any]) -> bool:
        """Read from an address into writable buffers, at most 1,024; return False if any of it does not exist."""
        return self._move(os.preadv, place, parts)

    def write(self, place: int, parts: list[Any]) -> bool:
        """Write buffers, at most 1,024, to an address; return False if any of it does not exist."""
        return self._move(os.pwritev, place, parts)

    def _move(self, call: Any, place: int, parts: list[Any]) -> bool:
        try:
            return bool(call(self._descriptor, parts, place) == sum(map(len, parts)))
        except (OSError, OverflowError):
            # Addresses above the user's half do not fit, or do not exist.
            return False

    def close(self) -> None:
        """Close the memory; closing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class CalledMemory:
    """The memory of another process through process_vm_readv and process_vm_writev, where /proc does not offer it.

    Both name the process by its id, which may be that of another process after its end. They are therefore used only
    while ``pidfd``, of which this object has a copy, shows that it lives, and have failed unless it lives afterwards.
    Parameters and errors are those of :class:`ProcessMemory`.
    """

    def __init__(self, process: int, pidfd: int, token: bytes, place: int) -> None:
        if pidfd < 0 or _readv is None or _writev is None:
            raise PermissionError("the kernel has no calls for the memory of other processes")
        self._process = process
        # The caller's may be closed, and its number that of another file, while transfers still end.
        self._pidfd = os.dup(pidfd)
        self._poller = select.poll()
        self._poller.register(self._pidfd, select.POLLIN)
        found = bytearray(TOKEN_SIZE)
        # Write the token over itself, as reading may be permitted and writing not.
        if not self.read(place, [found]) or found != token or not self.write(place, [found]):
            self.close()
            raise PermissionError(f"the memory of process {process} is not the announced one, or forbidden")

    def read(self, place: int, parts: list[Any]) -> bool:
        """Read from an address into writable buffers; return False if any of it does not exist."""
        return self._move(_readv, place, parts)

    def write(self, place: int, parts: list[Any]) -> bool:
        """Write buffers to an address; return False if any of it does not exist."""
        return self._move(_writev, place, parts)

    def _move(self, call: Any, place: int, parts: list[Any]) -> bool:
        # NumPy refuses empty buffers.
        arrays = [np.frombuffer(each, np.uint8) for each in parts if len(each)]
        own = [(each.__array_interface__["data"][0], len(each)) for each in arrays]
        length = sum(map(len, arrays))
        if place + length > _ADDRESSES or not self._lives():
            return False
        return _copy(call, self._process, own, [(place, length)], length) and self._lives()

    def _lives(self) -> bool:
        return self._pidfd >= 0 and not self._poller.poll(0)

    def close(self) -> None:
        """Access the memory no more."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def open_memory(process: int, pidfd: int, token: bytes, place: int) -> ProcessMemory | CalledMemory | None:
    """The memory of another process, by the first way that is permitted; None if none is."""
    with suppress(OSError):
        return ProcessMemory(process, token, place)
    with suppress(OSError):
        return CalledMemory(process, pidfd, token, place)
    return None


def permit_reading() -> bool:
    """Let other processes of this user read the memory of this one, if only Yama forbids it; return whether it does so.

    With ``ptrace_scope`` 1 a process must name the process that may read it: a single one, or any. There may be several
    neighbours, so this names any.
    """
    if yama_scope() != 1:
        return False
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return bool(prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0) == 0)


def yama_scope() -> int:
    """Restriction on reading memory: 0 for none, 1 for processes that do not permit it, 2 and 3 for all."""
    try:
        return int(_YAMA.read_text())
    except (OSError, ValueError):
        return 0


def copy_refusal() -> str | None:
    """The reason why processes cannot read each other's memory, so that large messages are copied twice; or None.

    A child reads this process, since Yama lets a parent read its children. The caller should have a single thread.
    """
    permit_reading()
    process = os.getpid()
    child = os.fork()
    if not child:
        # Without the exit handlers, which are those of the parent.
        os._exit(0 if can_read(process, *own_token()) else 1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        return None
    scope = yama_scope()
    if scope:
        return f"Yama forbids it (kernel.yama.ptrace_scope is {scope})"
    return "the kernel does not permit process_vm_readv, as in many containers"
