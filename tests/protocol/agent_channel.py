"""An agent and an application in one thread, joined by a channel in memory; and records of hostile ones."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from mxwire.protocol import Node, Status
from mxwire.protocol.agent.attached import AttachedNode
from mxwire.protocol.agent.attached_card import CardNode
from mxwire.protocol.agent.records import AGENT_HEAD, OPEN_OPTIONS, PLACE, AgentEndedError, AgentRecord, RecordFlag
from mxwire.protocol.agent.served import ServedClient
from mxwire.protocol.agent.tokens import TokenTable
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.pull import PullSource
from mxwire.simulation.local_path import SimulatedChannel, SimulatedPath

ADDRESS = b"\2\0\0\0\0\1"
OTHER = b"\2\0\0\0\0\2"
FACTS: dict[str, Any] = {
    "version": "1",
    "name": "alpha",
    "interfaces": ["a"],
    "addresses": [ADDRESS.hex()],
    "mtus": [9000],
    "dialect": "mxoe",
    "profile": "open-mx-1.5",
}


def channel_pair() -> tuple[SimulatedChannel, SimulatedChannel]:
    """The two sides of a channel."""
    paths: list[SimulatedPath] = []
    for _ in range(2):
        paths.append(SimulatedPath(paths))
    sides = tuple(SimulatedChannel(paths[place], paths[1 - place], 2, 1 << 17) for place in range(2))
    sides[0].other, sides[1].other = sides[1], sides[0]
    return sides[0], sides[1]


class OwnMemory:
    """Memory of the application, from the address 4096."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)

    def read(self, place: int, parts: list[Any]) -> bool:
        """Read from an address."""
        for part in parts:
            found = self.content[place - 4096 : place - 4096 + len(part)]
            if place < 4096 or len(found) < len(part):
                return False
            part[:] = np.frombuffer(found, np.uint8)
            place += len(part)
        return True

    def write(self, place: int, parts: list[Any]) -> bool:
        """Write to an address."""
        data = b"".join(map(bytes, parts))
        if not 4096 <= place <= 4096 + len(self.content) - len(data):
            return False
        self.content[place - 4096 : place - 4096 + len(data)] = data
        return True


class Served:
    """An agent's node with one application, whose side of the channel is ``near``."""

    def __init__(self, memory: OwnMemory | None = None) -> None:
        self.near, far = channel_pair()
        self.node = Node(ADDRESS, "alpha", rng=Random(1), report_completed=False)
        self.node.handler_calls.deferred = True
        self.tokens = TokenTable(Random(3))
        self.client = ServedClient(
            self.node, far, FACTS, self._open, lambda engine: engine.close(), self.tokens, memory
        )
        self.now = 0

    def _open(self, number: int | None, key: int, interface: int, **options: Any) -> Any:
        free = [each for each in range(32) if each not in self.node.interfaces[0].endpoints]
        return self.node.open_endpoint(free[0] if number is None else number, key, interface=interface, **options)

    def turn(self) -> bool:
        """Take records, make a pass and report; return False if the application must be dropped."""
        kept = self.client.receive(self.now)
        for _ in range(4):
            self.now += 1_000_000
            self.node.transmit(self.now)
            for endpoint in list(self.node.offering):
                message = endpoint.next_offer()
                if message is not None and endpoint.matching.handler is not None:
                    endpoint.matching.handler(message)
        for event in self.node.events():
            self.client.take_event(event)
        self.client.report()
        return kept

    def attach(self) -> AttachedNode:
        """The node of the application."""
        return AttachedNode(self.near, lambda: (self.turn(), None)[1], "the agent")

    def attach_card(self) -> CardNode:
        """The node of an application that runs the library itself."""
        return CardNode(self.near, lambda: (self.turn(), None)[1], "the agent", rng=Random(2))


def serve_records(records: list[bytes]) -> int:
    """Serve an application that attaches, opens an endpoint and the card's side of another one, and sends ``records``;
    the agent's node stays usable. Return the number of records until the application was dropped."""
    taken = 0
    served = Served(OwnMemory(100_000))
    served.attach().open_endpoint(1)
    head = AGENT_HEAD.pack(AgentRecord.OPEN, 0, RecordFlag.CARD, 0, 2, 0, 0, 0, 0, 2)
    served.near.put(head + OPEN_OPTIONS.pack(*7 * [0]))
    served.turn()
    for record in records:
        taken += 1
        if not served.near.put(record):
            served.turn()
            while served.near.peek() is not None:
                served.near.advance()
            served.near.put(record)
        if not served.turn():
            break
    served.client.close()
    assert not served.node.interfaces[0].endpoints and served.client.request_count == served.client.held_bytes == 0
    assert not served.client.region_count
    served.node.open_endpoint(1)
    return taken


def answer_records(records: list[bytes]) -> int:
    """Have an application take ``records`` from its agent, while it has requests of each kind, until it leaves; return
    their number."""
    taken = 0
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    own = endpoint.own_partner()
    endpoint.receive(bytearray(100), 1)
    endpoint.receive(None, 2, maximum=50)
    endpoint.send(own, bytes(40_000), 3)
    endpoint.connect(ADDRESS, 1, 0)
    served.near.arrived.clear()
    for record in records:
        taken += 1
        served.near.arrived.append(record)
        node._take_all()
        if node.ended:
            break
    node.leave()
    return taken


def answer_card_records(records: list[bytes]) -> int:
    """As :func:`answer_records`, for an application that runs the library itself, while it pulls messages."""
    taken = 0
    served = Served()
    node = served.attach_card()
    endpoint = node.open_endpoint(1)
    peer = node.add_peer(OTHER, "beta")
    source = PullSource(peer, 0, 1, 2, 3, 0)
    for length in (100, 40_000):
        endpoint.card.start_pull(source, Segments(bytearray(length), writable=True), length, Receiver(), 0)
    served.near.arrived.clear()
    for taken, record in enumerate(records, 1):
        served.near.arrived.append(record)
        try:
            node.receive_local([served.near], taken * 1_000_000)
        except AgentEndedError:
            break
        node.transmit(taken * 1_000_000)
    node.leave()
    return taken


class Receiver:
    """A receive whose pull may end."""

    def pull_ended(self, status: Status, transferred: int) -> None:
        """Take the end of the pull."""


def record_from(data: bytes) -> bytes:
    """A record with a plausible head from a few bytes: most numbers are small, so that they name something."""
    draw = Random(data)
    kinds = [int(each) for each in AgentRecord]
    small = [0, 1, 2, 3, 5, 9, 0x100, 0x101, 40_000, 1 << 32, (1 << 64) - 1]
    number = draw.choice
    head = AGENT_HEAD.pack(
        draw.choice(kinds),
        draw.choice((0, 0, 0, 95, 255)),
        draw.choice((*range(8), draw.randrange(1024))),
        draw.choice((0, 1, 1, 2, 2, 3)),
        *(number(small) for _ in range(6)),
    )
    if draw.random() < 0.3:
        return head + b"".join(
            PLACE.pack(draw.choice((0, 4096, 50_000, 100_000, 1 << 63)), draw.choice((0, 1, 40_000, 90_000)))
            for _ in range(draw.randrange(4))
        )
    return head + draw.randbytes(draw.choice((0, 0, 8, 24, 40, 300, 32_768)))
