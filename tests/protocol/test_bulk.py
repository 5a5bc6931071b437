"""The bulk path and the scalar path: the same frames in the same pass, whatever they are and however they lie."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.protocol import Counter, Node, Status
from mxwire.protocol.card import bulk
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, Profile
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import Medium, Pull, PullReply, Truc

from .world import World, address, frame_to, pattern, pullable, statuses

NEVER = 1 << 30


class Paths:
    """The same world twice: the second host of one takes runs at once, that of the other each frame by itself."""

    def __init__(self, monkeypatch, **options) -> None:
        self._monkeypatch = monkeypatch
        self.worlds = [World(**options), World(**options)]
        self.pairs = [world.pair() for world in self.worlds]

    def receive(self, batch: FrameBatch, host: int = 1) -> None:
        for world, shortest in zip(self.worlds, (bulk.SHORTEST_RUN, NEVER), strict=True):
            with self._monkeypatch.context() as patch:
                patch.setattr(bulk, "SHORTEST_RUN", shortest)
                buffer = batch.buffer.copy()
                world.nodes[host].receive(replace(batch, buffer=buffer), world.now)
                buffer[:] = 0xEE

    def compare(self) -> None:
        """Everything that can be seen of the hosts is the same."""
        for world in self.worlds:
            world.settle()
        one, two = self.worlds
        assert [each.counters for each in one.nodes] == [each.counters for each in two.nodes]
        assert [(each.time, each.frame) for each in one.log] == [(each.time, each.frame) for each in two.log]
        for mine, other in zip(self.pairs[0][2:], self.pairs[1][2:], strict=True):
            assert repr(mine) == repr(other)
            assert (mine.rx_acked, len(mine.incomplete), set(mine.window.early)) == (
                other.rx_acked,
                len(other.incomplete),
                set(other.window.early),
            )
            assert mine.acks.state is other.acks.state


def spread(frames: list[bytes], random: Random) -> FrameBatch:
    """A batch of frames in a buffer of any layout: dense, evenly spaced, at random, in decreasing order."""
    layout = random.randrange(4)
    slot = max(map(len, frames)) + random.choice((0, 0, 7, 500))
    if layout == 0:
        return FrameBatch.from_frames(frames)
    if layout == 1:
        starts = [place * slot for place in range(len(frames))]
    elif layout == 2:
        starts = list(np.cumsum([0] + [len(each) + random.randrange(9) for each in frames[:-1]]))
    else:
        starts = [(len(frames) - 1 - place) * slot for place in range(len(frames))]
    lead = random.choice((0, 0, 1, 33))
    starts = [int(each) + lead for each in starts]
    size = max(start + len(frame) for start, frame in zip(starts, frames, strict=True))
    buffer = np.frombuffer(random.randbytes(size), np.uint8).copy()
    for start, frame in zip(starts, frames, strict=True):
        buffer[start : start + len(frame)] = np.frombuffer(frame, np.uint8)
    length = np.array([len(each) for each in frames], np.int64)
    count = np.arange(len(frames), dtype=np.int64)
    return FrameBatch(buffer, np.array(starts, np.int64), length, length, np.zeros(len(frames), np.int64), count + 1)


def shaken(frames: list[bytes], random: Random) -> list[bytes]:
    """Frames in another order, twice, not at all, cut, or with a byte changed."""
    frames = list(frames)
    for _ in range(random.randrange(4)):
        how, place = random.randrange(6), random.randrange(len(frames))
        if how == 0:
            other = random.randrange(len(frames))
            frames[place], frames[other] = frames[other], frames[place]
        elif how == 1:
            frames[place:place] = frames[place : place + random.randrange(1, 6)]
        elif how == 2 and len(frames) > 5:
            del frames[place : place + random.randrange(1, 4)]
        elif how == 3:
            frames[place] = frames[place][: random.randrange(17, len(frames[place]) + 1)]
        elif how == 4:
            changed = bytearray(frames[place])
            value = random.choice((0, 1, 2, 0x7F, 0xFF, random.randrange(256)))
            changed[random.randrange(min(32, len(changed)))] = value
            frames[place] = bytes(changed)
        else:
            frames[place : place + 12] = sorted(frames[place : place + 12], key=lambda _: random.random())
    return frames


def raw(world: World, kind, host: int) -> list[bytes]:
    return [world.codec.build(each) for each in world.sent(kind, host)]


CASES = [
    (MXOE, OPEN_MX_1_5),
    (MXOE, NATIVE_MX),
    (MXOE, OPEN_MX_1_5_AS_FOUND),
    (omx(1500), OPEN_MX_1_5),
    (omx(9000), OPEN_MX_1_5_AS_FOUND),
]


@pytest.mark.parametrize(("dialect", "profile"), CASES, ids=lambda each: getattr(each, "name", str(each)))
@pytest.mark.parametrize("seed", range(12))
def test_mediums(dialect: Dialect, profile: Profile, seed: int, monkeypatch):
    """R-MED-01 to R-MED-05, R-ORD-03, R-ORD-04, R-ACK-02: several messages, shaken, in one batch after the other."""
    random = Random(seed)
    paths = Paths(monkeypatch, dialect=dialect, profile=profile)
    lengths = [random.choice((129, 5000, 9000, 20000, 32768)) for _ in range(random.randrange(1, 6))]
    results = []
    for world, (one, two, there, _) in zip(paths.worlds, paths.pairs, strict=True):
        world.lose = lambda _host, frame: type(frame) is Medium
        posted = [bytearray(length - 9) for length in lengths[::2]]
        results.append([(buffer, two.receive(buffer, 0, 0)) for buffer in posted])
        for length in lengths:
            one.send(there, pattern(length), length)
        world.settle()
    for _ in range(3):
        frames = raw(paths.worlds[0], Medium, 0)
        frames = shaken(frames, random) if frames else frames
        cut = random.randrange(len(frames) + 1)
        for part in (frames[:cut], frames[cut:]):
            if part:
                paths.receive(spread(part, random))
        paths.compare()
    for mine, other in zip(*results, strict=True):
        assert (bytes(mine[0]), mine[1].status) == (bytes(other[0]), other[1].status)


def pulls_under_way(paths: Paths, lengths: list[int], segments: int, shorter: int) -> list[list]:
    """Large messages whose PULL_REPLYs are all lost; returns memory and receives."""
    results = []
    for world, (one, two, there, _) in zip(paths.worlds, paths.pairs, strict=True):
        world.lose = lambda _host, frame: type(frame) is PullReply
        kept = []
        for place, length in enumerate(lengths):
            room = max(1, length - shorter)
            sizes = [room // segments] * (segments - 1)
            pieces = [bytearray(each) for each in [*sizes, room - sum(sizes)]]
            kept.append((pieces, two.receive(pieces, place)))
            one.send(there, pattern(length, place), place, synchronous=True)
        results.append(kept)
        world.settle()
    return results


@pytest.mark.parametrize(("dialect", "profile"), CASES, ids=lambda each: getattr(each, "name", str(each)))
@pytest.mark.parametrize("seed", range(12))
def test_pull_replies(dialect: Dialect, profile: Profile, seed: int, monkeypatch):
    """R-PUL-02, R-PUL-05 to R-PUL-08, R-PUL-10: several transfers, shaken and interleaved, until all have ended."""
    random = Random(seed)
    region_offset = random.choice((profile.region_offset, 0, 100, 4095, 5000))
    paths = Paths(monkeypatch, dialect=dialect, profile=replace(profile, region_offset=region_offset))
    payload = dialect.reply_payload
    lengths = [
        random.choice((1, payload, 5 * payload, dialect.block_length, 6 * dialect.block_length))
        + random.choice((0, 1, 77))
        for _ in range(random.randrange(1, 4))
    ]
    results = pulls_under_way(paths, lengths, random.choice((1, 1, 3)), random.choice((0, 0, 1, 5000)))
    for round_ in range(60):
        first = paths.worlds[0]
        frames = raw(first, PullReply, 0)
        for world in paths.worlds:
            world.clear()
        if frames:
            if random.random() < 0.5:
                frames = [each for pair in zip(frames[::2], frames[1::2], strict=False) for each in pair[::-1]]
            frames = shaken(frames, random) if frames and round_ < 20 else frames
            if frames:
                paths.receive(spread(frames, random))
        paths.compare()
        if all(each[1].done for each in results[0]) and not frames:
            break
        for world in paths.worlds:
            world.seconds(0.3)
    for mine, other in zip(*results, strict=True):
        assert [bytes(each) for each in mine[0]] == [bytes(each) for each in other[0]]
        assert mine[1].status is other[1].status
    if profile is OPEN_MX_1_5:
        expected = [
            pattern(length, place)[: sum(map(len, results[0][place][0]))] for place, length in enumerate(lengths)
        ]
        assert [b"".join(each[0]) for each in results[0]] == expected


def test_frame_numbers_wrap_around(monkeypatch):
    """R-PUL-05, R-PUL-13: 8 bits of number for more than a thousand frames, taken a batch at a time."""
    world = World(dialect=omx(1500))
    one, two, there, _ = world.pair()
    data, buffer = pattern(1468 * 1100 + 5), bytearray(1468 * 1100 + 5)
    receive = two.receive(buffer)
    one.send(there, data)
    world.settle()
    assert receive.status is Status.SUCCESS
    assert bytes(buffer) == data
    numbers = [each.frame_seqnum for each in world.sent(PullReply)]
    assert numbers == [each & 0xFF for each in range(1101)]


@pytest.mark.parametrize("region_offset", [0, 1, 100, 4095, 4096, 5000])
@pytest.mark.parametrize("profile", [OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(5))
def test_replies_to_many_pulls_are_those_to_each(region_offset, profile, seed):
    """R-PUL-12, R-PUL-13: also where blocks start within their first frame, overlap, come twice or wrap around."""
    random = Random(seed)
    world = World(profile=replace(profile, region_offset=region_offset))
    base = pullable(world, 300_000)
    pulls, at = [], 0
    for _ in range(60):
        offset = random.choice((0, 0, 0, 1, 100, 4095, 4096, 5000))
        frames = random.randrange(1, 8)
        length = frames * 4096 - random.choice((0, offset % 4096, 1))
        at = random.choice((at, at, at, random.randrange(80), (1 << 20) + random.randrange(4), (1 << 32) - 1))
        pulls.append(replace(base, frame_index=at & 0xFFFFFFFF, first_frame_offset=offset, block_length=length))
        at += -(-(offset + length) // 4096)
    each_by_itself: list[PullReply] = []
    for pull in pulls:
        world.inject(0, pull)
        world.settle()
    each_by_itself = world.sent(PullReply)
    world.clear()
    world.inject(0, *pulls)
    world.settle()
    assert world.sent(PullReply) == each_by_itself
    assert len(each_by_itself) > 50


def test_a_block_behind_one_that_starts_within_its_first_frame():
    """R-PUL-13: the second block starts at its offset, not behind the data of the first one."""
    world = World()
    pull = replace(pullable(world, 100_000), first_frame_offset=100, block_length=8092)
    world.inject(0, pull, replace(pull, frame_index=2))
    world.settle()
    data = pattern(100_000)
    got = [(each.msg_offset, each.data) for each in world.sent(PullReply)]
    assert got == [
        (start, data[start:end]) for start, end in ((100, 4096), (4096, 8192), (8292, 12288), (12288, 16384))
    ]


def test_a_frame_too_long_for_its_length_field():
    """D-15, R-MEA-04: a block in one frame is only answered where the frame can express its length."""
    world = World(dialect=omx(9000), profile=OPEN_MX_1_5_AS_FOUND)
    pull = replace(pullable(world, 500_000), first_frame_offset=9000, block_length=0xFFFF)
    world.inject(0, pull)
    world.settle()
    assert world.sent(PullReply)[0].frame_length == 0xFFFF
    world.clear()
    world.inject(0, replace(pull, block_length=0x10000))
    world.settle()
    assert not world.sent(PullReply)
    assert world.nodes[0].counters[Counter.DROP_PULL_BAD_RANGE] == 1


def test_fragments_of_two_hosts_in_one_run(monkeypatch):
    """R-NAK-02, D-6: each fragment has to come from the address that its index designates."""
    world = World(hosts=3)
    one, two, there, _ = world.pair()
    world.lose = lambda _host, frame: type(frame) is Medium
    receive = two.receive(bytearray(40000))
    one.send(there, pattern(32768))
    world.settle()
    frames = world.sent(Medium)
    frames[3] = replace(frames[3], src_mac=address(2))
    world.inject(1, *frames)
    assert not receive.done
    assert world.nodes[1].counters[Counter.DROP_BAD_PEER_INDEX] == 1


def test_the_rest_of_a_medium_that_is_complete_is_acked_at_once():
    """R-ORD-03: fragments behind the last one that was missing are duplicates of the number before."""
    world = World()
    one, two, there, _ = world.pair()
    missing = [4]

    def lose(_host, frame):
        missing[0] -= type(frame) is Medium
        return type(frame) is Medium and missing[0] >= 0

    world.lose = lose
    receive = two.receive(bytearray(32768))
    one.send(there, pattern(32768))
    world.settle()
    world.lose = lambda *_: False
    world.clear()
    world.milliseconds(520)
    assert receive.status is Status.SUCCESS
    assert world.times(Truc)[0] - world.times(Medium)[-1] < 5_000_000


def test_replies_that_wait_to_leave_are_bounded():
    """Section 14.2: what a flood of PULLs asks for is only answered as far as there is memory."""
    world = World(profile=replace(OPEN_MX_1_5, reply_bytes_maximum=1_000_000))
    pull = replace(pullable(world, 100_000), block_length=32768)
    world.inject(0, *[pull] * 2000)
    node: Node = world.nodes[0]
    assert len(node.transmit(world.now).buffer) < 1_100_000
    assert node.counters[Counter.DROP_REPLIES_FULL] == 2000 - 1_000_000 // 32768
    world.inject(0, pull)
    world.settle()
    assert len(world.sent(PullReply)) == 8


def test_early_packets_take_bounded_memory():
    """R-ORD-03: what there is no memory for comes again."""
    world = World(profile=replace(OPEN_MX_1_5, early_bytes_maximum=100_000))
    one, two, there, back = world.pair()
    lost = [8]

    def lose(_host, frame):
        lost[0] -= type(frame) is Medium
        return type(frame) is Medium and lost[0] >= 0

    world.lose = lose
    receives = [two.receive(bytearray(32768)) for _ in range(10)]
    for place in range(10):
        one.send(there, pattern(32768, place))
    world.settle()
    assert 0 < two.early_bytes <= 100_000
    assert world.nodes[1].counters[Counter.DROP_EARLY_FULL] > 0
    assert len(back.window.early) < 9
    world.seconds(5)
    assert statuses(*receives) == [Status.SUCCESS] * 10
    assert two.early_bytes == 0


def test_numbers_do_not_wrap_around_an_incomplete_medium():
    """R-SEQ-02, R-MED-05: after 2^14 numbers the oldest and the newest could not be distinguished."""
    world = World()
    _, two, _, back = world.pair()
    fragment = frame_to(two, Medium, source=1, host=1, length=200, frag_pipeline=12, data=b"x")
    receives = [two.receive(bytearray(2)) for _ in range(17000)]
    for first in range(1, 17000, 200):
        world.inject(1, *(replace(fragment, lib_seqnum=each & 0x3FFF) for each in range(first, first + 200)))
    assert back.rx_done == 1 and back.rx_next == 0
    assert two.matching.posted == 17000 - 0x3FFF
    two.close()
    assert all(each.done for each in receives)


def requests_in_turn(base: Pull, dialect: Dialect, random: Random) -> list[Pull]:
    """PULLs for blocks of two transfers, most of which follow each other, and some of which are wrong."""
    found = []
    step, full = dialect.frames_per_block, dialect.block_length
    for handle in (1, 2, 1):
        first = random.choice((0, 0, 1, step, 3 * step, (1 << 32) - step))
        for place in range(random.randrange(1, 8)):
            pull = replace(
                base,
                src_pull_handle=handle,
                first_frame_offset=0,
                frame_index=(first + place * step) % (1 << 32),
                block_length=full,
            )
            wrong = random.choice(
                [{}] * 12
                + [
                    {"block_length": random.choice((0, 1, full - 1, full // 2))},
                    {"first_frame_offset": random.choice((1, dialect.reply_payload - 1, dialect.reply_payload))},
                    {"frame_index": random.randrange(100)},
                    {"session": 1},
                    {"dst_endpoint": 9},
                    {"pulled_rdma_id": 99},
                    {"dst_src_peer_index": 7},
                    {"pulled_rdma_offset": random.randrange(5000)},
                ]
            )
            found.append(replace(pull, **wrong))
    return found


@pytest.mark.parametrize(("dialect", "profile"), CASES, ids=lambda each: getattr(each, "name", str(each)))
@pytest.mark.parametrize("seed", range(12))
def test_pulls(dialect: Dialect, profile: Profile, seed: int, monkeypatch):
    """R-PUL-12 to R-PUL-15, R-NAK-01: PULLs that follow each other are answered, refused and dropped as each alone."""
    random = Random(seed)
    paths = Paths(monkeypatch, dialect=dialect, profile=profile)
    bases = []
    for world, (one, two, there, _) in zip(paths.worlds, paths.pairs, strict=True):
        world.lose = lambda _host, frame: type(frame) in (Pull, PullReply)
        two.receive(bytearray(6 * dialect.block_length + 5))
        one.send(there, pattern(6 * dialect.block_length + 5))
        world.settle()
        bases.append(world.sent(Pull)[0])
    assert bases[0] == bases[1]
    for _ in range(4):
        frames = [paths.worlds[0].codec.build(each) for each in requests_in_turn(bases[0], dialect, random)]
        paths.receive(spread(shaken(frames, random), random), 0)
        paths.compare()
    assert paths.worlds[0].sent(PullReply)


@pytest.mark.interpreted("it replaces a method")
def test_pulls_that_follow_each_other_are_parsed_once(monkeypatch):
    world = World()
    base = replace(pullable(world, 4 * MXOE.block_length), block_length=MXOE.block_length)
    taken = []
    interface = world.nodes[0].interfaces[0]
    monkeypatch.setattr(interface, "take", lambda frame, _now: taken.append(frame))
    world.inject(0, *(replace(base, frame_index=place * MXOE.frames_per_block) for place in range(4)))
    world.settle()
    assert not taken and len(world.sent(PullReply)) == 32
    region = interface.endpoints[base.dst_endpoint].regions.at(base.pulled_rdma_id)
    assert region is not None and region.requested == 4 * MXOE.block_length
