"""Former defects, each as a user would meet it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.cli.catalogue import TOPICS
from mxwire.frames import LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2
from tests.captures import read_batch, write_capture
from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT, mxwire
from tests.forked import start


def cooked(frame: bytes, version: int, kind: int = 0) -> bytes:
    """An Ethernet frame as a Linux cooked capture has it; kind 0 is for this host, 1 a broadcast, 4 sent by it."""
    if version == 1:
        return bytes([0, kind]) + bytes.fromhex("00010006") + frame[6:12] + bytes(2) + frame[12:]
    head = bytes.fromhex("0000000000010001") + bytes([kind, 6])
    return frame[12:14] + head + frame[6:12] + bytes(2) + frame[14:]


def test_a_last_fragment_alone_reveals_no_frame_limit(tmp_path):
    frames = read_batch(CAPTURES / "omx1500-echo-pattern.pcap")
    made = mxwire("decode", "--json=full", "--type", "MEDIUM", CAPTURES / "omx1500-echo-pattern.pcap").objects
    last = [each["frame"] for each in made if each["fields"]["frag_length"] < 1452 and each["fields"]["frag_seqnum"]]
    for number in last[:5]:
        (alone,) = mxwire("decode", "--json=full", write_capture(tmp_path / "one.pcap", [frames[number - 1]])).objects
        assert alone["dialect"] == "omx" and alone["malformed"] is None


def test_small_captures_are_decoded_alike_however_they_are_read():
    whole = mxwire("decode", "--json=full", CAPTURES / "omx9000-vect.pcap").objects
    assert {each["dialect"] for each in whole} == {"omx:9000"}


@pytest.mark.parametrize(("link_type", "version"), [(LINKTYPE_LINUX_SLL, 1), (LINKTYPE_LINUX_SLL2, 2)])
def test_cooked_captures(tmp_path, link_type, version):
    frames = read_batch(EVERY_TYPE)
    path = write_capture(
        tmp_path / "cooked.pcap", [cooked(each, version) for each in frames], frames.timestamp_ns, link_type=link_type
    )
    (made,) = mxwire("info", "--json", path).objects
    assert {host["address"] for host in made["hosts"]} == {"52:54:00:0a:00:01", "52:54:00:0a:00:02"}
    assert {each["host"] for each in made["endpoints"]} == {"52:54:00:0a:00:01", "52:54:00:0a:00:02"}
    assert {(tuple(pair["hosts"]), pair["dialect"]) for pair in made["dialects"]} == {
        (("52:54:00:0a:00:01",), "mxoe"),
        (("52:54:00:0a:00:02",), "mxoe"),
    }
    assert "52:54:00:0a:00:01 and its peers" in " ".join(mxwire("info", path).out.split())
    cooked_frames, whole = (mxwire("decode", "--json=full", *each).objects for each in (("-v", path), (EVERY_TYPE,)))
    for record, plain in zip(cooked_frames, whole, strict=True):
        raw = cooked(frames[record["frame"] - 1], version)
        for field in record["layout"]:
            assert raw[field["offset"] : field["offset"] + field["size"]].hex() == field["bytes"], field["name"]
        assert record["destination"] is None and "dst_mac" not in record["fields"]
        assert record["fields"] == {name: value for name, value in plain["fields"].items() if name != "dst_mac"}


@pytest.mark.parametrize(("link_type", "version"), [(LINKTYPE_LINUX_SLL, 1), (LINKTYPE_LINUX_SLL2, 2)])
def test_cooked_broadcasts_have_their_destination_and_blame_no_host(tmp_path, link_type, version):
    frames = read_batch(EVERY_TYPE)
    own = frames[0][6:12]
    kinds = [4 if each[6:12] == own else each[0] & 1 for each in frames]
    made = [cooked(each, version, kind) for each, kind in zip(frames, kinds, strict=True)]
    path = write_capture(tmp_path / "cooked.pcap", made, frames.timestamp_ns, link_type=link_type)
    shown = [each["destination"] for each in mxwire("decode", "--json=full", path).objects]
    assert shown == ["ff:ff:ff:ff:ff:ff" if kind == 1 else None for kind in kinds] and any(shown)
    assert mxwire("verify", path).code == 0
    assert "destinations are not recorded" in " ".join(mxwire("info", path).out.split())


@pytest.mark.parametrize(("link_type", "version"), [(LINKTYPE_LINUX_SLL, 1), (LINKTYPE_LINUX_SLL2, 2)])
def test_cooked_captures_of_two_interfaces_show_every_frame_twice(tmp_path, link_type, version):
    """``tcpdump -i any`` records a frame on each interface through which it passes."""
    frames = read_batch(EVERY_TYPE)
    made = [cooked(each, version) for each in frames for _ in range(2)]
    twice = [time + later for time in frames.timestamp_ns for later in (0, 3000)]
    path = write_capture(tmp_path / "doubled.pcap", made, twice, link_type=link_type)
    run = mxwire("diagnose", "--json", path)
    assert [each["id"] for each in run.objects if each["record"] == "finding"] == ["capture-frames-doubled"]
    single = write_capture(tmp_path / "single.pcap", made[::2], frames.timestamp_ns, link_type=link_type)
    run = mxwire("diagnose", "--json", single)
    assert not [each for each in run.objects if each["record"] == "finding"]
    assert "capture one interface (-i eth0)" in run.objects[-1]["not_judged"][0]


def test_a_table_does_not_touch_a_file_that_it_cannot_replace(tmp_path):
    keep = tmp_path / "keep.csv"
    keep.write_text("mine")
    assert mxwire("decode", "--to", keep, tmp_path / "absent.pcap").code == 2
    assert keep.read_text() == "mine"
    capture = tmp_path / "capture.csv"
    capture.write_bytes(EVERY_TYPE.read_bytes())
    run = mxwire("decode", "--to", capture, capture)
    assert run.code == 2 and "is one of the captures" in run.err
    assert capture.read_bytes() == EVERY_TYPE.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["capture.csv", "keep.csv"]


@pytest.mark.parametrize(
    "arguments",
    [["decode", str(EVERY_TYPE)], ["info", str(EVERY_TYPE)], ["formats"], ["--help"], ["--version"]],
    ids=str,
)
def test_full_disk_is_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, str(ROOT / "cli.py"), *arguments], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == (
        b"mxwire: the output cannot be written: No space left on device; free some space, or choose another place\n"
    )


def test_terminal_without_unicode():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, str(ROOT / "cli.py"), "decode", "--count", "1", str(EVERY_TYPE)]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0 and b"vm1:0             >" in done.stdout and done.stderr == b""


def on_terminal(*arguments: str, **environment: str) -> bytes:
    """The output of a command on a terminal of 80 columns."""
    leader, follower = pty.openpty()
    command = [sys.executable, str(ROOT / "cli.py"), *arguments]
    process = start(command, stdout=follower, env=os.environ | {"COLUMNS": "80", "TERM": "xterm"} | environment)
    assert process is not None
    os.close(follower)
    read = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        read += piece
    os.close(leader)
    assert process.wait(30) == 0
    return read


def test_colour_on_a_terminal_unless_unwanted():
    arguments = "decode", "--type", "NACK_MCP", str(EVERY_TYPE)
    assert b"\x1b[31m" in on_terminal(*arguments)
    assert b"\x1b[" not in on_terminal(*arguments, NO_COLOR="1")
    assert b"\x1b[" not in on_terminal(*arguments, TERM="dumb")


def test_info_fits_a_terminal():
    shown = on_terminal("info", str(EVERY_TYPE), NO_COLOR="1").decode()
    for piece in ("MEDIUM", "4097..32768", "32769..1048576"):
        assert piece in shown


def test_topics_fit_a_terminal():
    for topic in TOPICS:
        lines = on_terminal("help", topic, NO_COLOR="1").decode().splitlines()
        # A command that is copied must not have a line break in it.
        assert all(len(line) <= 80 or line.startswith(("  mxwire ", "  sudo ")) for line in lines), topic


def test_undecided_captures_are_counted_once():
    run = mxwire("decode", CAPTURES / "mxoe-connect.pcap", CAPTURES / "omx9000-connect.pcap", EVERY_TYPE)
    assert run.err.count("\n") == 1 and "2 of 3 captures: no packet decides the dialect" in run.err


def test_same_capture_twice_has_two_headings():
    run = mxwire("decode", "--count", "100", EVERY_TYPE, EVERY_TYPE)
    assert [line for line in run.lines if line.startswith("==")] == [f"== {EVERY_TYPE}"] * 2
    assert run.lines[89].split()[1] == "0.000000000"
