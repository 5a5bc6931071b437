"""The table of compatible builds agrees with the behaviour of two engines."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pytest

from mxwire.analysis.compatibility import CLASSES, Build, judge, reach
from mxwire.analysis.compatibility.reach import Reach, medium_format
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import HostReply

from .meeting import Meeting, Talk

BUILDS = {
    "mxoe": Build(MXOE),
    "mxoe-1.1": Build(MXOE, pipeline_ignored=True),
    "native-mx": Build(MXOE, fragment=2048, region_offset=1000),
    "N1": Build(omx(9000, "N1")),
    "N2": Build(omx(9000, "N2")),
    "N2-1500": Build(omx(1500, "N2")),
    "N3": Build(omx(9000, "N3")),
    "N3-1500": Build(omx(1500, "N3")),
    "N4": Build(omx(9000)),
    "N4-8240": Build(omx(8240)),
    "N4-1500": Build(omx(1500)),
    "little-endian": Build(omx(9000), swapped=True),
    "N4-1500-little-endian": Build(omx(1500), swapped=True),
}
PAIRS = list(combinations_with_replacement(BUILDS, 2))
LARGE = 300_000
"""More than a block of any build, and more than N1 gives for one PULL."""


def lengths_to_try(sender: Build, receiver: Build) -> list[tuple[int, bool]]:
    """The edges of what should arrive and what should not: lengths, and whether they are sent synchronously."""
    found = reach(sender, receiver)
    sizes = {(1, False), (32, False), (33, False), (128, False)}
    for limit in (found.medium, found.large):
        edges = {129, found.threshold} if limit in (math.inf, 0) else {int(limit), int(limit) + 1}
        sizes |= {(each, False) for each in edges if 128 < each <= found.threshold}
    large = {LARGE} if found.large in (math.inf, 0) else {int(found.large), int(found.large) + 1}
    sizes |= {(each, each <= found.threshold) for each in large if each}
    return sorted(sizes)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_engines_exchange_exactly_the_messages_in_the_table(one, other):
    builds = BUILDS[one], BUILDS[other]
    judgement = judge(*builds)
    talk = Talk(*builds)
    assert talk.connected is (judgement["connect"].word == "yes")
    if not talk.connected:
        assert {judgement[each].word for each in CLASSES if each != "discovery"} == {"no"}
        return
    for sender in (0, 1):
        there, here = builds[sender], builds[1 - sender]
        found = reach(there, here)
        for length, synchronous in lengths_to_try(there, here):
            expected = found.limit(length, synchronous=synchronous)
            if expected is not None:
                # What does not arrive blocks the way: each such message is a meeting of its own.
                assert not Talk(*builds).arrives(sender, length, synchronous=synchronous), (length, expected)
            else:
                assert talk.arrives(sender, length, synchronous=synchronous), (sender, length, synchronous)


@pytest.mark.parametrize(
    ("one", "other"), [pair for pair in PAIRS if {"mxoe", "N4", "N2", "little-endian"} >= set(pair)]
)
def test_strangers_find_each_other_as_in_the_table(one, other):
    world = Meeting(BUILDS[one], BUILDS[other], strangers=True)
    world.seconds(12)
    names = [{peer.name for peer in node.peers if peer.own is None} for node in world.nodes]
    found = all(f"host{1 - host}:0" in names[host] for host in (0, 1))
    assert found, "announcements and names are understood in every build"
    alike = judge(BUILDS[one], BUILDS[other])["discovery"].word == "yes"
    indexes = [{frame.src_dst_peer_index for frame in world.sent(HostReply, host)} for host in (0, 1)]
    assert (indexes[0] == indexes[1]) is alike, f"both announce index 1, each in its own order: {indexes}"


def test_another_ethertype_is_another_network():
    judgement = judge(BUILDS["N4"], Build(omx(9000), ethertype=0x86DD))
    assert {each.word for each in judgement.values()} == {"no"}
    assert "0x86DD" in judgement["connect"].why and judgement["connect"].change


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_incompatibilities_are_explained_and_can_be_changed(one, other):
    forth, back = judge(BUILDS[one], BUILDS[other]), judge(BUILDS[other], BUILDS[one])
    assert {each: forth[each].word for each in CLASSES} == {each: back[each].word for each in CLASSES}
    for answer in forth.values():
        assert bool(answer.why) is bool(answer.change) is (answer.word != "yes")


@pytest.mark.parametrize(
    ("length", "synchronous", "reason"),
    [
        (128, False, None),
        (129, False, "no fragments"),
        (32768, False, "no fragments"),
        (32769, False, None),
        (128, True, None),
        (100_000, False, None),
        (100_001, False, "no replies"),
        (100_001, True, "no replies"),
    ],
)
def test_the_kind_of_a_message_decides_which_limit_it_has(length, synchronous, reason):
    """SMALLs have none; a synchronous message is pulled, whatever its length."""
    limits = Reach(medium=0, large=100_000, threshold=32768, why_medium="no fragments", why_large="no replies")
    assert limits.limit(length, synchronous=synchronous) == reason


def test_mediums_have_three_formats():
    dialects = (MXOE, omx(9000, "N1"), omx(9000, "N2"), omx(9000, "N3"), omx(9000))
    assert [medium_format(each) for each in dialects] == ["piped", "piped", "piped", "N3", "N4"]
