"""The receipt of a message from a neighbour, another node of this host (R-LOC-02); ``neighbours.py`` explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxwire.protocol.local_channel import CARRIED_MAXIMUM, ENDPOINT_BITS, RecordHead, RecordKind
from mxwire.protocol.peers import Peer
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import EngineEndpoint
    from mxwire.protocol.neighbours import Neighbour


class NeighbourMessage:
    """A message of a neighbour's endpoint that is not received yet."""

    __slots__ = (
        "_filled",
        "_receive",
        "_wanted",
        "carried",
        "data",
        "described",
        "done",
        "endpoint",
        "length",
        "match_info",
        "neighbour",
        "number",
        "peer",
        "session",
        "source",
        "target",
    )

    def __init__(
        self, neighbour: Neighbour, peer: Peer, head: RecordHead, data: bytes | None, described: bytes
    ) -> None:
        _, _, _, _, source, target, session, _, number, match_info, length = head
        self.neighbour = neighbour
        self.peer = peer
        self.source, self.session = source, session
        """Address and endpoint number of the sender, as in the record, and its session."""
        self.target = target
        """Address and number of the endpoint that it is for."""
        self.number = number
        """The sender's number of an offered message."""
        self.match_info, self.length = match_info, length
        self.data = data
        """The message; None for an offered one."""
        self.done = False
        """True if the sender has withdrawn the message, or has received the answer."""
        self.endpoint: EngineEndpoint | None = None
        """The target, while the data is being transferred."""
        self.carried: bytes | memoryview = b""
        """The first bytes of an offered message, while its record is handled."""
        self.described = described
        """The place of the data of an offered message, as its sender describes it."""
        self._receive: Any = None
        self._wanted = 0
        self._filled = 0

    def fetch(self, receive: Any, length: int) -> bool:
        """Copy ``length`` bytes into the memory of a receive; return False if the data will arrive in records."""
        neighbour, first = self.neighbour, self.carried
        if first:
            if len(first) < length:
                neighbour.filling[self.number] = self
                if self.length > CARRIED_MAXIMUM:
                    neighbour.request(self.number, len(first), length)
            self._filled = receive.memory.put(0, first)
            if self._filled >= length:
                return True
        elif not length or neighbour.channel.read(self.described, receive.memory, length, self.source & ENDPOINT_BITS):
            return True
        else:
            neighbour.request(self.number, 0, length)
        self._receive, self._wanted, self.endpoint = receive, length, receive.endpoint
        return False

    def fill(self, offset: int, data: Any) -> None:
        """Take a part of the data, up to the end of the receive; ignore it if no receive waits for it."""
        receive = self._receive
        if receive is None or offset != self._filled:
            return
        data = data[: self._wanted - offset]
        receive.memory.put(offset, data)
        self._filled += len(data)
        if self._filled == self._wanted:
            self._complete(receive)

    def fetch_rest(self) -> None:
        """Copy the bytes that have not arrived yet out of the sender's memory, if that is possible."""
        receive, described, source = self._receive, self.described, self.source & ENDPOINT_BITS
        if receive is not None and self.neighbour.channel.read(
            described, receive.memory, self._wanted, source, self._filled
        ):
            self._complete(receive)

    def _complete(self, receive: Any) -> None:
        """End the transfer, since all data is in the memory of the receive."""
        self._receive = None
        receive.filled()
        self.received(self._wanted)

    def received(self, transferred: int) -> None:
        """Answer that ``transferred`` bytes were taken."""
        self._end(Status.SUCCESS, transferred)

    def dropped(self, status: Status = Status.REMOTE_ENDPOINT_CLOSED) -> None:
        """Answer that the message will not be received."""
        self._end(status, 0)

    def abandon(self, status: Status) -> None:
        """End the transfer, since the sender has withdrawn the message or the receiver closes."""
        self.neighbour.filling.pop(self.number, None)
        receive, self._receive = self._receive, None
        if receive is not None:
            receive.abandoned(status)

    def _end(self, status: Status, transferred: int) -> None:
        if self.done:
            return
        self.done = True
        if self.data is None:
            self.neighbour.offers.pop(self.number, None)
            self.neighbour.filling.pop(self.number, None)
            self.neighbour.answer(RecordKind.ENDED, self.number, status, transferred)
        else:
            self.neighbour.lose_message(self, status)
