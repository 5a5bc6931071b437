"""All models: messages arrive as they were sent, copies are those of their facts, and faults end as promised."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace
from random import Random
from struct import unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.bench.models.active_messages import NO_HANDLER
from mxwire.bench.models.catalogue import MODELS, WITHOUT_CODE, check_model
from mxwire.bench.models.facts import FACTS
from mxwire.bench.models.header import HEADER, ONLY, FrameFlag, FrameKind, ModelFrame, packed, unpacked
from mxwire.bench.models.layer import CallError, CatastropheError
from mxwire.bench.models.portals import EVENTS, MemoryDescriptor, MemoryOption
from mxwire.bench.models.stream import MessageStream, body
from mxwire.bench.models.tables import table_blocks, table_records
from mxwire.bench.models.unet import QUEUE
from mxwire.bench.models.vmmc2 import NOTIFICATIONS
from mxwire.bench.models.wire import AdapterInlet
from mxwire.errors import MxwireError
from mxwire.report.document import markdown
from mxwire.simulation import Simulation, draw_scenario
from mxwire.simulation.scenario import INCIDENTS

SIZES = (0, 4, 255, 256, 4096, 20_000)
MESSAGES = 10_000
LOSSY = {"loss": 0.01, "duplicate": 0.01}


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MODELS)
def test_messages_arrive_in_order_and_whole(name, size, copied):
    stream = MessageStream(name, 30, size, copied).run()
    assert stream.received == [body(number, size) for number in range(30)]
    assert stream.catastrophe == ""
    assert not any(each.work() for each in stream.layers)


@pytest.mark.parametrize("name", MODELS)
def test_copies_per_byte_are_those_of_the_facts(name):
    facts = MODELS[name].facts
    for copied, expected in ((False, facts.in_place), (True, facts.elsewhere)):
        assert MessageStream(name, 10, 20_000, copied).run().copies() == expected


@pytest.mark.parametrize("name", MODELS)
def test_10000_messages_over_a_faulty_network(name):
    errors = MODELS[name].facts.errors
    stream = MessageStream(name, MESSAGES, 8, faults=LOSSY | {"seed": 1}).run()
    numbers = [unpack_from("!I", each)[0] for each in stream.received]
    assert [body(number, 8) for number in numbers] == stream.received
    match errors:
        case "tolerated":
            assert stream.wire.lost > 0
            assert numbers == list(range(MESSAGES))
            assert stream.catastrophe == ""
        case "catastrophic":
            assert stream.catastrophe.startswith(("network error", "stalled"))
            assert numbers == list(range(len(numbers)))
        case "data loss":
            counted = stream.layers[1].counts
            assert stream.catastrophe == ""
            assert len(set(numbers)) + counted["lost"] == numbers[-1] + 1
            assert sum(each - 1 for each in Counter(numbers).values()) == counted["duplicate"] > 0


@pytest.mark.parametrize("name", [name for name, each in MODELS.items() if each.facts.errors == "tolerated"])
def test_reordered_frames_are_repaired_where_errors_are_tolerated(name):
    stream = MessageStream(name, 500, 300, faults={"reorder": 0.1, "seed": 2}).run()
    assert stream.received == [body(number, 300) for number in range(500)]


def test_mx_delivers_each_of_10000_messages_once_over_a_faulty_network():
    quiet = dict.fromkeys(INCIDENTS, 0) | {"tamper": 0.0, "corrupt": 0.0, "gap": 0, "jitter": 0, "resend_maximum": 40}
    pair = {"hosts": 2, "processes": 1, "interfaces": 1, "workload": "stream", "messages": MESSAGES, "largest": 16}
    outcome = Simulation(draw_scenario(1, delay=10_000, loss=0.01, duplicate=0.01, **pair, **quiet)).run()
    assert outcome.held
    assert outcome.counts["delivered"] == MESSAGES
    assert outcome.counts["frames lost"] > 0


@pytest.mark.parametrize("name", MODELS)
@given(raw=st.binary(max_size=120), kind=st.integers(0, 255))
def test_any_frame_is_survived_or_named(name, raw, kind):
    layer = MODELS[name].layer(1)
    whole = bytes([layer.number, kind]) + raw
    layer.accept(0, memoryview(whole), 0)
    sized = bytearray(whole.ljust(HEADER.size + 8, b"\0"))
    sized[24:28] = (8).to_bytes(4, "big")
    sized[8:12] = bytes(4)
    found = unpacked(memoryview(bytes(sized)))
    if found is not None and layer.ready(found[1]):
        layer.accept(0, memoryview(bytes(sized)), 1)
    layer.expire(10)
    assert isinstance(layer.work(), str)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(MxwireError, match=r"there is no model 'gan' \(did you mean gam"):
        check_model("gan")
    with pytest.raises(MxwireError, match="there is no model 'infiniband': use some of gam, "):
        check_model("infiniband")


def test_a_library_without_code_has_a_row_that_declares_it():
    assert all(FACTS[each].remark.startswith("no code") for each in WITHOUT_CODE)


@pytest.mark.parametrize(("number", "remarked"), [(1, {"gm"}), (2, {"gam", "am2", "fm2", "fm2.1"}), (3, set())])
def test_a_table_has_the_remarks_about_its_own_choices(number, remarked):
    records = {each["name"]: each for each in table_records(number, list(FACTS))}
    about_all = {"mx", *WITHOUT_CODE}
    assert {name for name, each in records.items() if "remark" in each} == remarked | about_all
    shown = markdown(list(table_blocks(number, list(FACTS))))
    assert ("the PIO itself" in shown) == (number == 2)
    assert not MODELS.keys() & set(WITHOUT_CODE)


def forged(rng: Random, expected: int) -> ModelFrame:
    """A frame with plausible and implausible fields; most have the number that is expected."""
    numbers = (expected, expected, expected, expected + 1, 0, 0xFFFFFFFF)
    return ModelFrame(
        rng.choice(list(FrameKind)),
        FrameFlag(rng.randrange(8)),
        sequence=rng.choice(numbers) & 0xFFFFFFFF,
        ack=rng.choice((0, 0, 1, 2, 5, 0xFFFFFFFF)),
        place=rng.choice((0, 0, 1, 2, 0xFFFFFFFF, 1 << 16, 12 << 16, 4 << 24, rng.getrandbits(32))),
        offset=rng.choice((0, 1, 4, 4095, 0xFFFFFFFF, 1 << 31)),
        key=rng.choice((0, 0, 1, 300, rng.getrandbits(32))),
        data=rng.randbytes(rng.choice((0, 1, 4, 8, 20, 300, 4096))),
    )


@pytest.mark.parametrize("name", MODELS)
def test_forged_frames_among_calls_raise_nothing_but_named_errors(name):
    model, rng = MODELS[name], Random(name)
    for play in range(30):
        layer = model.layer(1)
        port = model.port(layer, (0, 0), copied=bool(play % 2), size=rng.choice((4, 300, 5000)), depth=4)
        inlet, now = AdapterInlet(), 0
        inlet.attach(layer)
        for number in range(100):
            now += rng.choice((0, 1000, 10**6, 10**8))
            expected = layer._flow((0, 0)).expected if name == "pm" else layer.order.expected.get((0, 0), 0)
            inlet.arrive(0, packed(layer.number, forged(rng, expected)), now)
            layer.expire(now)
            with suppress(CallError, CatastropheError):
                port.progress()
                port.expect(4)
                port.received(4)
                if number % 7 == 0:
                    port.send(memoryview(b"abcd"))
                    port.sent()
            assert all(packed(layer.number, each) for _, each in layer.outgoing)
            layer.outgoing.clear()


FLOODS = {
    "gam": ModelFrame(FrameKind.REQUEST, ONLY, place=NO_HANDLER),
    "am2": ModelFrame(FrameKind.REQUEST, ONLY, place=NO_HANDLER),
    "bip": ModelFrame(FrameKind.DATA, ONLY, key=4, data=b"flow"),
    "fm2": ModelFrame(FrameKind.DATA, ONLY),
    "fm2.1": ModelFrame(FrameKind.DATA, ONLY),
    "pm": ModelFrame(FrameKind.DATA, ONLY),
    "null": ModelFrame(FrameKind.DATA, ONLY),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_frames_occupies_limited_memory_and_is_counted(name):
    layer = MODELS[name].layer(1)
    for number in range(100_000 if name == "null" else 3000):
        if not layer.catastrophe:
            frame = replace(FLOODS[name], sequence=number, place=number if name == "bip" else FLOODS[name].place)
            layer.take((0, 0), frame)
        layer.outgoing.clear()
    stores = [each for each in vars(layer).values() if isinstance(each, (deque, dict))]
    stores += [
        each for store in stores if isinstance(store, dict) for each in store.values() if isinstance(each, deque)
    ]
    assert sum(map(len, stores)) < 70_000
    counted = ("lost", "refused", "catastrophes", "nacks", "dropped behind a nack")
    assert sum(layer.counts[each] for each in counted) > 0


def test_packets_of_the_null_model_reach_their_channel_or_none():
    sender, receiver = (MODELS["null"].layer(node) for node in range(2))
    receiver.open_channel(7)
    for channel, text in ((7, b"seventh"), (0, b"first"), (8, b"closed"), (7, b"again, and longer than a read")):
        sender.send((1, 0), text, channel)
    while sender.outgoing:
        receiver.accept(0, memoryview(packed(sender.number, sender.outgoing.popleft()[1])), 0)
    assert [bytes(receiver.receive(channel) or b"") for channel in (0, 7, 7, 7)] == [
        b"first",
        b"seventh",
        b"again, and longer than a read",
        b"",
    ]
    assert receiver.counts["dropped"] == 1 and receiver.counts["lost"] == 0
    # A processor reads up to 16 bytes from the adapter.
    assert receiver.read.length == len(b"firstseventh") and receiver.transferred.length == 29
    with pytest.raises(KeyError):
        receiver.receive(8)


def test_events_notifications_and_descriptors_have_a_limit():
    portals, vmmc2, unet = (MODELS[each].layer(1) for each in ("portals", "vmmc2", "unet"))
    events = deque()
    taken = MemoryDescriptor(memoryview(bytearray()), events, MemoryOption.PUT | MemoryOption.TRUNCATE)
    portals.attach(0, 0).descriptor = taken
    exported = vmmc2.export(memoryview(bytearray(1)))
    unet.open_channel(0, (0, 0))
    for number in range(10_000):
        for layer, frame in (
            (portals, ModelFrame(FrameKind.DATA, ONLY)),
            (vmmc2, ModelFrame(FrameKind.DEPOSIT, ONLY | FrameFlag.NOTIFIES, key=exported.key)),
            (unet, ModelFrame(FrameKind.DATA, ONLY)),
        ):
            layer.take((0, 0), replace(frame, sequence=number))
            layer.outgoing.clear()
    assert (len(events), portals.counts["events lost"]) == (EVENTS, 10_000 - EVENTS)
    assert vmmc2.counts["notifications lost"] == 10_000 - NOTIFICATIONS
    assert unet.counts["dropped"] == 10_000 - QUEUE


def test_memory_that_cannot_be_written_is_refused_in_calls():
    fixed = memoryview(b"fixed")
    vmmc2, pm, gm, bip = (MODELS[each].layer(1) for each in ("vmmc2", "pm", "gm", "bip"))
    for call in (
        lambda: vmmc2.export(fixed),
        lambda: pm.lock(fixed),
        lambda: gm.register(fixed),
        lambda: gm.provide(fixed),
        lambda: bip.post(1, fixed),
        lambda: MemoryDescriptor(fixed, deque(), MemoryOption.PUT),
    ):
        with pytest.raises(CallError, match="memory that can be written"):
            call()
