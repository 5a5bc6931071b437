"""PM: refusals and go-back, channels, remote writes, and the drained network of gang scheduling."""

from __future__ import annotations

import pytest

from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.pm import WINDOW, PmLayer
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


def joined(**options) -> tuple[PmLayer, PmLayer, ModelWire]:
    """Two processes."""
    layers = PmLayer(0, **options), PmLayer(1, **options)
    return *layers, ModelWire(layers)


@pytest.mark.parametrize("pause", [1, 3, 10])
def test_a_small_receiver_loses_nothing_and_wastes_at_most_half_of_the_frames(pause):
    here, there, wire = joined(buffers=4)
    received, state = [], {"sent": 0, "steps": 0}

    def step() -> bool:
        state["steps"] += 1
        buffer = here.acquire() if state["sent"] < 500 else None
        if buffer is not None:
            buffer.memory[:4] = state["sent"].to_bytes(4, "big")
            here.send(THERE, buffer, 4)
            state["sent"] += 1
        found = there.receive() if state["steps"] % pause == 0 else None
        if found is not None:
            received.append(int.from_bytes(found.memory[: found.length], "big"))
            there.release(found)
        return len(received) < 500

    wire.run(step, lambda: len(received) == 500 and here.drained())
    assert received == list(range(500))
    assert not here.catastrophe
    assert not there.catastrophe
    assert here.counts["frames sent"] <= 1000
    if pause > 1:
        assert there.counts["nacks"] > 0


def test_no_credit_limits_the_sender():
    here, there, wire = joined(buffers=4)
    for _ in range(WINDOW):
        here.send(THERE, here.acquire(), 1)
    assert here.counts["frames sent"] == WINDOW
    wire.run(until=lambda: not wire._flying and not here.outgoing and not there.outgoing)
    assert there.counts["nacks"] == 1
    assert there.counts["dropped behind a nack"] > 0


def test_frames_in_flight_behind_a_refused_one_do_not_count_as_lost():
    here, there, wire = joined(buffers=1)
    for _ in range(3):
        here.send(THERE, here.acquire(), 1)
    frames = [frame for _, frame in here.outgoing]
    here.outgoing.clear()
    for each in frames[:2]:
        there.take((0, 0), each)
    there.release(there.receive())
    there.take((0, 0), frames[2])
    assert there.counts["dropped behind a nack"] == 1
    wire.run(lambda: (found := there.receive()) is not None and there.release(found) is None)
    assert here.drained()
    assert not there.catastrophe


def test_a_forged_channel_is_refused():
    here, there, wire = joined(key=5)
    here.emit(THERE, ModelFrame(FrameKind.DATA, ONLY, data=b"forged"))
    here.emit(THERE, ModelFrame(FrameKind.DEPOSIT, ONLY, data=b"forged"))
    wire.run()
    assert there.receive() is None
    assert there.counts["refused"] == 2
    here.send(THERE, here.acquire(), 3)
    wire.run()
    assert there.receive().length == 3


def test_a_remote_write_needs_no_call_and_leaves_other_memory_alone():
    here, there, wire = joined()
    memory = memoryview(bytearray(10_000))
    region = there.lock(memory)
    here.remote_write(THERE, region, 100, memoryview(b"w" * 9000))
    wire.run()
    assert memory == bytes(100) + b"w" * 9000 + bytes(900)
    assert here.drained()
    assert there.receive() is None
    for place, offset in ((region, 9_999), (region + 1, 0)):
        here.remote_write(THERE, place, offset, memoryview(b"ab"))
    wire.run()
    assert there.counts["refused"] == 2
    assert memory[9_999] == 0


def test_a_process_is_switched_out_when_the_network_is_drained():
    here, there, wire = joined()
    for _ in range(3):
        here.send(THERE, here.acquire(), 1)
    assert not here.switch_out()
    here.send(THERE, here.acquire(), 1)
    wire.run(until=lambda: here.switch_out())
    assert there.counts["frames received"] == 3
    assert [there.receive() is not None for _ in range(4)] == [True, True, True, False]
    here.switch_in()
    wire.run()
    assert there.receive() is not None


def test_processes_of_a_node_receive_their_own_and_a_stopped_one_refuses():
    here = PmLayer(0)
    there = [PmLayer(1, port=port) for port in (0, 1)]
    wire = ModelWire([here, *there])
    there[1].switch_out()
    for port in (1, 0):
        here.send((1, port), here.acquire(), port + 1)
    wire.run(until=lambda: here.counts["nacks taken"] == 1 and there[0].counts["frames received"] == 1)
    assert there[0].receive().length == 1
    assert there[1].receive() is None
    there[1].switch_in()
    wire.run()
    assert there[1].receive().length == 2


def test_messages_have_at_most_a_buffer_and_known_targets():
    here, _, _ = joined()
    with pytest.raises(CallError, match="at most 4096 bytes"):
        here.send(THERE, here.acquire(), 4097)
    with pytest.raises(CallError, match="node 9 is not in the table"):
        here.send((9, 0), here.acquire(), 1)
