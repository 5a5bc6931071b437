"""``mxwire replay`` without an interface: what would be sent, and what is refused."""

from __future__ import annotations

import pytest

from tests.cli.support import CAPTURES, EVERY_TYPE
from tests.cli.support import mxwire as mxwire_process
from tests.replay.inside import mxwire

CONNECT = CAPTURES / "mxoe-connect.pcap"


def test_a_dry_run_lists_the_frames_and_times() -> None:
    run = mxwire_process("replay", CONNECT, "--dry-run", "--speed", "2", "--frames", "2-3,12")
    assert run.code == 0, run.err
    assert [line.split()[0] for line in run.lines] == ["0.000000000", "0.002764975", "0.610138455"]
    assert "frame     12  52:54:00:0a:00:02 → 52:54:00:0a:00:01  TRUC          60 bytes" in run.lines[2]
    assert "would send 3 frames, 180 bytes in 0.610138 s" in run.err


def test_a_dry_run_as_objects_with_filters_and_addresses() -> None:
    mapped = "52:54:00:0a:00:01=02:00:00:00:00:07"
    run = mxwire(
        *("replay", EVERY_TYPE, "--dry-run", "--json", "--type", "CONNECT", "--type", "truc", "--map", mapped),
        *("--rate", "1000/s", "--loop", 2, "--host", "52:54:00:0a:00:01", "--endpoint", "5"),
    )
    assert run.code == 0, run.err
    *frames, plan = run.objects
    assert plan == {"event": "plan", "frames": 6, "bytes": 360, "requested_us": 5000.0}
    assert [each["at_us"] for each in frames] == [1000.0 * place for place in range(6)]
    assert {each["type"] for each in frames} == {"CONNECT", "TRUC"}
    assert all("02:00:00:00:00:07" in (each["source"], each["destination"]) for each in frames)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "name the interface to send on, like -i eth0"),
        (("--dry-run", "--loop", "0"), "would never end"),
        (("--dry-run", "--rate", "fast"), "'fast' is not a rate"),
        (("--dry-run", "--rate", "1/s", "--speed", "2"), "choose one"),
        (("--dry-run", "--map", "a=b"), "'b' is not an Ethernet address"),
        (("--dry-run", "--map", "52:54:00:0a:00:01"), "write it like"),
        (("--dry-run", "--map", "52:54:00:0a:00:01=self"), "name it with -i IF"),
        (("--dry-run", "--type", "TINI"), "did you mean TINY?"),
        (("--dry-run", "--frames", "900-"), "no frame matches the selection"),
        (("--dry-run", "--ethertype", "0x88B5"), "it has no MXoE frames"),
        (("--dry-run", "--endpoint", "1", "--endpoint", "2"), "give one number"),
        (("--dry-run", "--against", "52:54:00:0a:00:02"), "--against is for a played host"),
        (("--as", "52:54:00:0a:00:01", "--top-speed"), "--top-speed is for unchanged frames"),
        (("-i", "nosuch0"), "there is no interface 'nosuch0'"),
        (("-i", "lo"), "a loopback interface"),
    ],
)
def test_mistakes_are_reported_in_one_line(options: tuple[str, ...], words: str) -> None:
    run = mxwire("replay", CONNECT, *options)
    assert run.code == 2 and words in run.err, run.err
    assert run.out == "" and run.err.count("mxwire: ") - run.err.count("are not MXoE") == 1, run.err


def test_frames_of_a_dialect_cannot_be_converted() -> None:
    run = mxwire("replay", CAPTURES / "mxoe-burst.pcap", "--dry-run", "--dialect", "omx:1500")
    assert run.code == 2 and "speaks mxoe, and its frames cannot be converted to omx:1500" in run.err
    assert mxwire("replay", CAPTURES / "mxoe-burst.pcap", "--dry-run", "--dialect", "mxoe").code == 0


def test_frames_that_were_cut_off_are_left_out_unless_filled_up() -> None:
    lossy = CAPTURES / "mxoe-lossy-1M.pcap"
    run = mxwire("replay", lossy, "--dry-run", "--type", "PULL_REPLY")
    assert run.code == 2 and "all its frames are cut off (--pad pads them)" in run.err
    run = mxwire("replay", lossy, "--dry-run", "--type", "PULL_REPLY", "--pad", "--json", "--top-speed")
    assert run.code == 0 and len(run.lines) == 734 and run.objects[0]["length"] > 4096


def test_a_file_that_is_not_a_capture_is_refused() -> None:
    run = mxwire("replay", __file__, "--dry-run")
    assert run.code == 2 and "not a capture" in run.err, run.err
