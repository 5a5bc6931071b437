"""Calls inside of the unexpected handler, and matching that is tried again after it (R-MAT-06)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.protocol import EngineEndpoint, Request, Status
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.profile import OPEN_MX_1_5

from .world import KEY, World, address, pattern, statuses

LENGTHS = [0, 3, 128, 900, 9000, 40000]
both_times = pytest.mark.parametrize("deferred", [False, True], ids=["in the pass", "after it"])


@both_times
@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_receive_posted_in_the_handler_takes_the_message(length, one_by_one, deferred):
    """On all paths: TINY, SMALL, MEDIUMs of one and of several fragments, RNDV."""
    world = World(one_by_one=one_by_one, deferred=deferred)
    one, two, there, back = world.pair()
    buffers, receives = [], []

    def handler(message: Unexpected) -> bool:
        assert message.partner is back
        buffers.append(bytearray(length))
        receives.append(two.receive(buffers[-1], message.match_info))
        assert not receives[-1].done
        return False

    two.handle_unexpected(handler)
    sends = [one.send(there, pattern(length, number), number) for number in range(3)]
    world.settle()
    assert statuses(*sends, *receives) == [Status.SUCCESS] * 6
    assert [bytes(each) for each in buffers] == [pattern(length, number) for number in range(3)]
    assert two.matching.unexpected == two.matching.posted == 0


@both_times
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_message_is_claimed_by_its_identity(length, inside, deferred):
    """Neither older messages nor receives that match interfere."""
    world = World(deferred=deferred)
    one, two, there, _ = world.pair()
    claims, identities = [], []

    def handler(_message: Unexpected) -> bool:
        identities.append(two.matching.identity)
        if inside and len(identities) == 3:
            two.receive(bytearray(length), 7)
            claims.append(two.claim(bytearray(length), identities[-1]))
            assert not claims[0].done and two.claim(bytearray(length), identities[-1]) is None
            # Another one can be claimed at the same time, as another thread does.
            claims.append(two.claim(bytearray(length), identities[1]))
        return False

    two.handle_unexpected(handler)
    buffer = bytearray(length)
    sends = [one.send(there, pattern(length, number), 7) for number in range(4)]
    world.settle()
    if not inside:
        claims.append(two.claim(buffer, identities[2]))
        world.settle()
    assert statuses(*claims) == [Status.SUCCESS] * (1 + inside)
    assert [each.memory.copy() for each in claims] == [pattern(length, number) for number in (2, 1)[: 1 + inside]]
    assert two.claim(bytearray(1), identities[2]) is None
    rest = [two.receive(bytearray(length), 7) for _ in range(3 - 2 * inside)]
    world.settle()
    assert statuses(*sends, *rest) == [Status.SUCCESS] * len(sends + rest)
    assert [each.memory.copy() for each in rest] == [pattern(length, number) for number in (0, 1, 3)[2 * inside :]]
    assert two.matching.unexpected == two.matching.posted == 0


@both_times
@pytest.mark.parametrize("one_by_one", [False, True])
def test_consumer_and_handler_have_messages_in_order(one_by_one, deferred):
    """Whole messages pass the consumer, unless others wait for the handler."""
    world = World(one_by_one=one_by_one, deferred=deferred)
    one, two, there, _ = world.pair()
    consumed, handled = [], []

    def consumer(message: Unexpected) -> bool:
        assert message.data is not None and bytes(message.data) == pattern(message.length, message.match_info)
        if message.match_info % 4 == 3:
            return False
        consumed.append(message.match_info)
        return True

    def handler(message: Unexpected) -> bool:
        assert message.match_info == len(consumed + handled)
        handled.append(message.match_info)
        return True

    two.handle_unexpected(handler)
    two.matching.consumer = consumer
    sends = [one.send(there, pattern(LENGTHS[number % 6], number), number) for number in range(30)]
    world.settle()
    # Nothing of a consumed RNDV is pulled.
    assert statuses(*sends) == ([Status.SUCCESS] * 5 + [Status.MESSAGE_TRUNCATED]) * 5
    assert sorted(consumed + handled) == list(range(30)) and two.matching.unexpected == 0
    assert {3, 5, 7} <= {*handled} and {0, 1} <= {*consumed}


@both_times
@pytest.mark.parametrize("ending", ["disconnect", "close"])
def test_a_claim_ends_with_its_partner_or_its_endpoint(ending, deferred):
    """Its message has gone before the handler returns."""
    world = World(deferred=deferred)
    one, two, there, back = world.pair()
    claims = []

    def handler(_message: Unexpected) -> bool:
        claims.append(two.claim(bytearray(9000), two.matching.identity))
        if ending == "disconnect" or deferred:
            two.disconnect(back) if ending == "disconnect" else two.close()
        return False

    two.handle_unexpected(handler)
    one.send(there, pattern(9000), 7)
    world.settle()
    if not deferred and ending == "close":
        two.close()
    assert len(claims) == 1 and claims[0].status in (Status.CANCELLED, Status.SUCCESS)
    assert two.matching.claimant is None


@both_times
@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_handler_sees_the_data_of_messages_in_one_packet(length, one_by_one, deferred):
    """None for a RNDV and for a MEDIUM of several fragments; a kept one is not stored twice."""
    world = World(one_by_one=one_by_one, deferred=deferred)
    one, two, there, _ = world.pair()
    seen = []
    two.handle_unexpected(lambda message: bool(seen.append(message.data)) or message.match_info == 1)
    for number in (1, 2):
        one.send(there, pattern(length), number)
    world.settle()
    assert seen == [pattern(length) if length < 4000 else None] * 2
    receive = two.receive(None, 2)
    world.settle()
    assert receive.buffer == pattern(length)


@both_times
def test_the_handler_may_connect_and_send(deferred):
    """To a third host, and back to the sender; all leaves when the pass continues."""
    world = World(hosts=3, deferred=deferred)
    one, two, there, back = world.pair()
    third = world.open(2, 7)
    connects = []

    def handler(_message: Unexpected) -> bool:
        connects.append(two.connect(address(2), 7, KEY))
        two.send(connects[0].partner, b"to the third")
        two.send(back, b"back")
        return True

    two.handle_unexpected(handler)
    one.send(there, b"x")
    receives = [one.receive(None, 0), third.receive(None, 0)]
    world.settle()
    assert statuses(*connects, *receives) == [Status.SUCCESS] * 3
    assert [each.buffer for each in receives] == [b"back", b"to the third"]


@pytest.mark.parametrize(("closes", "deferred"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_local_sender_may_go_while_the_handler_consumes_its_message(length, closes, deferred):
    """R-MAT-06, R-LOC-02: its send has ended by then, and needs no answer."""
    world = World(hosts=1, deferred=deferred)
    one, two = world.open(0, 1), world.open(0, 2)
    there = world.connect(one, two, 0)

    def handler(_message: Unexpected) -> bool:
        if closes:
            one.close()
        else:
            one.disconnect(there)
        return True

    two.handle_unexpected(handler)
    send = one.send(there, pattern(length), 1, synchronous=True)
    world.settle()
    assert send.status is (Status.CANCELLED if closes else Status.REMOTE_ENDPOINT_UNREACHABLE)
    assert two.matching.unexpected == 0
    two.handle_unexpected(None)
    third = world.open(0, 3)
    receive = two.receive(None, 0, 0)
    third.send(world.connect(third, two, 0), b"still here")
    world.settle()
    assert receive.buffer == b"still here"


@both_times
@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_handler_may_disconnect_the_sender(length, consume, deferred):
    """R-CLS-03: the partner and its message are gone; a new connect starts from the beginning."""
    world = World(deferred=deferred)
    one, two, there, back = world.pair()
    others = [one.send(there, pattern(length), number) for number in (1, 2)]
    two.handle_unexpected(lambda _message: two.disconnect(back) or consume)
    world.settle()
    assert two.matching.unexpected == 0 and not two.partners
    two.handle_unexpected(None)
    again = world.connect(two, one, 0)
    assert again is not back
    two.send(again, b"still here", 9)
    receive = one.receive(None, 9)
    world.seconds(2)
    assert receive.buffer == b"still here"
    assert all(each.done for each in others) or length > 32768


@both_times
def test_disconnecting_another_partner_leaves_the_message(deferred):
    world = World(hosts=3, deferred=deferred)
    one, two, there, _ = world.pair()
    third = world.open(2, 7)
    other = world.connect(two, third, 2)
    two.handle_unexpected(lambda _message: two.disconnect(other))
    one.send(there, b"x", 1)
    world.settle()
    assert two.matching.unexpected == 1 and len(two.partners) == 1


def test_only_closing_is_refused():
    """Section 20: error 96; also for another endpoint of the host."""
    world = World()
    one, two, there, _ = world.pair()
    other = world.open(1, 7)
    refused = []

    def handler(_message: Unexpected) -> bool:
        for each in (two, other):
            with pytest.raises(Exception, match="may not close") as failure:
                each.close()
            refused.append(failure.value.status)
        return False

    two.handle_unexpected(handler)
    one.send(there, b"x")
    world.settle()
    assert refused == [96, 96]
    assert two.open and other.open and two.matching.unexpected == 1
    two.close()


def test_messages_behind_one_that_waits_for_the_handler_keep_their_order():
    """R-MAT-02: early packets that follow it in the same pass wait too, and the endpoint makes no progress."""
    world = World(deferred=True)
    one, two, there, _ = world.pair()
    seen: list[int] = []
    two.handle_unexpected(lambda message: seen.append(message.match_info))
    lost = [True]
    world.lose = lambda _host, frame: bool(lost) and getattr(frame, "match_a", None) is not None and bool(lost.pop())
    for number in range(4):
        one.send(there, bytes([number]), number)
    world.seconds(2)
    assert seen == [0, 1, 2, 3] and two.matching.unexpected == 4
    assert [two.probe(each) is not None for each in range(4)] == [True] * 4


def test_a_receive_posted_before_the_call_takes_the_message():
    """A handler that was removed by then is not called; a suspended endpoint calls none."""
    world = World(deferred=True)
    one, two, there, _ = world.pair()
    two.handle_unexpected(lambda _message: pytest.fail("the handler was called"))
    node = world.nodes[1]
    for number in range(2):
        one.send(there, bytes([number]), number)
        batch = world.nodes[0].transmit(world.now)
        node.receive(batch, world.now)
    assert list(node.offering) == [two] and not two.works and node.eager()
    assert two.matching.unexpected == 0 and len(two.card.ring.received) == 1
    two.suspended = True
    assert not node.offering
    receive = two.receive(bytearray(1), 0)
    two.suspended = False
    two.handle_unexpected(None)
    world.settle()
    assert receive.status is Status.SUCCESS and two.matching.unexpected == 1 and two.works


def test_a_message_without_memory_is_not_put_off():
    """R-MAT-05: it counts as lost, and is retransmitted."""
    world = World(deferred=True, profile=replace(OPEN_MX_1_5, unexpected_maximum=1))
    one, two, there, _ = world.pair()
    two.handle_unexpected(lambda _message: False)
    for number in range(2):
        one.send(there, bytes([number]), number)
    world.settle()
    assert two.matching.unexpected == 1
    receives = [two.receive(bytearray(1), number) for number in range(2)]
    world.seconds(2)
    assert statuses(*receives) == [Status.SUCCESS] * 2


class Recorder:
    """An application whose handler decides at random, and a model of what matching must do then."""

    def __init__(self, two: EngineEndpoint, rng: Random) -> None:
        self.two = two
        self.rng = rng
        self.posted: list[tuple[Request, int, int]] = []
        self.kept: list[int] = []
        self.expected: dict[Request, int] = {}
        """The message that each receive must take, by its last byte."""
        self.consumed: list[int] = []
        self.number = 0

    def post(self, value: int, mask: int) -> None:
        request = self.two.receive(bytearray(50000), value, mask)
        for number in self.kept:
            if info_of(number) & mask == value:
                self.kept.remove(number)
                self.expected[request] = number
                return
        self.posted.append((request, value, mask))

    def _match(self, number: int) -> bool:
        for place, (request, value, mask) in enumerate(self.posted):
            if info_of(number) & mask == value:
                del self.posted[place]
                self.expected[request] = number
                return True
        return False

    def handle(self, message: Unexpected) -> bool:
        # Messages that matched a receive have passed by without a call.
        while self._match(self.number):
            self.number += 1
        number = self.number
        assert message.match_info == info_of(number)
        for _ in range(self.rng.randrange(3)):
            self.post(*criteria(self.rng))
        self.number += 1
        if self.rng.random() < 0.2:
            self.consumed.append(number)
            return True
        if not self._match(number):
            self.kept.append(number)
        return False


def info_of(number: int) -> int:
    return number * 7 % 4


def criteria(rng: Random) -> tuple[int, int]:
    mask = rng.choice((0, 1, 2, 3))
    return rng.randrange(4) & mask, mask


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.booleans(), st.booleans())
def test_order_with_a_handler_that_posts_at_random(seed, one_by_one, deferred):
    """R-MAT-01, R-MAT-02, R-MAT-06: compared with a list of receives and a list of messages."""
    rng = Random(seed)
    world = World(one_by_one=one_by_one, deferred=deferred)
    one, two, there, _ = world.pair()
    model = Recorder(two, rng)
    two.handle_unexpected(model.handle)
    sizes = []
    for _ in range(4):
        for _ in range(rng.randrange(4)):
            model.post(*criteria(rng))
        for _ in range(rng.randrange(1, 6)):
            sizes.append(rng.choice((1, 100, 3000, 9000, 40000)))
            number = len(sizes) - 1
            one.send(there, bytes([number]) * sizes[-1], info_of(number))
        world.settle()
        while model.number < len(sizes):
            assert model._match(model.number), "a message was neither matched nor offered to the handler"
            model.number += 1
    for request, number in model.expected.items():
        assert request.status is Status.SUCCESS and request.length == sizes[number]
        assert request.match_info == info_of(number)
        assert request.memory.copy()[: sizes[number]] == bytes([number]) * sizes[number]
    assert two.matching.unexpected == len(model.kept)
    assert two.matching.posted == len(model.posted)
    assert len(model.expected) + len(model.kept) + len(model.consumed) == len(sizes)
