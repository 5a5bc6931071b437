"""``mxwire replay --as`` without an interface: against a simulated host, and what is refused."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import CAPTURES, EVERY_TYPE
from tests.replay.inside import mxwire

A, B = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
AS_FOUND = ("--simulate", "open-mx-1.5-as-found")


def test_another_kind_of_host_is_reported_by_rule(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    run = mxwire("replay", EVERY_TYPE, "--as", A, "--simulate", "native-mx", "--json", "-w", kept)
    assert run.code == 1, run.err
    begin, *differences, summary = run.objects
    assert begin["event"] == "begin" and (begin["played"], begin["recorded"]) == (A, B)
    assert {each["rule"] for each in differences if each["whose"] == "protocol"} == {"R-SND-01", "R-SND-03", "R-MED-02"}
    assert summary["event"] == "summary" and summary["came"] < summary["expected"] and not summary["failure"]
    verified = mxwire("verify", "--json", kept)
    assert verified.code == 0, verified.out


def test_the_capture_is_not_overwritten() -> None:
    capture = CAPTURES / "mxoe-connect.pcap"
    before = capture.read_bytes()
    run = mxwire("replay", capture, "--as", A, *AS_FOUND, "-w", capture)
    assert run.code == 2 and "is one of the captures" in run.err
    assert capture.read_bytes() == before
