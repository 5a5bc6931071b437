"""Runs of plain frames followed by columns: the same marks, messages and state as frame by frame."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from random import Random
from types import FunctionType, MethodType
from unittest.mock import Mock, patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import (
    Follower,
    acks,
    direction_table,
    numbered_packets,
    plain_lanes,
    plain_run,
    run_messages,
    state,
    streams,
)
from mxwire.analysis.conversations import follower as follower_module
from mxwire.frames import FrameBatch
from mxwire.simulation import Simulation, draw_scenario
from mxwire.wire.codec import build
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.numbers import NO_SESSION, NUMBER_MASK, SESSION_NUMBER_MASK
from mxwire.wire.packets import ConnectReply, ConnectRequest, NackLib, Notify, Rndv, Small, Tiny, Truc
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture

NEVER = {"LEAST": 1 << 60}
ALWAYS = {"LEAST": 1, "SKIPPED": 1, "MOST_SKIPPED": 2, "PER_LANE": 1}
"""A run of a single frame is followed by columns, so that each frame may be the last of one."""
FOLLOWERS = ({"marks": True, "messages": False}, {"marks": True, "facts": True}, {})
OMITTED = {"_plain", "_decoded", "_handlers", "_pending", "_dialects", "marks", "take_replies", "place", "in_turn"}
"""Attributes that differ, or that hold the last batch."""
ENDS = "src_mac", "dst_mac", "src_endpoint", "dst_endpoint"
NEW_SESSION = 0x4000
DISTURBANCES = (
    "lose", "double", "swap", "resend", "restart", "wait", "back", "cut", "announce", "end", "end", "refuse", "unknown"
)  # fmt: skip


NAMED = FunctionType, MethodType, type
SIMPLE = int, str, bytes, type(None)
PLAIN = {*SIMPLE, bool}


@cache
def slots_of(kind: type) -> tuple[str, ...]:
    """The slots of a class that are compared."""
    return tuple(sorted({name for each in kind.__mro__ for name in getattr(each, "__slots__", ())} - OMITTED))


def state_of(*roots: object) -> list[object]:
    """Everything reachable from objects, in an order that depends on their structure alone."""
    numbers: dict[int, int] = {}
    kept: list[object] = []

    def reference(value):
        if value.__class__ in PLAIN or isinstance(value, SIMPLE):
            return value
        if isinstance(value, NAMED):
            return value.__name__
        if isinstance(value, np.ndarray):
            return value.tolist()
        number = numbers.setdefault(id(value), len(kept))
        if number == len(kept):
            kept.append(value)
        return (number,)

    found = [[reference(each) for each in roots]]
    for value in kept:
        if isinstance(value, Counter):
            found.append(sorted(value.items()))
        elif isinstance(value, dict):
            found.append([(reference(key), reference(each)) for key, each in value.items()])
        elif isinstance(value, list | tuple | deque):
            found.append([reference(each) for each in value])
        elif isinstance(value, set):
            found.append(sorted(value))
        else:
            names = slots_of(type(value))
            if hasattr(value, "__dict__"):
                names = tuple(sorted({*names, *vars(value)} - OMITTED))
            attributes = [getattr(value, name, None) for name in names]
            # Most are plain: a call for each would take half of the time.
            found.append([names, [each if each.__class__ in PLAIN else reference(each) for each in attributes]])
    return found


@contextmanager
def bounds(**values: int) -> Iterator[None]:
    """Replace constants of the modules wherever they are imported."""
    plain = plain_lanes, plain_run, direction_table, run_messages
    modules = *plain, state, streams, acks, numbered_packets, follower_module
    found = [
        patch.object(module, name, each) for name, each in values.items() for module in modules if hasattr(module, name)
    ]
    for each in found:
        each.start()
    try:
        yield
    finally:
        for each in found:
            each.stop()


def follow(batches: list[DecodedBatch], how: dict[str, int], options: dict[str, bool]) -> list[object]:
    """Marks per batch, and the whole state before and after the end of the capture."""
    with bounds(**how):
        follower, messages, marks = Follower(**options), [], []
        for each in batches:
            messages.append(follower.observe(each))
            if options.get("marks"):
                taken = follower.take_marks(each)
                arrays = taken.message, taken.role, taken.flags, taken.repeat, taken.acknowledges, taken.acks
                marks.append([*(array.tolist() for array in arrays), sorted(taken.late)])
        if not options.get("messages", True):
            # Creates the messages that were not needed so far.
            follower.wait_until(0)
            return [marks, state_of(follower)]
        return [marks, state_of(follower, messages), state_of(follower, messages, follower.finish())]


def cut(batches: list[DecodedBatch], random: Random) -> list[DecodedBatch]:
    """The same frames in other batches."""
    found = []
    for each in batches:
        place = 0
        while place < len(each):
            end = min(len(each), place + random.choice((1, 3, 20, 100, 1000)))
            found.append(each.select(np.arange(place, end)))
            place = end
    return found


def compare(batches: list[DecodedBatch]) -> None:
    for options in FOLLOWERS:
        expected, found = (follow(batches, how, options) for how in (NEVER, ALWAYS))
        for one, other in zip(expected, found, strict=True):
            assert one == other


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_capture_is_followed_as_frame_by_frame(capture):
    compare(cut(decoded([read_capture(capture)], dialect_of(capture)), Random(capture)))


@pytest.mark.parametrize("seed", range(8))
def test_a_simulated_run_is_followed_as_frame_by_frame(seed):
    decoder, batches = Decoder(), []
    Simulation(draw_scenario(seed), lambda batch: batches.append(decoder.decode(batch))).run()
    compare(batches)


class Sender:
    """One direction of generated traffic."""

    def __init__(self, random: Random, here: int, there: int) -> None:
        self.ends = {
            "src_mac": bytes([2, 0, 0, 0, 0, here]), "dst_mac": bytes([2, 0, 0, 0, 0, there]),
            "src_endpoint": here, "dst_endpoint": there, "dst_src_peer_index": 0, "session": 0x5E55 + there,
        }  # fmt: skip
        self.next = random.choice((1, 7, 0x0F00, NUMBER_MASK - 30, NEW_SESSION | NUMBER_MASK - 3))
        self.open = 0
        """Number of messages that are not acknowledged."""
        self.libacks = 0
        self.regions: list[int] = []
        """Counters of large messages without a NOTIFY."""

    def consume(self) -> int:
        """Return the next sequence number."""
        number = self.next
        self.next = self.next + 1 & NUMBER_MASK | self.next & SESSION_NUMBER_MASK
        self.open += 1
        return number

    def announce(self, counter: int, ack: int) -> Rndv:
        self.regions.append(counter)
        return Rndv(
            **self.ends, lib_seqnum=self.consume(), lib_piggyack=ack, msg_length=40_000, match_a=0, match_b=0,
            pulled_rdma_id=1, pulled_rdma_seqnum=counter, pulled_rdma_offset=0,
        )  # fmt: skip

    def end(self, counter: int, ack: int) -> Notify:
        return Notify(
            **self.ends, lib_seqnum=self.consume(), lib_piggyack=ack, total_length=0, pulled_rdma_id=1,
            pulled_rdma_seqnum=counter,
        )  # fmt: skip

    def refuse(self, number: int) -> NackLib:
        ends = {name: each for name, each in self.ends.items() if name != "session"}
        return NackLib(**ends, nack_type=1, dst_src_peer_index_copy=0, lib_seqnum=number)

    def acknowledge(self, random: Random) -> int:
        """Acknowledge some messages, mostly all; return the number for the wire."""
        if random.random() < 0.3:
            self.open = random.randrange(self.open + 1)
        elif random.random() < 0.8:
            self.open = 0
        return self.next - self.open & NUMBER_MASK | self.next & SESSION_NUMBER_MASK

    def send(self, random: Random, ack: int) -> Tiny | Small:
        number, length = self.consume(), random.choice((0, 8, 32, 33, 100))
        return (Tiny if length <= 32 else Small)(
            **self.ends, lib_seqnum=number, lib_piggyack=ack, length=length, data=bytes(length), checksum=0,
            match_a=random.choice((0, 1)), match_b=number,
        )  # fmt: skip

    def liback(self, ack: int) -> Truc:
        self.libacks += 1
        return Truc(
            **self.ends, liback_session_id=self.ends["session"], liback_lib_seqnum=ack, liback_acknum=self.libacks,
            liback_send_seq=ack,
        )  # fmt: skip


def traffic(random: Random, count: int, faults: float) -> FrameBatch:
    """TINYs, SMALLs and libacks of a host with some others; every one in ``1 / faults`` frames is disturbed."""
    peers = range(2, 2 + random.choice((1, 2, 7, 90)))
    pairs = [(Sender(random, *ends), Sender(random, *ends[::-1])) for ends in ((1, peer) for peer in peers)]
    sent, pace = random.choice((0.5, 0.9)), random.choice((1, 1000))
    made: list[tuple[bytes, int]] = []
    now = 10**18
    if random.random() < 0.5:
        made += [(build(frame, MXOE), now) for pair in pairs for frame in connect(*pair)]
    while len(made) < count:
        now += pace * random.choice((0, 1_000, 1_000, 50_000))
        one, other = random.choice(pairs)[:: random.choice((1, -1))]
        ack = other.acknowledge(random)
        frame = one.send(random, ack) if random.random() < sent else one.liback(ack)
        made.append((build(frame, MXOE), now))
        if random.random() < faults:
            now = disturb(random, made, one, other, now)
    data, times = zip(*made, strict=True)
    return FrameBatch.from_frames(data, times, first_number=1)


def connect(one: Sender, other: Sender) -> Iterator[ConnectRequest | ConnectReply]:
    """Both connects of two hosts."""
    for here, there in ((one, other), (other, one)):
        common = {"src_dst_peer_index": 0, "target_recv_seqnum_start": there.next, "connect_seqnum": 0}
        ours, theirs = ({name: each for name, each in end.ends.items() if name in ENDS} for end in (here, there))
        yield ConnectRequest(**ours, **common, src_session_id=there.ends["session"], app_key=1)
        common["target_recv_seqnum_start"] = here.next
        yield ConnectReply(
            **theirs, **common, src_session_id=there.ends["session"], target_session_id=here.ends["session"],
            connect_status_code=0,
        )  # fmt: skip


def disturb(random: Random, made: list[tuple[bytes, int]], one: Sender, other: Sender, now: int) -> int:
    """Damage the end of the traffic, or add a frame of another kind; return the time."""
    data, time = made[-1]
    ack = other.acknowledge(random)
    match random.choice(DISTURBANCES):
        case "announce":
            made.append((build(one.announce(len(made) & 0xFF, ack), MXOE), now))
        case "end" if other.regions:
            made.append((build(one.end(other.regions.pop(random.randrange(len(other.regions))), ack), MXOE), now))
        case "refuse":
            number = other.next - random.randrange(other.open + 2) & NUMBER_MASK | other.next & SESSION_NUMBER_MASK
            made.append((build(one.refuse(number), MXOE), now))
        case "unknown":
            made.append((build(replace(one.send(random, ack), session=NO_SESSION), MXOE), now))
        case "lose" if len(made) > 1:
            made.pop()
        case "double":
            made.append(made[-1])
        case "swap" if len(made) > 1:
            made[-2:] = (data, made[-2][1]), (made[-2][0], time)
        case "resend":
            now += 600_000_000
            made.append((random.choice(made[-20:])[0], now))
        case "restart":
            one.next = (one.next & SESSION_NUMBER_MASK) + NEW_SESSION & SESSION_NUMBER_MASK | 1
            one.open = 0
        case "wait":
            now += 3 * 10**9
        case "back":
            made[-1] = data, time - 30_000
        case "cut":
            made[-1] = data[:24], time
    return now


small_bounds = st.fixed_dictionaries(
    {
        "LINGERING": st.sampled_from((20, 60, 8192)),
        "KEPT_BEHIND": st.sampled_from((3, 10)),
        "KEPT_IN_ALL": st.sampled_from((10, 1 << 17)),
        "OUTSTANDING_MAXIMUM": st.sampled_from((8, 15, 8191)),
        "IN_FLIGHT": st.sampled_from((30, 1 << 16)),
        "LINGER_NS": st.sampled_from((500_000, 10_000_000, 1_200_000_000)),
    }
)


OUT_OF_TURN = {
    "LINGERING": 20,
    "KEPT_BEHIND": 3,
    "OUTSTANDING_MAXIMUM": 8191,
    "IN_FLIGHT": 1 << 16,
    "LINGER_NS": 500_000,
}
"""Large and refused messages are reported long before or after their neighbours."""


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((0, 0.01, 0.1)), small_bounds)
@example(247, 0.05, OUT_OF_TURN)
@example(315, 0.05, OUT_OF_TURN)
def test_generated_traffic_is_followed_as_frame_by_frame(seed, faults, limits):
    """With small bounds, so that messages are reported, forgotten and evicted for all reasons in a short capture."""
    random = Random(seed)
    batches = decoded([traffic(random, 400, faults)], MXOE)
    room, entries = limits["LINGERING"] // 4, limits["OUTSTANDING_MAXIMUM"] + limits["KEPT_BEHIND"]
    with bounds(**limits, ROOM=room, ENTRIES=entries):
        compare(cut(batches, random))
        compare(batches)


rounds = st.lists(
    st.tuples(
        st.integers(1, 60), st.sampled_from(("repeat", "resend", "restart", "refuse", "wait")), st.integers(0, 200)
    ),
    min_size=2,
    max_size=8,
)
"""Per round: number of plain frames, then what follows singly, and how many frames before it concerns."""


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), rounds, small_bounds)
def test_late_frames_find_the_messages_that_runs_did_not_create(seed, rounds, limits):
    """Duplicates, old acks, retransmissions and nacks of messages that several runs settled, and restarts."""
    random, made, now = Random(seed), [], 10**18
    ends = Sender(random, 1, 2), Sender(random, 2, 1)
    for count, event, back in rounds:
        for _ in range(count):
            now += 1000
            one, other = random.choice((ends, ends[::-1]))
            ack = other.acknowledge(random)
            made.append((build(one.send(random, ack) if random.random() < 0.8 else one.liback(ack), MXOE), now))
        match event:
            case "repeat" | "resend":
                now += 600_000_000 * (event == "resend")
                made.append((made[-1 - back % len(made)][0], now))
            case "restart":
                one.next, one.open = one.next + NEW_SESSION & SESSION_NUMBER_MASK | 1, 0
            case "refuse":
                number = other.next - back & NUMBER_MASK | other.next & SESSION_NUMBER_MASK
                made.append((build(one.refuse(number), MXOE), now))
            case _:
                now += back * 10**7
    data, times = zip(*made, strict=True)
    (batch,) = decoded([FrameBatch.from_frames(data, times, first_number=1)], MXOE)
    room, entries = limits["LINGERING"] // 4, limits["OUTSTANDING_MAXIMUM"] + limits["KEPT_BEHIND"]
    with bounds(**limits, ROOM=room, ENTRIES=entries):
        compare([batch.select(np.arange(first, min(first + 20, len(batch)))) for first in range(0, len(batch), 20)])


def followed_by_columns(batches: list[DecodedBatch]) -> int:
    """Number of frames that are followed in runs."""
    followed = []

    class CountingTracker(plain_run.PlainTracker):
        def _take(self, frames):
            followed.append(super()._take(frames))
            return followed[-1]

    with patch.object(follower_module, "PlainTracker", CountingTracker):
        follower = Follower(marks=True)
        for each in batches:
            follower.observe(each)
    return sum(followed)


def test_plain_traffic_is_followed_by_columns():
    assert followed_by_columns(decoded([traffic(Random(1), 20_000, 0)], MXOE)) > 19_000


def test_duplicates_and_retransmissions_are_followed_by_columns():
    """Of messages of the same run, of earlier runs, and of those that were created before."""
    plain = traffic(Random(1), 6_000, 0)
    frames, times, now = [], [], 0
    for place, (data, time) in enumerate(zip(plain, plain.timestamp_ns.tolist(), strict=True)):
        again = [data, data][: (place % 40 == 0) + (place % 90 == 0)]
        frames += [data, *again]
        times += [time + now, *(time + now + 600_000_000 * (place % 80 == 0) for _ in again)]
        now = times[-1] - time
    (batch,) = decoded([FrameBatch.from_frames(frames, times, first_number=1)], MXOE)
    batches = [batch.select(np.arange(first, min(first + 1500, len(batch)))) for first in range(0, len(batch), 1500)]
    compare(batches)
    assert followed_by_columns(batches) > len(frames) - plain_run.LEAST


def test_a_full_window_is_followed_by_columns_though_messages_are_in_flight():
    (batch,) = decoded([traffic(Random(1), 20_000, 0)], MXOE)
    with bounds(IN_FLIGHT=1000, MOST_EXAMINED=1000):
        assert followed_by_columns([batch]) > 19_000


def test_messages_that_a_later_run_reports_are_not_created():
    (batch,) = decoded([traffic(Random(1), 4000, 0)], MXOE)
    created = Mock(wraps=run_messages.create_plain)
    create = [patch.object(module, "create_plain", created) for module in (plain_run, run_messages)]
    with bounds(LINGERING=100, ROOM=50, SKIPPED=1), create[0], create[1]:
        follower = Follower(marks=True, messages=False)
        for first in range(0, 4000, 1000):
            follower.observe(batch.select(np.arange(first, first + 1000)))
    assert created.call_count < 100 < follower.messages


def test_directions_are_read_once_for_several_runs():
    """The seed gives 91 hosts, which connect first: each direction has five frames per run."""
    (batch,) = decoded([traffic(Random(24), 4000, 0)], MXOE)
    read = Mock(wraps=direction_table.DirectionTable._row)
    with bounds(SKIPPED=1), patch.object(direction_table.DirectionTable, "_row", lambda *each: read(*each)):
        follower = Follower(marks=True, messages=False)
        for first in range(0, 4000, 1000):
            follower.observe(batch.select(np.arange(first, first + 1000)))
    assert len({(each.address, each.endpoint) for pair in follower.conversations for each in pair.flows}) == 91
    assert read.call_count == 180


def test_a_run_may_begin_with_the_report_of_a_large_message():
    """Its replies must be counted first, so that frame is followed alone."""
    random = Random(1)
    one, other = Sender(random, 1, 2), Sender(random, 2, 1)
    frames = [one.send(random, other.next), other.send(random, one.next), one.announce(1, other.next)]
    frames.append(other.end(1, one.next))
    before = len(frames) + 1
    frames += [one.send(random, other.next) for _ in range(plain_run.LEAST + 100)]
    times = [10**18 + 1000 * place + 2 * 10**9 * (place >= before) for place in range(len(frames))]
    (batch,) = decoded([FrameBatch.from_frames([build(each, MXOE) for each in frames], times, first_number=1)], MXOE)
    compare([batch.select(np.arange(before)), batch.select(np.arange(before, len(batch)))])


def test_a_refused_ack_may_be_repeated():
    """The sender refuses the first for its session, and accepts the others, which acknowledge nothing new."""
    random = Random(1)
    one, other = Sender(random, 1, 2), Sender(random, 2, 1)
    frames = [one.send(random, other.next), other.send(random, one.next), one.send(random, other.next)]
    frames.append(replace(other.send(random, one.next), session=NO_SESSION))
    before = len(frames)
    frames += [other.liback(one.next)] * plain_run.LEAST
    times = range(10**18, 10**18 + len(frames))
    (batch,) = decoded([FrameBatch.from_frames([build(each, MXOE) for each in frames], times, first_number=1)], MXOE)
    compare([batch.select(np.arange(before)), batch.select(np.arange(before, len(batch)))])
