"""Recordings with real hosts, of probes and of a killed sender: whatever proves no host wrong is reported as a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import HostQuery
from mxwire.wire.probes import is_probe
from tests.cli.support import mxwire

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "real-host").glob("probes-*.pcap"))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.stem)
def test_probes_pass_verify_as_notes(recording):
    run = mxwire("verify", "--json", recording)
    assert run.code == 0
    findings = [each for each in run.objects if each["record"] == "finding"]
    assert findings and all(each["severity"] == "note" for each in findings)
    assert all(each["found"].endswith("(a probe)") for each in findings)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.stem)
def test_probes_are_not_zombie_pulls(recording):
    run = mxwire("diagnose", "--json", recording)
    assert [each["id"] for each in run.objects if each["record"] == "finding"] == ["endpoint-closed"]


@pytest.mark.parametrize(("magic", "probe"), [(0x13052008, False), (0x13052009, False), (5, False), (0x6D780001, True)])
def test_a_query_is_recognised_by_its_magic(magic, probe):
    query = HostQuery(dst_mac=b"\2" * 6, src_mac=b"\4" * 6, src_dst_peer_index=1, magic=magic)
    parsed = codec_of(MXOE).parse(codec_of(MXOE).build(query))
    assert is_probe(parsed) is probe


def test_a_notify_for_a_killed_sender_is_a_note():
    """The real host sends it to the new process (R-MEA-14)."""
    run = mxwire("diagnose", "--json", RECORDINGS[0].parent / "sender-killed.pcapng")
    (found,) = [each for each in run.objects if each["record"] == "finding"]
    assert (found["id"], found["severity"], run.code) == ("notify-for-former-process", "note", 0)
    assert [each["frames"] for each in found["evidence"]] == [[22], [27]]


def test_a_notify_after_a_nack_of_success_is_a_note():
    """A NACK_MCP of type 0 has a real host report a message of which no reply was sent (R-NAK-09)."""
    run = mxwire("verify", "--json", RECORDINGS[0].parent / "pull-odd-type.pcap")
    findings = [each for each in run.objects if each["record"] == "finding"]
    found = {(each["host"], each["rule"], each["severity"]) for each in findings}
    assert found == {("02:00:00:00:00:77", "R-NAK-09", "violation"), ("52:54:00:0a:00:01", "R-NAK-09", "note")}


def diagnosed(name):
    run = mxwire("diagnose", "--json", RECORDINGS[0].parent / name)
    return [each for each in run.objects if each["record"] == "finding"]


def test_a_receiver_killed_in_the_middle_of_a_pull_is_reported():
    """Its host runs on, without the driver that was part of the killed program: the sender waited for 85 s."""
    found, cut = diagnosed("receiver-killed-in-pull.pcap.gz")
    assert (found["id"], found["severity"], found["confidence"]) == ("pull-stopped", "error", "high")
    assert 85 < found["cost_s"] < 86 and cut["id"] == "capture-frames-cut"
    assert found["evidence"][0]["text"].endswith("3768320 bytes passed, then no PULL for 85.4 s")


def test_pulls_of_dead_processes_are_not_frames_with_an_outdated_index():
    """They keep the index of their first time, and share a handle (D-13)."""
    findings = diagnosed("pulls-without-answer.pcap")
    assert {each["id"] for each in findings} == {"zombie-pull"}
    assert [len(each["evidence"]) for each in findings] == [1, 1]


def test_a_host_whose_name_alone_is_queried_is_a_warning_without_cost():
    """An entry left in a peer table: no transfer waits for it."""
    (found,) = diagnosed("name-of-a-missing-host.pcap")
    assert (found["id"], found["severity"], found["cost_ns"]) == ("mute-peer", "warning", None)
