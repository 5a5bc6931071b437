"""Fast Messages 2: handlers that begin early, pieces that land where the handler decides, credits."""

from __future__ import annotations

import pytest

from mxwire.bench.models.fm2 import CREDITS, FastMessagesLayer, RegisteredFastMessagesLayer
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


@pytest.fixture
def pair() -> tuple[FastMessagesLayer, FastMessagesLayer, ModelWire]:
    layers = FastMessagesLayer(0), FastMessagesLayer(1)
    return *layers, ModelWire(layers)


def extracting(*layers: FastMessagesLayer):
    """A program that only extracts."""
    return lambda: sum(each.extract() for each in layers) > 0


def test_the_handler_begins_before_the_last_piece_is_sent_and_pieces_land_where_it_decides(pair):
    here, there, wire = pair
    memory, events = {1: memoryview(bytearray(3000)), 2: memoryview(bytearray(3000))}, []

    def handler(stream, source):
        head = yield stream.receive(1)
        events.append(("begun", head, source))
        count = yield stream.receive_into(memory[head[0]])
        events.append(("landed", count))
        rest = yield stream.receive(10)
        events.append(("rest", rest))

    stream = here.begin_message(THERE, 3004, there.register(handler))
    assert here.send_piece(stream, memoryview(b"\2")) == 1
    assert here.send_piece(stream, memoryview(b"x" * 1500)) == 1500
    wire.run(extracting(there))
    assert events == [("begun", b"\2", (0, 0))]
    here.send_piece(stream, memoryview(b"y" * 1500))
    here.send_piece(stream, memoryview(b"end"))
    assert here.end_message(stream)
    wire.run(extracting(there))
    assert events[1:] == [("landed", 3000), ("rest", b"end")]
    assert memory[2] == b"x" * 1500 + b"y" * 1500
    assert not any(memory[1])


def test_credits_are_never_exceeded_and_a_piece_is_accepted_in_part(pair):
    here, there, wire = pair
    taken = []

    def handler(stream, source):
        while part := (yield stream.receive(1000)):
            taken.append(part)

    data = memoryview(bytes(range(256)) * 100)
    stream = here.begin_message(THERE, len(data), there.register(handler))
    accepted = here.send_piece(stream, data)
    # The last accepted packet is in the library's hands, not yet on the wire.
    assert accepted == (CREDITS + 1) * here.payload
    wire.run(until=lambda: there.counts["frames received"] == CREDITS)
    assert here.counts["frames sent"] == CREDITS
    assert here.send_piece(stream, data[accepted:]) == 0
    assert here.begin_message(THERE, 1, 0) is None
    wire.run(extracting(there, here), lambda: here.credit[THERE] >= CREDITS // 2)
    assert here.send_piece(stream, data[accepted:]) == len(data) - accepted
    assert here.end_message(stream)
    wire.run(extracting(there))
    assert b"".join(taken) == data


def test_extract_takes_whole_packets_up_to_a_length(pair):
    here, there, wire = pair
    begun = []

    def handler(stream, source):
        begun.append((yield stream.receive(4)))

    number = there.register(handler)
    for each in range(4):
        stream = here.begin_message(THERE, 600, number)
        here.send_piece(stream, memoryview(bytes([each]) * 600))
        here.end_message(stream)
    wire.run()
    assert there.extract(1000) == 1200
    assert begun == [b"\0" * 4, b"\1" * 4]


def test_forged_credit_and_packets_without_credit_end_the_receiver(pair):
    here, there, wire = pair
    here.order.send(THERE, ModelFrame(FrameKind.CREDIT, ack=1))
    wire.run()
    assert "returns credit that was not used" in there.catastrophe
    other = FastMessagesLayer(1)
    for number in range(CREDITS + 1):
        other.take((0, 0), ModelFrame(FrameKind.DATA, ONLY, sequence=number))
    assert "exceeds its credit" in other.catastrophe


def test_a_foreign_handler_ends_fm_2_02_and_is_refused_by_fm_2_1():
    for kind, survives in ((FastMessagesLayer, False), (RegisteredFastMessagesLayer, True)):
        here, there = kind(0), kind(1)
        wire = ModelWire([here, there])
        for _ in range(2 * CREDITS):
            stream = here.begin_message(THERE, 2000, 99)
            if stream is None:
                break
            here.send_piece(stream, memoryview(bytes(2000)))
            here.end_message(stream)
            try:
                wire.run(extracting(there, here))
            except Exception as error:
                assert "handler 99 does not exist" in str(error)
        assert bool(there.catastrophe) is not survives
        if survives:
            # The packets of refused messages return their credit.
            assert there.counts["refused"] == 2 * CREDITS


def test_two_processes_of_a_node_need_fm_2_1():
    wire = ModelWire([FastMessagesLayer(0)])
    with pytest.raises(CallError, match="one process per node"):
        wire.attach(FastMessagesLayer(0, port=1))
    layers = [RegisteredFastMessagesLayer(0), RegisteredFastMessagesLayer(1), RegisteredFastMessagesLayer(1, port=1)]
    wire, received = ModelWire(layers), []

    def handler(name):
        def run(stream, source):
            received.append((name, (yield stream.receive(5))))

        return run

    for layer, name in zip(layers, ("sender", "first", "second"), strict=True):
        layer.register(handler(name))
    for port in (1, 0):
        stream = layers[0].begin_message((1, port), 5, 0)
        layers[0].send_piece(stream, memoryview(b"for %d" % port))
        layers[0].end_message(stream)
    wire.run(extracting(*layers))
    assert sorted(received) == [("first", b"for 0"), ("second", b"for 1")]


def test_a_lost_credit_is_reported_although_no_event_is_due(pair):
    here, there, wire = pair

    def handler(stream, source):
        yield stream.receive(1)

    stream = here.begin_message(THERE, 100_000, there.register(handler))
    here.send_piece(stream, memoryview(bytes(100_000)))
    wire.run(until=lambda: there.counts["frames received"] == CREDITS)
    there.extract()
    there.outgoing.clear()
    wire.run()
    assert here.catastrophe == "stalled: a message without credit, and no event is due"


def test_handlers_do_not_extract_and_pieces_do_not_exceed_their_message(pair):
    here, there, wire = pair

    def handler(stream, source):
        with pytest.raises(CallError, match="a handler may not extract"):
            there.extract()
        yield stream.receive(1)

    stream = here.begin_message(THERE, 1, there.register(handler))
    with pytest.raises(CallError, match="exceeds the length of its message"):
        here.send_piece(stream, memoryview(b"ab"))
    here.send_piece(stream, memoryview(b"a"))
    here.end_message(stream)
    wire.run(extracting(there))
    assert not there.catastrophe
