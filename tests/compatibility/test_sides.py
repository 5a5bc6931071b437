"""The build detected for a host, from the frames of two engines of known builds."""

from __future__ import annotations

import pytest

from mxwire.analysis.compatibility import Build, Sides, judge, judge_sides
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, omx

from .meeting import Meeting, Talk
from .test_table import BUILDS, LARGE, PAIRS

ALL_SIZES = 20, 10_000, LARGE


def traffic(one: Build, other: Build, lengths: tuple[int, ...]) -> FrameBatch:
    """All frames of two hosts that try to send each other messages of these lengths, a meeting for each."""
    frames: list[bytes] = []
    for length in lengths:
        talk = Talk.__new__(Talk)
        recorded = _record(talk, one, other)
        if talk.connected:
            for sender in (0, 1):
                talk.arrives(sender, length)
        frames += recorded
    return FrameBatch.from_frames(frames, [place * 100_000_000 for place in range(len(frames))])


def _record(talk: Talk, one: Build, other: Build) -> list[bytes]:
    recorded: list[bytes] = []

    class Recorded(Meeting):
        def _deliver(self, host: int, frames: list[bytes]) -> None:
            recorded.extend(frames)
            super()._deliver(host, frames)

    talk.meet(Recorded(one, other))
    return recorded


def looked_at(batch: FrameBatch) -> Sides:
    seen = Sides()
    for decoded in Decoder().decode_all([batch]):
        seen.observe(decoded)
    seen.finish()
    return seen


@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS if "little" not in "".join(pair)])
def test_a_host_is_never_mistaken_for_another_kind(one, other):
    """Whatever two hosts understand of each other: what each was built as is among its candidates, and the judgement
    is the true one, or unknown."""
    builds = BUILDS[one], BUILDS[other]
    seen = looked_at(traffic(*builds, ALL_SIZES))
    sides = [seen.side(address, str(place)) for place, address in enumerate(sorted(seen.hosts))]
    for side, build in zip(sides, builds, strict=True):
        assert any(
            (each.dialect.name, each.fragment_payload, each.swapped)
            == (build.dialect.name, build.fragment_payload, build.swapped)
            for each in side.candidates
        ), (build, side)
    truth, found = judge(*builds), judge_sides(*sides)
    assert {
        each: answer.word for each, answer in found.items() if answer.word not in (truth[each].word, "unknown")
    } == {}
    assert found["connect"].word == found["small"].word == "yes"
    for answer in found.values():
        assert bool(answer.why) is (answer.word != "yes")


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("mxoe", "mxoe", ("yes", "yes")),
        ("native-mx", "mxoe", ("unknown", "yes")),
        ("mxoe", "N4", ("no", "no")),
        ("mxoe", "N2", ("yes", "no")),
        ("N4", "N4", ("yes", "yes")),
        ("N4", "N4-1500", ("partly", "no")),
    ],
)
def test_traffic_of_all_sizes_decides(one, other, words):
    seen = looked_at(traffic(BUILDS[one], BUILDS[other], ALL_SIZES))
    sides = [seen.side(address, str(place)) for place, address in enumerate(sorted(seen.hosts))]
    found = judge_sides(*sides)
    assert (found["medium"].word, found["large"].word) == words


def test_byte_orders_are_distinguished_by_the_frames_of_each():
    batches = [
        traffic(Build(omx(9000), swapped=swapped), Build(omx(9000), swapped=swapped), ALL_SIZES)
        for swapped in (False, True)
    ]
    one, other = (looked_at(each) for each in batches)
    sides = one.side(one.hosts[0], "A"), other.side(other.hosts[0], "B")
    assert [each.candidates[0].swapped for each in sides] == [False, True]
    assert judge_sides(*sides)["connect"].word == "no"


def test_small_messages_alone_decide_nothing_more():
    seen = looked_at(traffic(Build(MXOE), Build(MXOE), (20, 100)))
    one, other = (seen.side(each, "") for each in sorted(seen.hosts))
    found = judge_sides(one, other)
    assert one.build is None and one.unknown
    assert [found[each].word for each in ("small", "medium", "large")] == ["yes", "unknown", "unknown"]


def test_received_frames_settle_open_questions():
    seen = looked_at(traffic(Build(MXOE), Build(MXOE), (20, 100)))
    one, other = (seen.side(each, "") for each in sorted(seen.hosts))
    assert judge_sides(one, other, {"medium"})["medium"].word == "unknown"
    alike = looked_at(traffic(Build(omx(9000)), Build(omx(9000)), (LARGE,)))
    one, other = (alike.side(each, "") for each in sorted(alike.hosts))
    assert judge_sides(one, other)["medium"].word == "unknown"
    assert judge_sides(one, other, {"medium"})["medium"].word == "yes"
