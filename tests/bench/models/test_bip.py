"""BIP: queues of fixed room, and long messages that need a posted receive."""

from __future__ import annotations

import pytest

from mxwire.bench.models.bip import ROOM, BipLayer
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.wire import RESET, ModelWire

THERE = (1, 0)
TAG = 3


@pytest.fixture
def pair() -> tuple[BipLayer, BipLayer, ModelWire]:
    layers = BipLayer(0), BipLayer(1)
    return *layers, ModelWire(layers)


def test_the_eleventh_message_in_a_queue_of_ten_is_lost(pair):
    here, there, wire = pair
    for number in range(ROOM + 1):
        here.send(THERE, TAG, memoryview(bytes([number])))
        wire.run()
    kept = []
    while (data := there.take_short(TAG)) is not None:
        kept.append(data[0])
    assert kept == list(range(ROOM))
    assert there.counts["lost"] == 1
    assert not there.catastrophe


@pytest.mark.parametrize("late", [False, True])
def test_a_long_message_without_receive_stops_the_link_and_is_lost_after_50_ms(pair, late):
    here, there, wire = pair
    data, memory = memoryview(bytes(range(250)) * 80), memoryview(bytearray(20_000))
    here.send(THERE, TAG, data)
    wire.run(until=lambda: wire.inlets[1].stopped_at is not None)
    stopped = wire.now
    assert not here.sent()
    if late:
        wire.run(until=lambda: wire.inlets[1].resets > 0)
        assert wire.now - stopped >= RESET
    there.post(TAG, memory)
    wire.run()
    assert here.sent()
    if late:
        assert there.received(TAG) is None
        assert there.counts["lost by reset"] == 5
        assert not there.catastrophe
        here.send(THERE, TAG, data)
        wire.run()
    assert there.received(TAG) == len(data)
    assert memory == data
    assert wire.inlets[1].resets == late


def test_posted_messages_are_never_lost_and_never_copied(pair):
    here, there, wire = pair
    memory = memoryview(bytearray(20_000))
    for number in range(20):
        there.post(TAG, memory)
        here.send(THERE, TAG, memoryview(bytes([number]) * 20_000))
        wire.run()
        assert there.received(TAG) == 20_000
        assert memory == bytes([number]) * 20_000
    assert here.send_copies.length == there.receive_copies.length == 0
    assert here.translated.length == there.translated.length == 400_000


def test_a_message_longer_than_its_receive_is_cut_off(pair):
    here, there, wire = pair
    memory = memoryview(bytearray(5_000))
    there.post(TAG, memory)
    here.send(THERE, TAG, memoryview(b"x" * 20_000))
    wire.run()
    assert there.received(TAG) == 5_000
    assert memory == b"x" * 5_000


def test_a_stopped_receiver_stops_all_of_its_tags(pair):
    here, there, wire = pair
    here.send(THERE, TAG, memoryview(bytes(300)))
    wire.run(until=lambda: wire.inlets[1].stopped_at is not None)
    here.send(THERE, TAG + 1, memoryview(b"short"))
    wire.run(until=lambda: wire.now > RESET // 2 or wire.inlets[1].resets > 0)
    assert there.take_short(TAG + 1) is None


def test_calls_are_one_at_a_time_and_to_other_nodes(pair):
    here, there, _ = pair
    here.send(THERE, TAG, memoryview(b"one"))
    with pytest.raises(CallError, match="one send at a time"):
        here.send(THERE, TAG, memoryview(b"two"))
    there.post(TAG, memoryview(bytearray(4)))
    with pytest.raises(CallError, match="one receive per tag"):
        there.post(TAG, memoryview(bytearray(4)))
    with pytest.raises(CallError, match="no message to the same node"):
        here.send((0, 0), TAG, memoryview(b""))
