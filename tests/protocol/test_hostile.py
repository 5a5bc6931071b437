"""Whatever arrives: no exception, bounded memory, and nothing of one endpoint in another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.protocol import Counter, Status
from mxwire.protocol.card.bulk import SHORTEST_RUN
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium, Notify, Pull, PullReply, Tiny

from .world import World, address, frame_to, pattern, statuses

CAPTURES = Path(__file__).parents[2] / "captures"


def traffic(dialect) -> list[bytes]:
    """The frames of a busy pair of hosts, as a quarry."""
    world = World(dialect=dialect)
    one, two, there, back = world.pair()
    for source, target, partner in ((one, two, there), (two, one, back)):
        for length in (0, 20, 100, 9000, 70000):
            target.receive(bytearray(length), length)
            source.send(partner, pattern(length), length)
    world.seconds(1)
    return [world.codec.build(line.frame) for line in world.log]


def mutate(random: Random, frame: bytes) -> bytes:
    changed = bytearray(frame)
    for _ in range(random.randrange(1, 4)):
        where = random.randrange(14, len(changed))
        changed[where] = random.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, random.randrange(256)))
    if random.random() < 0.1:
        del changed[random.randrange(15, len(changed)) :]
    return bytes(changed)


@pytest.mark.parametrize("profile", [OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND], ids=lambda each: each.name)
@pytest.mark.parametrize("dialect", [MXOE, omx(1500)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_mutated_traffic(dialect, profile, seed):
    """R-NAK-01, R-NAK-07, R-MEA-12: valid frames from a host that guesses sessions, and random bytes, while others
    talk.
    """
    random, quarry = Random(seed), traffic(dialect)
    world = World(dialect=dialect, profile=profile)
    one, two, there, _ = world.pair()
    bystander, other = world.open(0, 7), world.open(1, 8)
    to_other = world.connect(bystander, other, 1)
    world.connect(other, bystander, 0)
    sessions = [each.session for each in (one, two)]
    untouched = bytearray(64)
    waiting = bystander.receive(untouched, 0xABCDEF)
    for _ in range(60):
        one.receive(bytearray(50000), 0, 0)
        one.send(there, pattern(random.choice((1, 5000, 50000))))
        frames = []
        for _ in range(60):
            frame = random.choice(quarry)
            target = address(0) if frame[:6] == address(0) else address(1)
            frame = mutate(random, frame)
            for session in sessions:
                if random.random() < 0.5:
                    at = random.choice((20, 24, 36))
                    frame = frame[:at] + session.to_bytes(4, "big") + frame[at + 4 :]
            frames.append((target, (target + frame[6:])[: max(1, len(frame))]))
        for host in (0, 1):
            theirs = [frame for target, frame in frames if target == address(host)]
            world.nodes[host].receive(FrameBatch.from_frames(theirs), world.now)
        world.milliseconds(random.choice((0, 1, 600)))
    assert not waiting.done
    assert bytes(untouched) == bytes(64)
    world.seconds(2)
    # An attacker can teach a wrong index with any CONNECT; the next one teaches the right one again.
    world.connect(other, bystander, 0)
    world.connect(bystander, other, 1)
    probe = other.receive(bytearray(5), 99)
    bystander.send(to_other, b"hello", 99)
    world.seconds(2)
    assert probe.status is Status.SUCCESS


def test_random_bytes_under_a_valid_head():
    random = Random(1)
    world = World()
    one, _, _, _ = world.pair()
    head = address(0) + address(1) + b"\x86\xdf\0\1"
    frames = [head + random.randbytes(random.randrange(80)) for _ in range(4000)]
    frames += [b"", b"\2", head[:13], address(0) + address(1) + b"\x08\x00" + bytes(46)]
    world.nodes[0].receive(FrameBatch.from_frames(frames), world.now)
    world.seconds(1)
    assert one.open
    assert sum(world.nodes[0].counters.values()) >= 3900


def test_captures_of_other_hosts():
    """Frames to foreign addresses do not reach the driver, unless the card lets them pass (R-MEA-01)."""
    for promiscuous in (False, True):
        world = World()
        world.nodes[0].interfaces[0].promiscuous = promiscuous
        for path in sorted(CAPTURES.glob("mxoe-*.pcap"))[:6]:
            with open_capture(path) as capture:
                for batch in capture:
                    world.nodes[0].receive(batch, world.now)
        counted = {name for name, times in world.nodes[0].counters.items() if times}
        assert (counted - {"Recv Raw", "Drop Raw Queue Full"} != set()) is promiscuous


def conversation(one_by_one: bool, dialect):
    """A lossy conversation with everything in it; returns all that can be observed."""
    random = Random(5)
    world = World(dialect=dialect, one_by_one=one_by_one)
    one, two, there, back = world.pair()
    lost = {Medium: 7, PullReply: 11}

    def lose(_host, frame):
        if type(frame) not in lost:
            return False
        counts[type(frame)] += 1
        return counts[type(frame)] % lost[type(frame)] == 0

    counts = dict.fromkeys(lost, 0)
    world.lose = lose
    results = []
    for number in range(12):
        length = random.choice((0, 100, 5000, 20000, 32768, 70000, 300000))
        buffer = bytearray(length)
        receive = two.receive(buffer, number)
        send = one.send(there, pattern(length), number)
        world.seconds(3)
        results.append((bytes(buffer), statuses(send, receive)))
    return results, world, (there, back)


@pytest.mark.parametrize("dialect", [MXOE, omx(1500), omx(9000)], ids=str)
def test_batches_give_the_same_as_single_frames(dialect):
    """The bulk path and the scalar path: the same data, statuses, counters and numbers."""
    single, single_world, single_partners = conversation(True, dialect)
    bulk, bulk_world, bulk_partners = conversation(False, dialect)
    assert [each[1] for each in single] == [each[1] for each in bulk]
    assert all(one == two for one, two in zip(single, bulk, strict=True))
    for one, two in zip(single_partners, bulk_partners, strict=True):
        assert (one.tx_next, one.rx_next, one.rx_done) == (two.tx_next, two.rx_next, two.rx_done)
    received = Counter.RECV_PULL_REPLY
    assert single_world.nodes[1].counters[received] > 0
    assert bulk_world.nodes[1].counters[received] > 0


class Twins:
    """The same world twice: one gets its frames in batches, the other one by one."""

    def __init__(self, **options) -> None:
        self.worlds = [World(**options), World(**options)]
        self.pairs = [world.pair() for world in self.worlds]

    def inject(self, frames: list) -> None:
        """Let frames arrive at the first host; the counters must be the same afterwards."""
        bulk, single = self.worlds
        bulk.inject(0, *frames)
        for frame in frames:
            single.inject(0, frame)
        for world in self.worlds:
            world.settle()
        assert bulk.nodes[0].counters == single.nodes[0].counters
        assert self.answers(bulk) == self.answers(single)

    @staticmethod
    def answers(world: World) -> list:
        return [line.frame for line in world.log if line.host == 0]


def medium(one, two, **change) -> Medium:
    values = {
        "dst_mac": address(0),
        "src_mac": address(1),
        "dst_src_peer_index": 1,
        "dst_endpoint": one.number,
        "src_endpoint": two.number,
        "length": 40,
        "lib_seqnum": 1,
        "lib_piggyack": 1,
        "match_a": 0,
        "match_b": 0,
        "session": one.session,
        "frag_length": 10,
        "frag_seqnum": 0,
        "frag_pipeline": 12,
        "data": bytes(10),
    }
    return Medium(**{**values, **change})


ODD_MEDIUMS = [
    {},
    {"session": 1},
    {"dst_endpoint": 9},
    {"dst_endpoint": 99},
    {"dst_src_peer_index": 77},
    {"dst_src_peer_index": 0},
    {"frag_length": 5000},
    {"frag_length": 60},
    {"dst_mac": address(5)},
    {"dst_mac": b"\xff" * 6},
    {"src_endpoint": 30},
    {"lib_seqnum": 0x4001},
]


@pytest.mark.parametrize("change", ODD_MEDIUMS, ids=str)
def test_odd_fragments_in_a_run(change):
    """Section 21: in a run they are refused as they are alone."""
    twins = Twins()
    one, two = twins.pairs[0][:2]
    odd = medium(one, two, **change)
    twins.inject([medium(one, two, frag_seqnum=each) for each in range(3)] + [odd] * SHORTEST_RUN)
    twins.inject([odd] * 2 * SHORTEST_RUN)


def test_more_fragments_than_the_ring_has_room_for():
    twins = Twins(profile=replace(OPEN_MX_1_5, ring_size=3))
    for world, (one, *_) in zip(twins.worlds, twins.pairs, strict=True):
        one.progressing = False
        frames = [medium(one, twins.pairs[0][1], frag_seqnum=each) for each in range(6)]
        world.inject(0, *frames)
        assert world.nodes[0].counters["Unexpected Event Queue Full"] == 3


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"frame_seqnum": 9},
        {"msg_offset": 1},
        {"frame_length": 5000},
        {"frame_length": 100},
        {"dst_pull_handle": 1},
        {"dst_magic": 0x21071980 ^ 9},
        {"dst_mac": address(5)},
        {"frame_seqnum": 200, "msg_offset": 200 * 4096},
    ],
    ids=str,
)
@pytest.mark.parametrize("profile", [OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND], ids=lambda each: each.name)
def test_odd_pull_replies_in_a_run(change, profile):
    """R-PUL-05: in a run they are dropped as they are alone."""
    twins = Twins(profile=profile)
    for world, (one, two, _, back) in zip(twins.worlds, twins.pairs, strict=True):
        world.lose = lambda _host, frame: type(frame) is PullReply
        one.receive(bytearray(300000))
        two.send(back, pattern(300000))
        world.settle()
    replies = [line.frame for line in twins.worlds[0].log if type(line.frame) is PullReply]
    odd = replace(replies[5], **change)
    twins.inject([*replies[2:9], *[odd] * 5, *replies[9:], odd, *replies[:4], *replies[:12]])


def test_a_reply_that_leads_out_of_the_buffer_ends_the_pull():
    """R-PUL-05, R-MEA-08: message aborted, a NOTIFY of 0."""
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two, _, back = world.pair()
    world.lose = lambda _host, frame: type(frame) is PullReply
    receive = one.receive(bytearray(40000))
    two.send(back, pattern(40000))
    world.settle()
    reply = next(each for each in world.sent(PullReply) if each.frame_seqnum == 9)
    longer = replace(reply, frame_length=4096, data=bytes(4096))
    world.inject(0, *[reply] * SHORTEST_RUN, longer)
    assert not receive.done
    world.inject(0, *[replace(reply, frame_seqnum=8, msg_offset=8 * 4096 + 4000 - 8 * 4096 - 4000)] * 1)
    pulls = {each.frame_index for each in world.sent(Pull)}
    assert pulls == {0, 8}
    wide = replace(reply, frame_seqnum=8, msg_offset=8 * 4096, frame_length=8000, data=bytes(8000))
    world.inject(0, wide)
    world.settle()
    assert receive.status is Status.MESSAGE_ABORTED
    assert world.sent(Notify)[-1].total_length == 0


def test_early_packets_do_not_pile_up():
    """R-ORD-03: an attacker can store 255 messages a partner at most."""
    world = World()
    one, _, there, _ = world.pair()
    tiny = world.codec.build(frame_to(one, Tiny))
    numbers = np.arange(2, 0x3FFF)
    world.inject(0, *(tiny[:24] + int(each).to_bytes(2, "big") + tiny[26:] for each in numbers))
    assert len(there.window.early) == 255


def test_early_packets_keep_only_the_memory_that_is_accounted_for():
    """R-ORD-03: a frame may be 100 times as long as its message."""
    world = World()
    one, _, there, _ = world.pair()
    tiny = frame_to(one, Tiny, lib_seqnum=9, length=1, data=b"x")
    medium = frame_to(one, Medium, lib_seqnum=10, length=8, frag_length=2, frag_pipeline=12, data=b"xy")
    frames = [world.codec.build(each).ljust(8000, b"\0") for each in (tiny, medium)]
    world.nodes[0].receive_few(frames, world.now)
    kept = [each for early in there.window.early.values() for each in early]
    assert [each.data for each in kept] == [b"x", b"xy"]
    assert sum(len(each.packet) for each in kept) <= one.early_bytes < 200
