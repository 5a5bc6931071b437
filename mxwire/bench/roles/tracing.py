"""System calls of a side, counted by tracing: a child process plays the role, and every call of it is stopped at.

Needs no privilege and no program: a process may trace its own children. Tracing makes it slow, so a role is either
traced or timed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.roles.common import PATTERNS
from mxwire.errors import MxwireError

_TRACE_ME, _SYSCALL, _SET_OPTIONS, _INFO = 0, 24, 0x4200, 0x420E
_GOOD_CALLS, _EXIT_KILL = 1, 1 << 20
"""Options: mark stops at system calls, and end the child with its tracer."""
_STOP_AT_CALL: Final = signal.SIGTRAP | 0x80
_ENTRY, _EXIT = 1, 2
_WALL: Final = 0x40000000
_CALLS: Final[dict[str, dict[int, str]]] = {
    "x86_64": {
        0: "read",
        1: "write",
        44: "sendto",
        45: "recvfrom",
        46: "sendmsg",
        47: "recvmsg",
        307: "sendmmsg",
        299: "recvmmsg",
        7: "poll",
        281: "epoll_pwait",
        232: "epoll_wait",
        110: "getppid",
    },
    "aarch64": {
        63: "read",
        64: "write",
        206: "sendto",
        207: "recvfrom",
        211: "sendmsg",
        212: "recvmsg",
        269: "sendmmsg",
        243: "recvmmsg",
        73: "ppoll",
        22: "epoll_pwait",
        173: "getppid",
    },
}
"""Numbers of the calls that move data or wait, by machine."""
_MARK: Final = "getppid"
"""A call that nothing else makes: the child makes it before and after the counted operations."""
_MESSAGE: Final = struct.Struct("=QI4xQQQQi4x")
"""struct msghdr."""


@dataclass
class TracedCalls:
    """System calls of a child between two marks."""

    calls: dict[str, int] = field(default_factory=dict)
    """Calls by name; ``other`` for those that neither move data nor wait."""
    empty: int = 0
    """Calls that found nothing: looks into an empty queue."""
    sent: int = 0
    """Bytes passed to the kernel, which copies them, Ethernet headers included."""
    in_place: int = 0
    """Of these, bytes that the kernel read from the application's message, without a copy in between."""
    received: int = 0
    """Bytes that the kernel copied into memory of this process in calls; a mapped ring needs none."""

    def record(self, operations: int) -> dict[str, float]:
        """Counts per operation."""
        made = {f"calls, {name}": count / operations for name, count in sorted(self.calls.items())}
        whole = {
            "system calls": (sum(self.calls.values()) - self.empty) / operations,
            "empty looks": self.empty / operations,
            "bytes to the kernel": self.sent / operations,
            "bytes in place": self.in_place / operations,
            "bytes from the kernel": self.received / operations,
        }
        return whole | made


def traced_trips(channel: Channel, size: int, count: int, traced_active: bool) -> dict[str, Any]:
    """Ping-pong in which the system calls of one side are counted, per round trip."""
    channel.barrier()
    # The first trips open buffers and caches; both sides make them outside of the marks.
    warm = max(count // 10, 2)
    if channel.active is not traced_active:
        _play(channel, size, warm + count)
        return {}

    def play() -> None:
        _play(channel, size, warm)
        os.getppid()
        _play(channel, size, count)
        os.getppid()

    return trace(play).record(count)


def _play(channel: Channel, size: int, count: int) -> None:
    for _ in range(count):
        if channel.active:
            channel.send(size)
            channel.receive(size)
        else:
            channel.receive(size)
            channel.send(size)


def trace(play: Callable[[], None]) -> TracedCalls:
    """Run a function in a child process, and count its system calls between its first two calls of ``getppid``.

    Raises :class:`~mxwire.errors.MxwireError` if this system does not permit it, or the function failed.
    """
    names = _CALLS.get(platform.machine())
    if names is None:
        raise MxwireError(f"system calls are not counted on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    child = os.fork()
    if not child:
        code = 1
        try:
            if libc.ptrace(_TRACE_ME, 0, None, None) == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                play()
                code = 0
        finally:
            os._exit(code)
    return _Tracer(libc, child, names).run()


class _Tracer:
    """Follows a child from stop to stop."""

    def __init__(self, libc: Any, child: int, names: dict[int, str]) -> None:
        self._libc = libc
        self._child = child
        self._names = names
        self._message = np.frombuffer(PATTERNS[0], np.uint8)
        self._call: tuple[str, tuple[int, ...]] = ("other", ())
        self._marks = 0
        self.found = TracedCalls()

    def run(self) -> TracedCalls:
        """Follow the child to its end."""
        child, libc = self._child, self._libc
        _, status = os.waitpid(child, _WALL)
        if not os.WIFSTOPPED(status):
            raise MxwireError("system calls cannot be counted: this system does not permit tracing")
        libc.ptrace(_SET_OPTIONS, child, None, _GOOD_CALLS | _EXIT_KILL)
        passed = 0
        while True:
            if libc.ptrace(_SYSCALL, child, None, passed) != 0:
                raise MxwireError(f"tracing ended early: {os.strerror(ctypes.get_errno())}")
            _, status = os.waitpid(child, _WALL)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                break
            stopped = os.WSTOPSIG(status)
            passed = 0 if stopped == _STOP_AT_CALL else stopped
            if stopped == _STOP_AT_CALL:
                self._stop()
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status):
            raise MxwireError("the traced side has failed")
        return self.found

    def _stop(self) -> None:
        room = ctypes.create_string_buffer(96)
        if self._libc.ptrace(_INFO, self._child, ctypes.c_void_p(len(room)), ctypes.addressof(room)) <= 0:
            raise MxwireError("system calls cannot be counted: the kernel is older than 5.3")
        if room.raw[0] == _ENTRY:
            number, *arguments = struct.unpack_from("=7Q", room.raw, 24)
            self._call = self._names.get(number, "other"), tuple(arguments)
        elif room.raw[0] == _EXIT:
            value, failed = struct.unpack_from("=qB", room.raw, 24)
            self._ended(value, bool(failed))

    def _ended(self, value: int, failed: bool) -> None:
        name, arguments = self._call
        if name == _MARK:
            self._marks += 1
            return
        if self._marks != 1:
            return
        found = self.found
        found.calls[name] = found.calls.get(name, 0) + 1
        if failed:
            found.empty += value in (-errno.EAGAIN, -errno.EINTR)
        elif name in ("recvfrom", "recvmsg"):
            found.received += value
        elif name in _SENDS:
            for base, length in self._sent(name, arguments, value):
                found.sent += length
                start = self._message.ctypes.data
                found.in_place += length if start <= base < start + self._message.size else 0

    def _sent(self, name: str, arguments: tuple[int, ...], value: int) -> list[tuple[int, int]]:
        """Base and length of the memory that a call has sent."""
        if name == "sendto":
            return [(arguments[1], value)]
        step = 64
        count = value if name == "sendmmsg" else 1
        found = []
        for each in range(count):
            _, _, vectors, amount, *_ = _MESSAGE.unpack(self._read(arguments[1] + each * step, _MESSAGE.size))
            raw = self._read(vectors, 16 * amount)
            found += [struct.unpack_from("=QQ", raw, 16 * place) for place in range(amount)]
        return found

    def _read(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self._child}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - offsets beyond 2**63
            memory.seek(address)
            return memory.read(size)


_SENDS: Final = ("sendto", "sendmsg", "sendmmsg")
