"""Hosts that use TCP, in virtual time: segments as a card with segmentation offload takes them.

A message is sent in chunks of 64 KiB. The sender's core copies each into the socket's buffer, the link carries it in
frames of the MTU, the receiver's bottom half handles the frames, and the receiver's core copies the chunk when its
receive is posted. Windows do not limit the rate: those of a tuned host are larger than rate times round trip. With
socket buffers of a length, a chunk is copied when the sender's buffer has room, and leaves when that of the receiver
has: then a send waits for a receiver that does not read. Messages within a host are copied twice, as through shared
memory.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Final

from mxwire.bench.cost.processor import ModelCore, core_plan
from mxwire.bench.cost.ranks import ModelFabric, ModelOperation, ModelRank, host_of
from mxwire.bench.cost.tables import Costs
from mxwire.bench.cost.wires import WirePort
from mxwire.bench.imb.communicator import Buffer, flat
from mxwire.ethernet import HEADER_SIZE
from mxwire.simulation.schedule import Schedule

CHUNK: Final = 64 << 10
"""Bytes that the host hands to the card at once."""
_HEADERS: Final = 40 + 12
"""Headers of IP and TCP, and the time stamp option."""
_FIRST: Final = 1
"""Chunks of a message without data."""


class _StreamMessage:
    """A message on its way: its bytes, chunks that have arrived, and the receive that takes it."""

    def __init__(self, data: bytes, chunk: int, connection: _Connection | None, operation: ModelOperation) -> None:
        self.data = data
        self.chunk = chunk
        self.chunks = max(_FIRST, -(-len(data) // chunk))
        self.connection = connection
        """None within a host."""
        self.operation = operation
        self.handed = 0
        """Chunks that the sender has copied into the socket's buffer."""
        self.arrived = 0
        self.copied = 0
        self.receive: tuple[ModelOperation, memoryview] | None = None

    def length(self, number: int) -> int:
        """The length of a chunk."""
        return min(self.chunk, len(self.data) - number * self.chunk)


class _Connection:
    """A connection in one direction. ``room`` is the length of each socket buffer, or None without a limit."""

    def __init__(self, sender: StreamRank, peer: StreamRank, room: int | None) -> None:
        self.sender, self.peer, self.room = sender, peer, room
        self.messages: deque[_StreamMessage] = deque()
        """Messages that the sender has not copied completely."""
        self.held: deque[tuple[_StreamMessage, int]] = deque()
        """Chunks in the sender's buffer, with their lengths."""
        self.buffered = self.unread = 0
        """Bytes in the sender's buffer, and those on the way to the application from there."""

    def has_room(self, used: int, length: int) -> bool:
        """Return whether a buffer takes another chunk."""
        return self.room is None or used + length <= self.room


class StreamRank(ModelRank):
    """A rank with a TCP connection to each other rank."""

    def __init__(self, rank: int, size: int, host: StreamHost, core: ModelCore) -> None:
        super().__init__(rank, size, host.schedule, core, host.costs)
        self.host = host
        self.peers: list[StreamRank] = []
        self._connections: dict[int, _Connection] = {}
        self._messages: dict[tuple[int, int], deque[_StreamMessage]] = defaultdict(deque)
        self._receives: dict[tuple[int, int], deque[tuple[ModelOperation, memoryview]]] = defaultdict(deque)

    def isend(self, target: int, data: Buffer, tag: int = 0) -> ModelOperation:
        """Post a send: it is done when all is in the socket's buffer."""
        operation = ModelOperation()
        peer = self.peers[target]
        local = peer.host is self.host
        connection = None if local else self._connections.setdefault(target, _Connection(self, peer, self.host.room))
        message = _StreamMessage(bytes(flat(data)), min(CHUNK, self.host.room or CHUNK), connection, operation)
        self.schedule.at(self.core.free_at, peer.announce, message, self.rank, tag)
        self._charge(self.costs.call if local else self.costs.tcp_send, "driver")
        if connection is not None:
            connection.messages.append(message)
            self._fill(connection)
            return operation
        for number in range(message.chunks):
            end = self._charge(message.length(number) * self.costs.local_copy, "driver")
            self.schedule.at(end, peer.arrive, message)
        self.schedule.at(self.core.free_at, self._done, operation)
        return operation

    def _fill(self, connection: _Connection) -> None:
        """Copy chunks into the socket's buffer while it has room."""
        while connection.messages:
            message = connection.messages[0]
            length = message.length(message.handed)
            if not connection.has_room(connection.buffered, length):
                return
            message.handed += 1
            connection.buffered += length
            end = self._charge(length * self.costs.copy_warm, "driver")
            self.schedule.at(end, self._offer, connection, message, length)
            if message.handed == message.chunks:
                connection.messages.popleft()
                self.schedule.at(self.core.free_at, self._done, message.operation)

    def _offer(self, connection: _Connection, message: _StreamMessage, length: int) -> None:
        connection.held.append((message, length))
        self._drain(connection)

    def _drain(self, connection: _Connection) -> None:
        """Hand over the chunks for which the receiver has room."""
        while connection.held and connection.has_room(connection.unread, connection.held[0][1]):
            message, length = connection.held.popleft()
            connection.unread += length
            connection.buffered -= length
            self.host.transmit(connection.peer, message, length)
        self._fill(connection)

    def read(self, connection: _Connection, length: int) -> None:
        """Note that the receiver has read ``length`` bytes."""
        connection.unread -= length
        self._drain(connection)

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> ModelOperation:
        """Post a receive."""
        operation = ModelOperation()
        end = self._charge(self.costs.call, "library")
        self.schedule.at(end, self._post, operation, flat(data), (source, tag))
        return operation

    def _post(self, operation: ModelOperation, data: memoryview, key: tuple[int, int]) -> None:
        waiting = self._messages[key]
        if not waiting:
            self._receives[key].append((operation, data))
            return
        message = waiting.popleft()
        message.receive = operation, data
        self._copy(message)

    def announce(self, message: _StreamMessage, source: int, tag: int) -> None:
        """Note the order of a message of a connection, before its first byte arrives."""
        waiting = self._receives[source, tag]
        if waiting:
            message.receive = waiting.popleft()
        else:
            self._messages[source, tag].append(message)

    def arrive(self, message: _StreamMessage) -> None:
        """Take a chunk that the bottom half has handled."""
        message.arrived += 1
        self._copy(message)

    def _copy(self, message: _StreamMessage) -> None:
        """Copy the chunks that have arrived, if the receive is posted."""
        if message.receive is None:
            return
        while message.copied < message.arrived:
            # Once per message, which one call receives.
            fixed = self.costs.tcp_receive if not message.copied else 0
            length = message.length(message.copied)
            message.copied += 1
            end = self._charge(fixed + length * self.costs.tcp_copy, "driver")
            if message.connection is not None and message.connection.room is not None:
                self.schedule.at(end, message.connection.sender.read, message.connection, length)
        if message.copied == message.chunks:
            operation, data = message.receive
            data[:] = message.data
            self.schedule.at(self.core.free_at, self._done, operation)

    def _done(self, operation: ModelOperation) -> None:
        operation.done = True
        self.check()

    def _charge(self, cost: float, kind: str) -> int:
        return self.core.run(self.schedule.now, cost, kind)


class StreamHost:
    """A host of the TCP model.

    ``room`` is the length of the send and of the receive buffer of a socket, in bytes; None: they do not limit.
    """

    def __init__(
        self,
        schedule: Schedule,
        costs: Costs,
        processes: int,
        *,
        mtu: int = 9000,
        coalescing: float = 0.0,
        delay: float = 0.0,
        room: int | None = None,
    ) -> None:
        self.schedule = schedule
        self.costs = costs
        self.bottom, self.cores = core_plan(costs.cores, processes)
        self.port = WirePort(schedule, costs, coalescing, self._interrupt)
        self.room = room
        self._segment = mtu - _HEADERS
        self._delay = delay

    def transmit(self, peer: StreamRank, message: _StreamMessage, length: int) -> None:
        """Hand a chunk to the link."""
        frames = max(1, -(-length // self._segment))
        on_wire = length + frames * (_HEADERS + HEADER_SIZE)
        what = (peer, message, frames)
        self.port.send(peer.host.port, what, on_wire, frames, self.schedule.now, self._delay)

    def _interrupt(self, arrived: list[tuple[StreamRank, _StreamMessage, int]]) -> None:
        for peer, message, frames in arrived:
            end = self.bottom.run(self.schedule.now, frames * self.costs.tcp_frame, "bottom half")
            self.schedule.at(end, peer.arrive, message)


class StreamFabric(ModelFabric):
    """Ranks on modelled hosts with TCP, assigned to the hosts in turn, or in ``blocks``. Times are in ns.

    ``network`` are options of :class:`StreamHost`.
    """

    def __init__(self, costs: Costs, ranks: int, *, hosts: int = 2, blocks: bool = False, **network: Any) -> None:
        super().__init__()
        processes = -(-ranks // hosts)
        self.hosts = [StreamHost(self.schedule, costs, processes, **network) for _ in range(hosts)]
        opened: list[StreamRank] = []
        for rank in range(ranks):
            host = self.hosts[host_of(rank, ranks, hosts, blocks)]
            number = sum(each.host is host for each in opened)
            opened.append(StreamRank(rank, ranks, host, host.cores[number]))
        for each in opened:
            each.peers = opened
        self.ranks.extend(opened)
