"""All models: messages arrive as they were sent, copies are those of their facts, and faults end as promised."""

from __future__ import annotations

from collections import Counter
from struct import unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.bench.models.catalogue import MODELS, all_facts, check_model
from mxwire.bench.models.header import HEADER, unpacked
from mxwire.bench.models.stream import MessageStream, body
from mxwire.errors import MxwireError
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
    pair = {"hosts": 2, "processes": 1, "interfaces": 1, "workload": "stream", "messages": MESSAGES, "largest": 129}
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
    assert "no code" in all_facts()["myricom-api"].remark
    assert "myricom-api" not in MODELS
