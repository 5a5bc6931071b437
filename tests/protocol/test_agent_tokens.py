"""Memory that applications of an agent register for each other: within its bounds, by token, and while it exists."""

from __future__ import annotations

from random import Random

import pytest

from mxwire.protocol import LocalProtocolError, Status
from mxwire.protocol.agent import tokens as module
from mxwire.protocol.agent.records import AGENT_HEAD, PLACE, TOKEN, AgentRecord, RecordFlag
from mxwire.protocol.agent.remote_segments import RemoteSegments
from mxwire.protocol.agent.tokens import MOVE_MAXIMUM, TokenTable
from mxwire.protocol.arguments import Segments

from .agent_channel import OwnMemory, Served

SIZE = 200_000
START = 4096


def region(memory: OwnMemory, *places: tuple[int, int]) -> RemoteSegments:
    """Memory of an application at addresses from START."""
    return RemoteSegments(memory, [(START + begin, size) for begin, size in places])


@pytest.mark.parametrize("length", [0, 1, 65_536, 65_537, 150_000])
def test_data_is_put_and_got_at_any_offset_of_a_region(length):
    memory, table, content = OwnMemory(SIZE), TokenTable(Random(1)), Random(2).randbytes(length)
    token = table.register("one", region(memory, (100, 90_000), (95_000, 80_000)))
    table.put(token, 7, Segments(b"###" + content), 3, length)
    flat = memory.content[100:90_100] + memory.content[95_000:175_000]
    assert flat[7 : 7 + length] == content and not any(flat[:7]) and not any(flat[7 + length :])
    found = bytearray(length + 2)
    table.get(token, 7, Segments(found, writable=True), 1, length)
    assert found == b"\0" + content + b"\0"


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1001), (1000, 1), (1 << 63, 1), (999, 2)], ids=["long", "behind", "far", "over the end"]
)
def test_an_access_outside_of_a_region_is_refused_and_moves_nothing(offset, length):
    memory, table = OwnMemory(SIZE), TokenTable(Random(1))
    token = table.register("one", region(memory, (0, 1000)))
    with pytest.raises(LocalProtocolError, match="are outside of the registered region of 1,000 bytes") as error:
        table.put(token, offset, Segments(b"x" * length), 0, length)
    assert error.value.status is Status.BAD_INFO_LENGTH and not any(memory.content)
    with pytest.raises(LocalProtocolError, match="outside"):
        table.get(token, offset, Segments(bytearray(length), writable=True), 0, length)


def test_a_released_region_and_those_of_an_application_that_has_gone_have_no_token():
    memory, table = OwnMemory(SIZE), TokenTable(Random(1))
    first, second = (table.register("one", region(memory, (0, 10))) for _ in range(2))
    other = table.register("two", region(memory, (0, 10)))
    assert len({first, second, other}) == 3 and (table.count("one"), table.count("two")) == (2, 1)
    assert not table.deregister("two", first) and not table.deregister("one", 5)
    assert table.deregister("one", first) and not table.deregister("one", first)
    table.forget("one")
    for token in (first, second):
        with pytest.raises(LocalProtocolError, match="no region has this token") as error:
            table.get(token, 0, Segments(bytearray(1), writable=True), 0, 1)
        assert error.value.status is Status.REMOTE_RDMA_WINDOW_BAD_ID
    table.get(other, 0, Segments(bytearray(1), writable=True), 0, 1)
    assert table.count("one") == 0


def test_memory_of_a_region_that_does_not_exist_any_more_is_reported():
    """And a region whose memory exists again serves again."""
    memory, table = OwnMemory(SIZE), TokenTable(Random(1))
    token = table.register("one", region(memory, (0, 1000)))
    content, memory.content = memory.content, bytearray(500)
    with pytest.raises(LocalProtocolError, match="does not exist any more") as error:
        table.put(token, 0, Segments(b"x" * 1000), 0, 1000)
    assert error.value.status is Status.MESSAGE_ABORTED
    memory.content = content
    table.put(token, 0, Segments(b"x" * 1000), 0, 1000)
    assert memory.content[:1000] == b"x" * 1000


@pytest.mark.interpreted("compiled code has the constant")
def test_an_application_has_a_limited_number_of_registered_segments(monkeypatch):
    monkeypatch.setattr(module, "SEGMENTS_REGISTERED", 3)
    served = Served(OwnMemory(SIZE))
    node = served.attach()
    assert node.in_place
    served.near.arrived.clear()
    record = AGENT_HEAD.pack(AgentRecord.REGISTER, 0, 0, 0, 9, 0, 0, 0, 0, 0) + PLACE.pack(START, 10)
    for _ in range(4):
        served.near.put(record)
    served.turn()
    kinds = [each[0] for each in served.near.arrived]
    assert kinds == [AgentRecord.ANSWER] * 3 + [AgentRecord.REFUSED]
    assert (served.client.region_count, served.client.refused_count) == (3, 1)
    token = next(iter(served.tokens._owned[served.client]))
    served.near.arrived.clear()
    served.near.put(AGENT_HEAD.pack(AgentRecord.DEREGISTER, 0, 0, 0, 9, 0, 0, 0, 0, 0) + TOKEN.pack(token))
    served.near.put(record + PLACE.pack(START, 10))
    served.near.put(record)
    served.turn()
    assert [each[0] for each in served.near.arrived] == [AgentRecord.ANSWER, AgentRecord.REFUSED, AgentRecord.ANSWER]
    served.client.close()
    assert served.tokens.count(served.client) == 0


def test_many_regions_are_released_by_one_record():
    served = Served(OwnMemory(SIZE))
    node = served.attach()
    tokens = [served.tokens.register(served.client, region(OwnMemory(10), (0, 10))) for _ in range(500)]
    asked = node.next_number()
    node.deregister_memory(tokens)
    assert node.next_number() == asked + 2 and served.client.region_count == 0
    with pytest.raises(LocalProtocolError, match="1 of 1 tokens are not of registered memory of this host"):
        node.deregister_memory(tokens[:1])


@pytest.mark.parametrize(
    ("flags", "mask", "length", "data"),
    [
        (RecordFlag.IN_PLACE, 0, MOVE_MAXIMUM + 1, PLACE.pack(START, 10)),
        (RecordFlag.IN_PLACE, 8, 3, PLACE.pack(START, 10)),
        (RecordFlag.IN_PLACE, 0, 3, b"short"),
        (RecordFlag.DATA, 0, 4, b"abc"),
    ],
    ids=["more than a record moves", "behind its own memory", "addresses of another length", "less data"],
)
def test_an_impossible_access_ends_the_channel(flags, mask, length, data):
    served = Served(OwnMemory(SIZE))
    served.attach()
    token = served.tokens.register(served.client, region(OwnMemory(100), (0, 100)))
    head = AGENT_HEAD.pack(AgentRecord.PUT, 0, flags, 0, 9, 0, token, mask, length, 0)
    served.near.put(head + data)
    assert not served.turn() and "impossible record" in served.client.fault


def test_answers_that_are_not_read_are_not_kept_without_limit():
    served = Served(OwnMemory(SIZE))
    node = served.attach()
    token = served.tokens.register(served.client, region(OwnMemory(40_000), (0, 40_000)))
    record = AGENT_HEAD.pack(AgentRecord.GET, 0, RecordFlag.DATA, 0, 9, 0, token, 0, 32_768, 0)
    for _ in range(200):
        assert served.near.put(record)
        assert served.turn()
    assert served.client.waiting_count < 200
    assert served.client.refused_count > 50
    assert not node.ended


def test_a_turn_of_an_application_moves_a_limited_number_of_bytes():
    """Others have their turn between; the rest is moved in the next ones."""
    served = Served(OwnMemory(2 << 20))
    served.attach()
    token = served.tokens.register(served.client, region(OwnMemory(2 << 20), (0, 2 << 20)))
    head = AGENT_HEAD.pack(AgentRecord.PUT, 0, RecordFlag.IN_PLACE, 0, 9, 0, token, 0, MOVE_MAXIMUM, 0)
    for _ in range(9):
        served.near.put(head + PLACE.pack(START, MOVE_MAXIMUM))
    served.near.arrived.clear()
    answered = []
    for _ in range(3):
        served.turn()
        answered.append(len(served.near.arrived))
    assert answered == [4, 8, 9]
