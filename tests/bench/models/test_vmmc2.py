"""VMMC-2: permissions, redirection, notification and fetches."""

from __future__ import annotations

import pytest

from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.vmmc2 import VmmcLayer
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


def joined(**faults) -> tuple[VmmcLayer, VmmcLayer, ModelWire]:
    """Two processes."""
    layers = VmmcLayer(0), VmmcLayer(1)
    return *layers, ModelWire(layers, **faults)


def imported(size=10_000):
    """Two processes, memory of one, and its import by the other."""
    here, there, wire = joined()
    memory = memoryview(bytearray(size))
    exported = there.export(memory)
    buffer = here.import_buffer(THERE, exported.number)
    wire.run()
    return here, there, wire, memory, exported, buffer


def test_data_land_in_exported_memory_without_a_call_of_the_receiver():
    here, there, wire, memory, _, buffer = imported()
    data = bytes(range(250)) * 36
    here.send(buffer, 500, memoryview(data))
    wire.run()
    assert memory == bytes(500) + data + bytes(500)
    assert here.sent(buffer)
    assert there.receive_copies.length == here.send_copies.length == 0


@pytest.mark.parametrize("late", [False, True])
def test_a_redirection_is_free_before_the_data_arrive_and_costs_a_copy_afterwards(late):
    here, there, wire, memory, exported, buffer = imported()
    wanted, data = memoryview(bytearray(10_000)), memoryview(b"d" * 10_000)
    if not late:
        there.redirect(exported, wanted)
    here.send(buffer, 0, data)
    wire.run()
    if late:
        there.redirect(exported, wanted)
    assert wanted == data
    assert there.receive_copies.length == (10_000 if late else 0)
    assert any(memory) is late


def test_memory_that_is_not_exported_or_not_to_this_node_is_refused():
    here, there, wire = joined()
    there.export(memoryview(bytearray(10)), allowed=[5])
    for number in (0, 1):
        buffer = here.import_buffer(THERE, number)
        wire.run()
        assert buffer.refused
        with pytest.raises(CallError, match=f"buffer {number} of node 1 is not imported"):
            here.send(buffer, 0, memoryview(b"x"))
    assert there.counts["refused"] == 2


def test_forged_deposits_and_reads_are_refused():
    here, there, wire, memory, exported, buffer = imported(100)
    length = (100).to_bytes(4, "big") + bytes(4)
    for forged in (
        ModelFrame(FrameKind.DEPOSIT, ONLY, place=exported.number, key=buffer.key ^ 1, data=b"f"),
        ModelFrame(FrameKind.DEPOSIT, ONLY, place=exported.number + 1, key=buffer.key, data=b"f"),
        ModelFrame(FrameKind.DEPOSIT, ONLY, place=exported.number, key=buffer.key, offset=100, data=b"f"),
        ModelFrame(FrameKind.READ, ONLY, place=exported.number, key=buffer.key, offset=1, data=length),
        ModelFrame(FrameKind.READ, ONLY, place=exported.number, key=buffer.key + 1, data=length),
        ModelFrame(FrameKind.REPLY, ONLY, place=4, data=b"f"),
        ModelFrame(FrameKind.READY, ONLY, place=4, data=b"f"),
    ):
        here.order.send(THERE, forged)
    wire.run()
    assert there.counts["refused"] == 7
    assert not any(memory)
    with pytest.raises(CallError, match="2 bytes at 99 exceed a buffer of 100"):
        here.send(buffer, 99, memoryview(b"ab"))


def test_memory_is_fetched():
    here, _, wire, memory, _, buffer = imported()
    memory[10:15] = b"fetch"
    into, done = memoryview(bytearray(5)), []
    here.fetch(buffer, 10, into, lambda: done.append(True))
    wire.run()
    assert (into.tobytes(), done) == (b"fetch", [True])
    with pytest.raises(CallError, match="at most 4096 bytes"):
        here.fetch(buffer, 0, memoryview(bytearray(4097)), list)


def test_control_is_separate_from_data():
    here, there, wire, _, exported, buffer = imported()
    notified = []
    there.handler = lambda *found: notified.append(found)
    here.send(buffer, 0, memoryview(b"silent"))
    here.send(buffer, 6, memoryview(b"loud"), notify=True)
    wire.run()
    assert notified == []
    there.poll()
    assert notified == [((0, 0), exported.number, 10)]


def test_an_unknown_node_is_met_on_demand_and_processes_of_a_node_have_their_own_exports():
    here = VmmcLayer(0)
    there = [VmmcLayer(7, port=port) for port in (0, 1)]
    wire = ModelWire([here, *there])
    assert here.nodes == set()
    memories = [memoryview(bytearray(4)) for _ in there]
    for layer, memory in zip(there, memories, strict=True):
        layer.export(memory)
    for port in (0, 1):
        buffer = here.import_buffer((7, port), 0)
        wire.run()
        here.send(buffer, 0, memoryview(bytes([port + 1]) * 4))
    wire.run()
    assert [each.tobytes() for each in memories] == [b"\1" * 4, b"\2" * 4]
    assert here.nodes == {7}


def test_a_partner_that_never_acknowledges_is_a_named_catastrophe():
    here, there, wire, _, _, buffer = imported()
    there.fail("gone")
    here.send(buffer, 0, memoryview(b"x"))
    wire.run()
    assert here.catastrophe == "node 1 does not acknowledge"
