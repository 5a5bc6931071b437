"""``mxwire verify`` as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

from tests.cli.support import CAPTURES, ROOT, mxwire
from tests.cli.test_transcripts import acked_nothing

ECHO = CAPTURES / "mxoe-echo-checksum-debug.pcap"


def test_a_reader_that_has_ended_does_not_hide_violations(tmp_path):
    acked_nothing(tmp_path / "acked.pcap")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, ROOT / "cli.py", "verify", "--from-start", tmp_path / "acked.pcap"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_missing_host_has_no_case_in_junit_results(tmp_path):
    absent = "02:00:00:00:00:77"
    mxwire("verify", "--junit", tmp_path / "report.xml", "--host", absent, ECHO)
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suite.get("tests") == "0"


def test_junit_is_a_file_beside_the_output(tmp_path):
    path = tmp_path / "acked.pcap"
    number = acked_nothing(path)
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
