"""The judge beside a scenario: it convicts the host for its own breaches only, whatever the tester does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.frames import FrameBatch
from mxwire.scenarios import ScenarioOutcome, load, parse, run_simulated
from mxwire.scenarios.breaches import breaches
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Frame


def altered(outcome: ScenarioOutcome, packet: str, **fields: int) -> ScenarioOutcome:
    """The outcome with other values in the first frame of that kind that the host has sent."""
    codec, frames = codec_of(MXOE), [outcome.frames.frame(place) for place in range(len(outcome.frames))]
    for place, raw in enumerate(frames):
        frame = codec.parse(raw)
        if not outcome.sent[place] and isinstance(frame, Frame) and frame.layout_name.upper() == packet:
            frames[place] = codec.build(replace(frame, **fields))
            return replace(outcome, frames=FrameBatch.from_frames(frames, outcome.frames.timestamp_ns))
    raise AssertionError(f"no {packet} came from the host")


def rules(outcome: ScenarioOutcome) -> set[str]:
    return {each.rule for each in breaches(outcome, MXOE)}


def played(name: str) -> ScenarioOutcome:
    outcome = run_simulated(load(name), "open-mx-1.5-as-found")
    assert not rules(outcome)
    return outcome


@pytest.mark.parametrize(
    ("name", "packet", "fields", "rule"),
    [
        # The tester breaks no rule.
        ("eager/tiny", "TRUC", {"liback_lib_seqnum": 3, "liback_send_seq": 3}, "R-ACK-01"),
        # It does, and the host besides, in another matter.
        ("malformed/to-broadcast", "TRUC", {"liback_send_seq": 9}, "R-ACK-04"),
        ("malformed/to-broadcast", "CONNECT_REPLY", {"connect_seqnum": 9}, "R-CON-08"),
        ("nacks/index-of-another-host", "NACK_LIB", {"lib_seqnum": 77}, "R-NAK-02"),
        ("pull/upper-magic-ignored", "PULL", {"first_frame_offset": 9}, "R-PUL-01"),
        ("serving/offset-wraps", "PULL_REPLY", {"dst_pull_handle": 9}, "R-PUL-13"),
        ("serving/offset-wraps", "RNDV", {"lib_seqnum": 7}, "R-SEQ-05"),
    ],
)
def test_a_breach_of_its_own_convicts_the_host(name: str, packet: str, fields: dict[str, int], rule: str) -> None:
    assert rule in rules(altered(played(name), packet, **fields))


def test_live_frames_may_be_dated_some_milliseconds_off() -> None:
    """Two announcements that arrive 998 ms apart left the host a second apart."""
    outcome = run_simulated(parse("title: x\ndiscovery: announce\nwithin: 2s\n< RAW_OMXOED\n< RAW_OMXOED\n"))
    times = outcome.frames.timestamp_ns - [0, 2_000_000]
    moved = replace(outcome, frames=FrameBatch.from_frames([outcome.frames.frame(place) for place in range(2)], times))
    assert rules(moved) == {"R-DISC-02"} and not rules(replace(moved, profile=""))


def test_a_proper_query_after_an_improper_one_has_to_be_answered_well() -> None:
    text = "title: x\n> HOST_QUERY pad=1500\n< HOST_REPLY magic=0\n> HOST_QUERY\n< HOST_REPLY as $reply\n"
    outcome = run_simulated(parse(text), "open-mx-1.5-as-found")
    assert outcome.passed and not rules(outcome)
    frames = [outcome.frames.frame(place) for place in range(4)]
    frames[3] = frames[1]
    assert rules(replace(outcome, frames=FrameBatch.from_frames(frames, outcome.frames.timestamp_ns))) == {"R-HOST-06"}
