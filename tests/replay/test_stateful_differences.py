"""A stateful replay can fail: every error of a live host is named, and frames lost on the path are not errors."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mxwire.frames import FrameBatch
from mxwire.protocol.library.reliability import distance
from mxwire.replay.stateful import actor as actor_module
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.application import RecordedApplication
from mxwire.replay.stateful.comparison import FIELDS, Cause, FieldRelation, RuleWatch
from mxwire.replay.stateful.conversation import EndpointPair
from mxwire.replay.stateful.simulated_play import play_simulated
from mxwire.wire.codec import codec_of
from mxwire.wire.packets import FRAME_CLASSES, Announcement, ConnectReply, HostQuery, HostReply, Raw
from tests.replay.testbed import OURS, THEIRS, live_node, played, script
from tests.wire.support import dialect_of

SHORT = (("mxoe-connect", "A"), ("mxoe-truncated", "A"), ("mxoe-unexpected", "B"), ("omx9000-nack-lib", "A"))
"""Captures with many kinds of frames, and few frames."""
REPAIRED = {"ethertype", "ptype", "dst_endpoint", "src_endpoint", "is_reply", "connect_seqnum", "lib_seqnum"}
"""Fields without which a frame is another one, or belongs to no host: it counts as lost, and is retransmitted."""


def changed(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    return int(value) ^ 1


class Erring:
    """Changes one field of one frame of the live host."""

    def __init__(self, capture: str, place: int, field: str) -> None:
        self.codec = codec_of(dialect_of(capture))
        self.left = place
        self.field = field

    def __call__(self, raw: bytes, theirs: bool) -> list[bytes]:
        frame: Any = self.codec.parse(raw)
        if not theirs or isinstance(frame, (HostQuery, HostReply, Announcement, Raw)):
            return [raw]
        self.left -= 1
        if self.left != -1:
            return [raw]
        return [self.codec.build(replace(frame, **{self.field: changed(getattr(frame, self.field))}))]


def frames_of(capture: str, host: str) -> list[Any]:
    """The frames of the live host when all goes well."""
    codec, found = codec_of(dialect_of(capture)), []

    def note(raw: bytes, theirs: bool) -> list[bytes]:
        frame = codec.parse(raw)
        if theirs and not isinstance(frame, (HostQuery, HostReply, Announcement, Raw)):
            found.append(frame)
        return [raw]

    chosen = script(capture, host)
    assert not played(chosen, live_node(chosen), note).findings
    return found


def tries(capture: str, host: str) -> Iterable[tuple[int, str]]:
    for place, frame in enumerate(frames_of(capture, host)):
        for name, wanted in FIELDS[type(frame)].items():
            value = getattr(frame, name)
            if wanted.how is not FieldRelation.FREE and value not in (None, b"") and name not in REPAIRED:
                yield place, name


@pytest.mark.parametrize(("capture", "host"), SHORT)
def test_any_wrong_field_of_any_answer_is_found(capture: str, host: str) -> None:
    chosen = script(capture, host)
    tried = named = 0
    for place, name in tries(capture, host):
        tried += 1
        actor = played(chosen, live_node(chosen), Erring(capture, place, name), timeout=10**9)
        assert actor.findings or actor.failure, f"frame {place}: nothing is said of a wrong {name}"
        named += name in {each.field.partition(".")[2] for each in actor.findings}
    # The others can no longer be recognised as the recorded frame, like a PULL of another region.
    assert named > 0.5 * tried > 5, (named, tried)


def test_every_field_of_every_type_is_thought_of() -> None:
    for each in FRAME_CLASSES:
        if each in FIELDS:
            assert set(FIELDS[each]) == {field.name for field in fields(each)}
    assert set(FRAME_CLASSES) - set(FIELDS) == {Announcement, HostQuery, HostReply, Raw}


@pytest.mark.parametrize("capture", ["mxoe-unexpected", "mxoe-pingpong-small-medium", "omx9000-vect", "mxoe-lossy-1M"])
@pytest.mark.parametrize("seed", range(3))
def test_lost_frames_are_retransmitted(capture: str, seed: int) -> None:
    random = Random(seed)

    def lose(raw: bytes, _theirs: bool) -> list[bytes]:
        return [] if random.random() < 0.05 else [raw]

    chosen = script(capture, "B")
    actor = played(chosen, live_node(chosen), lose, timeout=60 * 10**9)
    assert not actor.failure
    own = [each for each in actor.findings if each.kind is not Cause.APPLICATION]
    assert not own, own


def test_frames_that_come_twice_are_taken_once() -> None:
    chosen = script("mxoe-unexpected", "A")
    assert played(chosen, live_node(chosen), lambda raw, _: [raw, raw]).findings == []


def test_a_host_that_never_answers_ends_the_replay() -> None:
    chosen = script("mxoe-connect", "A")
    actor = played(chosen, live_node(chosen), lambda raw, theirs: [] if theirs else [raw], timeout=10**9)
    assert actor.done and actor.failure == "it does not answer: no reply to a host query"


def test_a_host_that_answers_no_connect_ends_the_replay() -> None:
    chosen = script("mxoe-connect", "A")
    codec = codec_of(chosen.dialect)

    def deaf(raw: bytes, theirs: bool) -> list[bytes]:
        return [raw] if theirs or isinstance(codec.parse(raw), (HostQuery, HostReply, Announcement)) else []

    actor = played(chosen, live_node(chosen), deaf, timeout=10**9)
    assert actor.failure == "its endpoint 3 does not answer a connect"
    assert [each.rule for each in actor.findings] == ["R-CON-08"]


def test_an_inactive_application_is_reported_as_such() -> None:
    chosen = script("mxoe-unexpected", "A")
    node = live_node(chosen)
    node.open_endpoint(3, 0x12345678)
    actor = ReplayActor(chosen, OURS, THEIRS, rng=Random(1), timeout=10**9)
    play_simulated(actor, node)
    assert {each.kind for each in actor.findings} == {Cause.APPLICATION} and not actor.failure
    assert {each.rule for each in actor.findings} == {"R-PUL-01", ""} or actor.skipped


def test_a_breach_of_the_live_host_is_reported_whether_recorded_or_not() -> None:
    chosen = script("mxoe-connect", "A")
    codec = codec_of(chosen.dialect)

    def too_long(raw: bytes, theirs: bool) -> list[bytes]:
        frame: Any = codec.parse(raw)
        return [codec.build(replace(frame, length=17))] if theirs and isinstance(frame, ConnectReply) else [raw]

    actor = played(chosen, live_node(chosen), too_long, timeout=10**9)
    broken = [each for each in actor.findings if each.kind is Cause.RULE]
    assert broken and all(each.rule.startswith("W-") for each in broken), broken


def test_the_frames_of_a_replay_can_be_captured() -> None:
    chosen = script("mxoe-connect", "A")
    kept: list[bytes] = []
    watch = RuleWatch(chosen.dialect, THEIRS, lambda _now, raw: kept.append(raw))
    node = live_node(chosen)
    actor = ReplayActor(chosen, OURS, THEIRS, rng=Random(1))
    play_simulated(actor, node, RecordedApplication(node, chosen, OURS), watch.see)
    assert not watch.findings
    assert sum(each[6:12] == OURS for each in kept) >= actor.played
    assert {each[6:12] for each in kept} == {OURS, THEIRS}
    assert isinstance(FrameBatch.from_frames(kept), FrameBatch)


# Numbers.


def test_numbers_move_up_where_one_is_left_out() -> None:
    pair = EndpointPair(5, 3)
    assert pair.live_number(1) is None
    pair.begin(1, 0x4010)
    assert [pair.live_number(each) for each in (1, 2, 3)] == [0x4010, 0x4011, 0x4012]
    pair.skip(2)
    assert [pair.live_number(each) for each in (1, 3)] == [0x4010, 0x4011]


def test_numbers_go_round() -> None:
    pair = EndpointPair(5, 3)
    pair.begin(0x3FFF, 0x7FFE)
    assert [pair.live_number(each) for each in (0x3FFF, 0, 1)] == [0x7FFE, 0x7FFF, 0x4000]


def test_acks_say_no_more_than_the_recorded_ones() -> None:
    pair = EndpointPair(5, 3)
    pair.expect_from(0x8007)
    for place, recorded in enumerate((1, 2, None, 3)):
        pair.arrive(0x8007 + place, recorded, now=place)
    assert pair.ack() == 0x800B
    assert pair.ack(recorded=3) == 0x800A
    assert pair.ack(recorded=9) == 0x800B
    assert distance(pair.ack(recorded=1), 0x8007) == 0


def test_a_gap_holds_acks_back() -> None:
    pair = EndpointPair(5, 3)
    pair.arrive(2, 2, now=0)
    assert pair.ack() == 1
    pair.arrive(1, 1, now=0, complete=False)
    assert pair.ack() == 1
    pair.arrive(1, 1, now=0)
    assert pair.ack() == 3


# Nonsense.


@pytest.mark.parametrize("capture", ["mxoe-unexpected", "mxoe-no-reverse-connect", "omx9000-vect", "omx1500-connect"])
@pytest.mark.parametrize("host", ["A", "B"])
def test_no_answer_however_odd_stops_it_but_the_end(capture: str, host: str) -> None:
    chosen = script(capture, host)
    for seed in range(6):
        random = Random(seed)

        def damage(raw: bytes, theirs: bool, random: Random = random) -> list[bytes]:
            if not theirs or random.random() > 0.3:
                return [raw]
            place = random.randrange(14, min(len(raw), 64))
            return [raw[:place] + bytes([random.randrange(256)]) + raw[place + 1 :]] * random.randrange(1, 3)

        actor = played(chosen, live_node(chosen), damage, timeout=10**9)
        assert actor.done


WORLD = {"socket", "select", "time", "threading", "asyncio", "os", "sys", "pathlib", "io"}


def test_the_played_host_does_no_input_or_output() -> None:
    folder = Path(actor_module.__file__).parent
    for module in folder.glob("*.py"):
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
            for name in (
                [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert names.isdisjoint(WORLD) or module.name == "live_play.py", module.name
