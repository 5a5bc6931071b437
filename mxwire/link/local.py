"""Local path: records between the processes of one host, through shared memory.

Theory of operation
-------------------
A process that opens an endpoint listens on a Unix socket in the runtime folder of its user, whose name contains
interface and number. A process that wants to reach the endpoint connects to it, and passes a sealed memfd with two
rings, one per direction, over the socket. Both sides map it; the socket stays open, and shows each process that the
other is alive. The memory has no name in a file system, so it does not stay behind when a process is killed. The kernel
reports the end of the process on the socket, and on its pidfd in case it has forked.

**Wake-ups.** A process that is about to sleep sets a flag in each ring that it consumes, and checks the rings once
more; a producer that finds the flag clears it and sends a byte over the socket, whose descriptor the sleeper polls. A
process that spins sets no flag, so that no system call is made. A producer without room sets another flag, which the
consumer answers likewise. A socket is used rather than an eventfd because the remote process cannot make a write to it
block.

**Long messages**, and unexpected ones, are read from the sender's memory (``process_memory.py``). The process id is
taken from the socket's credentials, so that a sender can offer only its own memory, and the kernel checks the
permission. Each side offers its token in its greeting; if the other one cannot read it, messages are copied through the
ring.

**Trust.** Only processes of the same user can enter the folder of the sockets, and only they are accepted. The seals
keep the other process from truncating the memory; ``record_ring.py`` checks each position and length in it before its
use.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from mxwire.errors import InvalidRecordError
from mxwire.link.fork import keep_from_children
from mxwire.link.process_memory import (
    CalledMemory,
    ProcessMemory,
    can_read,
    copy_from,
    open_memory,
    own_token,
    permit_reading,
)
from mxwire.link.record_ring import (
    ASLEEP,
    CONTROL,
    LONGEST,
    RING_LAYOUT,
    SIDE,
    fence,
    make_reader,
    make_writer,
    records_left,
)
from mxwire.native import quick_struct
from mxwire.units import MILLISECOND, SECOND

_COUNTS: Final = 1024
"""Offset of the number of withdrawals of each endpoint, 4 bytes each."""
_ENDPOINTS: Final = 256
_GREETING: Final = struct.Struct("=8s16sQ")
"""Magic with version, random bytes, and their address."""
_MAGIC: Final = b"mxlocal\x03"
_CREDENTIALS: Final = struct.Struct("3i")
_DESCRIPTION: Final[Any] = quick_struct(struct.Struct("=3Q"))
"""The description of a message in one segment, which takes a tenth of the time of an array."""
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_CHECK_INTERVAL: Final = MILLISECOND
"""Nanoseconds between checks of the sockets while the process polls: a system call costs more than a message."""
_GREETING_TIMEOUT: Final = SECOND
_GREETINGS_MAXIMUM: Final = 64
_CHANNELS_MAXIMUM: Final = 4096
_DESCRIPTORS: Final = 16
"""Maximum number of passed descriptors that wait to be taken."""


def _greeting() -> bytes:
    """The greeting, whose token the other side is about to read."""
    permit_reading()
    return _GREETING.pack(_MAGIC, *own_token())


class Memory(Protocol):
    """The memory of a message."""

    def places(self) -> list[tuple[int, int]]:
        """Address and length of each segment in the memory of this process; none if it is that of another process."""


class SharedMemoryChannel:
    """One side of a channel between two processes; see :class:`~mxwire.protocol.local_channel.LocalChannel`."""

    def __init__(self, path: SharedMemoryPath, connection: socket.socket, memory: mmap.mmap, first: bool) -> None:
        self.ended = False
        self.connection = connection
        view = memoryview(memory)
        filled, read = (view[:SIDE], view[SIDE:]) if first else (view[SIDE:], view[:SIDE])
        self._filled, self._read = filled, read
        """Memory of both rings."""
        self._control = read[:CONTROL].cast("Q")
        """Control words of the ring that the other side fills."""
        self._address = ctypes.addressof(ctypes.c_uint64.from_buffer(self._control))
        """Address of the producer's position."""
        self._own_withdrawals, self._withdrawals = _counts(filled), _counts(read)
        self._produced, self._consumed = make_writer(filled, *RING_LAYOUT), make_reader(read, *RING_LAYOUT)
        self._append: Callable[[bytes, Any], bool] = self._produced.put
        self._wakes: Callable[[], bool] = self._produced.take_sleep
        self.peek: Callable[[], bytes | memoryview | None] = self._consumed.peek
        """Return the oldest record, valid until :meth:`advance`; None if there is none, or the channel was closed."""
        self.advance: Callable[[], None] = self._consumed.advance
        """Remove the oldest record."""
        self._feeds: Callable[[], bool] = self._consumed.take_starved
        self._has_record: Callable[[], bool] = self._consumed.waits
        self._path = path
        self._end = select.poll()
        self._end.register(connection.fileno(), select.POLLRDHUP)
        self._greeted = not first
        self._closed = False
        self.process = owner_of(connection)[0]
        self.reads = False
        """True if this process may read the memory of the other process."""
        self._token: tuple[bytes, int] | None = None
        """The token in the memory of the other process, and its address."""
        self._passed: deque[int] = deque()
        """Descriptors of memory that the other process has passed."""
        self.discarded = 0
        """Number of passed descriptors that were closed, since too many of them waited."""
        self.pidfd = -1
        with suppress(OSError):
            self.pidfd = os.pidfd_open(self.process)

    # For the engine.

    def put(self, head: bytes, data: Any = b"") -> bool:
        """Append a record of two parts; return False if there is no room now, or the neighbour has gone."""
        if self.ended:
            return False
        try:
            if not self._append(head, data):
                return False
        except InvalidRecordError:
            self.ended = True
            return False
        if self._wakes():
            self._ring_bell()
        return True

    def settle(self) -> None:
        """Wake a producer that waits for room, and note free room for which this side has waited."""
        if self._produced.blocked and self._has_room():
            self._produced.blocked = False
        if self._feeds():
            self._ring_bell()

    def describe(self, memory: Memory, endpoint: int) -> bytes:
        """Return the number of withdrawals of the endpoint, followed by addresses and lengths of the memory."""
        withdrawals, places = self._own_withdrawals[endpoint], memory.places()
        if len(places) == 1:
            place, size = places[0]
            packed: bytes = _DESCRIPTION.pack(withdrawals, place, size)
            return packed
        words = array("Q", [withdrawals])
        for place, size in places:
            words.append(place)
            words.append(size)
        return words.tobytes()

    def read(self, described: bytes, memory: Memory, length: int, endpoint: int, offset: int = 0) -> bool:
        """Copy from the memory of the other process; return False if that is impossible, or was withdrawn."""
        target = memory.places()
        if not self.reads or len(described) % 16 != 8 or not target:
            return False
        words = array("Q", described)
        places = list(zip(words[1::2], words[2::2], strict=True))
        if sum(size for _, size in places) < length:
            return False
        if not copy_from(self.process, places, target, length, offset):
            return False
        fence()
        # Check afterwards: if the process has ended, its id may belong to another process now; if it has withdrawn the
        # memory, it may be reusing it.
        return self._alive() and self._withdrawals[endpoint] == words[0]

    def withdraw(self, endpoint: int) -> None:
        """Make all descriptions for ``endpoint`` void."""
        counts = self._own_withdrawals
        counts[endpoint] = (counts[endpoint] + 1) & 0xFFFFFFFF
        # The other side reads the count after its copy: it must see this one before the memory is reused.
        fence()

    def unread(self) -> list[bytes]:
        """The records that the neighbour has not taken."""
        return records_left(self._filled, self._produced.position)

    def close(self) -> None:
        """End the channel; closing it again does nothing."""
        self.ended = True
        if not self._closed:
            self._closed = True
            self._produced.close()
            self._consumed.close()
            self._path.forget(self)
            self.connection.close()
            if self.pidfd >= 0:
                os.close(self.pidfd)
            while self._passed:
                os.close(self._passed.popleft())

    # For the path.

    def waits(self) -> bool:
        """Return whether there is a record, free room for which this side waited, or the end of the other side."""
        return self._has_record() or self.ended or bool(self._produced.blocked and self._has_room())

    def watched(self, stuck: bool) -> tuple[int, int] | None:
        """Address of the producer's position, and the position of this side, for callers that poll in C.

        There is a record if the two differ; if ``stuck``, a record behind those that cannot be taken now. None if a
        caller must poll for other events too.
        """
        if self._closed or (not stuck if self.ended else self._produced.blocked):
            return None
        return self._address, self._consumed.seen if stuck else self._consumed.position

    def arm(self) -> bool:
        """Request a wake-up for the next record; return whether there is a record or other event already."""
        self._control[ASLEEP] = 1
        fence()
        return self.waits()

    def listen(self) -> None:
        """Read the socket: the greeting, wake-ups, or the end of the other process."""
        descriptors: list[int] = []
        try:
            if self._path.takes_memory:
                data, descriptors, flags, _ = socket.recv_fds(self.connection, 4096, _DESCRIPTORS)
                # The kernel closes those beyond the maximum without telling how many.
                self.discarded += bool(flags & socket.MSG_CTRUNC)
            else:
                data = self.connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for each in descriptors:
            if len(self._passed) < _DESCRIPTORS:
                self._passed.append(each)
            else:
                os.close(each)
                self.discarded += 1
        if not data:
            self.ended = True
        elif not self._greeted:
            self._greeted = True
            if len(data) < _GREETING.size or not self.greet(data[: _GREETING.size]):
                self.ended = True

    def pass_memory(self, descriptor: int) -> bool:
        """Pass sealed memory to the other process; return False if it has gone, or its socket is full."""
        try:
            socket.send_fds(self.connection, [b"\0"], [descriptor])
        except OSError:
            return False
        return True

    def take_memory(self, length: int) -> memoryview | None:
        """Map the oldest memory that the other process has passed; None if there is none, or it has another length or
        could be truncated."""
        if not self._passed:
            self.listen()
        if not self._passed:
            return None
        descriptor = self._passed.popleft()
        try:
            mapped = _map(descriptor, length)
        finally:
            os.close(descriptor)
        return None if mapped is None else memoryview(mapped)

    def greet(self, greeting: bytes) -> bool:
        """Take the greeting of the other side, and try to read its memory; return False for an invalid one."""
        magic, token, place = _GREETING.unpack(greeting)
        if magic != _MAGIC:
            return False
        self.reads = can_read(self.process, token, place) and self._path.single_copy
        self._token = token, place
        return True

    def open_memory(self) -> ProcessMemory | CalledMemory | None:
        """Open the memory of the other process for reading and writing; None if that is forbidden."""
        if self._token is None or not self._path.single_copy:
            return None
        return open_memory(self.process, self.pidfd, *self._token)

    def _has_room(self) -> bool:
        try:
            # For a record of any length, because that of the one that waits is not kept.
            return bool(self._produced.has_room(8 + LONGEST))
        except InvalidRecordError:
            self.ended = True
            return True

    def _alive(self) -> bool:
        # Not by reading: a wake-up must stay there for ``listen``, and without one an exception would take longer than
        # the copy of a page.
        return not self._closed and not self._end.poll(0)

    def _ring_bell(self) -> None:
        # If the socket is full, it contains bytes that the sleeping process has not read and will be woken by.
        with suppress(OSError):
            self.connection.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _counts(memory: memoryview) -> memoryview:
    """The numbers of withdrawals of each endpoint, in the memory of a ring."""
    return memory[_COUNTS : _COUNTS + 4 * _ENDPOINTS].cast("I")


class SharedMemoryPath:
    """The channels of a process to others on its host. ``socket_of`` is the Unix socket of an endpoint, by interface
    number and endpoint number.

    Not thread-safe.
    """

    def __init__(self, socket_of: Callable[[int, int], Path]) -> None:
        self.single_copy = True
        """False to copy large messages through the rings, as is done if processes may not read each other's memory."""
        self.takes_memory = False
        """True to accept memory that other processes pass; see :meth:`SharedMemoryChannel.take_memory`."""
        self._socket_of = socket_of
        self._channels: list[SharedMemoryChannel] = []
        self._epoll = select.epoll()
        self._listeners: dict[int, socket.socket] = {}
        self._greeting: dict[int, tuple[socket.socket, int]] = {}
        """Accepted connections without a greeting, and the times at which they are dropped."""
        self._by_descriptor: dict[int, SharedMemoryChannel] = {}
        self._armed = True
        self._check_at = 0
        self._now = 0

    def fileno(self) -> int:
        """Descriptor for event loops, readable when a sleeping process should poll."""
        return self._epoll.fileno()

    @property
    def channels(self) -> tuple[SharedMemoryChannel, ...]:
        """The open channels."""
        return tuple(self._channels)

    def listen(self, listener: socket.socket) -> None:
        """Accept connections of a listening socket from now on."""
        listener.setblocking(False)
        self._listeners[listener.fileno()] = listener
        self._epoll.register(listener.fileno(), select.EPOLLIN)

    def ignore(self, listener: socket.socket) -> None:
        """Accept no more connections of a socket, which is about to be closed."""
        if self._listeners.pop(listener.fileno(), None) is not None:
            self._epoll.unregister(listener.fileno())

    def reach(self, interface: int, endpoint: int) -> SharedMemoryChannel | None:
        """A new channel to the process that has an endpoint open; None if there is none, or it is another user's."""
        return self.connect(self._socket_of(interface, endpoint))

    def connect(self, place: Path) -> SharedMemoryChannel | None:
        """A new channel to the process that listens on a Unix socket; None if there is none, or it is another
        user's."""
        connection = keep_from_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        try:
            connection.connect(str(place))
            if owner_of(connection)[1] != os.geteuid() or len(self._channels) >= _CHANNELS_MAXIMUM:
                connection.close()
                return None
            descriptor, memory = make_memory(2 * SIDE)
            try:
                socket.send_fds(connection, [_greeting()], [descriptor])
            finally:
                os.close(descriptor)
        except OSError:
            connection.close()
            return None
        return self._enter(SharedMemoryChannel(self, connection, memory, first=True))

    def poll(self, now: int) -> list[SharedMemoryChannel]:
        """The channels with records, with free room for which this side waited, or that have ended; ``now`` is in
        ns."""
        # After a sleep, whose wake-up must be read from the socket, or when a check is due.
        if self._armed or now >= self._check_at:
            self._armed = False
            self._check_at = now + _CHECK_INTERVAL
            self._now = now
            self._check()
        return [each for each in self._channels if each.waits()]

    def arm(self) -> list[SharedMemoryChannel]:
        """Request wake-ups, since the process is about to sleep; return the channels that have records or other events
        already."""
        self._armed = True
        return [each for each in self._channels if each.arm()]

    def forget(self, channel: SharedMemoryChannel) -> None:
        """Remove a channel that is being closed."""
        if channel in self._channels:
            self._channels.remove(channel)
        self._unwatch(channel)

    def _unwatch(self, channel: SharedMemoryChannel) -> None:
        for descriptor in (channel.connection.fileno(), channel.pidfd):
            if self._by_descriptor.pop(descriptor, None) is not None:
                with suppress(OSError):
                    self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Close everything except the listening sockets; closing it again does nothing."""
        for each in list(self._channels):
            each.close()
        for connection, _ in self._greeting.values():
            connection.close()
        self._greeting.clear()
        self._listeners.clear()
        self._epoll.close()

    def _enter(self, channel: SharedMemoryChannel) -> SharedMemoryChannel:
        self._channels.append(channel)
        for descriptor in (channel.connection.fileno(), channel.pidfd):
            if descriptor >= 0:
                self._by_descriptor[descriptor] = channel
                self._epoll.register(descriptor, select.EPOLLIN)
        return channel

    def _check(self) -> None:
        """Handle the events of the sockets."""
        for descriptor, _ in self._epoll.poll(0):
            channel = self._by_descriptor.get(descriptor)
            if channel is not None:
                if descriptor == channel.pidfd:
                    channel.ended = True
                else:
                    channel.listen()
                if channel.ended:
                    # Its records may have to stay in the ring, and its readable descriptors would end each sleep at
                    # once.
                    self._unwatch(channel)
            elif descriptor in self._listeners:
                self._accept(self._listeners[descriptor])
            elif descriptor in self._greeting:
                self._take_greeting(descriptor)
        if self._greeting:
            for descriptor in [each for each, (_, late) in self._greeting.items() if self._now > late]:
                self._drop(descriptor)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        keep_from_children(connection).setblocking(False)
        full = len(self._greeting) >= _GREETINGS_MAXIMUM or len(self._channels) >= _CHANNELS_MAXIMUM
        if full or owner_of(connection)[1] != os.geteuid():
            connection.close()
            return
        self._greeting[connection.fileno()] = connection, self._now + _GREETING_TIMEOUT
        self._epoll.register(connection.fileno(), select.EPOLLIN)
        # The other side sends it with the connection, so it is usually there already.
        self._take_greeting(connection.fileno())

    def _take_greeting(self, descriptor: int) -> None:
        connection, _ = self._greeting[descriptor]
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, _GREETING.size, 1)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        try:
            memory = _map(descriptors[0], 2 * SIDE) if len(descriptors) == 1 and len(data) == _GREETING.size else None
        finally:
            for each in descriptors:
                os.close(each)
        channel = None
        if memory is not None:
            channel = SharedMemoryChannel(self, connection, memory, first=False)
            if not channel.greet(data):
                channel = None
        if channel is None:
            self._drop(descriptor)
            return
        del self._greeting[descriptor]
        self._epoll.unregister(descriptor)
        self._enter(channel)
        with suppress(OSError):
            connection.send(_greeting())

    def _drop(self, descriptor: int) -> None:
        connection, _ = self._greeting.pop(descriptor)
        self._epoll.unregister(descriptor)
        connection.close()


def _map(descriptor: int, length: int) -> mmap.mmap | None:
    """Map the memory that another process has passed, unless it has another length or could be truncated."""
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        if seals & _SEALS != _SEALS or os.fstat(descriptor).st_size != length:
            return None
        return mmap.mmap(descriptor, length)
    except (OSError, ValueError):
        return None


def make_memory(length: int) -> tuple[int, mmap.mmap]:
    """Make memory that can be passed to another process: its descriptor, and the memory. Raises :class:`OSError`."""
    descriptor = os.memfd_create("mxwire-local", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, length)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
        return descriptor, mmap.mmap(descriptor, length)
    except BaseException:
        os.close(descriptor)
        raise


def owner_of(connection: socket.socket) -> tuple[int, int]:
    """Process and user of the other side of a Unix socket, as the kernel reports them."""
    process, user, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return process, user
