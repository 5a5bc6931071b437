"""``mxwire verify`` as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Truc
from tests.captures import read_batch, write_capture
from tests.cli.support import CAPTURES, ROOT, mxwire

FIRST, SECOND = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
ECHO = CAPTURES / "mxoe-echo-checksum-debug.pcap"


@pytest.fixture
def wrong(tmp_path):
    """A capture in which one ack is for a message that was never sent."""
    codec = codec_of(MXOE)
    batch = read_batch(ECHO)
    frames = [batch.frame(index) for index in range(len(batch))]
    place = next(i for i, each in enumerate(frames) if isinstance(codec.parse(each), Truc))
    acked = codec.parse(frames[place])
    frames[place] = codec.build(replace(acked, liback_lib_seqnum=acked.liback_lib_seqnum + 3))
    path = write_capture(tmp_path / "wrong.pcap", frames, batch.timestamp_ns.tolist())
    return path, place + 1


def test_a_broken_must_is_shown_with_its_frame(wrong):
    path, number = wrong
    run = mxwire("verify", "--from-start", path)
    assert run.code == 1
    assert "violation" in run.out and f"frame {number}" in run.out.replace(f", {number}", f" frame {number}")
    assert "fail" in run.out and "mxwire rules NUMBER" in run.out


def test_a_reader_that_has_ended_does_not_hide_violations(wrong):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, ROOT / "cli.py", "verify", "--from-start", wrong[0]]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_json_has_the_same_content(wrong):
    path, number = wrong
    run = mxwire("verify", "--from-start", "--json", path)
    assert run.code == 1
    findings = [each for each in run.objects if each["record"] == "finding"]
    hosts = [each for each in run.objects if each["record"] == "host"]
    (found,) = [each for each in findings if each["severity"] == "violation" and each["frames"][-1] == number]
    assert set(found) == {
        "record", "file", "rule", "severity", "host", "frames", "time_ns", "time_s", "time_relative_s",
            "expected", "found",
    }  # fmt: skip
    assert {each["host"]: each["verdict"] for each in hosts}[found["host"]] == "fail"
    assert all(each["rules"] and each["frames"] for each in hosts)


def test_one_host_and_some_rules(wrong):
    path, _ = wrong
    every = mxwire("verify", "--from-start", "--json", path).objects
    guilty = next(each["host"] for each in every if each["record"] == "finding" and each["severity"] == "violation")
    other = ({FIRST, SECOND} - {guilty}).pop()
    assert mxwire("verify", "--from-start", "--host", guilty, path).code == 1
    one = mxwire("verify", "--from-start", "--json", "--host", other, path)
    assert one.code == 0 and {each["host"] for each in one.objects} == {other}
    assert mxwire("verify", "--from-start", "--rules", "R-DISC,R-HOST", path).code == 0
    assert mxwire("verify", "--from-start", "--rules", "R-ACK", path).code == 1


def test_host_that_sends_nothing_is_missing(tmp_path):
    absent = "02:00:00:00:00:77"
    run = mxwire("verify", "--json", "--host", absent, ECHO)
    (host,) = run.objects
    assert run.code == 0
    assert (host["host"], host["verdict"], host["frames"], host["rules"]) == (absent, "missing", 0, [])
    assert f"{absent}  missing" in mxwire("verify", "--host", absent, ECHO).out
    mxwire("verify", "--junit", tmp_path / "report.xml", "--host", absent, ECHO)
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suite.get("tests") == "0"


def test_junit_is_a_file_beside_the_output(wrong, tmp_path):
    path, number = wrong
    run = mxwire("verify", "--from-start", "--junit", tmp_path / "report.xml", path, ECHO)
    assert run.code == 1
    assert run.out == mxwire("verify", "--from-start", path, ECHO).out
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert len(suites) == 4
    (bad,) = [suite for suite in suites if suite.get("failures") != "0"]
    failures = bad.findall("testcase/failure")
    assert str(len(failures)) == bad.get("failures")
    assert any(f"{number})" in (each.text or "") for each in failures)
    assert all(int(suite.get("tests")) == len(suite) > 10 for suite in suites)


def test_a_capture_is_not_overwritten_by_junit_results(tmp_path):
    capture = tmp_path / "a.pcap"
    capture.write_bytes(ECHO.read_bytes())
    run = mxwire("verify", "--junit", capture, ECHO)
    assert run.code == 2 and "is not XML" in run.err
    assert capture.read_bytes() == ECHO.read_bytes()


def test_a_cooked_capture_is_judged_frame_by_frame(tmp_path):
    path = tmp_path / "cooked.pcapng"
    head = bytes.fromhex("0000 0001 0006 52540010a001 0000 86df".replace(" ", ""))
    with open_capture(ECHO) as reader, create_capture(path, link_type=LINKTYPE_LINUX_SLL) as writer:
        batch = next(iter(reader))
        frames = [head + batch.frame(index)[14:] for index in range(len(batch))]
        writer.write(FrameBatch.from_frames(frames, batch.timestamp_ns.tolist(), link_type=LINKTYPE_LINUX_SLL))
    run = mxwire("verify", path)
    assert run.code == 0 and "only rules about single frames were checked" in run.out


def test_a_lossy_capture_blames_no_host(wrong):
    path, _ = wrong
    assert mxwire("verify", "--from-start", "--lossy", path).code == 0


def test_traffic_before_the_capture_is_not_counted_as_a_breach(wrong):
    """An ack may be for a message that was sent before, unless the user knows better."""
    path, _ = wrong
    assert mxwire("verify", path).code == 0


def test_one_bad_file_of_several(tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture at all, but long enough to be one")
    run = mxwire("verify", bad, ECHO)
    assert run.code == 2 and "bad.pcap" in run.err and "pass" in run.out


def test_no_frames(tmp_path):
    path = write_capture(tmp_path / "empty.pcap", [])
    run = mxwire("verify", path)
    assert run.code == 2 and "no frames" in run.err and run.out == ""


def test_a_pattern_names_captures_without_workers_too():
    explicit = mxwire("verify", CAPTURES / "mxoe-connect.pcap", CAPTURES / "mxoe-cancel.pcap", "--json")
    pattern = mxwire("verify", CAPTURES / "mxoe-c*[lt].pcap", "--json")
    assert sorted(pattern.lines) == sorted(explicit.lines) and pattern.code == explicit.code == 0
    assert mxwire("verify", CAPTURES / "nothing*.pcap").err.endswith(
        "nothing*.pcap: no such files; check the pattern\n"
    )
