"""Communicators of live ranks: endpoints of mxwire's hosts, and TCP sockets."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import time
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from mxwire.bench.channels.channel import link_counts
from mxwire.bench.channels.sockets import tcp_connection, undelayed
from mxwire.bench.imb.communicator import Buffer, Communicator, FirstOf, Operation, Program, Result, flat, run_blocking
from mxwire.bench.imb.push import Pushes, PushOperation
from mxwire.bench.imb.signals import HostSignals
from mxwire.bench.processors import BurntWork
from mxwire.errors import MxwireError
from mxwire.host import Host, HostError, HostTimeoutError
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.machine import processors_of
from mxwire.link import FaultyLink, open_link
from mxwire.link.faults import Faults
from mxwire.protocol import Partner, Profile, Status, profile_by_name
from mxwire.units import SECOND
from mxwire.wire.dialect import Dialect, as_dialect

PATIENCE: Final = 20.0
"""Seconds without progress after which a rank stops."""
_RANK_SHIFT: Final = 32
_RETRY: Final = 0.02
_SETTLE: Final = 0.002
"""Seconds for which a host with delayed frames runs after a program, beside the delay."""


@dataclass(frozen=True, slots=True)
class RankSetup:
    """A live rank and its surroundings."""

    rank: int
    places: tuple[tuple[str, str, int], ...]
    """Ethernet address, IP address, and number among the ranks of its namespace, of each rank."""
    interface: str
    namespace: str | None = None
    over: str = "mx"
    """``mx`` or ``tcp``."""
    dialect: str = "mxoe"
    frames_per_block: int | None = None
    profile: str = "open-mx"
    blocks_in_flight: int | None = None
    spin: bool = True
    """Poll without pause; otherwise block until a frame arrives."""
    delay: float = 0.0
    """Seconds by which each sent frame is delayed, by mxwire itself."""
    processor: int | None = None
    buffers: int | None = None
    """Bytes of the send and of the receive buffer of each TCP connection; None: as the system chooses."""
    progress: str = "library"
    """The way in which messages progress while the rank works: ``library``, ``thread``, ``signal``, ``card``, ``match``
    or ``push``."""
    agent: bool = False
    """True if the rank has an agent of its own, which runs its endpoint, or with ``card`` the card's side of it."""
    agent_processor: int | None = None

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.places)


class LiveCommunicator(Communicator):
    """A communicator whose calls block."""

    slept = False
    """True if work is slept, so that other processes get the processor; otherwise it is burnt."""
    _burnt: BurntWork | None = None

    def work_for(self, duration: int) -> None:
        """Sleep, or burn a number of loops, for ``duration`` ns."""
        if self.slept:
            time.sleep(duration / SECOND)
            return
        if LiveCommunicator._burnt is None:
            LiveCommunicator._burnt = BurntWork()
        LiveCommunicator._burnt.work(duration)

    def processors(self) -> dict[str, list[int]]:
        """The processors of the rank and of its agent."""
        return {name: processors_of(process) for name, process in self.parties().items()}

    def parties(self) -> dict[str, int]:
        """The processes of the rank and of its agent."""
        return {"rank": os.getpid()}

    def run(self, program: Program[Result]) -> Result:
        """Run a program to its end, and send the delayed frames."""
        result = run_blocking(program, self.wait)
        self.settle()
        return result

    def settle(self) -> None:
        """Send the delayed frames: a rank that waits for its next measurement makes no calls."""

    @abstractmethod
    def wait(self, operations: Sequence[Operation]) -> None:
        """Return when all operations are done. Raises :class:`~mxwire.errors.MxwireError` if there is no progress."""

    @abstractmethod
    def close(self) -> None:
        """Release everything."""


class EndpointCommunicator(LiveCommunicator):
    """A rank with an endpoint of a live host; ranks of one namespace share its interface."""

    def __init__(self, setup: RankSetup) -> None:
        super().__init__(setup.rank, setup.size)
        self._opened = ExitStack()
        try:
            self._agent = self._opened.enter_context(_running_agent(setup)) if setup.agent else None
            self._host = self._opened.enter_context(_open_host(setup))
        except BaseException:
            self._opened.close()
            raise
        self._signals = HostSignals(self._host) if setup.progress == "signal" else None
        self._endpoint = self._host.open_endpoint(setup.places[setup.rank][2])
        self._places = setup.places
        self._delay = setup.delay
        self._partners: dict[int, Partner] = {}

    def connect(self) -> None:
        """Connect to all other ranks, whose endpoints may not be open yet."""
        end = time.monotonic() + PATIENCE
        for rank, (address, _, number) in enumerate(self._places):
            while rank != self.rank and rank not in self._partners:
                try:
                    self._partners[rank] = self._endpoint.connect(address, number, timeout=PATIENCE)
                except HostError as error:
                    if error.status != Status.REMOTE_ENDPOINT_CLOSED or time.monotonic() > end:
                        raise
                    time.sleep(_RETRY)

    def isend(self, target: int, data: Buffer, tag: int = 0) -> Operation:
        """Post a send."""
        return self._endpoint.isend(self._partners[target], flat(data), self.rank << _RANK_SHIFT | tag)

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> Operation:
        """Post a receive."""
        return self._endpoint.ireceive(source << _RANK_SHIFT | tag, buffer=flat(data))

    def wait(self, operations: Sequence[Any]) -> None:
        """Wait for requests of the endpoint."""
        try:
            for each in operations:
                if isinstance(each, FirstOf):
                    self._endpoint.wait_any(each.operations, PATIENCE)
                else:
                    self._endpoint.wait(each, PATIENCE)
        except HostTimeoutError:
            raise MxwireError(f"rank {self.rank}: no progress for {PATIENCE:g} s") from None

    def look(self) -> None:
        """Poll the host once."""
        self._host.poll()

    def work_for(self, duration: int) -> None:
        """Work for ``duration`` ns, interrupted by signals if those are the way of progress."""
        with nullcontext() if self._signals is None else self._signals:
            super().work_for(duration)

    def parties(self) -> dict[str, int]:
        """The processes of the rank, and of its agent."""
        return super().parties() | ({} if self._agent is None else {"agent": self._agent})

    def settle(self) -> None:
        """Run the host until delayed frames have left."""
        if self._delay:
            self._host.driver.pause(2 * self._delay + _SETTLE)

    def counts(self) -> dict[str, int]:
        """Frames that the interface has sent and received for this rank, and those that were dropped."""
        return link_counts(self._host.core.links[0])

    def close(self) -> None:
        """Close endpoint and host."""
        self._opened.close()


class PushCommunicator(EndpointCommunicator):
    """A rank that pushes large messages, whose RTS and CTS it handles in calls."""

    def __init__(self, setup: RankSetup) -> None:
        super().__init__(setup)
        self._pushes = Pushes(super().isend, super().irecv)

    def isend(self, target: int, data: Buffer, tag: int = 0) -> Any:
        """Post a send; of a large message only the RTS leaves now."""
        return self._pushes.isend(target, data, tag)

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> Any:
        """Post a receive; that of a large message waits for its RTS."""
        return self._pushes.irecv(source, data, tag)

    def wait(self, operations: Sequence[Any]) -> None:
        """Take the next steps of large messages until all operations are done."""
        while True:
            self._pushes.advance()
            pending = [each for each in operations if not each.done]
            if not pending:
                return
            steps = [each.data if isinstance(each, PushOperation) else each for each in pending]
            super().wait([FirstOf([each for each in (*steps, *self._pushes.steps) if each is not None])])

    def look(self) -> None:
        """Poll the host once, and take the next steps of large messages."""
        super().look()
        self._pushes.advance()


def tuned_host(
    dialect: str, profile: str, frames_per_block: int | None, blocks_in_flight: int | None
) -> tuple[Dialect, Profile]:
    """Return the dialect and the profile of a host, with other numbers if they are given."""
    spoken, played = as_dialect(dialect), profile_by_name(profile)
    if frames_per_block is not None:
        spoken = replace(spoken, frames_per_block=frames_per_block)
    if blocks_in_flight is not None:
        played = replace(played, blocks_in_flight=blocks_in_flight)
    return spoken, played


def _open_host(setup: RankSetup) -> Host:
    dialect, profile = tuned_host(setup.dialect, setup.profile, setup.frames_per_block, setup.blocks_in_flight)
    options: dict[str, Any] = {
        "name": f"side{setup.places[setup.rank][1].rpartition('.')[2]}",
        "dialect": dialect,
        "profile": profile,
        "announce": False,
        "spin": setup.spin,
        "background": setup.progress == "thread",
        "peers": {address: f"side{ip.rpartition('.')[2]}:0" for address, ip, _ in setup.places},
    }
    if setup.agent:
        given = {name: options[name] for name in ("spin", "background", "peers")}
        return Host.open(setup.interface, agent="card" if setup.progress == "card" else "match", **given)
    if not setup.delay:
        return Host.open(setup.interface, **options)
    # A delayed link supports two ranks only, because it cannot share its interface with other processes.
    link = FaultyLink(open_link(setup.interface), seed=setup.rank, sending=Faults(delay=setup.delay))
    return Host(link, **options)


@contextmanager
def _running_agent(setup: RankSetup) -> Iterator[int]:
    """Run an agent on the interface of a rank, and yield its process.

    Raises :class:`~mxwire.errors.MxwireError` if it does not serve within :data:`PATIENCE`.
    """
    name = f"side{setup.places[setup.rank][1].rpartition('.')[2]}"
    words = ["-i", setup.interface, "--name", name, "--dialect", setup.dialect, "--no-announce"]
    agent = ChildProcess([sys.executable, "-P", "-m", "mxwire", "agent", *words], stderr=subprocess.PIPE)
    try:
        if setup.agent_processor is not None:
            # Before it serves, so that threads which it starts then have the same processor.
            os.sched_setaffinity(agent.pid, {setup.agent_processor})
        if agent.read_line(PATIENCE) is None:
            raise MxwireError(f"the agent does not serve within {PATIENCE:g} s")
        yield agent.pid
    except ChildEndedError:
        raise MxwireError(f"no agent: {agent.end() or 'it has ended'}") from None
    finally:
        agent.end()


_HEAD: Final = struct.Struct("!IQ")
"""Before each message: its tag and its length."""
_STAGING: Final = 1 << 16
BASE_PORT: Final = 7800


@dataclass(slots=True, eq=False)
class StreamOperation:
    """A send or a receive on a stream."""

    done: bool = False


@dataclass(slots=True, eq=False)
class _Incoming:
    """A message that is arriving or was not received yet."""

    data: memoryview
    filled: int = 0
    operation: StreamOperation | None = None


@dataclass(slots=True, eq=False)
class _RankConnection:
    """The connection to one rank."""

    socket: socket.socket
    sending: deque[tuple[memoryview, StreamOperation | None]] = field(default_factory=deque)
    rest: bytearray = field(default_factory=bytearray)
    current: _Incoming | None = None
    posted: dict[int, deque[tuple[StreamOperation, memoryview]]] = field(default_factory=lambda: defaultdict(deque))
    unexpected: dict[int, deque[_Incoming]] = field(default_factory=lambda: defaultdict(deque))


class StreamCommunicator(LiveCommunicator):
    """A rank with a TCP connection to each other rank."""

    def __init__(self, setup: RankSetup) -> None:
        super().__init__(setup.rank, setup.size)
        self._setup = setup
        self._streams: dict[int, _RankConnection] = {}
        self._staging = bytearray(_STAGING)
        self._listener = socket.create_server((setup.places[setup.rank][1], BASE_PORT + setup.rank))

    def connect(self) -> None:
        """Connect to the lower ranks, and accept the higher ones."""
        self._listener.settimeout(PATIENCE)
        # One connection per pair: each rank has listened since it was made, so that none waits in a circle.
        for rank in range(self.rank):
            opened = tcp_connection(self._setup.places[rank][1], BASE_PORT + rank)
            # Ranks connect in any order, and several may have one address.
            opened.sendall(bytes([self.rank]))
            self._add(rank, opened)
        while len(self._streams) < self.size - 1:
            opened, _ = self._listener.accept()
            self._add(opened.recv(1)[0], undelayed(opened))

    def _add(self, rank: int, opened: socket.socket) -> None:
        opened.setblocking(False)
        if self._setup.buffers is not None:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                opened.setsockopt(socket.SOL_SOCKET, option, self._setup.buffers)
        self._streams[rank] = _RankConnection(opened)

    def isend(self, target: int, data: Buffer, tag: int = 0) -> StreamOperation:
        """Post a send; as much as possible is sent at once."""
        stream, operation, view = self._streams[target], StreamOperation(), flat(data)
        stream.sending += ((memoryview(_HEAD.pack(tag, len(view))), None), (view, operation))
        self._push(stream)
        return operation

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> StreamOperation:
        """Post a receive."""
        stream, operation, view = self._streams[source], StreamOperation(), flat(data)
        waiting = stream.unexpected[tag]
        if not waiting:
            stream.posted[tag].append((operation, view))
            return operation
        message = waiting.popleft()
        _check_length(len(message.data), view)
        if message is stream.current:
            # The rest is received directly into the buffer of the receive.
            view[: message.filled] = message.data[: message.filled]
            message.data, message.operation = view, operation
        else:
            view[:] = message.data
            operation.done = True
        return operation

    def wait(self, operations: Sequence[Operation]) -> None:
        """Send and receive until all operations are done."""
        end = time.monotonic() + PATIENCE
        while not all(each.done for each in operations):
            progress = self.look()
            if progress:
                end = time.monotonic() + PATIENCE
            elif not self._setup.spin and not all(each.done for each in operations):
                self._block()
            if not progress and time.monotonic() > end:
                raise MxwireError(f"rank {self.rank}: no progress for {PATIENCE:g} s")

    def look(self) -> bool:
        """Send and receive once; return True if any bytes were."""
        moved = False
        for rank, stream in self._streams.items():
            moved |= self._push(stream)
            moved |= self._pull(rank, stream)
        return moved

    def _push(self, stream: _RankConnection) -> bool:
        """Send queued bytes, a head with its message; return True if any were sent."""
        sending, progress = stream.sending, False
        while sending:
            try:
                sent = stream.socket.sendmsg([view for view, _ in islice(sending, 2)])
            except BlockingIOError:
                return progress
            progress = True
            while sending and sent >= len(sending[0][0]):
                view, operation = sending.popleft()
                sent -= len(view)
                if operation is not None:
                    operation.done = True
            if sent:
                view, operation = sending[0]
                sending[0] = view[sent:], operation
        return progress

    def _pull(self, rank: int, stream: _RankConnection) -> bool:
        """Receive the bytes that have arrived; return True if there were any."""
        message = stream.current
        into = memoryview(self._staging) if message is None else message.data[message.filled :]
        try:
            count = stream.socket.recv_into(into)
        except BlockingIOError:
            return False
        except ConnectionError:
            count = 0
        if not count:
            raise MxwireError(f"rank {self.rank}: rank {rank} has ended")
        if message is not None:
            message.filled += count
            self._end_if_full(stream, message)
            return True
        stream.rest += into[:count]
        while len(stream.rest) >= _HEAD.size and stream.current is None:
            self._begin(stream)
        return True

    def _begin(self, stream: _RankConnection) -> None:
        """Begin a message from its head and the bytes that have arrived after it."""
        tag, length = _HEAD.unpack_from(stream.rest)
        posted = stream.posted[tag]
        if posted:
            operation, view = posted.popleft()
            _check_length(length, view)
            message = _Incoming(view, operation=operation)
        else:
            message = _Incoming(memoryview(bytearray(length)))
            stream.unexpected[tag].append(message)
        got = stream.rest[_HEAD.size : _HEAD.size + length]
        message.data[: len(got)] = got
        message.filled = len(got)
        del stream.rest[: _HEAD.size + length]
        stream.current = message
        self._end_if_full(stream, message)

    def _end_if_full(self, stream: _RankConnection, message: _Incoming) -> None:
        if message.filled == len(message.data):
            stream.current = None
            if message.operation is not None:
                message.operation.done = True

    def _block(self) -> None:
        poll = select.poll()
        for each in self._streams.values():
            poll.register(each.socket, select.POLLIN | (select.POLLOUT if each.sending else 0))
        # At most 1 s, after which the caller checks its own timeout.
        poll.poll(1000)

    def counts(self) -> dict[str, int]:
        """Return no counts: the kernel counts frames."""
        return {}

    def close(self) -> None:
        """Close all connections."""
        for each in self._streams.values():
            each.socket.close()
        self._listener.close()


def _check_length(length: int, view: memoryview) -> None:
    if length != len(view):
        raise MxwireError(f"a message of {length} bytes arrived for a receive of {len(view)}")


def open_communicator(setup: RankSetup) -> EndpointCommunicator | StreamCommunicator:
    """Open the communicator of a rank, without its connections."""
    if setup.over != "mx":
        return StreamCommunicator(setup)
    return PushCommunicator(setup) if setup.progress == "push" else EndpointCommunicator(setup)
