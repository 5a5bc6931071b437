"""System calls and copies of a side, counted by tracing: a child process plays the role, and stops at each of them.

Needs no privilege and no program: a process may trace its own children. Tracing makes it slow, so a role is either
traced or timed. Copies are counted on x86-64 (:mod:`mxwire.bench.roles.copies`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.roles.alone import engine_trips
from mxwire.bench.roles.common import PATTERNS
from mxwire.bench.roles.copies import SENT, CopyTrail, rings_of, routines_of
from mxwire.errors import MxwireError

_TRACE_ME, _SYSCALL, _SET_OPTIONS, _INFO = 0, 24, 0x4200, 0x420E
_POKE, _STEP, _GET_REGISTERS, _SET_REGISTERS = 4, 9, 12, 13
_REGISTERS: Final = struct.Struct("=27Q")
"""struct user_regs_struct of x86-64."""
_RDX, _RSI, _RDI, _RIP = 12, 13, 14, 16
_BREAK: Final = 0xCC
"""The instruction int3."""
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
    copied: dict[str, int] | None = None
    """Bytes of messages that this process copied itself: of ``sent`` and of ``received`` ones; None: not counted."""

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
        copied = {f"bytes copied, {kind}": count / operations for kind, count in (self.copied or {}).items()}
        return whole | copied | made


def traced_trips(channel: Channel, size: int, count: int, traced_active: bool) -> dict[str, Any]:
    """Ping-pong in which the system calls of one side are counted, per round trip."""
    traced = channel.active is traced_active
    # With AF_XDP the kernel uses the pages of the process that has registered them, of which a child has copies.
    reopened = traced and "xdp" in channel.setup.carrier
    if not reopened:
        channel.barrier()
    # The first trips open buffers and caches; both sides make them outside of the marks.
    warm = max(count // 10, 2)
    if not traced:
        _play(channel, size, warm + count)
        return {}
    if reopened:
        channel.close()

    def play() -> None:
        own = type(channel)(channel.setup) if reopened else channel
        if reopened:
            own.barrier()
        _play(own, size, warm)
        for _ in range(count):
            os.getppid()
            _play(own, size, 1)
        os.getppid()
        if reopened:
            own.close()

    return trace(play, count).record(count)


def traced_engine(dialect: str, size: int, count: int) -> dict[str, Any]:
    """The engines of both sides in one process: the bytes that they copy per message."""
    trip = next(engine_trips(dialect, [size]))

    def play() -> None:
        trip()
        for _ in range(count):
            os.getppid()
            trip()
        os.getppid()

    # A trip has two messages, and each is sent and received by the same process.
    found = trace(play, count).copied
    return {} if found is None else {"bytes copied": found[SENT] / count / 2}


def _play(channel: Channel, size: int, count: int) -> None:
    for _ in range(count):
        if channel.active:
            channel.send(size)
            channel.receive(size)
        else:
            channel.receive(size)
            channel.send(size)


def trace(play: Callable[[], None], operations: int = 1) -> TracedCalls:
    """Run a function in a child process, and count its system calls and copies.

    The function calls ``getppid`` before each of its operations and after the last one; what it does before and
    afterwards does not count. Raises :class:`~mxwire.errors.MxwireError` if this system does not permit it, or the
    function failed.
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
    return _Tracer(libc, child, names, operations).run()


class _Tracer:
    """Follows a child from stop to stop."""

    def __init__(self, libc: Any, child: int, names: dict[int, str], operations: int) -> None:
        self._operations = operations
        self._trail: CopyTrail | None = None
        self._routines: dict[int, int] = {}
        """The word of memory at each copying routine, without the breakpoint."""
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
            if stopped == _STOP_AT_CALL:
                passed = 0
                self._stop()
            else:
                passed = 0 if stopped == signal.SIGTRAP and self._copy() else stopped
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
            if self._marks == 1:
                self._watch()
            elif self._trail is not None:
                self._trail.forget()
            if self._marks > self._operations:
                # Threads and children that it starts from now on are not traced: a breakpoint would end them.
                self._unwatch()
            return
        if not 1 <= self._marks <= self._operations:
            return
        found = self.found
        found.calls[name] = found.calls.get(name, 0) + 1
        if failed:
            found.empty += value in (-errno.EAGAIN, -errno.EINTR)
        elif name in ("recvfrom", "recvmsg"):
            found.received += value
            if self._trail is not None:
                for start, length in self._filled(name, arguments, value):
                    self._trail.arrived(start, length)
        elif name in _SENDS:
            for base, length in self._sent(name, arguments, value):
                found.sent += length
                start = self._message.ctypes.data
                found.in_place += length if start <= base < start + self._message.size else 0

    def _filled(self, name: str, arguments: tuple[int, ...], value: int) -> Iterator[tuple[int, int]]:
        """Base and length of the memory that a receiving call has filled."""
        if name == "recvfrom":
            yield arguments[1], value
            return
        for base, length in self._vectors(arguments[1]):
            yield base, min(length, value)
            value -= min(length, value)

    def _watch(self) -> None:
        """Set breakpoints at the copying routines, where this is known how."""
        if platform.machine() != "x86_64":
            return
        start = self._message.ctypes.data
        self._trail = CopyTrail((start, start + self._message.size), rings_of(self._child))
        self.found.copied = self._trail.copied
        for address in routines_of(self._child):
            word = self._peek(address)
            self._routines[address] = word
            self._poke(address, word & ~0xFF | _BREAK)

    def _unwatch(self) -> None:
        """Remove the breakpoints."""
        for address, word in self._routines.items():
            self._poke(address, word)
        self._routines.clear()

    def _copy(self) -> bool:
        """Note the copy at whose breakpoint the child has stopped, and let it continue; False if there is none."""
        room = ctypes.create_string_buffer(_REGISTERS.size)
        if self._trail is None or self._libc.ptrace(_GET_REGISTERS, self._child, None, ctypes.addressof(room)):
            return False
        registers = list(_REGISTERS.unpack(room.raw))
        address = registers[_RIP] - 1
        word = self._routines.get(address)
        if word is None:
            return False
        if self._marks <= self._operations:
            self._trail.copy(registers[_RDI], registers[_RSI], registers[_RDX])
        registers[_RIP] = address
        _REGISTERS.pack_into(room, 0, *registers)
        self._libc.ptrace(_SET_REGISTERS, self._child, None, ctypes.addressof(room))
        self._poke(address, word)
        self._libc.ptrace(_STEP, self._child, None, None)
        os.waitpid(self._child, _WALL)
        self._poke(address, word & ~0xFF | _BREAK)
        return True

    def _peek(self, address: int) -> int:
        return int.from_bytes(self._read(address, 8), "little")

    def _poke(self, address: int, word: int) -> None:
        if self._libc.ptrace(_POKE, self._child, address, word):
            raise MxwireError(f"copies cannot be counted: {os.strerror(ctypes.get_errno())}")

    def _sent(self, name: str, arguments: tuple[int, ...], value: int) -> list[tuple[int, int]]:
        """Base and length of the memory that a call has sent."""
        if name == "sendto":
            return [(arguments[1], value)]
        step = 64
        count = value if name == "sendmmsg" else 1
        found = []
        for each in range(count):
            found += self._vectors(arguments[1] + each * step)
        return found

    def _vectors(self, header: int) -> list[tuple[int, int]]:
        """Base and length of each part of a message header's memory."""
        _, _, vectors, amount, *_ = _MESSAGE.unpack(self._read(header, _MESSAGE.size))
        raw = self._read(vectors, 16 * amount)
        return [struct.unpack_from("=QQ", raw, 16 * place) for place in range(amount)]

    def _read(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self._child}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - offsets beyond 2**63
            memory.seek(address)
            return memory.read(size)


_SENDS: Final = ("sendto", "sendmsg", "sendmmsg")
