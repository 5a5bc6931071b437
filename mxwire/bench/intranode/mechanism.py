"""The frame of all mechanisms: facts, the parts of both sides, flags in shared memory, and why one is refused."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from mxwire.errors import MxwireError
from mxwire.lab.namespaces import in_user_namespace
from mxwire.link.process_memory import yama_scope

if TYPE_CHECKING:
    from mxwire.bench.intranode.registration import Registrar

LINE: Final = 64
"""Bytes per cache line."""
STRIDE: Final = LINE // 8
"""Words per cache line."""
POLLS: Final = 256
"""Polls before the processor is yielded."""
_YIELDS: Final = 64
"""Yields before the other side is checked."""
_PR_GET_DUMPABLE: Final = 3
_PERIODS: Final = 4096
"""Periods of the pattern that are copied into a pool at once."""
PACKET: Final = 8192
"""Bytes per message of a queue of the kernel: the default of Linux for both kinds."""

Direction = Literal["get", "put"]


class MechanismError(MxwireError):
    """A mechanism cannot be used here, or the other side has gone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A message in the memory of a side."""

    view: memoryview
    address: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.view)


PATTERN: Final = bytes(range(251))
"""Content of a source: its period divides the size of no buffer, so that an exchange of parts is detected."""


class Pool:
    """Memory of a side, of which messages are pieces: full of :data:`PATTERN`, or zeros. All its pages exist."""

    def __init__(self, length: int, *, full: bool) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        self._memory = mmap.mmap(-1, max(length, 1), flags=flags)
        self.view = memoryview(self._memory)[:length]
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        content = PATTERN * _PERIODS
        for begin in range(0, length if full else 0, len(content)):
            part = self.view[begin : begin + len(content)]
            part[:] = content[: len(part)]

    def check(self, piece: Piece, found: memoryview) -> None:
        """Raise :class:`MechanismError` unless a message that arrived has the content of the source's piece."""
        begin = (piece.address - self._address) % len(PATTERN)
        if found != (PATTERN * (len(found) // len(PATTERN) + 2))[begin : begin + len(found)]:
            raise MechanismError("a message arrived with other content than it was sent with")

    def piece(self, begin: int, size: int) -> Piece:
        """The message at ``begin``."""
        return Piece(self.view[begin : begin + size], self._address + begin)

    def pieces(self, size: int, count: int, step: int, first: int = 0) -> Sequence[Piece]:
        """Messages that begin ``step`` bytes after each other, and from the start again at the end of the pool.

        ``first`` is the place of the first one, in steps.
        """
        if not step:
            return [self.piece(0, size)] * count
        places = max((len(self.view) - size) // step + 1, 1)
        distinct = [self.piece((first + place) % places * step, size) for place in range(min(places, count))]
        return [distinct[number % len(distinct)] for number in range(count)]


class SharedFlags:
    """Words in memory that both processes share, each in a cache line of its own."""

    def __init__(self, count: int) -> None:
        self._memory = mmap.mmap(-1, max(count * LINE, mmap.PAGESIZE))
        self.words = memoryview(self._memory).cast("Q")
        self._child = self._yields = 0
        self._alone = False

    def watch(self, child: int) -> None:
        """Fail instead of waiting if this child has ended."""
        self._child = child

    def set(self, place: int, value: int) -> None:
        """Set a flag."""
        self.words[place * STRIDE] = value

    def get(self, place: int) -> int:
        """The value of a flag."""
        return self.words[place * STRIDE]

    def wait(self, place: int, value: int) -> None:
        """Poll a flag until it has a value."""
        words, index = self.words, place * STRIDE
        while words[index] != value:
            for _ in range(POLLS):
                if words[index] == value:
                    return
            self.pause()

    def wait_least(self, place: int, least: int) -> int:
        """Poll a flag until it has at least a value, and return it."""
        words, index = self.words, place * STRIDE
        while words[index] < least:
            for _ in range(POLLS):
                if words[index] >= least:
                    break
            else:
                self.pause()
        return words[index]

    def pause(self) -> None:
        """Yield the processor; raise :class:`MechanismError` if the other side has ended, and did not set the flag."""
        os.sched_yield()
        self._yields += 1
        if self._child and not self._yields % _YIELDS and _ended(self._child):
            # It may have set the flag while this process yielded: the caller polls once more.
            if self._alone:
                raise MechanismError("the other process has ended")
            self._alone = True


def _ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Mechanism(ABC):
    """A mechanism between two processes: opened before the second one is forked, and joined by both afterwards.

    ``slot`` is the size of its buffers or cells in bytes where it has some; None for :attr:`SLOT`.
    """

    one_sided: ClassVar[tuple[Direction, ...]] = ()
    """Directions of accesses without a part of the target; the first is that of messages."""
    SLOT: ClassVar[int | None] = None
    """Default size of a buffer or cell; None for mechanisms without."""
    JOINS_ALONE: ClassVar[bool] = True
    """False if a side can join only together with the other one."""

    def __init__(self, slot: int | None = None) -> None:
        self.slot = slot or self.SLOT or 0
        self.rank = 0
        self.partner = 0
        """Process id of the other side."""
        self.shared_bytes = 0
        """Shared memory of the pair for data, of mechanisms with buffers or cells."""
        self.registrar: Registrar | None = None
        """Registers memory with this mechanism after :meth:`join`; None for one whose memory needs no registration."""
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Create what both processes share."""

    def join(self, rank: int, partner: int) -> None:
        """Begin as side 0 or 1, after the fork; ``partner`` is the id of the other process."""
        self.rank, self.partner = rank, partner

    def start(self) -> None:
        """Begin to use the other side, which has joined."""
        return

    @abstractmethod
    def give(self, piece: Piece) -> None:
        """The source's part of a message."""

    @abstractmethod
    def take(self, piece: Piece) -> memoryview | None:
        """The destination's part. Return where the data is, if it is not in the piece but in place."""

    @abstractmethod
    def close(self) -> None:
        """Release everything."""


_TOLD, _DONE, _PLACE = 0, 2, 4
"""Flags of each side's messages: the number of the last one announced, of the last one moved, and its address."""


class OneSided(Mechanism):
    """A mechanism with which an initiator moves data between its memory and that of the other process."""

    def open(self) -> None:
        """Create the flags that announce memory, and data in it."""
        self._flags = SharedFlags(6)
        self._given = self._taken = 0

    def join(self, rank: int, partner: int) -> None:
        """Take the side's place, and watch the other side if it is a child."""
        super().join(rank, partner)
        self._flags.watch(0 if rank else partner)
        # A call per flag would be a tenth of the time of a short message.
        self._words = self._flags.words
        self._told, self._place = ((each + rank) * STRIDE for each in (_TOLD, _PLACE))
        self._done_there, self._place_there = ((each + 1 - rank) * STRIDE for each in (_DONE, _PLACE))

    def offer(self, piece: Piece) -> memoryview:
        """Announce a piece of this side's memory, and return that."""
        self._words[self._place] = self.name_of(piece)
        self._given += 1
        self._words[self._told] = self._given
        return piece.view

    def name_of(self, piece: Piece) -> int:
        """The number by which the other side names a piece: its address, unless memory must be registered."""
        return piece.address

    def await_moved(self) -> None:
        """Wait until the other side has moved the data of the last offer."""
        self._flags.wait(_DONE + self.rank, self._given)

    def offered(self) -> int:
        """Wait for the next offer of the other side, and return its number: see :meth:`name_of`."""
        self._taken += 1
        self._flags.wait(_TOLD + 1 - self.rank, self._taken)
        return self._words[self._place_there]

    def report_moved(self) -> None:
        """Report to the other side that the data of its offer has moved."""
        self._words[self._done_there] = self._taken

    @abstractmethod
    def move(self, piece: Piece, address: int) -> None:
        """Move data between a piece of this process and the other one's memory, in the mechanism's direction."""

    def access(self, direction: Direction, piece: Piece, address: int) -> None:
        """Put a piece, or get it; raise :class:`MechanismError` for a direction that the mechanism does not have."""
        if direction not in self.one_sided:
            raise MechanismError(f"it cannot {direction} data: use {' or '.join(self.one_sided)}")
        self.move(piece, address)

    def close(self) -> None:
        """Keep nothing: the flags end with the processes."""


class GetMechanism(OneSided):
    """The destination reads the source's memory."""

    one_sided: ClassVar[tuple[Direction, ...]] = ("get",)

    def give(self, piece: Piece) -> None:
        """Offer the data, and wait until it was read."""
        self.offer(piece)
        self.await_moved()

    def take(self, piece: Piece) -> None:
        """Read the data that is offered."""
        self.move(piece, self.offered())
        self.report_moved()


class PutMechanism(OneSided):
    """The source writes into the destination's memory."""

    one_sided = ("put",)

    def give(self, piece: Piece) -> None:
        """Write to the memory that is offered."""
        self.move(piece, self.offered())
        self.report_moved()

    def take(self, piece: Piece) -> None:
        """Offer the memory, and wait until it was written."""
        self.offer(piece)
        self.await_moved()


def check_machine() -> None:
    """Raise :class:`MechanismError` on a processor that may reorder the stores of flags and data."""
    if platform.machine() != "x86_64":
        raise MechanismError(f"not on {platform.machine()}: only x86-64 keeps the order of stores without fences")


def run_program(program: Callable[[], object]) -> int:
    """Run a program of the study, and return its exit code; its last line is the error, if there is one."""
    try:
        check_machine()
        program()
    except (OSError, EOFError, MxwireError) as error:
        print(json.dumps({"error": reason_of(error)}), flush=True)
        return 1
    return 0


def checked(result: int, call: str) -> int:
    """Return the result of a function of the C library, or raise the error that it left in ``errno``."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)
    return result


def library(*names: str) -> tuple[Any, ...]:
    """Functions of the C library, which leave their errors for :func:`checked`."""
    shared = ctypes.CDLL(None, use_errno=True)
    found = []
    for name in names:
        function = getattr(shared, name, None)
        if function is None:
            raise MechanismError(f"the C library has no {name}")
        function.restype = ctypes.c_ssize_t
        found.append(function)
    return tuple(found)


def reason_of(error: BaseException) -> str:
    """The reason for which a mechanism failed, and for which the kernel refused it, as far as this process can detect
    it."""
    if isinstance(error, EOFError | ConnectionError):
        return "the other process has ended"
    return _refusal_of(error) if isinstance(error, OSError) else str(error)


def _refusal_of(error: OSError) -> str:
    call = f"{error.filename}: " if error.filename else ""
    text = f"{call}{error.strerror or error}"
    if error.errno not in (errno.EPERM, errno.EACCES):
        return text
    reasons = []
    scope = yama_scope()
    if scope:
        reasons.append(f"kernel.yama.ptrace_scope is {scope}")
    if _status("Seccomp") not in ("", "0"):
        reasons.append("a seccomp filter is active")
    if in_user_namespace():
        reasons.append("this is a user namespace")
    if not ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0):
        reasons.append("the processes are not dumpable")
    if os.geteuid():
        reasons.append("not root")
    return text + (f" ({', '.join(reasons)})" if reasons else "")


def _status(field: str) -> str:
    """A field of the status of this process; empty if the kernel does not have it."""
    lines = (line.partition(":") for line in _read("/proc/self/status").splitlines())
    return next((value.strip() for name, _, value in lines if name == field), "")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
