"""The queue of completed requests: in order, by match information, each taken once."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mxwire.protocol import ALL_BITS, EventKind, LocalProtocolError, Request, RequestKind, Status
from mxwire.protocol.library.completions import CompletionQueue
from mxwire.wire.packets import Medium, Notify, PullReply, Tiny, Truc

from .test_misuse import WRONG_CLASS, refusal
from .world import KEY, World, address, lose_first, pattern, statuses

VALUES = st.integers(0, 3)


def pair(**options):
    """Two endpoints, the second of which keeps completed requests."""
    world = World()
    one, two = world.open(0), world.open(1, 2, completions=True, **options)
    there, back = world.connect(one, two, 1), world.connect(two, one, 0)
    while two.completed() is not None:
        two.forget(two.completed())
    world.clear()
    return world, one, two, there, back


def take_all(endpoint) -> list[Request]:
    taken = []
    while (found := endpoint.completed()) is not None:
        taken.append(found)
        endpoint.forget(found)
    return taken


def test_requests_of_every_kind_in_the_order_of_their_end():
    world, one, two, there, back = pair()
    late = two.receive(bytearray(1), 7)
    connect = two.connect(address(0), 1, KEY, match_info=5)
    world.settle()
    send = two.send(back, b"x", 6)
    world.settle()
    large = two.send(back, pattern(40000), 8)
    world.settle()
    one.send(there, b"x", 7)
    world.settle()
    one.receive(bytearray(40000), 8)
    world.settle()
    assert two.completed() is two.completed() is connect
    assert [each.match_info for each in (connect, send, late, large)] == [5, 6, 7, 8]
    assert take_all(two) == [connect, send, late, large]
    assert two.completions is not None and two.completions.count[0] >= 4


def test_taking_by_match_information():
    """As a receive selects messages; contexts may be left out (R-MAT-04)."""
    world, one, two, there, back = pair(context_bits=4, context_shift=60)
    receives = [two.receive(bytearray(1), context << 60 | number) for context in (1, 2) for number in (5, 6)]
    for context, number in ((2, 6), (1, 5), (2, 5), (1, 6)):
        one.send(there, b"x", context << 60 | number)
    send = two.send(back, b"x", 5)
    world.settle()
    assert two.completed(1 << 60, 15 << 60) is receives[0]
    assert two.completed(6, 15) is receives[3]
    assert two.completed(5, ALL_BITS) is send
    assert two.completed(9, 15) is None
    two.forget(receives[3])
    assert two.completed(6, 15) is receives[1]
    with pytest.raises(LocalProtocolError) as failure:
        two.completed(16, 15)
    assert failure.value.status is Status.BAD_MATCH_MASK
    assert two.probe(0, 0) is None


def test_forgotten_and_cancelled_requests_never_appear():
    world, one, two, there, back = pair()
    done = two.send(back, b"x", 1)
    world.settle()
    two.forget(done)
    two.forget(done)
    pending = two.receive(bytearray(1), 2)
    two.forget(pending)
    assert two.cancel(two.receive(bytearray(1), 3))
    one.send(there, b"x", 2)
    world.settle()
    assert pending.status is Status.SUCCESS
    assert two.completed() is None
    with pytest.raises(LocalProtocolError) as failure:
        two.forget(one.send(there, b"x"))
    assert failure.value.status is Status.BAD_REQUEST


@WRONG_CLASS
def test_invalid_requests_and_times():
    one, _, _, _ = World().pair()
    for call in (
        lambda: one.forget(None),
        lambda: one.is_buffered("send"),
        lambda: one.set_timeout(1, 5),
        lambda: one.set_timeout("1"),
    ):
        assert refusal(call).status is Status.BAD_REQUEST


def test_connects_of_the_engine_never_appear():
    """R-CON-12: it connects back by itself before the first message."""
    world = World()
    one, two = world.open(0), world.open(1, 2, completions=True)
    there = world.connect(one, two, 1)
    one.send(there, b"x")
    world.settle()
    receive = two.receive(None)
    two.send(receive.partner, b"y", 5)
    world.settle()
    assert [each.kind for each in take_all(two)] == [RequestKind.RECEIVE, RequestKind.SEND]


def test_without_the_queue():
    world = World()
    one, _, there, _ = world.pair()
    one.forget(one.send(there, b"x"))
    world.settle()
    with pytest.raises(LocalProtocolError, match="completions=True"):
        one.completed()


def test_a_closed_endpoint_has_no_queue():
    _, _, two, _, _ = pair()
    two.receive(bytearray(1))
    two.close()
    with pytest.raises(LocalProtocolError, match="closed"):
        two.completed()


class QueueMachine(RuleBasedStateMachine):
    """The queue compared with a list."""

    def __init__(self) -> None:
        super().__init__()
        world = World()
        self.endpoint, _, self.there, _ = world.pair()
        self.queue = CompletionQueue()
        self.model: list[Request] = []

    @rule(info=VALUES)
    def add(self, info):
        request = self.endpoint.receive(bytearray(1), info)
        self.queue.add(request)
        self.model.append(request)

    @rule(value=VALUES, mask=VALUES, take=st.booleans())
    def take_first(self, value, mask, take):
        expected = next((each for each in self.model if each.match_info & mask == value & mask), None)
        assert self.queue.first(value & mask, mask) is expected
        if take and expected is not None:
            assert self.queue.remove(expected)
            self.model.remove(expected)

    @rule(place=st.integers(0, 20))
    def take_any(self, place):
        if place < len(self.model):
            request = self.model.pop(place)
            assert self.queue.remove(request)
            assert not self.queue.remove(request)

    @invariant()
    def order(self):
        assert self.queue.first() is (self.model[0] if self.model else None)
        assert len(self.queue) == len(self.model)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


# Contexts of partners and the endpoint itself.


def test_a_partner_keeps_its_context():
    """Also across a restart of the remote endpoint, and in messages from it; a partner after a disconnect is new."""
    world = World()
    one, two, there, back = world.pair()
    assert back.context is None
    back.context = "a"
    two.handle_unexpected(lambda message: seen.append(message.partner.context))
    seen = []
    one.send(there, b"x")
    world.settle()
    one.close()
    one = world.open(0)
    there = world.connect(one, two, 1)
    one.send(there, b"x")
    world.settle()
    assert seen == ["a", "a"]
    assert two.receive(None).partner.context == "a"
    two.disconnect(back)
    assert world.connect(two, one, 0).context is None


@pytest.mark.parametrize("length", [0, 3, 5000, 100000])
def test_an_endpoint_sends_to_itself_without_a_connect(length):
    """R-LOC-01: also after a disconnect."""
    world = World()
    one = world.open(0, completions=True)
    for _ in range(2):
        itself = one.own_partner()
        assert itself is one.own_partner()
        send, receive = one.send(itself, pattern(length), 3), one.receive(None, 3)
        world.settle()
        assert statuses(send, receive) == [Status.SUCCESS] * 2
        assert receive.partner is itself and receive.buffer == pattern(length)
        assert set(take_all(one)) == {send, receive}
        one.disconnect(itself)
    assert not world.log


# Copied sends, and sends that end when they are acked.


def test_buffered_sends():
    world = World()
    one, two, there, _ = world.pair()
    itself = one.own_partner()
    sends = [
        (one.send(partner, pattern(length), synchronous=synchronous), buffered)
        for partner, length, synchronous, buffered in (
            (there, 1, False, True),
            (there, 128, False, True),
            (there, 32768, False, True),
            (there, 32769, False, False),
            (there, 1, True, False),
            (itself, 4096, False, True),
            (itself, 4097, False, False),
            (itself, 1, True, False),
        )
    ]
    for send, buffered in sends:
        assert one.is_buffered(send) is buffered
    for other in (one.receive(bytearray(1)), one.connect(address(1), 2, KEY)):
        with pytest.raises(LocalProtocolError, match="no data") as failure:
            one.is_buffered(other)
        assert failure.value.status is Status.BAD_REQUEST
    with pytest.raises(LocalProtocolError, match="another endpoint"):
        two.is_buffered(sends[0][0])


@pytest.mark.parametrize("length", [1, 100, 20000])
def test_a_send_that_ends_when_it_is_acked(length):
    """R-SND-06, as MX with MX_ZOMBIE_SEND=0; nothing changes on the wire."""
    world = World()
    one, two = world.open(0, acked_sends=True), world.open(1, 2)
    there = world.connect(one, two, 1)
    world.lose = lose_first(Tiny if length == 1 else Medium, 1) if length != 100 else world.lose
    send = one.send(there, pattern(length), 4)
    assert one.is_buffered(send)
    one.node.transmit(world.now)
    assert not send.done
    world.lose = lambda _host, frame: type(frame) is Truc
    world.milliseconds(100)
    assert not send.done
    world.lose = lambda *_: False
    world.seconds(2)
    assert (send.status, send.transferred) == (Status.SUCCESS, length)


def test_a_send_that_is_not_acked_fails():
    """R-CLS-02: it ends with the reason, and is not reported as undelivered."""
    world = World()
    one, two = world.open(0, acked_sends=True), world.open(1, 2)
    there = world.connect(one, two, 1)
    waiting = one.send(there, b"never leaves")
    one.disconnect(there)
    there = world.connect(one, two, 1)
    two.close()
    refused = one.send(there, b"x")
    world.settle()
    assert statuses(waiting, refused) == [Status.REMOTE_ENDPOINT_UNREACHABLE, Status.REMOTE_ENDPOINT_CLOSED]
    assert not world.reported(EventKind.UNDELIVERED)


# Timeouts.


def test_a_timeout_of_the_endpoint():
    """R-RTX-03: in retransmissions, rounded up, for sends and connects."""
    world = World()
    one, _, there, _ = world.pair()
    world.lose = lambda *_: True
    for seconds, transmissions in ((1.0, 3), (0.6, 3), (0.1, 2), (0, 1)):
        world.clear()
        one.set_timeout(seconds)
        connect = one.connect(address(1), 2, KEY)
        world.seconds(3)
        assert connect.status is Status.REMOTE_ENDPOINT_UNREACHABLE
        assert len(world.log) == transmissions, seconds
    one.set_timeout(None)
    assert one.resend_maximum == one.profile.resend_maximum
    assert one.card.pull_limit == one.profile.pull_limit
    assert there.fwd is None


def test_a_timeout_of_one_request():
    """Of a send that has been transmitted, of one that has not, and of a connect."""
    world = World()
    one, two, there, _ = world.pair()
    world.lose = lambda *_: True
    other = world.open(0, 5)
    requests = [one.send(there, pattern(9000)), other.connect(address(1), 2, KEY)]
    world.settle()
    for each in requests:
        each.endpoint.set_timeout(0.5, each)
    world.seconds(1.2)
    # The MEDIUM was complete for the application already, and is lost now.
    assert [each.request for each in world.reported(EventKind.UNDELIVERED)] == [requests[0]]
    assert requests[1].status is Status.REMOTE_ENDPOINT_UNREACHABLE
    for wrong in (-1, float("nan")):
        with pytest.raises(LocalProtocolError, match="not a time"):
            one.set_timeout(wrong)
    with pytest.raises(LocalProtocolError, match="another endpoint"):
        two.set_timeout(1, requests[0])
    assert one.set_timeout(float("inf")) is None


@pytest.mark.parametrize("when", ["endpoint", "before", "running"])
def test_a_timeout_of_a_pull(when):
    """R-PUL-09: without a useful frame a pull ends at its time, and the sender is notified."""
    world = World()
    one, two, there, _ = world.pair()
    world.lose = lambda _host, frame: type(frame) is PullReply
    if when == "endpoint":
        two.set_timeout(2)
    receive = two.receive(bytearray(40000), 1)
    if when == "before":
        two.set_timeout(2, receive)
    send = one.send(there, pattern(40000), 1)
    world.settle()
    if when == "running":
        two.set_timeout(2, receive)
    world.seconds(1)
    assert not receive.done
    world.seconds(4)
    assert receive.status is Status.REMOTE_ENDPOINT_UNREACHABLE
    assert send.status is Status.MESSAGE_TRUNCATED
    assert [each.total_length for each in world.sent(Notify)] == [0]


# Progress that the application switches off.


def test_a_suspended_endpoint_makes_no_progress():
    """R-GEN-01: the card answers, the library neither matches nor acks; also where it works in the background."""
    world = World()
    one, two, there, back = world.pair()
    two.suspended = True
    receive, send = two.receive(bytearray(1), 1), two.send(back, b"y", 2)
    one.send(there, b"x", 1)
    world.seconds(3)
    assert not receive.done and not send.done and not world.sent(Truc, 1) and not world.sent(Tiny, 1)
    assert two.deadline() is None and two.suspended
    two.suspended = False
    world.settle()
    assert statuses(receive, send) == [Status.SUCCESS] * 2


# Errors.


def test_failures_are_events_where_they_are_wanted():
    world = World()
    one, two, there, back = world.pair()
    two.reports_failures = True
    truncated, forgotten = two.receive(bytearray(1), 1), two.send(back, pattern(40000))
    two.forget(forgotten)
    two.cancel(two.receive(bytearray(1), 2))
    one.send(there, b"xx", 1)
    world.settle()
    one.close()
    two.connect(address(0), 1, KEY)
    two.send(back, b"x")
    world.settle()
    two.disconnect(back)
    world.settle()
    failed = [each.request for each in world.reported(EventKind.FAILED)]
    assert (failed[0], failed[-1]) == (truncated, forgotten)
    kinds = [(each.kind, each.status) for each in failed]
    assert kinds == [
        (RequestKind.RECEIVE, Status.MESSAGE_TRUNCATED),
        (RequestKind.CONNECT, Status.REMOTE_ENDPOINT_CLOSED),
        (RequestKind.SEND, Status.REMOTE_ENDPOINT_UNREACHABLE),
    ]


# Segments.


@pytest.mark.parametrize("length", [0, 1, 31, 128, 129, 4096, 4097, 32768, 32769, 300_001])
@pytest.mark.parametrize("local", [False, True])
def test_256_segments_on_both_sides(length, local):
    """R-MSC-03: any cut gives the same bytes, empty segments included."""
    world = World()
    one, two, there, _ = world.pair()
    if local:
        two, there = one, one.own_partner()
    data = pattern(length)
    for count, other in ((256, 256), (255, 3), (2, 256), (0, 1), (1, 0)):
        pieces, buffers = cut(data, count), [bytearray(len(each)) for each in cut(data, other)]
        receive = two.receive(buffers, 1)
        send = one.send(there, pieces, 1)
        world.settle()
        sent, room = sum(map(len, pieces)), sum(map(len, buffers))
        assert receive.status is (Status.MESSAGE_TRUNCATED if sent > room else Status.SUCCESS)
        assert (send.length, receive.length, receive.transferred) == (sent, sent, min(sent, room))
        assert b"".join(buffers)[: min(sent, room)] == data[: min(sent, room)]
    with pytest.raises(LocalProtocolError) as failure:
        one.send(there, [b""] * 257)
    assert failure.value.status is Status.SEGMENTS_BAD_COUNT


def cut(data: bytes, count: int) -> list[bytes]:
    """Segments of uneven length."""
    ends = [len(data) * (each + 1) // count if each % 3 else len(data) * each // count for each in range(count)]
    ends[-1:] = [len(data)] * bool(count)
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
