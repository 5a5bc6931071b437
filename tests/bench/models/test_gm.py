"""GM: tokens, size classes, refusals until a buffer is there, directed sends."""

from __future__ import annotations

import pytest

from mxwire.bench.models.gm import TOKENS, GmLayer
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.order import RESEND
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


@pytest.fixture
def pair() -> tuple[GmLayer, GmLayer, ModelWire]:
    layers = GmLayer(0), GmLayer(1)
    return *layers, ModelWire(layers)


def test_a_send_costs_a_token_which_its_callback_returns(pair):
    here, there, wire = pair
    done = []
    for _ in range(TOKENS):
        there.provide(memoryview(bytearray(4)))
        assert here.send(THERE, memoryview(b"data"), done.append, size=2)
    assert not here.send(THERE, memoryview(b"data"), size=2)
    wire.run()
    assert (done, here.tokens) == ([], 0)
    here.poll()
    assert (done, here.tokens) == ([True] * TOKENS, TOKENS)


def test_a_message_waits_for_a_buffer_of_its_class_and_priority(pair):
    here, there, wire = pair
    data = memoryview(bytes(range(200)) * 50)
    here.send(THERE, data, size=14, priority=1)
    there.provide(memoryview(bytearray(1 << 15)), priority=1)
    there.provide(memoryview(bytearray(1 << 14)))
    wire.run(until=lambda: wire.now > 1000 * RESEND)
    assert there.poll() is None
    assert there.counts["refused for now"] > 100
    memory = memoryview(bytearray(1 << 14))
    there.provide(memory, priority=1)
    wire.run()
    event = there.poll()
    assert (event.length, event.source) == (len(data), (0, 0))
    assert event.memory is memory
    assert memory[: len(data)] == data


def test_directed_sends_write_registered_memory_and_no_other(pair):
    here, there, wire = pair
    memory = memoryview(bytearray(100))
    region = there.register(memory)
    here.directed_send(THERE, region, 95, memoryview(b"right"))
    here.directed_send(THERE, region, 96, memoryview(b"wrong"))
    here.directed_send(THERE, region + 1, 0, memoryview(b"wrong"))
    wire.run()
    assert memory == bytes(95) + b"right"
    assert there.counts["refused"] == 2
    assert there.poll() is None


def test_forged_lengths_stay_in_their_buffer(pair):
    here, there, wire = pair
    there.provide(memoryview(bytearray(4)))
    here.order.send(THERE, ModelFrame(FrameKind.DATA, ONLY, place=2 << 16, offset=2, key=9, data=b"long"))
    wire.run()
    assert there.counts["refused"] == 1
    assert there.poll() is None


def test_sizes_are_checked_in_calls(pair):
    here, _, _ = pair
    with pytest.raises(CallError, match="5 bytes exceed size class 2"):
        here.send(THERE, memoryview(b"12345"), size=2)
    with pytest.raises(CallError, match="a power of 2 bytes, not 3"):
        here.provide(memoryview(bytearray(3)))


def test_two_ports_of_a_node_receive_their_own_messages():
    here, there = GmLayer(0), [GmLayer(1, port=port) for port in (0, 1)]
    wire = ModelWire([here, *there])
    for each in there:
        each.provide(memoryview(bytearray(1)))
    for port in (1, 0):
        here.send((1, port), memoryview(bytes([port])), size=0)
    wire.run()
    assert [each.poll().memory[0] for each in there] == [0, 1]
