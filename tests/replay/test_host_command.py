"""``mxwire replay --as`` without an interface: against a simulated host, and what is refused."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import CAPTURES, EVERY_TYPE
from tests.cli.support import mxwire as mxwire_process
from tests.replay.inside import mxwire

A, B = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
AS_FOUND = ("--simulate", "open-mx-1.5-as-found")


def test_the_same_kind_of_host_answers_alike() -> None:
    run = mxwire_process("replay", EVERY_TYPE, "--as", A, *AS_FOUND)
    assert run.code == 0, run.err
    assert run.lines[0].startswith(f"{A} of ") and run.lines[0].endswith("dialect mxoe")
    assert run.lines[1:] == [
        "played 21 frames; 21 of 21 recorded answers arrived",
        "no difference: the live host answers as the recorded one did",
    ]


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


def test_a_key_that_is_refused_ends_it() -> None:
    run = mxwire("replay", CAPTURES / "mxoe-burst.pcap", "--as", A, *AS_FOUND, "--key", "0xABCD")
    assert run.code == 1
    assert any(line.startswith("played 1 frame; 1 of ") for line in run.lines), run.out
    assert "it refuses the key of the connect (--key gives another one)" in " ".join(run.lines[-2:])


def test_discovery_alone_is_nothing_to_play() -> None:
    run = mxwire("replay", CAPTURES / "mxoe-driver-load.pcap", "--as", A, *AS_FOUND)
    assert run.code == 2 and "there is only discovery, which every host does by itself" in run.err


def test_the_capture_is_not_overwritten() -> None:
    capture = CAPTURES / "mxoe-connect.pcap"
    before = capture.read_bytes()
    run = mxwire("replay", capture, "--as", A, *AS_FOUND, "-w", capture)
    assert run.code == 2 and "is one of the captures" in run.err
    assert capture.read_bytes() == before


def test_scenarios_are_played_by_another_command() -> None:
    run = mxwire("replay", "connect/bad-key.mxs", "-i", "eth0")
    command = "mxwire scenario run connect/bad-key.mxs -i IF --target HOST --ladder"
    assert (run.code, run.out, run.err) == (2, "", f"mxwire: a scenario is played by {command}\n")
