"""Replies that are judged in runs: the same findings, and the same memory, as if they were judged one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis import verification
from mxwire.analysis.verification import Verification
from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.rules import CAPTURE, Vantage
from mxwire.simulation import Simulation, draw_scenario
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from tests.rules.testbed import Testbed

CAPTURES = Path(__file__).parents[2] / "captures"
VANTAGES = (CAPTURE, replace(CAPTURE, from_start=True), replace(CAPTURE, complete=False))
LARGE = ("mxoe-many", "mxoe-rndv-offset", "omx1500-echo-pattern", "omx9000-receiver-killed")
"""Captures with large messages whose replies come in order."""
REPLY = PacketType.PULL_REPLY


def decode(batches: Sequence[FrameBatch]) -> list[DecodedBatch]:
    return list(Decoder().decode_all(batches))


def seen(batches: Sequence[DecodedBatch], vantage: Vantage, taken: list[int] | None = None) -> tuple[object, ...]:
    """All findings and all state of ``verify``; the number of replies of each run that was taken is appended to
    ``taken``.
    """
    made = Verification(vantage)
    findings = [str(each) for batch in batches for each in made.observe(batch)]
    judge = made._judge
    hosts = {each.address: (each.frames, each.findings) for each in made.hosts.values()}
    memory = {}
    for ends, pair in judge._pairs.items():
        for key, transfer in pair.transfers.items():
            blocks = {place: asdict(each) for place, each in transfer.blocks.items()}
            memory[ends, key] = blocks, transfer.oldest, transfer.highest
        memory[ends] = pair.known_ns
    return findings, hosts, made.frames, memory


def alike(batches: Sequence[DecodedBatch], vantage: Vantage) -> int:
    """Check that both paths agree; return the number of replies taken in runs."""
    taken = []
    original = verification.Judge.observe_replies
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification.Judge, "observe_replies", lambda *a: (taken.append(original(*a)), taken[-1])[1])
        fast = seen(batches, vantage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "reply_runs", lambda *_: ())
        slow = seen(batches, vantage)
    assert fast == slow
    return sum(taken)


@cache
def capture(name: str) -> tuple[FrameBatch, ...]:
    with open_capture(CAPTURES / f"{name}.pcap") as reader:
        return tuple(reader)


@cache
def decoded_capture(name: str) -> list[DecodedBatch]:
    return decode(capture(name))


@pytest.mark.parametrize("vantage", VANTAGES, ids=("capture", "from start", "lossy"))
def test_in_all_captures(vantage: Vantage) -> None:
    taken = {path.stem: alike(decoded_capture(path.stem), vantage) for path in sorted(CAPTURES.glob("*.pcap"))}
    assert all(taken[name] > 100 for name in LARGE), taken


@pytest.mark.parametrize("seed", range(8))
def test_in_simulated_networks(seed: int) -> None:
    """Lost, repeated and reordered replies, stale handles, partners that die; captured in several places."""
    faults = {"loss": 0.03, "duplicate": 0.03, "reorder": 0.05} if seed % 3 else {}
    scenario = draw_scenario(seed, dialect=(MXOE, omx(1500))[seed % 2], largest=2_000_000, **faults)
    simulation = Simulation(replace(scenario, judged=False))
    recorded: dict[int | None, list[FrameBatch]] = {at: [] for at in (None, 0, 1)}
    simulation.world.taps.update({at: batches.append for at, batches in recorded.items()})
    simulation.run()
    for batches in recorded.values():
        decoded = decode(batches)
        for vantage in VANTAGES[:2]:
            alike(decoded, vantage)


def numbers_begin_with_one(on: Testbed) -> None:
    on.send(on.a.rndv(32_768), on.b.pull(32_768))
    on.send(*(on.a.data(32_768, place, frame_seqnum=place + 1) for place in range(8)))


def longer_than_asked(on: Testbed) -> None:
    on.send(on.a.rndv(30_000), on.b.pull(30_000))
    on.send(*(on.a.data(32_768, place) for place in range(8)))


def from_the_middle_of_a_frame(on: Testbed) -> None:
    on.send(on.a.rndv(32_768), on.b.pull(32_768, first_frame_offset=4, block_length=32_764))
    on.send(*(on.a.data(32_768, place) for place in range(8)))


def half_a_frame_later(on: Testbed) -> None:
    on.send(on.a.rndv(65_536), on.b.pull(65_536), on.b.pull(65_536, 1))
    on.send(*(on.a.data(65_536, place, msg_offset=place * 4096 + 2048) for place in range(12)))


def from_a_former_session(on: Testbed) -> None:
    on.send(on.a.rndv(32_768), on.b.pull(32_768), on.a.request(src_session_id=0x77777777, connect_seqnum=0))
    on.send(*(on.a.data(32_768, place) for place in range(8)), after_ms=200)


def to_nobody(on: Testbed) -> None:
    on.send(on.a.rndv(32_768), on.b.pull(32_768, session=0xFFFFFFFF))
    on.send(*(on.a.data(32_768, place) for place in range(8)))


def other_data_the_second_time(on: Testbed) -> None:
    """While an earlier block is missing, what came is remembered."""
    on.send(on.a.rndv(65_536), on.b.pull(65_536), on.b.pull(65_536, 1))
    on.send(*(on.a.data(65_536, place) for place in range(8, 16)))
    on.send(*(on.a.data(65_536, place, data=bytes(4096)) for place in range(8, 16)))


def right(on: Testbed) -> None:
    on.large(100_000)


@pytest.mark.parametrize("vantage", VANTAGES, ids=("capture", "from start", "lossy"))
@pytest.mark.parametrize(
    ("play", "rules"),
    [
        (right, set()),
        (numbers_begin_with_one, {"R-PUL-13"}),
        (longer_than_asked, {"R-PUL-13"}),
        (from_the_middle_of_a_frame, {"R-PUL-01", "R-PUL-13"}),
        (half_a_frame_later, {"R-PUL-13"}),
        (from_a_former_session, {"R-PUL-14"}),
        (to_nobody, {"D-1", "R-CON-12"}),
        (other_data_the_second_time, {"R-PUL-13"}),
    ],
)
def test_defects_within_a_run_of_replies(play: Callable[[Testbed], None], rules: set[str], vantage: Vantage) -> None:
    on = Testbed().connect()
    play(on)
    batch = FrameBatch.from_frames([raw for _, raw in on.sent], [time for time, _ in on.sent])
    decoded = decode([batch])
    alike(decoded, vantage)
    made = Verification(vantage)
    found = {each.rule for batch in decoded for each in made.observe(batch)}
    assert found == (rules if vantage.complete else set())


def changed(name: str, changes: Sequence[tuple[str, float, int, int]]) -> FrameBatch:
    """The frames of a capture, some of them with another byte, cut, left out, repeated, or in another place."""
    frames = [
        (batch.frame(index), int(batch.timestamp_ns[index])) for batch in capture(name) for index in range(len(batch))
    ]
    replies = [place for place, (raw, _) in enumerate(frames) if raw[TYPE_OFFSET] in (REPLY, PacketType.PULL)]
    for kind, where, offset, value in changes:
        place = replies[int(where * len(replies))] % len(frames)
        raw, time = frames[place]
        if kind == "byte":
            made = bytearray(raw)
            made[offset % min(60, len(made))] ^= value
            frames[place] = bytes(made), time
        elif kind == "cut":
            frames[place] = raw[: 17 + offset], time
        elif kind == "drop":
            del frames[place]
        elif kind == "repeat":
            frames.insert(min(len(frames), place + offset % 7), (raw, time))
        else:
            frames.insert(min(len(frames), place + offset % 20), frames.pop(place))
    times = np.maximum.accumulate([time for _, time in frames])
    return FrameBatch.from_frames([raw for raw, _ in frames], times.tolist())


@given(
    name=st.sampled_from((*LARGE, "mxoe-lossy-1M")),
    changes=st.lists(
        st.tuples(
            st.sampled_from(["byte", "byte", "byte", "cut", "drop", "repeat", "move"]),
            st.floats(0, 1, exclude_max=True),
            st.integers(0, 60),
            st.integers(1, 255),
        ),
        min_size=1,
        max_size=8,
    ),
    pieces=st.integers(1, 4),
)
@settings(max_examples=25, deadline=None)
def test_in_captures_that_were_broken_on_purpose(name, changes, pieces) -> None:
    whole = changed(name, changes)
    cuts = np.array_split(np.arange(len(whole)), pieces)
    alike(decode([whole.select(each) for each in cuts]), VANTAGES[0])
    alike(decode([whole]), VANTAGES[1])
