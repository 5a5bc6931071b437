"""Endpoints of one host, of one node and of several: nothing between them is ever on the wire (R-LOC-02)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Event, EventKind, LocalProtocolError, Node, Partner, Status
from mxwire.protocol.local_channel import CARRIED_MAXIMUM, DATA_MAXIMUM, RECORD_HEAD, RecordKind
from mxwire.protocol.neighbours import place_of
from mxwire.protocol.profile import OPEN_MX_1_5, Profile
from mxwire.simulation.local_path import SimulatedChannel, SimulatedPath
from mxwire.units import SECOND

from .world import KEY, REFUSED_CONNECTS, address, deliver, pattern, statuses

MINE = address(0)
SIZES = (0, 1, 32, 4096, 4097, DATA_MAXIMUM, DATA_MAXIMUM + 1, CARRIED_MAXIMUM, CARRIED_MAXIMUM + 1)


class Machine:
    """A host whose interface several nodes share; the log has all that reaches the wire."""

    def __init__(self, count: int = 2, *, copies: int = 1, size: int = 1 << 17, profile: Profile = OPEN_MX_1_5) -> None:
        self.profile = profile
        self.made = 0
        paths: list[SimulatedPath] = []
        self.paths = [SimulatedPath(paths, copies=copies, size=size) for _ in range(count)]
        self.nodes = [self.make(path) for path in self.paths]
        self.now = SECOND
        self.log: list[FrameBatch] = []
        self.events: list[Event] = []

    def make(self, path: SimulatedPath) -> Node:
        self.made += 1
        path.node = Node(MINE, "shared", rng=Random(self.made), path=path, profile=self.profile)
        return path.node

    def restart(self, place: int) -> None:
        """Start a successor of a process that has died."""
        self.paths[place] = self.paths[place].successor()
        self.nodes[place] = self.make(self.paths[place])

    def step(self) -> bool:
        moved = False
        for path in self.paths:
            node = path.node
            if node is None:
                continue
            moved |= path.receive(self.now)
            moved |= node.eager()
            batch = node.transmit(self.now)
            if len(batch):
                self.log.append(batch)
            self.events += node.events()
        return moved

    def settle(self) -> None:
        for _ in range(10_000):
            if not self.step():
                assert not self.log, "nothing of this is on the wire"
                return
        raise AssertionError("the nodes never come to rest")

    def open(self, place: int, number: int) -> EngineEndpoint:
        return self.nodes[place].open_endpoint(number, KEY)

    def connect(self, source: EngineEndpoint, number: int) -> Partner:
        request = source.connect(MINE, number, KEY)
        self.settle()
        assert request.status is Status.SUCCESS and request.partner is not None
        return request.partner

    def pair(self, *, itself: bool = False) -> tuple[EngineEndpoint, EngineEndpoint, Partner]:
        """Endpoints of the first two nodes, or of the only one, the first connected to the second or to itself."""
        one = self.open(0, 1)
        two = one if itself else self.open(min(1, len(self.nodes) - 1), 2)
        return one, two, self.connect(one, two.number)

    def lost(self) -> list[Any]:
        return [each.request for each in self.events if each.kind is EventKind.UNDELIVERED]


def same_host(path: str) -> Machine:
    """A host whose endpoints have this path between them."""
    return Machine(1) if path in ("itself", "own node") else Machine(copies=2 if path == "two copies" else 1)


@pytest.mark.parametrize("path", ["itself", "own node", "one copy", "two copies"])
@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("length", SIZES)
def test_messages_within_a_host(length, expected, synchronous, path):
    """R-LOC-01, R-LOC-02, R-CON-07, R-SND-06: of any size, complete without an ack, and answered without a connect."""
    machine = same_host(path)
    one, two, there = machine.pair(itself=path == "itself")
    receive = deliver(machine.settle, one, there, two, length, expected=expected, synchronous=synchronous)
    assert receive.partner is not None and receive.partner.number == 1
    back = one.receive(bytearray(3), 6)
    two.send(receive.partner, b"abc", 6)
    machine.settle()
    assert back.status is Status.SUCCESS
    assert all(node.deadline() is None for node in machine.nodes)


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize(("length", "buffered"), [(4097, True), (32768, True), (32769, False)])
def test_messages_without_the_shortcut_are_buffered_as_those_to_other_hosts(length, buffered, expected):
    """R-LOC-02: the threshold between medium and large is that of the network."""
    machine = Machine(profile=replace(OPEN_MX_1_5, shortcut_to_host=False))
    one, two, there = machine.pair()
    receive = two.receive(bytearray(length), 5) if expected else None
    send = one.send(there, pattern(length), 5)
    assert send.buffered is buffered
    machine.settle()
    assert send.done is (buffered or expected)
    receive = receive or two.receive(bytearray(length), 5)
    machine.settle()
    assert statuses(send, receive) == [Status.SUCCESS] * 2 and receive.memory.copy() == pattern(length)


@pytest.mark.parametrize("separate", [True, False], ids=["other node", "same node"])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_disconnect_ends_sends_that_are_not_received(copies, separate):
    """R-CLS-03: as with a partner on another host; the receiver finds that the message is gone."""
    machine = Machine(copies=copies)
    one, two = machine.open(0, 1), machine.open(1 if separate else 0, 2)
    there = machine.connect(one, 2)
    sends = [one.send(there, pattern(100_000), 5), one.send(there, b"x", 6, synchronous=True)]
    machine.settle()
    late = one.send(there, pattern(50_000), 7)
    one.disconnect(there)
    assert statuses(*sends, late) == [Status.REMOTE_ENDPOINT_UNREACHABLE] * 3
    receives = [two.receive(bytearray(100_000), info) for info in (5, 6)]
    machine.settle()
    assert all(each.done for each in receives)
    again = machine.connect(one, 2)
    assert again is not there
    send, receive = one.send(again, pattern(10_000), 8), two.receive(bytearray(10_000), 8)
    machine.settle()
    assert statuses(send, receive) == [Status.SUCCESS] * 2 and receive.memory.copy() == pattern(10_000)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("number", "key", "status"), REFUSED_CONNECTS)
def test_connects_that_fail(number, key, status, count):
    """R-LOC-02, R-EP-01, R-EP-04."""
    machine = Machine(count)
    one, _ = machine.open(0, 1), machine.open(count - 1, 2)
    request = one.connect(MINE, number, key)
    waiting = one.send(request.partner, b"too early")
    machine.settle()
    assert request.status is status
    assert waiting.status in (Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_BAD_SESSION)


def test_sends_wait_for_the_connect_and_keep_their_order():
    """R-CON-06, R-ORD-01: and those to other partners do not wait for them."""
    machine = Machine(3)
    one, two, third = machine.open(0, 1), machine.open(1, 2), machine.open(2, 3)
    ready = machine.connect(one, 3)
    request = one.connect(MINE, 2, KEY)
    early = [one.send(request.partner, bytes([each])) for each in range(3)]
    one.progress(machine.now)
    other = one.send(ready, b"x")
    one.progress(machine.now)
    assert not any(each.done for each in early) and other.done
    machine.settle()
    late = one.send(request.partner, b"\x03")
    machine.settle()
    assert statuses(*early, late) == [Status.SUCCESS] * 4
    buffers = [bytearray(1) for _ in range(4)]
    assert statuses(*(two.receive(each) for each in buffers)) == [Status.SUCCESS] * 4
    assert b"".join(buffers) == bytes(range(4))
    assert third.matching.unexpected == 1


def test_a_cancelled_connect_releases_waiting_sends():
    """R-MSC-02; its late answer is ignored."""
    machine = Machine()
    one, _ = machine.open(0, 1), machine.open(1, 2)
    request = one.connect(MINE, 2, KEY)
    waiting = one.send(request.partner, b"x")
    one.progress(machine.now)
    assert one.cancel(request)
    machine.settle()
    assert statuses(request, waiting) == [Status.CANCELLED, Status.REMOTE_ENDPOINT_BAD_SESSION]


@pytest.mark.parametrize("copies", [1, 2])
def test_truncated(copies):
    """R-MSC-01: the sender of a large message learns it."""
    machine = Machine(copies=copies)
    one, two, there = machine.pair()
    sizes = ((10, 100), (5000, 9000), (0, 9000), (40_000, 100_000), (400_000, 500_000))
    receives = [two.receive(bytearray(room), number) for number, (room, _) in enumerate(sizes)]
    sends = [one.send(there, pattern(length), number) for number, (_, length) in enumerate(sizes)]
    machine.settle()
    assert statuses(*receives) == [Status.MESSAGE_TRUNCATED] * 5
    assert statuses(*sends) == [Status.SUCCESS, *[Status.MESSAGE_TRUNCATED] * 4]
    assert [send.transferred for send in sends[1:]] == [5000, 0, 40_000, 400_000]
    for receive, (room, length) in zip(receives, sizes, strict=True):
        assert receive.memory.copy() == pattern(length)[:room]


class RunningSender(SimulatedChannel):
    """A channel whose other side runs whenever a look finds no record, as a process of its own may."""

    def peek(self) -> memoryview | None:
        found = super().peek()
        if found is None and self.other.owner.busy:
            self.other.owner.receive(SECOND)
            found = super().peek()
        return found


@pytest.mark.parametrize("length", [CARRIED_MAXIMUM + 1, 4 * CARRIED_MAXIMUM, 40 * CARRIED_MAXIMUM])
def test_a_long_message_is_not_read_while_its_sender_runs(length, monkeypatch: pytest.MonkeyPatch):
    """R-LOC-02: all of it arrives in records, and no copy is made by the kernel."""
    monkeypatch.setattr("mxwire.simulation.local_path.SimulatedChannel", RunningSender)
    reads: list[int] = []
    monkeypatch.setattr(SimulatedChannel, "read", lambda *_: reads.append(1))
    machine = Machine()
    one, two, there = machine.pair()
    buffer = bytearray(length)
    receive, send = two.receive(buffer), one.send(there, pattern(length))
    machine.settle()
    assert statuses(send, receive) == [Status.SUCCESS] * 2 and buffer == pattern(length) and not reads


def test_the_rest_of_a_long_message_is_read_if_its_sender_does_not_run(monkeypatch: pytest.MonkeyPatch):
    """R-LOC-02: its receiver waits for no call of the sender's program."""
    rests: list[int] = []
    read = SimulatedChannel.read
    monkeypatch.setattr(SimulatedChannel, "read", lambda *arguments: rests.append(arguments[-1]) or read(*arguments))
    for length in (DATA_MAXIMUM + 1, CARRIED_MAXIMUM, CARRIED_MAXIMUM + 1, 4 * CARRIED_MAXIMUM):
        machine = Machine()
        one, two, there = machine.pair()
        buffer = bytearray(length)
        receive, send = two.receive(buffer), one.send(there, pattern(length))
        machine.nodes[0].transmit(machine.now)
        machine.paths[1].receive(machine.now)
        assert receive.status is Status.SUCCESS and not send.done and buffer == pattern(length)
        machine.settle()
        assert send.status is Status.SUCCESS
    # The first one arrives as a whole, of the second as much as the channel holds.
    assert rests == [3 * DATA_MAXIMUM, DATA_MAXIMUM, DATA_MAXIMUM]


def test_the_remote_endpoint_closes():
    """R-CLS-02, R-EP-02: while the message waits for a receive, before the send, and reopened."""
    machine = Machine()
    one, two, there = machine.pair()
    kept = one.send(there, pattern(9000))
    machine.settle()
    two.close()
    machine.settle()
    late = one.send(there, pattern(9000))
    machine.settle()
    machine.open(1, 2)
    wrong = one.send(there, pattern(9000))
    machine.settle()
    assert statuses(kept, late) == [Status.REMOTE_ENDPOINT_CLOSED] * 2
    assert wrong.status is Status.REMOTE_ENDPOINT_BAD_SESSION
    assert statuses(one.send(machine.connect(one, 2), b"")) == [None]


@pytest.mark.parametrize("path", ["own node", "one copy", "two copies"])
def test_the_sender_closes(path):
    """R-CLS-02: a receive that takes its message then, or is taking it, ends as closed."""
    machine = same_host(path)
    one, two, there = machine.pair()
    sends = [one.send(there, pattern(9000), number) for number in (5, 6)]
    machine.settle()
    taking = two.receive(bytearray(9000), 6)
    one.close()
    machine.settle()
    assert sends[0].status is Status.CANCELLED
    assert two.receive(bytearray(9000), 5).status is Status.REMOTE_ENDPOINT_CLOSED
    assert taking.status is (Status.REMOTE_ENDPOINT_CLOSED if path == "two copies" else Status.SUCCESS)


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (9000, Status.SUCCESS),
        (CARRIED_MAXIMUM, Status.REMOTE_ENDPOINT_CLOSED),
        (CARRIED_MAXIMUM + 1, Status.REMOTE_ENDPOINT_CLOSED),
    ],
)
def test_an_offer_that_is_withdrawn_before_its_record_is_taken(length, status):
    """R-CLS-02: the memory is not read, though the withdrawal is behind other records; a message that the channel holds
    as a whole is received."""
    machine = Machine()
    one, two, there = machine.pair()
    buffer = bytearray(length)
    receive = two.receive(buffer)
    one.send(there, pattern(length))
    machine.nodes[0].transmit(machine.now)
    one.close()
    machine.settle()
    assert receive.status is status
    assert status is not Status.SUCCESS or buffer == pattern(length)


def test_the_receiver_closes_while_the_data_comes():
    """R-CLS-02."""
    machine = Machine(copies=2)
    one, two, there = machine.pair()
    receive = two.receive(bytearray(900_000))
    send = one.send(there, pattern(900_000))
    for _ in range(3):
        machine.step()
    assert not receive.done and not send.done
    two.close()
    machine.settle()
    assert statuses(send, receive) == [Status.REMOTE_ENDPOINT_CLOSED, Status.CANCELLED]


def test_a_short_message_that_is_lost_after_all():
    """R-SND-06: refused by the receiver's card."""
    machine = Machine()
    one, two, there = machine.pair()
    two.close()
    machine.settle()
    machine.open(1, 2)
    send = one.send(there, b"xyz", 7)
    machine.settle()
    assert send.status is Status.SUCCESS
    (lost,) = machine.lost()
    assert (lost.late_status, lost.match_info, lost.length) == (Status.REMOTE_ENDPOINT_BAD_SESSION, 7, 3)
    assert lost.partner is there


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("steps", range(8))
def test_a_killed_process(steps, copies):
    """R-LOC-02: all requests end, messages sent before can be received, and nothing hangs."""
    machine = Machine(copies=copies)
    one, two = machine.open(0, 1), machine.open(1, 2)
    request = one.connect(MINE, 2, KEY)
    there = request.partner
    sends = [one.send(there, pattern(length), 1) for length in (100, 500_000)]
    back = two.connect(MINE, 1, KEY)
    answer = two.send(back.partner, b"before", 9)
    buffers = [bytearray(500_000) for _ in range(2)]
    receives = [two.receive(each, 1) for each in buffers]
    for _ in range(steps):
        machine.step()
    machine.paths[1].die()
    machine.settle()
    ended = (Status.SUCCESS, Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_BAD_SESSION)
    assert request.status in ended and all(each.status in ended for each in sends)
    for receive, send in zip(receives, sends, strict=True):
        # A message that the receiver has seen as complete is not reported as failed.
        assert receive.status is not Status.SUCCESS or send.status is not None
    if answer.status is Status.SUCCESS:
        assert one.receive(bytearray(6), 9).status is Status.SUCCESS
    late = one.send(there, b"x")
    machine.settle()
    assert late.status in (Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_BAD_SESSION)
    assert all(each.deadline() is None for each in machine.nodes[:1])


@pytest.mark.parametrize("copies", [1, 2])
def test_a_killed_sender(copies):
    """R-LOC-02: a receive of its data ends as closed, its short messages can be received."""
    machine = Machine(copies=copies)
    one, two, there = machine.pair()
    receive = two.receive(bytearray(900_000), 1)
    short = one.send(there, b"abc", 2)
    one.send(there, pattern(900_000), 3)
    one.send(there, pattern(900_000), 1)
    machine.nodes[0].transmit(machine.now)
    machine.paths[1].receive(machine.now)
    machine.paths[0].die()
    machine.settle()
    assert short.status is Status.SUCCESS and two.receive(bytearray(3), 2).status is Status.SUCCESS
    assert two.receive(bytearray(9), 3).status is Status.REMOTE_ENDPOINT_CLOSED
    assert receive.status is (Status.SUCCESS if copies == 1 else Status.REMOTE_ENDPOINT_CLOSED)


def test_the_last_messages_of_a_killed_process_do_not_change_the_route():
    """R-LOC-02: the route is that to its successor, though they are still being taken."""
    machine = Machine()
    one, two, _ = machine.pair()
    back = machine.connect(two, 1)
    for _ in range(1500):
        two.send(back, b"x")
    machine.nodes[1].transmit(machine.now)
    machine.paths[1].die()
    machine.restart(1)
    connect = machine.open(1, 2).connect(MINE, 1, KEY)
    while not connect.done:
        machine.step()
    again = one.connect(MINE, 2, KEY)
    machine.settle()
    assert statuses(connect, again) == [Status.SUCCESS] * 2


def test_short_messages_that_a_killed_process_has_not_taken():
    """R-SND-06: they were complete, and are reported as undelivered."""
    machine = Machine()
    one, _, there = machine.pair()
    sends = [one.send(there, b"x", number) for number in range(3)]
    machine.nodes[0].transmit(machine.now)
    machine.paths[1].die()
    machine.settle()
    assert statuses(*sends) == [Status.SUCCESS] * 3
    assert [each.match_info for each in machine.lost()] == [0, 1, 2]


@pytest.mark.parametrize("copies", [1, 2])
def test_a_full_channel_is_waited_for(copies):
    """R-GEN-01: nothing is lost, the order is kept, and nothing spins while the neighbour does not take anything."""
    machine = Machine(copies=copies, size=40_000, profile=replace(OPEN_MX_1_5, unexpected_maximum=10))
    one, two, there = machine.pair()
    sends = [one.send(there, pattern(4000, number), number) for number in range(40)]
    sends.append(one.send(there, pattern(100_000), 40))
    for _ in range(50):
        machine.step()
    assert 10 < sum(each.done for each in sends) < 40
    assert not machine.nodes[0].eager() and machine.nodes[0].deadline() is None
    for number in range(40):
        buffer = bytearray(4000)
        receive = two.receive(buffer, 0, 0)
        for _ in range(10):
            machine.step()
        assert receive.match_info == number and bytes(buffer) == pattern(4000, number)
    last = two.receive(bytearray(100_000), 40)
    machine.settle()
    assert statuses(*sends, last) == [Status.SUCCESS] * 42


def test_a_library_that_does_not_work():
    """R-GEN-01: its card takes messages until the ring is full; connects are answered."""
    machine = Machine(profile=replace(OPEN_MX_1_5, ring_size=2))
    one, two, there = machine.pair()
    two.progressing = False
    sends = [one.send(there, bytes([each])) for each in range(4)]
    large = one.send(there, pattern(9000))
    for _ in range(5):
        machine.step()
    assert statuses(*sends, large) == [Status.SUCCESS] * 4 + [None]
    assert two.matching.unexpected == 0
    two.progressing = True
    machine.settle()
    got = [bytearray(9000) for _ in range(5)]
    receives = [two.receive(each) for each in got]
    machine.settle()
    assert statuses(*receives, large) == [Status.SUCCESS] * 6
    assert [each[0] for each in got[:4]] == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [1, 2])
def test_the_handler_may_consume_messages(count):
    """R-MAT-06."""
    machine = Machine(count)
    one, two, there = machine.pair()
    seen: list[Any] = []
    two.handle_unexpected(lambda message: bool(seen.append((message.data, message.length))) or True)
    sends = [one.send(there, pattern(length)) for length in (3, 9000)]
    machine.settle()
    assert seen == [(pattern(3), 3), (None, 9000)]
    assert (sends[1].status, sends[1].transferred) == (Status.MESSAGE_TRUNCATED, 0)


HEADS = st.tuples(
    st.one_of(st.sampled_from([int(each) for each in RecordKind]), st.integers(0, 255)),
    st.one_of(st.sampled_from([0, 33, 93, 92]), st.integers(0, 255)),
    st.one_of(st.integers(0, 24), st.integers(0, 0xFFFF)),
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([place_of(MINE, 1), place_of(MINE, 2), place_of(address(9), 1), 0, (1 << 64) - 1]),
    st.sampled_from([place_of(MINE, 2), place_of(MINE, 3), place_of(MINE, 255), 0, (1 << 64) - 1]),
    st.integers(0, 0xFFFFFFFF),
    st.one_of(st.just(-1), st.integers(0, 0xFFFFFFFF)),
    st.integers(0, 4),
    st.one_of(st.integers(0, 10), st.integers(0, (1 << 64) - 1)),
    st.one_of(st.integers(0, 5000), st.integers(0, (1 << 64) - 1)),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(HEADS, st.binary(max_size=100)), max_size=12), st.booleans(), st.sampled_from([1, 2]))
def test_hostile_records(records, posted, copies):
    """A neighbour that sends anything crashes nothing, and does not disturb the others."""
    machine = Machine(3, copies=copies)
    one, two, there = machine.pair()
    third = machine.open(2, 3)
    if posted:
        two.receive(bytearray(50), 0, 0)
    two.send(machine.connect(two, 1), pattern(9000))
    send = one.send(there, pattern(9000), 77)
    machine.settle()
    (channel,) = {
        id(each): each for each in machine.paths[0]._channels if each.other.owner is machine.paths[1]
    }.values()
    for head, data in records:
        session = two.session if head[7] < 0 else head[7]
        channel.put(RECORD_HEAD.pack(*head[:7], session, *head[8:]), data)
    for _ in range(30):
        machine.step()
    good = two.receive(bytearray(3), 1 << 60)
    third.send(machine.connect(third, 2), b"abc", 1 << 60)
    for _ in range(30):
        machine.step()
    assert good.status is Status.SUCCESS
    one.close()
    two.close()
    for _ in range(30):
        machine.step()
    assert send.done


def test_short_records_end_the_channel():
    machine = Machine()
    one, two, there = machine.pair()
    kept = one.send(there, pattern(9000))
    machine.settle()
    machine.paths[0]._channels[0].put(b"short")
    machine.settle()
    assert kept.status is Status.REMOTE_ENDPOINT_CLOSED
    with pytest.raises(LocalProtocolError):
        two.send(there, b"x")


@pytest.mark.parametrize(
    ("described", "data", "ends"), [(8, 5, False), (13, 0, False), (0, 14, True), (14, 0, True), (0xFFFF, 13, True)]
)
def test_the_data_of_an_offer_is_within_its_record_and_its_message(described, data, ends):
    """A neighbour that claims more ends the channel; an offer may carry a part of its message, or nothing."""
    machine = Machine()
    one, two, there = machine.pair()
    kept, receive = one.send(there, pattern(9000)), one.receive(bytearray(20), 5)
    machine.settle()
    places = place_of(MINE, 2), place_of(MINE, 1), two.session, one.session
    head = RECORD_HEAD.pack(RecordKind.OFFER, 0, described, 0, *places, 7, 5, 13)
    machine.paths[1]._channels[0].put(head, bytes(min(described, 13)) + bytes(data))
    machine.settle()
    assert kept.status is (Status.REMOTE_ENDPOINT_CLOSED if ends else None)
    assert not receive.done
    one.close()
    assert receive.status is Status.CANCELLED


@pytest.mark.parametrize(("length", "ends"), [((1 << 32) - 1, False), (1 << 32, True)])
def test_offers_of_impossible_lengths_end_the_channel(length, ends):
    """A length of more than 32 bits has no place in the status of a program in C."""
    machine = Machine()
    one, two, there = machine.pair()
    kept = one.send(there, pattern(9000))
    machine.settle()
    places = place_of(MINE, 2), place_of(MINE, 1), two.session, one.session
    machine.paths[1]._channels[0].put(RECORD_HEAD.pack(RecordKind.OFFER, 0, 0, 0, *places, 7, 5, length))
    machine.settle()
    assert kept.status is (Status.REMOTE_ENDPOINT_CLOSED if ends else None)
    assert (one.probe(5) is None) is ends


class Rank:
    """A process with one endpoint that sends and receives at random, and may be replaced by a successor."""

    count = 0

    def __init__(self, machine: Machine, place: int, rng: Random) -> None:
        Rank.count += 1
        self.name = Rank.count
        self.machine, self.place, self.rng = machine, place, rng
        self.endpoint = machine.open(place, place)
        self.numbers: dict[int, int] = {}
        self.requests: list[Any] = []
        self.receives: list[tuple[Any, bytearray]] = []

    def connect(self) -> None:
        self.requests.append(self.endpoint.connect(MINE, self.rng.randrange(3), KEY))

    def send(self) -> None:
        partners = [each for each in self.endpoint.partners.values() if each.fwd is not None]
        if partners:
            there = self.rng.choice(partners)
            number = self.numbers[id(there)] = self.numbers.get(id(there), 0) + 1
            size = self.rng.choice((0, 100, 4088, 4089, 40_000, 60_000))
            data = self.name.to_bytes(4, "big") + number.to_bytes(4, "big") + pattern(size, number)
            synchronous = self.rng.random() < 0.1
            self.requests.append(self.endpoint.send(there, data, self.name, synchronous=synchronous))

    def receive(self) -> None:
        buffer = bytearray(60_008)
        self.receives.append((self.endpoint.receive(buffer, 0, 0), buffer))

    def close(self) -> None:
        self.endpoint.close()
        assert all(each.done for each in self.requests)
        assert all(each.done for each, _ in self.receives)

    def check(self) -> int:
        """Messages of each sender arrive in order and whole; return their number."""
        last: dict[int, int] = {}
        found = 0
        for request, buffer in self.receives:
            if request.status is Status.SUCCESS:
                sender, number = int.from_bytes(buffer[:4], "big"), int.from_bytes(buffer[4:8], "big")
                assert request.match_info == sender
                assert number > last.get(sender, 0), "a sender has one partner here, and its messages keep their order"
                last[sender] = number
                assert bytes(buffer[8 : request.length]) == pattern(request.length - 8, number)
                found += 1
        return found


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_random_plays_with_deaths(seed, copies):
    """R-LOC-02, R-ORD-01, R-CLS-02: sends, receives, closes and kills at random, with a channel that is often full."""
    rng = Random(seed)
    machine = Machine(3, copies=copies, size=45_000)
    ranks = [Rank(machine, place, rng) for place in range(3)]
    received = 0
    for turn in range(400):
        rank = rng.choice(ranks)
        dice = rng.random()
        if dice < 0.1:
            rank.connect()
        elif dice < 0.5:
            rank.send()
        elif dice < 0.8:
            rank.receive()
        elif dice < 0.82:
            rank.endpoint.progressing = not rank.endpoint.progressing
        elif dice < 0.83 and turn < 300:
            rank.close()
            received += rank.check()
            ranks[rank.place] = Rank(machine, rank.place, rng)
        elif dice < 0.84 and turn < 300:
            machine.paths[rank.place].die()
            received += rank.check()
            machine.restart(rank.place)
            ranks[rank.place] = Rank(machine, rank.place, rng)
        else:
            machine.step()
    for rank in ranks:
        rank.endpoint.progressing = True
        for _ in range(150):
            rank.receive()
    machine.settle()
    for rank in ranks:
        received += rank.check()
        assert all(each.done for each in rank.requests), "what is received or lost has ended for its sender"
    assert received > 20
    for rank in ranks:
        rank.close()
    machine.settle()
