"""The measured behaviour of real hosts: the as-found profile repeats it, the default one where it does no harm."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mxwire.protocol import Defect, EventKind, Status
from mxwire.protocol.card import endpoint as card_endpoint
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, Profile
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import HostQuery, NackMcp, Notify, Pull, PullReply, Raw, Rndv, Tiny

from .world import KEY, World, address, pattern, statuses

PROFILES = pytest.mark.parametrize("profile", [OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND], ids=lambda each: each.name)
DIALECTS = pytest.mark.parametrize("dialect", [MXOE, omx(9000)], ids=str)


def with_defects(*defects: Defect) -> Profile:
    return OPEN_MX_1_5.with_defects(*defects)


# R-MEA-14


def refused_after_a_restart(profile: Profile) -> tuple[World, Status | None]:
    """The sender of a large message dies while it is pulled; its successor connects before the refusal is read."""
    world = World(profile=profile)
    one, two, there, _ = world.pair()
    taken = two.receive(bytearray(200_000))
    world.lose = lambda _, frame: type(frame) is PullReply
    one.send(there, bytes(200_000))
    world.settle()
    one.close()
    two.progressing = False
    world.seconds(2)
    assert {each.nack_type for each in world.sent(NackMcp)} == {2}
    again = world.open(0)
    request = again.connect(address(1), 2, KEY)
    world.settle()
    two.progressing = True
    world.seconds(1)
    assert request.status is Status.SUCCESS
    assert request.partner is not None
    sent = again.send(request.partner, b"as ever")
    world.seconds(1)
    assert statuses(sent) == [Status.SUCCESS]
    assert not request.partner.deliveries
    return world, taken.status


@pytest.mark.rule("R-MEA-14", "R-NOT-02")
def test_the_notify_of_a_refused_pull_goes_to_the_next_session_which_ignores_it():
    world, status = refused_after_a_restart(OPEN_MX_1_5_AS_FOUND)
    # Repeated, since with D-1 the partner cannot ack it before this side has connected too.
    notify, *repeated = world.sent(Notify, 1)
    assert {each.lib_seqnum for each in repeated} == {1}
    (announced,) = world.sent(Rndv)
    assert (notify.total_length, notify.lib_seqnum) == (0, 1)
    assert (notify.pulled_rdma_id, notify.pulled_rdma_seqnum) == (
        announced.pulled_rdma_id,
        announced.pulled_rdma_seqnum,
    )
    assert notify.session not in (announced.session, world.sent(Pull)[0].session)
    assert status is Status.REMOTE_ENDPOINT_CLOSED


@pytest.mark.rule("R-MEA-14", "R-CLS-05")
def test_without_the_defect_the_next_session_hears_nothing_of_the_former_one():
    world, status = refused_after_a_restart(OPEN_MX_1_5)
    assert not world.sent(Notify)
    assert status is Status.REMOTE_ENDPOINT_UNREACHABLE


# R-MEA-15


def first_pulls(profile: Profile, dialect: Dialect, blocks: int) -> tuple[World, list[list[int]]]:
    """The blocks that 100 transfers request, in the order of the wire."""
    world = World(profile=profile, dialect=dialect)
    one, two, there, _ = world.pair()
    length = blocks * dialect.block_length
    data, buffer = pattern(length), bytearray(length)
    orders = []
    for _ in range(100):
        world.clear()
        buffer[:] = bytes(length)
        taken = two.receive(buffer)
        one.send(there, data)
        world.settle()
        assert taken.status is Status.SUCCESS and buffer == data
        orders.append([each.frame_index // dialect.frames_per_block for each in world.sent(Pull)])
    return world, orders


@pytest.mark.rule("R-MEA-15")
@DIALECTS
def test_the_first_pulls_of_some_transfers_leave_out_of_order(dialect):
    """As recorded inside a busy host: blocks 0, 1, 4, 2, 3, 5; then block 4 is complete before 2 and 3 are."""
    _, orders = first_pulls(OPEN_MX_1_5_AS_FOUND, dialect, 9)
    plain = [[*range(9)] == each for each in orders]
    late = [each for each in orders if each != [*range(9)]]
    assert {tuple(each[:6]) for each in late} == {(0, 1, 4, 2, 3, 5)}
    assert {tuple(sorted(set(each))) for each in late} == {tuple(range(9))}
    assert 1 <= len(late) <= 20 and any(plain)
    assert orders == first_pulls(OPEN_MX_1_5_AS_FOUND, dialect, 9)[1], "the same randomness gives the same order"


@pytest.mark.rule("R-MEA-15", "R-PUL-02")
@pytest.mark.parametrize(("profile", "blocks"), [(OPEN_MX_1_5, 9), (OPEN_MX_1_5_AS_FOUND, 4)])
def test_otherwise_they_leave_in_order(profile, blocks):
    """Also where no fifth block could overtake the others."""
    _, orders = first_pulls(profile, MXOE, blocks)
    assert {tuple(each) for each in orders} == {tuple(range(blocks))}


@pytest.mark.interpreted("compiled code has the share as a constant")
@pytest.mark.rule("R-MEA-15", "R-PUL-08")
def test_late_pulls_leave_at_the_timer_where_nothing_comes(monkeypatch):
    monkeypatch.setattr(card_endpoint, "OUT_OF_ORDER_SHARE", 1.0)
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two, there, _ = world.pair()
    taken = two.receive(bytearray(9 * MXOE.block_length))
    world.lose = lambda _, frame: type(frame) is PullReply
    one.send(there, bytes(9 * MXOE.block_length))
    world.settle()
    assert [each.frame_index for each in world.sent(Pull)] == [0, 8]
    world.clear()
    world.seconds(1)
    assert [each.frame_index for each in world.sent(Pull)] == [0, 8, 16, 24]
    world.lose = lambda _, frame: False
    world.seconds(1.1)
    assert taken.status is Status.SUCCESS


@pytest.mark.interpreted("compiled code has the share as a constant")
@pytest.mark.rule("R-MEA-15", "R-PUL-07")
def test_late_pulls_leave_when_the_second_block_is_complete_first(monkeypatch):
    monkeypatch.setattr(card_endpoint, "OUT_OF_ORDER_SHARE", 1.0)
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two, there, _ = world.pair()
    taken = two.receive(bytearray(9 * MXOE.block_length))
    lost = [True]

    def lose(_host, frame):
        return type(frame) is PullReply and frame.msg_offset == 0 and bool(lost) and lost.pop()

    world.lose = lose
    one.send(there, bytes(9 * MXOE.block_length))
    world.settle()
    assert [each.frame_index for each in world.sent(Pull)][:5] == [0, 8, 0, 16, 24]
    assert taken.status is Status.SUCCESS


# R-MEA-17


def test_a_batch_is_a_quarter_of_a_smaller_ring():
    world = World(profile=replace(OPEN_MX_1_5, ring_size=12))
    one, two = world.open(0), world.open(1, 2)
    partner = world.connect(one, two, 1)
    assert [two.card.ring.maximum, two.card.ring.room] == [12, 11]
    for room in (10, 12, 11):
        one.send(partner, b"x")
        world.settle()
        assert two.card.ring.room == room


# R-MEA-18


@pytest.mark.rule("R-MEA-18", "R-MSC-01")
@DIALECTS
@pytest.mark.parametrize("room", [0, 1000])
@pytest.mark.parametrize("defective", [False, True])
def test_a_truncated_large_receive_before_and_after_its_notify_is_acked(dialect, room, defective):
    world = World(dialect=dialect, profile=with_defects(Defect.TRUNCATION_REPORTED_LATE) if defective else OPEN_MX_1_5)
    one, two, there, _ = world.pair()
    one.progressing = True
    taken = two.receive(bytearray(room))
    sent = one.send(there, bytes(100_000))
    while taken.status is None:
        world.step()
    before = taken.status
    assert (taken.transferred, taken.length) == (room, 100_000)
    world.seconds(1)
    assert before is (Status.SUCCESS if defective else Status.MESSAGE_TRUNCATED)
    assert statuses(taken, sent) == [Status.MESSAGE_TRUNCATED] * 2
    assert len([each for each in world.reported(EventKind.COMPLETED, 1) if each.request is taken]) == 1


@pytest.mark.rule("R-MEA-18")
def test_a_large_receive_that_fits_and_a_truncated_small_one_are_as_ever():
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two, there, _ = world.pair()
    fits, short = two.receive(bytearray(100_000), 1), two.receive(bytearray(5), 2)
    one.send(there, bytes(100_000), 1)
    one.send(there, bytes(10), 2)
    world.seconds(1)
    assert statuses(fits, short) == [Status.SUCCESS, Status.MESSAGE_TRUNCATED]


# R-MEA-19


# R-MEA-21


# R-MEA-22


def hear_zeros(profile: Profile) -> World:
    world = World(profile=profile, announce=True, acquainted=False)
    world.settle()
    world.clear()
    world.inject(0, Raw(dst_mac=b"\xff" * 6, src_mac=address(1), dst_src_peer_index=0, opaque=bytes(1000)))
    world.settle()
    world.seconds(6)
    return world


@pytest.mark.rule("R-MEA-22", "R-HOST-02")
def test_a_raw_of_zeros_enters_the_host_of_zeros():
    world = hear_zeros(OPEN_MX_1_5_AS_FOUND)
    assert world.nodes[0].peers.by_address(bytes(6)) is not None
    asked = [each for each in world.sent(HostQuery, 0) if each.dst_mac == bytes(6)]
    assert len(asked) == 2


def test_without_the_defect_it_announces_no_other_host():
    world = hear_zeros(OPEN_MX_1_5)
    assert world.nodes[0].peers.by_address(bytes(6)) is None


def test_a_raw_that_is_too_short_for_an_announcement_ends_in_zeros():
    world = World(profile=with_defects(Defect.ANY_RAW_ANNOUNCES), announce=True, acquainted=False)
    opaque = bytes(15) + bytes.fromhex("00000200000000")
    world.inject(0, Raw(dst_mac=b"\xff" * 6, src_mac=address(1), dst_src_peer_index=0, opaque=opaque))
    world.settle()
    assert world.nodes[0].peers.by_address(bytes.fromhex("020000000000")) is not None


def test_randomness_is_drawn_only_where_a_defect_wants_it():
    """So that sessions of other profiles do not depend on how many transfers there were."""
    world = World()
    one, two, there, _ = world.pair()
    state = Random.getstate(world.nodes[1]._rng)
    two.receive(bytearray(100_000))
    one.send(there, bytes(100_000))
    world.settle()
    assert Random.getstate(world.nodes[1]._rng) == state
    assert not world.sent(Tiny)
