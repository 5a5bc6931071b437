"""Raw replay: what is sent, when, under which addresses, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch
from mxwire.link import LinkError, LinkStatistics, MemoryNetwork
from mxwire.replay.raw import (
    AsRecorded,
    AtBitRate,
    AtFrameRate,
    AtTopSpeed,
    FrameRewriter,
    Pace,
    PiecePreparer,
    Player,
    pace_at,
)
from mxwire.wire.codec import codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.packets import Announcement
from tests.wire.support import frames_of, read_capture

A, B = bytes.fromhex("5254000a0001"), bytes.fromhex("5254000a0002")
OURS, THEIRS = bytes.fromhex("020000000007"), bytes.fromhex("020000000008")
SECOND = 10**9


def pieces(batch: FrameBatch, **options: Any) -> list[FrameBatch]:
    """All frames of a batch, made ready."""
    decoded = Decoder().decode(batch)
    return list(PiecePreparer("trace", **options).pieces([(decoded, np.arange(len(decoded)))]))


def prepared(batch: FrameBatch, **options: Any) -> list[bytes]:
    return [frame for piece in pieces(batch, **options) for frame in frames_of(piece)]


# The pace.

ascending = st.lists(st.integers(0, 10**12), min_size=1, max_size=40).map(sorted)


def due(pace: Pace, times: list[int], length: int = 60) -> list[int]:
    found: list[int] = pace.due(np.array(times, np.int64), np.full(len(times), length)).tolist()
    return found


@given(ascending, st.integers(1, 40))
def test_the_recorded_pace_keeps_all_distances_in_any_batches(times: list[int], cut: int) -> None:
    pace = AsRecorded()
    found = due(pace, times[:cut]) + due(pace, times[cut:])
    assert found == [each - times[0] for each in times]


def test_twice_the_speed_is_half_the_distance() -> None:
    assert due(AsRecorded(2), [100, 300, 1100]) == [0, 100, 500]


def test_times_that_run_backwards_are_waited_out() -> None:
    assert due(AsRecorded(), [100, 500, 200, 600]) == [0, 400, 400, 500]


def test_a_loop_begins_a_mean_distance_after_the_last_frame() -> None:
    pace = AsRecorded()
    assert due(pace, [1000, 1100, 1300]) == [0, 100, 300]
    pace.repeat()
    assert due(pace, [1000, 1100, 1300]) == [450, 550, 750]


def test_frame_and_bit_rates_continue_over_batches_and_loops() -> None:
    frames = AtFrameRate(1000)
    assert due(frames, [5, 5]) == [0, 1_000_000]
    frames.repeat()
    assert due(frames, [5]) == [2_000_000]
    bits = AtBitRate(8_000_000)
    assert due(bits, [5, 5], 125) == [0, 125_000]
    assert due(bits, [5], 125) == [250_000]


@pytest.mark.parametrize(
    ("text", "distance"),
    [("50000/s", 20_000), ("50k/s", 20_000), ("1Mbit/s", 480_000), ("1.5 kbit/s", 320_000_000), ("2G/s", 0)],
)
def test_rates_as_users_write_them(text: str, distance: int) -> None:
    assert due(pace_at(text), [0, 0])[1] == distance


@pytest.mark.parametrize("text", ["", "fast", "50000", "0/s", "-1/s", "1Gb/s", "1e5/s"])
def test_invalid_rates_are_refused(text: str) -> None:
    with pytest.raises(MxwireError, match="is not a rate: use a form like 50000/s"):
        pace_at(text)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_invalid_speeds_are_refused(speed: float) -> None:
    with pytest.raises(MxwireError, match="invalid speed"):
        AsRecorded(speed)


# Transmitted frames.


def test_frames_are_sent_as_they_were_recorded() -> None:
    batch = read_capture("mxoe-every-type")
    assert prepared(batch) == frames_of(batch)


def test_addresses_are_rewritten_wherever_they_stand() -> None:
    batch = read_capture("mxoe-discovery-omxoed")
    changed = prepared(batch, rewriting=FrameRewriter({A: OURS, B: THEIRS}))
    swapped = {A: OURS, B: THEIRS, b"\xff" * 6: b"\xff" * 6}
    codec = codec_of(MXOE)
    announcements = 0
    for old, new in zip(frames_of(batch), changed, strict=True):
        assert new[:12] == swapped[old[:6]] + swapped[old[6:12]]
        frame = codec.parse(new)
        if isinstance(frame, Announcement):
            announcements += 1
            reported = (frame.nic_id_hi << 32 | frame.nic_id_lo).to_bytes(6, "big")
            assert reported == frame.src_mac and frame.serial == codec.parse(old).serial  # type: ignore[union-attr]
        else:
            assert new[12:] == old[12:]
    assert announcements == 27
    assert frames_of(batch) == frames_of(read_capture("mxoe-discovery-omxoed")), "the recording stays as it is"


def test_two_addresses_may_change_places() -> None:
    batch = read_capture("mxoe-connect")
    changed = prepared(batch, rewriting=FrameRewriter({A: B, B: A}))
    assert [each[:12] for each in changed] == [each[6:12] + each[:6] for each in frames_of(batch)]


def test_another_ethertype_goes_behind_the_tag() -> None:
    plain = frames_of(read_capture("mxoe-connect"))[:2]
    tagged = [each[:12] + bytes.fromhex("8100000a") + each[12:] for each in plain]
    changed = prepared(FrameBatch.from_frames([plain[0], tagged[1]]), rewriting=FrameRewriter(ethertype=0x88B5))
    assert changed[0] == plain[0][:12] + b"\x88\xb5" + plain[0][14:]
    assert changed[1] == tagged[1][:16] + b"\x88\xb5" + tagged[1][18:]


def cut_off(batch: FrameBatch) -> FrameBatch:
    return FrameBatch(
        batch.buffer, batch.offset, batch.length - 10, batch.wire_length, batch.timestamp_ns, batch.number
    )


def test_cut_frames_are_left_out_or_filled_up() -> None:
    batch = read_capture("mxoe-connect")
    assert prepared(cut_off(batch)) == []
    assert prepared(cut_off(batch), pad=True) == [each[:-10] + bytes(10) for each in frames_of(batch)]


def test_frames_that_the_interface_refuses_are_listed_by_number() -> None:
    batch = read_capture("mxoe-pingpong-small-medium")
    first = next(number for number, frame in enumerate(frames_of(batch), 1) if len(frame) > 1514)
    with pytest.raises(MxwireError, match=rf"trace: frame {first} has \d+ bytes .* the MTU of veth0 is 1500;"):
        prepared(batch, mtu=1500, interface="veth0")
    assert prepared(batch, mtu=9000) == frames_of(batch)


def test_a_recording_without_destinations_cannot_be_sent() -> None:
    cooked = bytes.fromhex("0000000100065254000a0001000086df") + bytes(60)
    with pytest.raises(MxwireError, match="cooked headers, which do not keep the destination"):
        prepared(FrameBatch.from_frames([cooked], link_type=LINKTYPE_LINUX_SLL))


# Sending.


class Clock:
    """Time that advances with each reading, and with each wait for a link."""

    def __init__(self) -> None:
        self.now = 5 * SECOND
        self.step = 500

    def __call__(self) -> int:
        self.now += self.step
        return self.now


class Wire:
    """A link that notes the frames and times of transmission, takes a limited number at once, and returns answers."""

    name, address, mtu = "wire0", OURS, 9000

    def __init__(self, clock: Clock, room: int = 10**9, answers: Iterable[bytes] = ()) -> None:
        self.clock = clock
        self.room = room
        self.answers = iter(answers)
        self.sent: list[tuple[int, bytes]] = []
        self.calls = 0

    def send(self, batch: FrameBatch) -> int:
        taken = min(len(batch), self.room)
        self.calls += 1
        self.sent += [(self.clock.now, batch.frame(place)) for place in range(taken)]
        return taken

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        answer = next(self.answers, None)
        if answer is None:
            self.clock.now += int((timeout or 0) * 1e9)
            return FrameBatch.from_frames([])
        return FrameBatch.from_frames([answer])

    def statistics(self) -> LinkStatistics:
        return LinkStatistics()

    def wake(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int:
        return -1


def test_nothing_leaves_early_and_lateness_is_reported() -> None:
    batch = read_capture("mxoe-connect")
    clock = Clock()
    wire = Wire(clock)
    player = Player(wire, AsRecorded(), clock=clock)
    player.play(pieces(batch))
    result = player.result
    assert [frame for _, frame in wire.sent] == frames_of(batch)
    begin = wire.sent[0][0]
    for (at, _), recorded in zip(wire.sent, batch.timestamp_ns.tolist(), strict=True):
        distance = recorded - int(batch.timestamp_ns[0])
        assert 0 <= at - begin - distance + 2000 < 10_000
    assert result.errors.count == 12 and 0 < result.errors.mean_ns < 5000
    assert result.errors.percentile_ns(99) <= result.errors.maximum_ns < 5000
    assert result.requested_ns == int(batch.timestamp_ns[-1] - batch.timestamp_ns[0]) <= result.taken_ns


def test_a_preempted_player_sleeps_and_still_sends_nothing_early() -> None:
    # A clock that now and then jumps, as it seems to a thread that was not on the processor.
    clock = Clock()
    wire = Wire(clock)
    times = [place * 20_000 for place in range(3000)]
    player = Player(wire, AsRecorded(), clock=clock)
    sent = wire.send

    def jumping(batch: FrameBatch) -> int:
        clock.now += 2_000_000 if len(wire.sent) == 100 else 0
        return sent(batch)

    wire.send = jumping  # type: ignore[method-assign]
    player.play([FrameBatch.from_frames([bytes(60)] * 3000, times)])
    assert player.result.frames == 3000 and player.result.errors.count == 3000
    assert player.result.errors.maximum_ns > 1_900_000
    begin = wire.sent[0][0]
    assert all(at - begin >= due - 1000 for (at, _), due in zip(wire.sent, times, strict=True))


def test_frames_are_due_since_the_first_left_however_slow_its_call_was() -> None:
    clock = Clock()
    wire = Wire(clock)
    times = [place * 20_000 for place in range(100)]
    player = Player(wire, AsRecorded(), clock=clock)
    sent = wire.send

    def slow_at_first(batch: FrameBatch) -> int:
        clock.now += 0 if wire.sent else 100_000
        return sent(batch)

    wire.send = slow_at_first  # type: ignore[method-assign]
    player.play([FrameBatch.from_frames([bytes(60)] * 100, times)])
    begin = wire.sent[0][0]
    assert all(0 <= at - begin - due < 3000 for (at, _), due in zip(wire.sent, times, strict=True))
    assert player.result.requested_ns == times[-1] and player.result.errors.maximum_ns < 5000


def test_frames_that_are_due_together_leave_together() -> None:
    clock = Clock()
    wire = Wire(clock)
    same = FrameBatch.from_frames([bytes(60)] * 100, [7] * 100)
    player = Player(wire, AsRecorded(), clock=clock)
    player.play([same])
    assert wire.calls == 1 and player.result.frames == 100


def test_top_speed_waits_for_nothing_and_judges_no_pace() -> None:
    clock = Clock()
    wire = Wire(clock)
    player = Player(wire, AtTopSpeed(), clock=clock)
    for _ in range(3):
        player.play(pieces(read_capture("mxoe-connect")))
    record = player.result.record()
    assert record["frames"] == 36 and record["loops"] == 3 and wire.calls == 3
    assert record["late_p99_us"] is None and record["requested_us"] is None
    assert player.result.taken_ns < 100_000


def test_frames_not_taken_at_once_are_sent_later_in_order() -> None:
    clock = Clock()
    wire = Wire(clock, room=5)
    batch = read_capture("mxoe-connect")
    player = Player(wire, AtTopSpeed(), clock=clock)
    player.play(pieces(batch))
    assert [frame for _, frame in wire.sent] == frames_of(batch)
    assert (player.result.frames, player.result.bytes, player.result.refused) == (12, 720, 0)


def test_an_interface_that_takes_nothing_ends_the_replay() -> None:
    clock = Clock()
    clock.step = SECOND
    player = Player(Wire(clock, room=0), AtTopSpeed(), clock=clock)
    with pytest.raises(LinkError, match="wire0: no frame accepted for 2 s"):
        player.play(pieces(read_capture("mxoe-connect")))
    assert player.result.refused == 12


def test_answers_are_counted_by_type() -> None:
    clock = Clock()
    batch = read_capture("mxoe-connect")
    answers = iter([*frames_of(batch)[-2:], b"short", bytes(TYPE_OFFSET) + b"\xee"])
    player = Player(Wire(clock, answers=answers), AtTopSpeed(), clock=clock)
    player.play(pieces(batch))
    player.listen(1.0)
    assert player.result.answers_by_type() == {"TINY": 1, "TRUC": 1, "238": 1}


def test_a_link_in_memory_carries_it() -> None:
    network = MemoryNetwork()
    sender, receiver = network.attach(address=OURS), network.attach(address=THEIRS)
    batch = read_capture("mxoe-connect")
    player = Player(sender, AtTopSpeed())
    player.play(pieces(batch, rewriting=FrameRewriter({A: OURS, B: THEIRS})))
    arrived = receiver.receive(0)
    assert len(arrived) == sum(frame[:6] == B for frame in frames_of(batch)) == 6
    sender.close()
    receiver.close()
