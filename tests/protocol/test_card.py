"""The card's side by itself: what it takes, drops, counts and answers (behaviour, sections 14, 16, 21, 23 and 25)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.protocol import Counter, Status
from mxwire.protocol.card.interface import HostInterface
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, Profile
from mxwire.wire.codec import build
from mxwire.wire.dialect import omx
from mxwire.wire.packets import ConnectReply, HostQuery, HostReply, NackLib, NackMcp, Pull, PullReply, Tiny, Truc
from tests.frames import make_frame

from .world import KEY, World, address, frame_to, pattern, pullable, statuses


def replies(world: World, pull: Pull) -> list[PullReply]:
    world.clear()
    world.inject(0, pull)
    world.settle()
    return world.sent(PullReply)


def spied_on(profile: Profile = OPEN_MX_1_5, **options: Any) -> tuple[World, Pull]:
    """A message for the second of three hosts, and the PULL of the third, which has only been refused a connect."""
    world = World(hosts=3, profile=profile, **options)
    pull = pullable(world, 100_000, 10_000)
    spy = world.open(2, 3)
    refused = spy.connect(address(0), pull.dst_endpoint, KEY + 1)
    world.settle()
    assert refused.status is Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    # The refusal names the session (R-CON-08).
    assert world.sent(ConnectReply, 0)[-1].target_session_id == pull.session
    index = world.sent(ConnectReply, 0)[-1].src_dst_peer_index
    theirs = world.nodes[0].peers.by_address(address(2))
    assert theirs is not None and theirs.index == index
    return world, replace(pull, src_mac=address(2), dst_src_peer_index=index, src_endpoint=3)


@pytest.mark.parametrize("blocks", [1, 4])
def test_a_region_is_served_to_its_partner_only(blocks: int) -> None:
    """R-PUL-14: to any other host it is unknown, also in the batch path; a real host serves it (R-PUL-15)."""
    world, pull = spied_on()
    stolen = [replace(pull, frame_index=8 * block, block_length=4096 * 8) for block in range(min(blocks, 3))]
    world.clear()
    world.inject(0, *stolen)
    world.settle()
    assert world.sent(PullReply) == []
    assert [each.nack_type for each in world.sent(NackMcp)] == [4] * len(stolen)
    assert {each.dst_mac for each in world.sent(NackMcp)} == {address(2)}
    assert world.nodes[0].counters[Counter.DROP_PULL_BAD_REGION] == len(stolen)
    partner = world.nodes[0].peers.by_address(address(1))
    assert partner is not None
    assert len(replies(world, replace(pull, src_mac=address(1), dst_src_peer_index=partner.index))) == 3


@pytest.mark.parametrize("count", [1, 6])
def test_a_pull_takes_data_and_refusals_from_its_partner_only(count: int) -> None:
    """R-PUL-05, R-NAK-09: from another host they are dropped, as if the handle were unknown, also in the batch path."""
    world = World(hosts=3)
    one, two, there, _ = world.pair()
    world.lose = lambda host, frame: type(frame) is PullReply
    memory = bytearray(50_000)
    receive = two.receive(memory)
    one.send(there, pattern(50_000))
    world.milliseconds(1)
    reply = world.sent(PullReply)[0]
    third = world.nodes[1].peers.by_address(address(2))
    assert third is not None
    before = world.nodes[1].counters[Counter.DROP_REPLY_BAD_HANDLE]
    forged = replace(reply, src_mac=address(2), data=bytes(4096))
    nack = make_frame(
        NackMcp,
        dst_mac=reply.dst_mac,
        src_mac=address(2),
        dst_src_peer_index=third.index,
        src_endpoint=two.number,
        nack_type=4,
        src_pull_handle=reply.dst_pull_handle,
        src_magic=reply.dst_magic,
    )
    world.inject(1, *[forged] * count, nack)
    assert world.nodes[1].counters[Counter.DROP_REPLY_BAD_HANDLE] == before + count + 1
    assert not receive.done
    world.lose = lambda host, frame: False
    world.seconds(2)
    assert receive.status is Status.SUCCESS and bytes(memory) == pattern(50_000)


def test_the_number_of_frames_wraps_in_one_dialect():
    """R-MEA-03: in `omx` the sum of two 32-bit fields does."""
    world = World(dialect=omx(1500), profile=OPEN_MX_1_5_AS_FOUND)
    pull = pullable(world, 100_000, 10_000)
    odd = replace(pull, first_frame_offset=0xFFFFFFFF, block_length=2)
    replies(world, odd)
    assert world.nodes[0].counters[Counter.DROP_PULL_BAD_REPLIES] == 0


def test_frames_that_count_as_received():
    """R-MEA-11: PULL_REPLY and NACK_MCP before any check, names before the source is looked up."""
    world = World()
    world.open(0)
    common = {"dst_mac": address(0), "src_mac": address(9)}
    world.inject(
        0,
        make_frame(HostQuery, common),
        make_frame(HostReply, common),
        make_frame(PullReply, common, dst_pull_handle=0, dst_magic=0),
        make_frame(NackMcp, common, dst_src_peer_index=99, nack_type=1, src_magic=0),
    )
    assert world.nodes[0].counters == {
        "Recv Host Query": 1,
        "Recv Host Reply": 1,
        "Drop Bad Peer Addr": 2,
        "Recv Pull Reply": 1,
        "Drop Pull Reply Bad Endpoint in Magic": 1,
        "Recv Nack MCP": 1,
    }


def test_undefined_bytes_are_zero_and_ignored():
    """D-8, R-EP-03: mxwire leaks nothing; bytes that others leak, also the generation, are ignored."""
    world = World()
    one, two, there, back = world.pair()
    one.send(there, b"x")
    world.settle()
    frame = bytearray(world.codec.build(world.sent(Tiny)[0]))
    assert frame[19] == 0 and not any(frame[41:])
    frame[19], frame[22:24], frame[24:26], frame[41:] = 0xEE, b"\xee\xee", b"\0\2", b"\xee" * 19
    receive = two.receive(bytearray(9), 0)
    again = two.receive(bytearray(9), 0)
    world.inject(1, bytes(frame))
    assert statuses(receive, again) == [Status.SUCCESS] * 2
    assert (again.length, back.rx_next) == (1, 3)


def test_a_full_ring_drops_every_type():
    """Section 21: the ring is tested last, and nothing is nacked (R-NAK-01)."""
    world = World(profile=replace(OPEN_MX_1_5, ring_size=0))
    one = world.open(0)
    nack = frame_to(one, NackLib, nack_type=2)
    ack = frame_to(one, Truc, liback_lib_seqnum=1, liback_session_id=one.session, liback_acknum=1, liback_send_seq=1)
    tiny = frame_to(one, Tiny)
    world.inject(0, nack, ack, tiny, tiny)
    world.settle()
    assert world.nodes[0].counters == {"Unexpected Event Queue Full": 4}
    assert not world.log


@pytest.mark.interpreted("replaces a method of a compiled class")
@given(
    changes=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "dst_src_peer_index",
                "dst_endpoint",
                "src_endpoint",
                "session",
                "length",
                "liback_type",
                "liback_session_id",
                "liback_lib_seqnum",
                "liback_acknum",
            ),
            st.sampled_from((lambda value: value + 1, lambda value: value - 1)),
        )
        | {"src_mac": st.just(lambda _: address(2))},
    ),
    cut=st.integers(40, 60),
    times=st.integers(1, 3),
)
@settings(max_examples=200)
def test_the_quick_path_takes_a_liback_as_the_other_does(changes, cut, times):
    """R-ACK-10: the same counters, answers and numbers."""
    seen = []
    for quick in (True, False):
        world = World()
        one, _, there, _ = world.pair()
        node = world.nodes[0]
        frame = frame_to(one, Truc, liback_lib_seqnum=there.tx_next + 1, liback_session_id=one.session, liback_acknum=1)
        for _ in range(4):
            one.send(there, b"x")
        node.transmit(world.now)
        with pytest.MonkeyPatch.context() as patch:
            if not quick:
                patch.setattr(HostInterface, "_take_quickly", lambda *_: False)
            changed = {name: change(getattr(frame, name)) for name, change in changes.items()}
            for each in (frame, replace(frame, **changed), replace(frame, liback_acknum=3)):
                built = world.codec.build(each)
                node.receive_few([built, *[built[:cut]] * times], world.now)
        answers = node.transmit(world.now)
        sent = [answers.frame(place) for place in range(len(answers))]
        seen.append((node.counters, there.liback_in, there.tx_una, len(there.deliveries), sent))
    assert seen[0] == seen[1]


def test_a_disconnect_may_forget_a_connect():
    """D-12, R-ORD-01: the request is answered and forgotten at once; only a new CONNECT helps."""
    world = World()
    one, two, _, back = world.pair()
    one.close()
    one = world.open(0)
    there = world.connect(one, two, 1)
    two.disconnect(back)
    receive = two.receive(bytearray(1), 1)
    one.send(there, b"x", 1)
    world.seconds(3)
    assert not receive.done
    assert not world.sent(NackLib)
    there.forget(Status.CANCELLED)
    there = world.connect(one, two, 1)
    one.send(there, b"x", 1)
    world.settle()
    assert receive.status is Status.SUCCESS


@pytest.mark.parametrize("passes", [True, False])
def test_tagged_frames_are_taken_like_others(passes):
    """R-MEA-06: where the card lets them pass; with another protocol behind the tag they are not MXoE."""
    world = World()
    one, two, there, _ = world.pair()
    world.nodes[1].interfaces[0].promiscuous = passes
    one.send(there, b"x")
    world.settle()
    raw = world.codec.build(replace(world.sent(Tiny)[0], lib_seqnum=2))
    receives = [two.receive(bytearray(1)) for _ in range(2)]
    world.inject(1, raw[:12] + b"\x81\0\0\5\x08\0" + raw[14:], raw[:12] + b"\x81\0\0\5" + raw[12:])
    assert [each.done for each in receives] == [True, passes]


def test_refused_senders_do_not_displace_the_known_ones():
    """The byte that no receiver reads, and the endpoint, make 65,536 senders of one host."""
    world = World()
    one, _, there, _ = world.pair()
    known = world.nodes[1].interfaces[0]._known
    one.send(there, b"from a real sender")
    world.settle()
    assert len(known) == 1
    (sent,) = world.sent(Tiny, 0)
    (real,) = known

    def others(session: int) -> list[bytes]:
        plain = build(replace(sent, session=session, lib_seqnum=5000), world.dialect)
        return [plain[:18] + number.to_bytes(2, "little") + plain[20:] for number in range(256, 1536)]

    for each in others(sent.session ^ 1):
        world.inject(1, each)
    assert list(known) == [real], "a frame with another session has made its sender known"
    for each in others(sent.session):
        world.inject(1, each)
        world.settle()
    assert len(known) == 1024 and real not in known
    one.send(there, b"another one")
    world.settle()
    assert len(known) == 1024 and real in known
    assert world.nodes[1].counters[Counter.DROP_RING_FULL] == 0
