"""Records between an agent and an application: hostile ones are refused, and calls have the usual effects."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.errors import InvalidRecordError
from mxwire.protocol import LocalProtocolError, Status
from mxwire.protocol.agent.node import AgentFacts
from mxwire.protocol.agent.records import AGENT_HEAD, PLACE, AgentEndedError, AgentHead, AgentRecord, RecordFlag
from mxwire.protocol.agent.remote_segments import RemoteSegments, SharedSegments
from mxwire.protocol.agent.served_card import PULL_SOURCE
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.pull import PullSource

from .agent_channel import (
    ADDRESS,
    OTHER,
    OwnMemory,
    Served,
    answer_card_records,
    answer_records,
    record_from,
    serve_records,
)

SEEDS = st.lists(st.binary(min_size=4, max_size=4), max_size=30)


@settings(max_examples=150)
@given(SEEDS)
def test_an_agent_survives_plausible_records(seeds):
    serve_records([record_from(each) for each in seeds])


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_an_agent_survives_any_record(records):
    serve_records(records)


@settings(max_examples=150)
@given(SEEDS)
def test_an_application_survives_plausible_records(seeds):
    answer_records([record_from(each) for each in seeds])


@settings(max_examples=150)
@given(SEEDS)
def test_an_application_that_runs_the_library_survives_plausible_records(seeds):
    answer_card_records([record_from(each) for each in seeds])


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version": 1}', b"\xff"])
def test_an_agent_that_describes_itself_in_another_form_is_refused(data):
    with pytest.raises(InvalidRecordError, match="describes"):
        AgentFacts(data)


def test_a_call_after_the_end_of_the_agent_names_it():
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    request = endpoint.receive(bytearray(4), 1)
    served.client.close()
    with pytest.raises(AgentEndedError, match="endpoint closed: the agent has ended"):
        node.receive_local([], 0)
    assert request.status is Status.REMOTE_ENDPOINT_CLOSED
    with pytest.raises(AgentEndedError):
        node.open_endpoint(2)
    endpoint.close()


def test_records_wait_in_order_while_the_channel_is_full():
    """Messages of 1 MB through a channel of 128 KiB, with short ones between them."""
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    own = endpoint.own_partner()
    contents = [bytes([each]) * (1_000_000 if each % 2 else 10) for each in range(6)]
    sends = [endpoint.send(own, each, 7) for each in contents]
    assert len(node.out) > 10
    receives = [endpoint.receive(None, 7) for _ in contents]
    for _ in range(200):
        served.turn()
        node.receive_local([], 0)
    assert [bytes(each.buffer or b"") for each in receives] == contents
    assert {each.status for each in (*sends, *receives)} == {Status.SUCCESS}


def test_an_unexpected_handler_runs_in_the_application():
    """R-MAT-06: it consumes one message, posts the receive for another, and leaves the third."""
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    own = endpoint.own_partner()
    posted = []

    def handle(message):
        if message.match_info == 2:
            posted.append(endpoint.receive(bytearray(3), 2))
        return message.match_info == 1

    endpoint.handle_unexpected(handle)
    for match in (1, 2, 3):
        endpoint.send(own, b"abc", match)
    for _ in range(20):
        served.turn()
        node.receive_local([], 0)
        for each in list(node.offering):
            message = each.next_offer()
            if message is not None:
                assert message.data == b"abc"
                each.resolve(message, bool(each.matching.handler(message)))
    assert posted[0].status is Status.SUCCESS
    assert endpoint.matching.unexpected == 1
    found = endpoint.probe(3)
    assert found is not None and found.length == 3 and endpoint.probe(1) is None


def test_an_unexpected_message_is_claimed_by_its_identity():
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    own = endpoint.own_partner()
    seen = []
    endpoint.handle_unexpected(lambda message: seen.append(endpoint.matching.identity) is not None)
    for text in (b"one", b"two"):
        endpoint.send(own, text, 1)
    for _ in range(20):
        served.turn()
        node.receive_local([], 0)
        for each in list(node.offering):
            message = each.next_offer()
            if message is not None:
                each.resolve(message, bool(each.matching.handler(message)))
    memory = bytearray(3)
    request = endpoint.claim(memory, seen[1])
    assert request is not None and endpoint.claim(bytearray(3), seen[1]) is None
    served.turn()
    node.receive_local([], 0)
    assert request.status is Status.SUCCESS and memory == b"two"


def collect(served: Served, endpoint: Any, number: int, length: int, data: bytes, place: int = 0) -> None:
    """Hand over a part of a message."""
    record = AgentRecord.DATA
    endpoint.agent.out.put(record, handle=endpoint.handle, number=number, length=length, extra=place, data=data)
    assert served.turn()


@pytest.mark.interpreted("compiled code has the constants")
def test_messages_that_are_collected_at_once_share_a_bound(monkeypatch):
    """The bound holds for all parts, not only for the first ones; a message that exceeds it is forgotten."""
    monkeypatch.setattr("mxwire.protocol.agent.served_side._HELD_MAXIMUM", 1000)
    served = Served()
    endpoint = served.attach().open_endpoint(1)
    for number in (101, 102):
        collect(served, endpoint, number, 900, bytes(10))
    collect(served, endpoint, 101, 900, bytes(890), 10)
    assert served.client.held_bytes == 910
    collect(served, endpoint, 102, 900, bytes(500), 10)
    assert served.client.held_bytes == 900
    collect(served, endpoint, 102, 900, bytes(390), 510)
    assert served.client.held_bytes == 900
    endpoint.close()
    assert served.turn() and served.client.held_bytes == 0


def test_a_pull_that_waits_for_a_handle_has_its_latest_time_limit():
    served = Served()
    node = served.attach_card()
    card = node.open_endpoint(1).card
    source = PullSource(node.add_peer(OTHER), 0, 1, 2, 3, 0)
    (side,) = served.client.sides.values()
    # As pulls of an endpoint that was closed do.
    taken = []
    while side.card.slots.available:
        taken.append(side.card.slots.take())
    pull = card.start_pull(source, Segments(bytearray(100), writable=True), 100, None, 0)
    assert served.turn() and not side.card.pulls
    pull.limit += 12_345
    card.settle()
    assert served.turn()
    side.card.slots.give_back(taken[0])
    assert served.turn()
    (running,) = side.card.pulls.values()
    assert running.limit == pull.limit


@pytest.mark.parametrize("first", [AgentRecord.PULL, AgentRecord.ANNOUNCE])
def test_pulls_and_announcements_have_different_numbers(first):
    """The agent holds their memory by these numbers: with the same one, some of it would not be released."""
    served = Served()
    node = served.attach_card()
    card = node.open_endpoint(1).card
    place = node.add_peer(OTHER).index << 8
    records = {
        AgentRecord.PULL: {"partner": place, "length": 3, "data": PULL_SOURCE.pack(1, 2, 3, 0, 1 << 40)},
        AgentRecord.ANNOUNCE: {"partner": 0, "flags": RecordFlag.DATA, "length": 3, "data": b"abc"},
    }
    for kind in sorted(records, key=lambda each: each is not first):
        assert served.turn()
        node.out.put(kind, handle=card.handle, number=77, **records[kind])
    assert not served.turn() and "the number of another pull or announcement" in served.client.fault
    served.client.close()
    assert served.client.held_bytes == 0


@pytest.mark.parametrize("progress", ["match", "card"])
def test_pulls_of_an_application_that_has_gone_end_within_the_time_of_the_profile(progress):
    served = Served()
    node = served.attach() if progress == "match" else served.attach_card()
    node.open_endpoint(1)
    source = PullSource(node.add_peer(OTHER), 0, 1, 2, 3, 0)
    (card,) = served.node.interfaces[0].endpoints.values()
    memory = Segments(bytearray(100), writable=True)
    pulls = [card.start_pull(source, memory, 100, (number, memory), 0) for number in range(2)]
    pulls[0].limit, pulls[1].limit = 1 << 62, 1000
    served.client.close()
    assert [each.limit for each in pulls] == [card.profile.pull_limit, 1000]
    assert not served.node.interfaces[0].endpoints


def test_messages_that_are_collected_at_once_are_few():
    """Each costs more memory than its bytes, which alone are counted."""
    served = Served()
    endpoint = served.attach().open_endpoint(1)
    for number in range(101, 165):
        collect(served, endpoint, number, 900, bytes(1))
    endpoint.agent.out.put(AgentRecord.DATA, handle=endpoint.handle, number=165, length=900, data=bytes(1))
    assert not served.turn() and "too many messages" in served.client.fault


def test_messages_are_not_returned_without_limit():
    served = Served()
    endpoint = served.attach().open_endpoint(1)
    partner = served.node.peers.by_address(ADDRESS).index << 8 | 1
    (side,) = served.client.sides.values()
    side.engine.matching._profile = replace(side.engine.matching._profile, unexpected_maximum=10)
    for _ in range(21):
        endpoint.agent.out.put(AgentRecord.RETURN, handle=endpoint.handle, partner=partner)
    assert served.turn() and side.engine.matching.unexpected == 21
    endpoint.agent.out.put(AgentRecord.RETURN, handle=endpoint.handle, partner=partner)
    assert not served.turn() and "more messages returned" in served.client.fault


@pytest.mark.interpreted("compiled code has the constants")
def test_a_claim_without_memory_is_refused(monkeypatch):
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    monkeypatch.setattr("mxwire.protocol.agent.served_side._HELD_MAXIMUM", 1000)
    with pytest.raises(LocalProtocolError) as error:
        endpoint.claim(bytearray(1001), 7)
    assert error.value.status is Status.NO_RESOURCES
    assert endpoint.claim(bytearray(1000), 7) is None and served.client.held_bytes == 0


def test_a_cancelled_receive_takes_no_message_and_a_matched_one_is_not_cancelled():
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    first, second = (endpoint.receive(bytearray(1), each) for each in (1, 2))
    endpoint.send(endpoint.own_partner(), b"x", 2)
    assert endpoint.cancel(first) and first.status is Status.CANCELLED
    served.turn()
    assert not endpoint.cancel(second)
    node.receive_local([], 0)
    assert second.status is Status.SUCCESS


def test_a_peer_of_the_agent_has_its_index_in_the_application():
    served = Served()
    for number in range(2, 6):
        served.node.add_peer(bytes([2, 0, 0, 0, 0, number]), f"n{number}:0")
    node = served.attach()
    added = node.add_peer(bytes([2, 0, 0, 0, 0, 9]), "late:0")
    assert [(each.index, each.address, each.name) for each in node.peers] == [
        (each.index, each.address, each.name) for each in served.node.peers
    ]
    assert served.node.peers.at(added.index).name == added.name == "late:0"
    assert node.peers.by_address(ADDRESS).own == 0


def test_an_endpoint_that_the_agent_refuses_has_its_status():
    served = Served()
    node = served.attach()
    node.open_endpoint(1)
    other = Served()
    other.node.open_endpoint(3)
    with pytest.raises(LocalProtocolError) as error:
        other.attach().open_endpoint(3)
    assert error.value.status is Status.BUSY
    with pytest.raises(LocalProtocolError, match="is open already"):
        node.open_endpoint(1)


@pytest.mark.interpreted("replaces a method")
@pytest.mark.parametrize("field", [{"extra": 2}, {"extra": 40_000}, {"length": 1 << 40}])
def test_an_endpoint_opened_with_an_invalid_answer_closes_at_the_agent(field):
    """A number that this application has already, or that no endpoint has; a session of too many bits."""
    served = Served()
    node = served.attach()
    node.open_endpoint(2)
    served.client.answer = lambda head, **fields: type(served.client).answer(
        served.client, head, **fields | (field if head.kind == AgentRecord.OPEN else {})
    )
    with pytest.raises(LocalProtocolError):
        node.open_endpoint(3)
    assert [each.number for each in served.client.sides.values()] == [2]
    assert list(served.node.interfaces[0].endpoints) == list(node.interfaces[0].endpoints) == [2]


def test_a_record_of_another_program_ends_the_channel():
    served = Served()
    served.attach().open_endpoint(1)
    served.near.put(AGENT_HEAD.pack(AgentRecord.SEND, 0, 2, 7, 1, 0, 0, 0, 0, 0))
    assert not served.turn()


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 250), st.integers(0, 250), st.booleans())
def test_remote_segments_are_like_those_of_the_own_process(sizes, offset, length, missing):
    memory = OwnMemory(1000)
    starts = [4096 + 100 * number for number in range(len(sizes))]
    remote = RemoteSegments(memory, list(zip(starts, sizes, strict=True)))
    own = Segments([bytearray(size) for size in sizes], writable=True)
    assert len(remote) == len(own)
    data = bytes(number & 0xFF for number in range(1, length + 1))
    assert remote.put(offset, data) == own.put(offset, data)
    assert remote.copy() == own.copy() == remote.kept().copy()
    within = max(0, min(length, len(own) - offset))
    for read in (np.empty(within, np.uint8), np.empty(within, np.uint8)):
        remote.take(offset, read)
        assert read.tobytes() == own.copy()[offset : offset + within] == bytes(remote.part(offset, within))
    assert not remote.failed and remote.places() == [] and remote.only is None
    if missing and len(own):
        memory.content.clear()
        assert remote.copy() == bytes(len(own)) and remote.failed
    remote.detach()
    assert remote.put(0, b"x") == min(1, len(own)) and remote.copy() == bytes(len(own))


@pytest.mark.parametrize(("places", "together"), [([(4096, 90)], True), ([(4096, 50), (4200, 40)], False)])
def test_rows_are_written_together_into_one_segment_only(places, together):
    memory = OwnMemory(200)
    remote = RemoteSegments(memory, places)
    rows = np.arange(80, dtype=np.uint8).reshape(8, 10)
    assert remote.put_rows(10, rows) is together
    assert memory.content[10:90] == (rows.tobytes() if together else bytes(80))


def test_a_long_message_is_received_into_the_memory_of_the_application():
    """And one to memory that does not exist ends as aborted, for this application only."""
    memory = OwnMemory(200_000)
    served = Served(memory)
    node = served.attach()
    assert node.in_place
    endpoint = node.open_endpoint(1)
    handle, own = endpoint.handle, endpoint.own_partner()
    memory.content[:100_000] = content = bytes(range(250)) * 400
    for match, target in ((1, 104_096), (2, 1 << 40)):
        node.out.put(
            AgentRecord.RECEIVE,
            flags=256,
            handle=handle,
            number=90 + match,
            match_info=match,
            mask=(1 << 64) - 1,
            data=PLACE.pack(target, 90_000),
        )
        node.out.put(
            AgentRecord.SEND,
            flags=256,
            handle=handle,
            number=80 + match,
            partner=own.peer.index << 8 | 1,
            match_info=match,
            length=100_000,
            data=PLACE.pack(4096, 60_000) + PLACE.pack(64_096, 40_000),
        )
    for _ in range(5):
        served.turn()
    statuses = {}
    while (record := served.near.peek()) is not None:
        head = AgentHead(record)
        if head.kind == AgentRecord.COMPLETED:
            statuses[head.number] = head.status
        served.near.advance()
    assert memory.content[100_000:190_000] == content[:90_000]
    truncated = Status.MESSAGE_TRUNCATED
    assert statuses == {91: truncated, 92: Status.MESSAGE_ABORTED, 81: truncated, 82: truncated}


def test_shared_segments_leave_the_memory_of_the_application_alone_when_detached():
    """A pull of a closed endpoint continues (R-CLS-08)."""
    memory = bytearray(10)
    shared = SharedSegments(memoryview(memory)[2:8])
    assert shared.put(0, b"abc") == 3 and memory == b"\0\0abc\0\0\0\0\0"
    shared.detach()
    assert shared.put(0, b"xyz") == 3 and shared.put_rows(3, np.zeros((1, 3), np.uint8))
    assert memory == b"\0\0abc\0\0\0\0\0" and not shared.failed
    out = np.full(4, 9, np.uint8)
    shared.take(1, out)
    assert not out.any() and shared.copy() == bytes(6) and shared.places() == []
    # A released transfer of any length costs no memory.
    large = SharedSegments(memoryview(bytearray(1 << 22)))
    tracemalloc.start()
    large.detach()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1 << 16


def test_many_requests_of_an_application_that_has_gone_end_in_steps():
    """Between two steps others have their turn. Receives, and sends that wait for a connect, which nothing answers."""
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    partner = endpoint.connect(node.add_peer(OTHER), 1, 0).partner
    for number in range(20):
        endpoint.receive(bytearray(4), number)
        endpoint.send(partner, b"x", number, synchronous=True)
    assert served.turn() and served.client.request_count == 41
    steps = served.client.leave()
    for _ in range(30):
        next(steps)
    assert len(endpoint.requests) and len(served.node.endpoints) == 1 and served.near.ended
    # The other receives and the connect end and are forgotten, then the sends are, and last the endpoint closes.
    assert len(list(steps)) == 11 + 20 + 1
    assert served.client.request_count == served.client.waiting_count == 0 and not served.node.endpoints


def test_an_application_is_notified_of_each_transmission_of_its_connects():
    """Those of a pass, however many others wait for an answer."""
    served = Served()
    node = served.attach()
    endpoint = node.open_endpoint(1)
    peer = node.add_peer(OTHER)
    connects = [endpoint.connect(peer, number, 0) for number in range(1, 4)]
    counts = []
    for turn in range(600):
        served.turn()
        node.receive_local((), served.now)
        counts.append([each.transmissions for each in connects])
        if turn == 200:
            endpoint.cancel(connects.pop())
    # Once per half second of 2.4 seconds.
    assert counts[0] == [1, 1, 1] and counts[200] == [2, 2, 2] and counts[-1] == [5, 5]
