"""Records between an agent and an application: hostile ones are refused, and calls have the usual effects."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.errors import InvalidRecordError
from mxwire.protocol import LocalProtocolError, Status
from mxwire.protocol.agent_records import AGENT_HEAD, AgentEndedError, AgentRecord
from mxwire.protocol.attached import AgentFacts

from .agent_channel import ADDRESS, Served, answer_records, record_from, serve_records

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


def test_a_record_of_another_program_ends_the_channel():
    served = Served()
    served.attach().open_endpoint(1)
    served.near.put(AGENT_HEAD.pack(AgentRecord.SEND, 0, 2, 7, 1, 0, 0, 0, 0, 0))
    assert not served.turn()
