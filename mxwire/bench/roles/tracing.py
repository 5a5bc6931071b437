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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.channels.hosts import LOCAL
from mxwire.bench.roles.alone import engine_trips
from mxwire.bench.roles.common import CONTENT
from mxwire.bench.roles.copies import RINGS, SENT, CopyTrail, mappings, routines_of
from mxwire.bench.roles.exchanges import ping_pong
from mxwire.errors import MxwireError
from mxwire.lab.child import forked
from mxwire.texts import table_rows

_TRACE_ME, _SYSCALL, _SET_OPTIONS, _INFO = 0, 24, 0x4200, 0x420E
_POKE, _GET_REGISTERS, _SET_REGISTERS, _EVENT_MESSAGE = 4, 12, 13, 0x4201
_REGISTERS: Final = struct.Struct("=27Q")
"""struct user_regs_struct of x86-64."""
_RAX, _RDX, _RSI, _RDI, _RIP = 10, 12, 13, 14, 16
_ENTRIES: Final = (bytes.fromhex("f30f1efa"), bytes.fromhex("4889f8"))
"""First instructions of the copying routines: endbr64, which does nothing, and mov rax, rdi."""
_BREAK: Final = 0xCC
"""The instruction int3."""
_GOOD_CALLS, _CLONE, _EXEC, _EXIT_KILL = 1, 1 << 3, 1 << 4, 1 << 20
"""Options: mark stops at system calls, at new threads and at execve, and end the child with its tracer."""
_EVENT: Final = 16
"""Bits of a status below an event."""
_NEW_THREAD: Final = 3
_PAUSE: Final = 0.0001
"""Interval in seconds at which several threads are polled."""
PROGRAM_MARK: Final = 0x6D78776972650001
"""Third argument of a mark of a program, whose first two are the place and the length of its message."""
WARM_TRIPS: Final = 2
"""Round trips that open buffers and caches."""
_STOP_AT_CALL: Final = signal.SIGTRAP | 0x80
_ENTRY, _EXIT = 1, 2
# Without this option, waitpid leaves out threads.
_WALL: Final = 0x40000000
_MARK: Final = "getppid"
"""A marker: a call with no other use, which the child makes before and after the counted operations."""
_MESSAGE: Final = struct.Struct("=QI4xQQQQi4x")
"""struct msghdr."""


@dataclass
class TracedCalls:
    """System calls of a child between two marks."""

    calls: dict[str, int] = field(default_factory=dict)
    """Calls by name; ``other`` for those that neither move data nor wait."""
    empty: int = 0
    """Calls without a result: polls of an empty queue."""
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
        counts = {f"calls, {name}": count / operations for name, count in sorted(self.calls.items())}
        whole = {
            "system calls": (sum(self.calls.values()) - self.empty) / operations,
            "empty looks": self.empty / operations,
            "bytes to the kernel": self.sent / operations,
            "bytes in place": self.in_place / operations,
            "bytes from the kernel": self.received / operations,
        }
        copied = {f"bytes copied, {kind}": count / operations for kind, count in (self.copied or {}).items()}
        return whole | copied | counts


def traced_trips(channel: Channel, size: int, count: int, traced_active: bool) -> dict[str, Any]:
    """Ping-pong in which the system calls of one side are counted, per round trip."""
    traced = channel.active is traced_active
    # With AF_XDP the kernel uses the pages of the process that registered them, and sockets of the local path are those
    # of the process that opened them; a forked child has only copies.
    carrier = channel.setup.carrier
    reopened = traced and ("xdp" in carrier or carrier.startswith(LOCAL))
    if not reopened:
        channel.barrier()
    # Both sides make the first trips outside of the marks.
    warm = WARM_TRIPS
    if not traced:
        ping_pong(channel, size, warm + count)
        channel.barrier()
        return {}
    if reopened:
        channel.close()

    def play() -> None:
        own = type(channel)(channel.setup) if reopened else channel
        if reopened:
            own.barrier()
        ping_pong(own, size, warm)
        for _ in range(count):
            os.getppid()
            ping_pong(own, size, 1)
        os.getppid()
        # Both sides must run until the last message has been copied.
        own.barrier()
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
    copied = trace(play, count).copied
    return {} if copied is None else {"bytes copied": copied[SENT] / count / 2}


def _names() -> dict[int, str]:
    """The names of counted system calls, by number."""
    rows = table_rows(__file__, "system_calls.md")
    return {int(number): name for machine, (number, name) in rows if machine == platform.machine()}


def mark_message(start: int, size: int) -> None:
    """Mark the beginning of an operation; ``start`` is the address of the message (of the first one, for all)."""
    number = next(number for number, name in _names().items() if name == _MARK)
    ctypes.CDLL(None).syscall(number, ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_ulong(PROGRAM_MARK))


def trace(play: Callable[[], None], operations: int = 1, rings: tuple[str, ...] = RINGS) -> TracedCalls:
    """Run a function in a child process, and count its system calls and copies.

    The function calls ``getppid``, or :func:`mark_message`, before each of its operations and after the last one; what
    it does before and afterwards does not count. ``rings`` are parts of the names of mappings into which others write
    messages. Raises :class:`~mxwire.errors.MxwireError` if this system does not permit it, or the function failed.
    """
    names = _names()
    if not names:
        raise MxwireError(f"system calls are not counted on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def traced() -> None:
        if libc.ptrace(_TRACE_ME, 0, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")
        # Stopped, until the tracer has set its options.
        os.kill(os.getpid(), signal.SIGSTOP)
        play()

    return _Tracer(libc, forked(traced), names, operations, rings).run()


class _Tracer:
    """Follows a child from stop to stop."""

    def __init__(self, libc: Any, child: int, names: dict[int, str], operations: int, rings: tuple[str, ...]) -> None:
        self._operations = operations
        self._rings = rings
        self._trail: CopyTrail | None = None
        self._watching = True
        self._routines: dict[int, tuple[bytes, int]] = {}
        """The instruction under the breakpoint of each copying routine, and the word of memory that begins with it."""
        self._libc = libc
        self._child = child
        self._names = names
        message = np.frombuffer(CONTENT, np.uint8)
        self._message = message.ctypes.data, message.ctypes.data + message.size
        """Begin and end of the message in the memory of the child."""
        self._threads = {child}
        self._calls: dict[int, tuple[str, tuple[int, ...]]] = {}
        """System calls that have not returned, by thread."""
        self._marks = 0
        self.found = TracedCalls()

    def run(self) -> TracedCalls:
        """Follow the child to its end."""
        child, libc = self._child, self._libc
        _, status = os.waitpid(child, _WALL)
        if not os.WIFSTOPPED(status):
            raise MxwireError("system calls cannot be counted: this system does not permit tracing")
        libc.ptrace(_SET_OPTIONS, child, None, _GOOD_CALLS | _CLONE | _EXEC | _EXIT_KILL)
        thread, passed = child, 0
        while True:
            if libc.ptrace(_SYSCALL, thread, None, passed) != 0:
                raise MxwireError(f"tracing ended early: {os.strerror(ctypes.get_errno())}")
            thread, status = self._wait()
            if thread == child and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                break
            passed = self._stopped(thread, status)
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status):
            raise MxwireError("the traced side has failed")
        return self.found

    def _wait(self) -> tuple[int, int]:
        """Wait until a thread of the child stops, or the child ends."""
        while len(self._threads) > 1:
            # One by one: a wait for any child would also reap those that other parts of this process have started.
            for thread in tuple(self._threads):
                found, status = os.waitpid(thread, _WALL | os.WNOHANG)
                if found and thread != self._child and not os.WIFSTOPPED(status):
                    self._threads.discard(thread)
                elif found:
                    return thread, status
            time.sleep(_PAUSE)
        return os.waitpid(self._child, _WALL)

    def _stopped(self, thread: int, status: int) -> int:
        """Handle the stop of a thread, and return the signal that it receives."""
        stop = os.WSTOPSIG(status)
        if stop == _STOP_AT_CALL:
            self._stop(thread)
            return 0
        if status >> _EVENT == _NEW_THREAD:
            room = ctypes.c_ulong()
            self._libc.ptrace(_EVENT_MESSAGE, thread, None, ctypes.addressof(room))
            self._threads.add(room.value)
            return 0
        # A new thread begins with a stop; so do programs after execve.
        if status >> _EVENT or (stop == signal.SIGSTOP and thread != self._child):
            return 0
        return 0 if stop == signal.SIGTRAP and self._copy(thread) else stop

    def _stop(self, thread: int) -> None:
        room = ctypes.create_string_buffer(96)
        if self._libc.ptrace(_INFO, thread, ctypes.c_void_p(len(room)), ctypes.addressof(room)) <= 0:
            raise MxwireError("system calls cannot be counted: the kernel is older than 5.3")
        if room.raw[0] == _ENTRY:
            number, *arguments = struct.unpack_from("=7Q", room.raw, 24)
            self._calls[thread] = self._names.get(number, "other"), tuple(arguments)
        elif room.raw[0] == _EXIT and thread in self._calls:
            value, failed = struct.unpack_from("=qB", room.raw, 24)
            self._ended(*self._calls.pop(thread), value, bool(failed))

    def _ended(self, name: str, arguments: tuple[int, ...], value: int, failed: bool) -> None:
        if name == _MARK:
            self._marks += 1
            if self._marks == 1:
                start, size, kind, *_ = arguments
                if kind == PROGRAM_MARK:
                    self._message = start, start + size
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
        elif name in _RECEIVES:
            found.received += value
            if self._trail is not None:
                for start, length in self._filled(name, arguments, value):
                    self._trail.arrived(start, length)
        elif name in _SENDS:
            for base, length in self._sent(name, arguments, value):
                found.sent += length
                found.in_place += length if self._message[0] <= base < self._message[1] else 0

    def _filled(self, name: str, arguments: tuple[int, ...], value: int) -> Iterator[tuple[int, int]]:
        """Base and length of the memory that a receiving call has filled."""
        if name == "recvfrom":
            yield arguments[1], value
            return
        vectors = self._vectors(arguments[1]) if name == "recvmsg" else self._parts(arguments[1], arguments[2])
        for base, length in vectors:
            yield base, min(length, value)
            value -= min(length, value)

    def _watch(self) -> None:
        """Set breakpoints at the copying routines, on processors for which this is implemented."""
        if platform.machine() != "x86_64":
            return
        self._trail = CopyTrail(self._message, mappings(self._child, self._rings))
        self.found.copied = self._trail.copied
        for address in routines_of(self._child):
            word = self._read(address, 8)
            entry = next((each for each in _ENTRIES if word.startswith(each)), None)
            if entry is None:
                self.found.copied = self._trail = None
                return
            self._routines[address] = entry, int.from_bytes(word, "little")
            # Tracing writes whole words, of which the breakpoint changes the first byte.
            self._poke(address, int.from_bytes(bytes([_BREAK]) + word[1:], "little"))

    def _unwatch(self) -> None:
        """Remove the breakpoints."""
        for address, (_, word) in self._routines.items():
            self._poke(address, word)
        self._watching = False

    def _copy(self, thread: int) -> bool:
        """Note the copy at whose breakpoint a thread has stopped, and let it continue; False if there is none.

        The instruction under the breakpoint is emulated: removing the breakpoint would miss copies by other threads.
        """
        room = ctypes.create_string_buffer(_REGISTERS.size)
        if self._trail is None or self._libc.ptrace(_GET_REGISTERS, thread, None, ctypes.addressof(room)):
            return False
        registers = list(_REGISTERS.unpack(room.raw))
        # The processor stops behind the breakpoint, which is one byte long.
        known = self._routines.get(registers[_RIP] - 1)
        if known is None:
            return False
        entry, _ = known
        if not self._watching:
            # The thread stopped before the breakpoints were removed: it continues with the instruction itself.
            registers[_RIP] -= 1
        else:
            self._trail.copy(registers[_RDI], registers[_RSI], registers[_RDX])
            registers[_RIP] += len(entry) - 1
            if entry == _ENTRIES[1]:
                registers[_RAX] = registers[_RDI]
        _REGISTERS.pack_into(room, 0, *registers)
        self._libc.ptrace(_SET_REGISTERS, thread, None, ctypes.addressof(room))
        return True

    def _poke(self, address: int, word: int) -> None:
        if self._libc.ptrace(_POKE, self._child, address, word):
            raise MxwireError(f"copies cannot be counted: {os.strerror(ctypes.get_errno())}")

    def _sent(self, name: str, arguments: tuple[int, ...], value: int) -> list[tuple[int, int]]:
        """Base and length of the memory that a call has sent."""
        if name == "sendto":
            return [(arguments[1], value)]
        if name in _WRITES:
            # Into the memory of another process: all of it, or the caller takes it for a failure.
            return self._parts(arguments[1], arguments[2])
        # Length of struct mmsghdr: a header of 56 bytes, the number of bytes sent, and padding.
        step = 64
        count = value if name == "sendmmsg" else 1
        segments = []
        for each in range(count):
            segments += self._vectors(arguments[1] + each * step)
        return segments

    def _vectors(self, header: int) -> list[tuple[int, int]]:
        """Base and length of each part of a message header's memory."""
        _, _, vectors, amount, *_ = _MESSAGE.unpack(self._read(header, _MESSAGE.size))
        return self._parts(vectors, amount)

    def _parts(self, vectors: int, amount: int) -> list[tuple[int, int]]:
        """Base and length of each of some struct iovec."""
        raw = self._read(vectors, 16 * amount)
        return [struct.unpack_from("=QQ", raw, 16 * place) for place in range(amount)]

    def _read(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self._child}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - offsets beyond 2**63
            memory.seek(address)
            return memory.read(size)


_WRITES: Final = ("pwritev", "pwritev2", "process_vm_writev")
_SENDS: Final = ("sendto", "sendmsg", "sendmmsg", *_WRITES)
_RECEIVES: Final = ("recvfrom", "recvmsg", "preadv", "preadv2", "process_vm_readv")
