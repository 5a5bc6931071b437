"""Connecting (behaviour, section 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.protocol import Counter, Defect, EventKind, LocalProtocolError, Status
from mxwire.protocol.library.connect import ConnectState
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.units import SECOND
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, Notify, Tiny, Truc

from .world import KEY, World, address, gaps, lose_first


def test_a_request_and_its_reply():
    """R-CON-01, R-CON-03, R-CON-05, R-CON-08, R-CON-10, R-EP-03, R-EP-04, R-SEQ-05."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    request = one.connect("host1:0", 2, KEY)
    world.settle()
    assert request.status is Status.SUCCESS
    assert request.state is ConnectState.DONE
    (asked,), (answered,) = world.sent(ConnectRequest), world.sent(ConnectReply)
    assert (asked.lib_seqnum, asked.length, asked.connect_seqnum, asked.target_recv_seqnum_start) == (0, 16, 0, 1)
    assert (asked.src_session_id, asked.app_key, asked.is_reply) == (one.session, KEY, 0)
    assert (answered.src_session_id, answered.target_session_id) == (one.session, two.session)
    assert (answered.connect_seqnum, answered.connect_status_code, answered.target_recv_seqnum_start) == (0, 0, 1)
    partner = request.partner
    assert (partner.fwd, partner.rev, partner.tx_next) == (two.session, two.session, 1)
    other = two.partners[1, 1]
    assert (other.fwd, other.rev, other.tx_next, other.rx_next) == (one.session, one.session, 1, 1)
    assert [each.partner for each in world.reported(EventKind.PARTNER_CONNECTED)] == [other]


def test_the_connect_counter_has_eight_bits():
    """R-CON-01: ``connect_seqnum`` is counted modulo 256."""
    world = World()
    one, two, there, _ = world.pair()
    for _ in range(258):
        assert one.connect(address(1), two.number, KEY).partner is there
        world.settle()
    numbers = [each.connect_seqnum for each in world.sent(ConnectRequest, 0)]
    assert numbers == [(1 + each) & 0xFF for each in range(258)]


def test_more_connects_than_numbers_end_the_oldest():
    """R-CON-06: each pending connect has its own number, of which there are 256."""
    world = World(lose=lambda *_: True)
    one = world.open(0)
    requests = [one.connect(address(1), 2, KEY) for _ in range(257)]
    world.settle()
    assert requests[0].status is Status.NO_RESOURCES
    assert not any(each.done for each in requests[1:])


def test_connecting_twice_changes_nothing():
    """R-CON-05: with the same session the numbers of a reply are ignored."""
    world = World()
    one, two, there, back = world.pair()
    one.send(there, b"x")
    world.settle()
    before = (there.tx_next, there.tx_una, back.rx_next)
    again = one.connect(address(1), two.number, KEY)
    world.settle()
    assert again.status is Status.SUCCESS
    assert again.partner is there
    assert before == (there.tx_next, there.tx_una, back.rx_next)


def test_a_request_is_repeated_until_it_is_answered():
    """R-CON-02, R-CON-08, R-RTX-01, R-RTX-02: every resend delay, with the same number."""
    world = World(lose=lose_first(ConnectRequest, 3))
    one, _ = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, KEY)
    world.seconds(3)
    assert request.status is Status.SUCCESS
    times = world.times(ConnectRequest)
    assert len(times) == 4
    assert all(0.5 * SECOND <= gap <= 0.51 * SECOND for gap in gaps(times))
    assert {each.connect_seqnum for each in world.sent(ConnectRequest)} == {0}


def test_each_repetition_is_answered_again():
    """R-CON-08: a reply is never repeated by itself, but each request gets one."""
    world = World(lose=lose_first(ConnectReply, 2))
    one, _ = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, KEY)
    world.seconds(3)
    assert request.status is Status.SUCCESS
    assert len(world.sent(ConnectRequest)) == len(world.sent(ConnectReply)) == 3


def test_a_connect_is_abandoned_at_the_limit():
    """R-CON-02, R-RTX-03, R-RTX-05, R-MEA-19: one transmission more than resends; then the next session number."""
    world = World(lose=lambda *_: True)
    one = world.open(0)
    request = one.connect(address(1), 2, KEY, resend_maximum=4)
    world.seconds(4)
    assert request.status is Status.REMOTE_ENDPOINT_UNREACHABLE
    assert len(world.sent(ConnectRequest)) == 5
    assert world.reported(EventKind.PARTNER_LOST)
    one.connect(address(1), 2, KEY)
    world.settle()
    assert world.sent(ConnectRequest)[-1].target_recv_seqnum_start == 0x70F1


def test_a_wrong_key_is_refused_and_changes_nothing():
    """R-CON-04, R-EP-04: without D-2 the target does not even remember the partner."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, 0xDEADBEEF)
    world.settle()
    assert request.status is Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    assert world.sent(ConnectReply)[0].connect_status_code == 11
    assert (request.partner.fwd, two.partners) == (None, {})


def test_with_its_defect_a_wrong_key_changes_the_target():
    """R-CON-09, D-2."""
    world = World(profile=OPEN_MX_1_5.with_defects(Defect.WRONG_KEY_CHANGES_PARTNER))
    one, two = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, 0xDEADBEEF)
    world.settle()
    assert request.status is Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    assert two.partners[1, 1].fwd == one.session


@pytest.mark.parametrize(
    "change",
    [{"connect_seqnum": 9}, {"src_session_id": 1}, {"connect_status_code": 7}],
    ids=lambda each: next(iter(each)),
)
def test_a_reply_that_does_not_fit_is_ignored(change):
    """R-CON-03, R-CON-04: another number, another session, another status."""
    world = World(lose=lambda _host, frame: type(frame) is ConnectReply)
    one, _ = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, KEY)
    world.settle()
    (reply,) = world.sent(ConnectReply)
    world.inject(0, replace(reply, **change))
    assert not request.done
    world.inject(0, reply)
    assert request.status is Status.SUCCESS


def test_a_reply_from_a_stranger_is_ignored():
    """R-ORD-01: there is no partner that it could belong to."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    (reply,) = world.sent(ConnectReply)
    world.inject(0, replace(reply, src_endpoint=9))
    assert len(one.partners) == 1


@pytest.mark.parametrize(
    ("number", "status"), [(5, Status.REMOTE_ENDPOINT_CLOSED), (77, Status.REMOTE_ENDPOINT_BAD_ID)]
)
def test_a_connect_to_an_endpoint_that_is_not_there(number, status):
    """R-CON-15, R-EP-01, R-NAK-03: the nack has number 0 and ends the repetition."""
    world = World()
    one = world.open(0)
    request = one.connect(address(1), number, KEY)
    world.seconds(2)
    assert request.status is status
    (nack,) = world.sent(NackLib)
    assert (nack.lib_seqnum, nack.src_endpoint, nack.dst_endpoint) == (0, number, one.number)
    assert len(world.sent(ConnectRequest)) == 1


def test_crossing_connects():
    """R-CON-14: both reply, both end with both sessions."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    requests = one.connect(address(1), 2, KEY), two.connect(address(0), 1, KEY)
    world.settle()
    assert [each.status for each in requests] == [Status.SUCCESS] * 2
    assert len(world.sent(ConnectReply)) == 2
    for request, session in zip(requests, (two.session, one.session), strict=True):
        assert request.partner.fwd == request.partner.rev == session


def test_an_unknown_host_is_not_answered():
    """R-DISC-01: a CONNECT from an address that is not in the table is dropped."""
    world = World(acquainted=False)
    world.nodes[0].add_peer(address(1), "host1:0")
    one, _ = world.open(0), world.open(1, 2)
    request = one.connect(address(1), 2, KEY)
    world.seconds(1)
    assert not request.done
    assert world.nodes[1].counters["Drop Bad Peer Addr"] == len(world.sent(ConnectRequest)) >= 2
    assert world.sent(ConnectRequest)[0].dst_src_peer_index == 0xFFFF


def test_an_answered_connect_teaches_the_index():
    """R-HOST-09: a CONNECT alone teaches the reverse index in both directions."""
    world = World()
    one, _, there, back = world.pair()
    assert there.peer.index_for(0) == back.peer.index == 1
    one.send(there, b"x")
    world.settle()
    assert world.sent(Tiny)[0].dst_src_peer_index == 1


def test_a_connect_can_be_cancelled():
    """R-MSC-02, R-CON-02: before it has left, and while it waits for an answer; then it is forgotten."""
    world = World(lose=lambda *_: True)
    one = world.open(0)
    early, late = one.connect(address(1), 2, KEY), one.connect(address(1), 2, KEY)
    assert one.cancel(early)
    world.settle()
    assert one.cancel(late)
    assert not one.cancel(late)
    assert {early.status, late.status} == {Status.CANCELLED}
    world.seconds(2)
    assert len(world.sent(ConnectRequest)) == 1
    assert not one.requests


def test_an_endpoint_connects_back_before_its_first_message():
    """R-CON-11, R-CON-12: the target could send at once, but introduces itself first."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    world.clear()
    buffer = bytearray(5)
    receive = one.receive(buffer, 7)
    two.send(two.partners[1, 1], b"hello", 7)
    world.settle()
    assert (receive.status, bytes(buffer)) == (Status.SUCCESS, b"hello")
    kinds = [type(each.frame) for each in world.log]
    assert kinds[:3] == [ConnectRequest, ConnectReply, Tiny]


def test_connecting_back_with_a_key_that_is_refused_does_no_harm():
    """R-CON-09, R-CON-12: a real partner knows us by the request all the same."""
    world = World(profiles=(OPEN_MX_1_5_AS_FOUND, OPEN_MX_1_5))
    one, two = world.nodes[0].open_endpoint(1, 1), world.open(1, 2)
    world.connect(one, two, 1)
    receive = one.receive(bytearray(1), 7)
    two.send(two.partners[1, 1], b"x", 7)
    world.settle()
    assert world.sent(ConnectReply)[-1].connect_status_code == 11
    assert receive.status is Status.SUCCESS


def test_connecting_back_to_an_endpoint_that_has_gone():
    """R-CON-15, R-NAK-06: what waited for it is sent, and refused itself."""
    world = World()
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    one.close()
    send = two.send(two.partners[1, 1], b"x")
    world.settle()
    assert [each.nack_type for each in world.sent(NackLib)] == [2, 2]
    assert (send.status, send.late_status) == (Status.SUCCESS, Status.REMOTE_ENDPOINT_CLOSED)


def test_without_connecting_back_a_real_host_cannot_take_large_messages():
    """R-CON-12, R-CON-13, D-1: libacks, PULLs and NOTIFYs carry session 0xFFFFFFFF, and are refused."""
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    receive = one.receive(bytearray(50000), 7)
    send = two.send(two.partners[1, 1], bytes(50000), 7)
    world.seconds(0.1)
    assert receive.status is Status.REMOTE_ENDPOINT_BAD_SESSION
    assert world.sent(Notify, 0)[0].session == 0xFFFFFFFF
    assert world.sent(NackLib, 1)[0].nack_type == 3
    assert not send.done
    small = one.receive(bytearray(8), 8)
    two.send(two.partners[1, 1], b"12345678", 8)
    world.seconds(0.1)
    assert small.status is Status.SUCCESS
    assert world.sent(Truc, 0)[0].session == 0xFFFFFFFF
    assert world.nodes[1].counters["Drop Bad Session"] >= 3


def test_a_late_connect_back_resets_the_numbers_of_a_real_host():
    """R-CON-10, R-CON-12, D-1: what was delivered already is delivered a second time."""
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    back = two.partners[1, 1]
    first, second = one.receive(bytearray(1), 7), one.receive(bytearray(1), 7)
    two.send(back, b"x", 7)
    world.settle()
    assert first.status is Status.SUCCESS
    two.connect(address(0), 1, KEY)
    world.seconds(1)
    assert second.status is Status.SUCCESS


def test_wrong_arguments():
    """R-EP-01 and section 20: each with its status."""
    world = World()
    one = world.open(0)
    for peer, status in ((b"\2\0\0\0\0\7", 36), ("nobody:0", 28), (99, 28)):
        with pytest.raises(LocalProtocolError) as failure:
            one.connect(peer, 1, KEY)
        assert failure.value.status == status
    with pytest.raises(LocalProtocolError, match="endpoint number 256"):
        one.connect(address(1), 256, KEY)
    with pytest.raises(LocalProtocolError, match="key"):
        one.connect(address(1), 1, 1 << 32)


def test_the_number_of_partners_is_limited():
    """Section 18 of the profile's limits: a request of one more is not answered."""
    world = World(profile=replace(OPEN_MX_1_5, partner_maximum=1))
    one, two = world.open(0), world.open(1, 2)
    other = world.open(0, 3)
    world.connect(one, two, 1)
    request = other.connect(address(1), 2, KEY)
    world.seconds(1)
    assert not request.done
    assert world.nodes[1].counters[Counter.DROP_PARTNERS_FULL] > 0
    with pytest.raises(LocalProtocolError, match="partners"):
        one.connect(address(1), 9, KEY)
