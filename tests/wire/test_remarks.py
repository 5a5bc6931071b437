"""Remarks on well-formed frames, checked against the real driver's reaction to such frames."""

from __future__ import annotations

import dataclasses

import pytest

from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import hostname_text, sequence_text
from mxwire.wire.packets import Frame, HostReply, Pull, Truc
from mxwire.wire.remarks import remarks

from .support import CAPTURES, DIALECTS, VERDICT_FILES, Verdict, dialect_of, frames_of, read_capture, read_verdicts
from .test_codec import HOSTS, MEDIUM, PULL, TINY

EARLIER = {"Drop Bad Peer Index", "Drop Bad Endpoint", "Drop Bad Session"}
"""Reasons checked before the conditions here; a frame refused for these never gets to them."""


def judged(name: str) -> list[tuple[Verdict, Frame, list[str]]]:
    """The well-formed frames of a file with their remarks."""
    codec = codec_of(DIALECTS[name])
    read = [
        (verdict, codec.parse(verdict.frame)) for verdict in read_verdicts(name) if verdict.frame[12:14] == b"\x86\xdf"
    ]
    return [
        (verdict, frame, remarks(frame, codec.dialect)) for verdict, frame in read if not isinstance(frame, Malformed)
    ]


@pytest.mark.parametrize("name", VERDICT_FILES)
@pytest.mark.parametrize(
    ("frame_class", "remark", "counter", "before"),
    [
        (Pull, "requests", "Drop Pull Bad Number of Replies", EARLIER),
        (Pull, "no region", "Drop Pull Bad Region", EARLIER | {"Drop Pull Bad Number of Replies"}),
        (Truc, "data length below 16", "Drop Bad Data Length", EARLIER),
    ],
)
def test_frames_with_a_dropping_remark_are_dropped(name, frame_class, remark, counter, before):
    """For that reason, or for one that is tested before; and nothing else is counted so."""
    met = 0
    for verdict, frame, output in judged(name):
        if not isinstance(frame, frame_class):
            continue
        if any(each.startswith(remark) for each in output):
            assert set(verdict.counters) & ({counter} | before), verdict
            met += 1
        elif remark != "no region":
            assert counter not in verdict.counters, verdict
    assert met or (name, remark) == ("mxoe", "no region")


@pytest.mark.parametrize("capture", CAPTURES)
def test_real_hosts_give_one_cause_only(capture):
    """Sessions that the sender never learnt; all else in the captures is as it should be."""
    codec = codec_of(dialect_of(capture))
    batch = read_capture(capture)
    for index, raw in enumerate(frames_of(batch)):
        output = remarks(codec.parse(raw, int(batch.wire_length[index])), codec.dialect)
        unknown = any(raw[at : at + 4] == b"\xff" * 4 for at in {35: [24], 41: [20], 43: [20]}.get(raw[16], []))
        assert output == (["session unknown to the sender (R-CON-12)"] if unknown else [])


def test_most_frames_deserve_none():
    assert remarks(TINY, MXOE) == remarks(PULL, MXOE) == remarks(MEDIUM, MXOE) == []


def test_a_fragment_longer_than_its_message():
    assert remarks(dataclasses.replace(MEDIUM, length=3), MXOE) == [
        "the fragment is longer than the message (R-MED-04)"
    ]


@pytest.mark.parametrize(
    ("length", "name", "count"), [(0, b"", 1), (1, b"\0", 0), (80, bytes(80), 0), (81, bytes(81), 1), (9, b"x", 1)]
)
def test_names_of_impossible_length(length, name, count):
    reply = HostReply(**HOSTS, length=length, src_dst_peer_index=1, magic=2, hostname=name)
    assert len(remarks(reply, MXOE)) == count


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1, "1"), (0x3FFF, "16383"), (0x4000, "1/0"), (0x5001, "1/4097"), (0xFFFF, "3/16383")],
)
def test_sequence_numbers(number, text):
    assert sequence_text(number) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"vm1:0\0", "vm1:0"),
        (b"vm1:0", "vm1:0"),
        (b"a\0b", "a"),
        (b"", ""),
        (b"a\nb\x1b[m\0", r"a\x0ab\x1b[m"),
        (b"\xff\0", r"\xff"),
    ],
)
def test_host_names(raw, text):
    assert hostname_text(raw) == text
