"""Recordings of real hosts are correct by definition: no rule may report a violation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from mxwire.capture import open_capture
from mxwire.rules import CAPTURE, Judge
from mxwire.wire.codec import codec_of
from tests.wire.support import CAPTURES, DATA, dialect_of, read_capture

STARTED = replace(CAPTURE, from_start=True, hz=250)
SENT = replace(STARTED, as_sent=True)
"""Nothing was lost, repeated or reordered on the way."""
IMPAIRED = {
    "mxoe-early",
    "mxoe-lossy-1M",
    "mxoe-medium-pipeline11",
    "mxoe-nack-mcp-rdmawin",
    "mxoe-rndv-offset",
    "omx1500-early",
    "omx9000-lossy-1M",
    "omx9000-nack-mcp-rdmawin",
}
"""Recorded behind a network that loses, repeats or reorders, or of a peer made by hand."""


@cache
def parsed(capture):
    batch = read_capture(capture)
    codec = codec_of(dialect_of(capture))
    return [
        (
            int(batch.timestamp_ns[index]),
            codec.parse(batch.frame(index), int(batch.wire_length[index])),
            batch.frame(index),
            index + 1,
            int(batch.wire_length[index]),
        )
        for index in range(len(batch))
    ]


def findings(capture, vantage):
    judge = Judge(dialect_of(capture), vantage)
    found = []
    for time_ns, frame, raw, number, wire_length in parsed(capture):
        found += judge.observe(time_ns, frame, raw, number, wire_length=wire_length)
    return [*found, *judge.finish()]


@pytest.mark.parametrize("vantage", [CAPTURE, STARTED], ids=["begun at any moment", "begun before the programs"])
@pytest.mark.parametrize("capture", CAPTURES)
def test_no_violations(capture, vantage):
    found = [each for each in findings(capture, vantage) if each.severity != "note"]
    assert not [str(each) for each in found if (capture, each.rule) != ("mxoe-rndv-offset", "R-RDV-01")]


@pytest.mark.parametrize("capture", [each for each in CAPTURES if each not in IMPAIRED])
def test_recordings_at_the_sender_follow_the_strict_rules_too(capture):
    assert not [str(each) for each in findings(capture, SENT) if each.severity != "note"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_capture_may_begin_anywhere(capture):
    """An unknown past does not turn a correct frame into a violation."""
    frames = parsed(capture)
    for share in (0.1, 0.3, 0.5, 0.8):
        judge = Judge(dialect_of(capture))
        for time_ns, frame, raw, number, wire_length in frames[int(len(frames) * share) :]:
            found = judge.observe(time_ns, frame, raw, number, wire_length=wire_length)
            assert not [str(each) for each in found if each.severity == "violation"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_capture_with_gaps_accuses_no_host(capture):
    judge = Judge(dialect_of(capture), replace(CAPTURE, complete=False))
    for time_ns, frame, raw, number, wire_length in parsed(capture):
        if number % 7 in (0, 3):
            continue
        found = judge.observe(time_ns, frame, raw, number, wire_length=wire_length)
        assert not [str(each) for each in found if each.severity == "violation"]


@pytest.mark.rule("R-MEA-14", "R-NOT-01")
@pytest.mark.parametrize("vantage", [CAPTURE, STARTED], ids=["begun at any moment", "begun before the programs"])
@pytest.mark.parametrize("name", ["mxoe", "omx9000"])
def test_a_real_host_may_notify_the_next_session(name, vantage):
    """A sender of mxwire dies while a real host pulls from it; frames of the second one are cut at 160 bytes."""
    judge, codec, found = Judge(dialect_of(name), vantage), codec_of(dialect_of(name)), []
    for batch in open_capture(DATA / "real-host" / f"{name}-sender-killed.pcapng"):
        for index in range(len(batch)):
            raw, length = batch.frame(index), int(batch.wire_length[index])
            number = int(batch.number[index])
            frame = codec.parse(raw, length)
            found += judge.observe(int(batch.timestamp_ns[index]), frame, raw, number, wire_length=length)
    assert [(each.rule, each.severity, each.host.hex()) for each in found] == [("R-MEA-14", "note", "5254000a0001")]


def test_known_defects_are_noted():
    found = Counter(each.rule for each in findings("mxoe-no-reverse-connect", STARTED))
    assert found == {"D-1": 3, "R-CON-12": 1}
    assert "R-RTX-05" in {each.rule for each in findings("mxoe-resends-exhausted", STARTED)}
