"""The plugin's conclusions about conversations: links, times, reassembly, flags; the same in one pass and in two."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from mxwire.dissector import expert_rows
from mxwire.frames import FrameBatch
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium
from tests.captures import write_capture
from tests.wire.support import frames_of, read_capture

from .conftest import Rows
from .support import (
    AS_TEXT,
    BACKWARD,
    CAPTURES,
    LINKS,
    Items,
    capture,
    columns,
    isolated,
    join,
    mxwire,
    needs_tshark,
    of_hosts,
    packets,
    parts,
    statistics,
)
from .test_fields import compared

pytestmark = needs_tshark


def reported(path: Path, names: tuple[str, ...], *arguments: str) -> list[list[str]]:
    return columns(path, [*AS_TEXT, *(f"mxoe.{each}" for each in names)], *arguments)


def test_two_passes_agree_with_one(captures: Path, one_pass: Rows, two_passes: Rows) -> None:
    wanted = (*AS_TEXT, *(f"mxoe.{each}" for each in BACKWARD))
    filtered = reported(captures, BACKWARD, "-2", "-R", "mxoe")
    assert one_pass(*wanted) == two_passes(*wanted) == filtered
    assert len(filtered) == sum(rows.stop - rows.start for _, rows in parts(captures))


def test_links_lead_to_and_fro(two_passes: Rows) -> None:
    links: dict[str, set[tuple[int, int]]] = {}
    for row in two_passes("frame.number", *(f"mxoe.{a}" for pair in LINKS for a in pair)):
        own = int(row[0])
        for (backward, forward), back, forth in zip(LINKS, row[1::2], row[2::2], strict=True):
            links.setdefault(backward, set()).update((int(each), own) for each in back.split(",") if each)
            links.setdefault(str(forward), set()).update((own, int(each)) for each in forth.split(",") if each)
    for backward, forward in LINKS:
        assert links.get(backward, set()) == links.get(str(forward), set())
        assert all(earlier < later for earlier, later in links.get(backward, set()))


@pytest.mark.parametrize("drop", ["mxoe.ptype == 42", "mxoe.ptype == 36 or mxoe.ptype == 39", "frame.number % 3 == 1"])
def test_read_filters(drop: str, tmp_path: Path) -> None:
    """Frames that a read filter drops share their numbers with others."""
    names = ("mxoe-every-type", "omx9000-many", "mxoe-early")
    join(tmp_path / "joined.pcap", names)
    rows = reported(tmp_path / "joined.pcap", BACKWARD, "-2", "-R", drop)
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert 0 < len(rows) < sum(len(read_capture(name)) for name in names)


@pytest.mark.skipif(shutil.which("sharkd") is None, reason="sharkd is not installed")
def test_any_order(tmp_path: Path) -> None:
    """Frames requested at random, as by the GUI, look the same each time."""
    path = capture("mxoe-every-type")
    count = len(read_capture("mxoe-every-type"))
    order = [number for _ in range(3) for number in Random(1).sample(range(1, count + 1), count)]
    asked = [{"jsonrpc": "2.0", "id": 1, "method": "load", "params": {"file": str(path)}}]
    asked += [
        {"jsonrpc": "2.0", "id": place + 2, "method": "frame", "params": {"frame": number, "proto": True}}
        for place, number in enumerate(order)
    ]
    with isolated(tmp_path) as environment:
        done = subprocess.run(
            ["sharkd", "-"],
            input="".join(json.dumps(each) + "\n" for each in asked).encode(),
            capture_output=True,
            timeout=120,
            env=environment,
        )
    answers = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]
    trees: dict[int, set[str]] = {}
    for answer in answers:
        if answer.get("id", 0) >= 2:
            trees.setdefault(order[answer["id"] - 2], set()).add(json.dumps(answer["result"]["tree"]))
    assert len(trees) == count
    assert all(len(each) == 1 for each in trees.values())
    assert "Acknowledged in" in "".join(next(iter(each)) for each in trees.values())


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in mxwire("decode", "--json=full", capture(name))]


def test_connects(captures: Path, one_pass: Rows) -> None:
    requests = one_pass("frame.number", "mxoe.request_in", "_ws.col.Info")
    for name, rows in parts(captures):
        if not name.endswith(("burst", "pingpong-small-medium", "pingpong-sync", "early")):
            continue
        expected = {}
        waiting: dict[tuple[Any, ...], int] = {}
        for each in records(name):
            fields = each["fields"]
            if each["type"] != "CONNECT":
                continue
            ends = (each["source"], fields["src_endpoint"], each["destination"], fields["dst_endpoint"])
            if fields["is_reply"]:
                key = (*ends[2:], *ends[:2], fields["connect_seqnum"], fields["src_session_id"])
                expected[each["frame"]] = waiting[key]
            else:
                waiting[(*ends, fields["connect_seqnum"], fields["src_session_id"])] = each["frame"]
        found = {
            int(number) - rows.start: int(request) - rows.start
            for number, request, info in requests[rows]
            if request and info.startswith("CONNECT ")
        }
        assert found == expected != {}, name


@pytest.mark.parametrize("captures", ["mxoe"], indirect=True)
def test_acknowledgements_of_a_burst(captures: Path, two_passes: Rows) -> None:
    """Each message leads to the first frame of the other side whose acknowledgement covers it."""
    name = "mxoe-burst"
    expected: dict[int, int] = {}
    open_messages: dict[int, int] = {}
    for each in records(name):
        fields = each["fields"]
        if each["source"].endswith("01") and "lib_piggyack" in fields:
            open_messages[fields["lib_seqnum"]] = each["frame"]
        elif each["source"].endswith("02"):
            value = fields.get("liback.lib_seqnum", fields.get("lib_piggyack", 0))
            if fields.get("session") == 0xFFFFFFFF:
                continue
            for number in [number for number in open_messages if number < value]:
                expected[open_messages.pop(number)] = each["frame"]
    rows = dict(parts(captures))[name]
    shown = two_passes("mxoe.acked_in")[rows]
    given = {place: int(row[0]) - rows.start for place, row in enumerate(shown, 1) if place in expected and row[0]}
    assert given == expected
    assert len(expected) > 60


def test_reassembled_messages(tmp_path: Path) -> None:
    """The bytes are those of the fragments in their places, reassembled here once more."""
    names = ("mxoe-echo-checksum-debug", "mxoe-medium-pipeline11", "omx1500-echo-pattern", "mxoe-rndv-offset")
    path = tmp_path / "joined.pcap"
    join(path, names)
    owners, frames = zip(*((name, frame) for name in names for frame in frames_of(read_capture(name))), strict=True)
    seen = list(packets(path, "-2"))
    assembled = [each for each in seen if "mxoe.reassembled.length" in each]
    assert {owners[int(each["mxoe.fragment"][0][0]) - 1] for each in assembled} == set(names)
    for packet in assembled:
        members = [int(each) for each, *_ in packet["mxoe.fragment"]]
        length = int(packet["mxoe.reassembled.length"][0][0])
        whole = bytearray(length)
        for member in members:
            fields = {each: int(seen[member - 1][f"mxoe.{each}"][0][0], 0) for each in _placing(seen[member - 1])}
            _, at, size = seen[member - 1]["mxoe.data"][0]
            data = frames[member - 1][at : at + size]
            start = fields.get("msg_offset")
            if start is None and "frag_pipeline" in fields:
                start = fields["frag_seqnum"] << fields["frag_pipeline"]
            elif start is None:
                start = fields["frag_seqnum"] * 1452
            whole[start : start + len(data)] = data
        assert bytes.fromhex(packet["mxoe.reassembled.data"][0][0].replace(":", "")) == bytes(whole)


def _placing(packet: Items) -> list[str]:
    return [each for each in ("msg_offset", "frag_seqnum", "frag_pipeline") if f"mxoe.{each}" in packet]


def test_the_memory_limit_is_kept() -> None:
    rows = columns(
        capture("mxoe-echo-checksum-debug"), ["mxoe.reassembled.length", "_ws.expert.message"],
        "-2", "-o", "mxoe.memory:0",
    )  # fmt: skip
    assert not any(row[0] for row in rows if row)
    assert any("memory limit" in row[-1] for row in rows if row)


def test_checksums_of_the_debug_library(tmp_path: Path) -> None:
    """All 54 fields of that recording are right (behaviour, section 25)."""
    names = ("mxoe-echo-checksum-debug", "mxoe-unexpected")
    join(tmp_path / "joined.pcap", names)
    options = ("-2", "-o", "mxoe.checksum:TRUE", "-Y", "mxoe.checksum.status and mxoe.checksum")
    rows = columns(tmp_path / "joined.pcap", ["frame.number", "mxoe.checksum.status", "mxoe.checksum.bad"], *options)
    end = len(read_capture(names[0]))
    assert [status for number, status, _ in rows if int(number) <= end] == ["Good"] * 54
    assert {status for number, status, bad in rows if int(number) > end and bad} == {"Bad"}


FLAGS = {
    "mxoe-early": {"analysis.early", "analysis.gap", "analysis.obsolete", "analysis.duplicate_ack"},
    "mxoe-lossy-1M": {"analysis.re_request", "analysis.early_re_request", "analysis.out_of_order"},
    "mxoe-connect": {"connect.bad_key", "connect.restart"},
    "mxoe-discovery-static": {"connect.repeated"},
    "mxoe-discovery-omxoed": {"host_query.repeated"},
    "mxoe-nack-lib": {"connect.refused", "nack_lib.bad_endpt", "nack_lib.endpt_closed", "nack_lib.bad_session"},
    "mxoe-nack-mcp-closed": {"nack_mcp.endpt_closed", "notify.failed"},
    "mxoe-nack-mcp-session": {"nack_mcp.bad_session", "analysis.re_request"},
    "mxoe-nack-mcp-rdmawin": {"nack_mcp.bad_rdmawin", "analysis.duplicate"},
    "mxoe-resends-exhausted": {"analysis.retransmission", "analysis.session_number", "connect.session_number"},
    "omx9000-receiver-killed": {"analysis.zombie_pull", "analysis.re_request"},
    "mxoe-truncated": {"notify.truncated"},
    "mxoe-uninit": {"undefined.leaked"},
    "mxoe-no-reverse-connect": {"connect.no_reverse", "analysis.refused"},
    "mxoe-connect-cross": set(),
    "mxoe-many-small": set(),
    "omx1500-echo-pattern": set(),
}
"""The descriptions in the index of captures can be seen in them; the last ones show nothing unusual."""


def test_flags(captures: Path, one_pass: Rows) -> None:
    wanted = sorted(each.name for each in expert_rows())
    seen = one_pass(*wanted)
    for name, rows in parts(captures):
        found = {each for row in seen[rows] for each, value in zip(wanted, row, strict=False) if value}
        if name in FLAGS:
            assert {f"mxoe.{each}" for each in FLAGS[name]} <= found, name
            assert FLAGS[name] or not found, name


def test_flags_are_those_of_captures() -> None:
    assert FLAGS.keys() <= set(CAPTURES)


def rewrite(path: Path, frames: list[bytes], gap_ns: int = 1_000_000) -> Path:
    size = np.array([len(each) for each in frames], np.int64)
    count = np.arange(len(frames))
    write_capture(
        path,
        FrameBatch(
            np.frombuffer(b"".join(frames), np.uint8), np.cumsum(size) - size, size, size, count * gap_ns, count + 1
        ),
    )
    return path


def test_little_endian_senders(tmp_path: Path) -> None:
    swapped, plain = codec_of(MXOE, swapped=True), codec_of(MXOE)
    frames = []
    for frame in frames_of(read_capture("mxoe-pingpong-small-medium")):
        parsed = plain.parse(frame)
        assert not isinstance(parsed, Malformed)
        frames.append(swapped.build(parsed))
    path = rewrite(tmp_path / "swapped.pcap", frames)
    expected = [json.loads(line) for line in mxwire("decode", "--json=full", path)]
    seen = list(packets(path))
    for record, packet in zip(expected, seen, strict=True):
        assert record["byte_order"] == packet["mxoe.byte_order"][0][0] == "little"
        compared(record, packet)
    matched = [each["mxoe.match"][0][0] for each in seen if "mxoe.match" in each]
    fields = [each["fields"] for each in expected if "match_a" in each["fields"]]
    assert [int(each, 0) for each in matched] == [each["match_a"] << 32 | each["match_b"] for each in fields]


def test_another_ethertype(tmp_path: Path) -> None:
    frames = [each[:12] + b"\x86\xdd" + each[14:] for each in frames_of(read_capture("mxoe-connect"))]
    path = rewrite(tmp_path / "other.pcap", frames)
    assert not columns(path, ["mxoe.ptype"], "-Y", "mxoe")
    assert len(columns(path, ["mxoe.ptype"], "-Y", "mxoe", "-o", "mxoe.ethertypes:0x88B5, 0x86dd")) == len(frames)
    assert len(columns(path, ["mxoe.ptype"], "-Y", "mxoe", "-d", "ethertype==0x86dd,mxoe")) == len(frames)


def test_a_forced_dialect() -> None:
    rows = columns(capture("mxoe-burst"), ["mxoe.dialect", "mxoe.dialect.reason"], "-o", "mxoe.dialect:omx")
    assert {tuple(row) for row in rows} == {("omx:9000", "preference")}


def test_without_analysis_there_is_none() -> None:
    names = ["mxoe.analysis", "mxoe.acked_in", "mxoe.reassembled"]
    rows = columns(capture("mxoe-every-type"), names, "-2", "-o", "mxoe.analysis:FALSE")
    assert not any(any(row) for row in rows)


def test_statistics() -> None:
    expected = {
        "MXoE Packets": ["PULL_REPLY", "733", "analysis.early_re_request"],
        "MXoE Messages": ["RNDV", "1048576", "Transfers by pull: 2"],
        "MXoE Peers": ["52:54:00:0a:00:01", "mxoe, because of\n  PULL_REPLY numbered"],
    }
    shown = statistics("mxoe-lossy-1M")
    assert shown.keys() == expected.keys()
    assert [each for title, words in expected.items() for each in words if each not in shown[title]] == []


def test_statistics_count_every_frame() -> None:
    counted = dict(re.findall(r"^(\w+) +(\d+) ", statistics("mxoe-every-type")["MXoE Packets"], re.MULTILINE))
    assert counted["all"] == "87"
    assert (counted["MEDIUM"], counted["RAW"], counted["NACK_LIB"]) == ("20", "27", "3")


def test_missing_frames_are_shown(tmp_path: Path) -> None:
    """Without one fragment, and without one reply, nothing is reassembled, and the last frame of the message gives the
    reason.
    """
    frames = frames_of(read_capture("mxoe-every-type"))
    path = rewrite(tmp_path / "missing.pcap", [each for place, each in enumerate(frames, 1) if place not in (44, 70)])
    fields = ["frame.number", "mxoe.reassembled.length", "mxoe.reassembly.incomplete", "mxoe.received"]
    rows = {int(row[0]): row[1:] for row in columns(path, fields, "-2")}
    assert [row[0] for row in rows.values() if row[0]] == ["5000", "32768", "32768"]
    assert {number for number, row in rows.items() if row[1]} == {44, 73}
    assert rows[72][2] == str(32769 - 4096)


def test_shuffled_and_doubled_fragments(tmp_path: Path) -> None:
    frames = frames_of(read_capture("mxoe-every-type"))
    order = [
        *range(1, 47),
        *(54, 47, 50, 49, 49, 48, 53, 52, 51),
        63,
        64,
        65,
        *(74, 70, 71, 66, 67, 66, 68, 69, 73, 72),
    ]
    shuffled = [frames[place - 1] for place in order]
    path = rewrite(tmp_path / "shuffled.pcap", shuffled + [of_hosts(each, 1) for each in frames], 1000)
    fields = ["frame.number", "mxoe.reassembled.length", "mxoe.analysis.duplicate", "mxoe.reassembled.data"]
    every = columns(path, fields, "-2")
    rows = every[: len(order)]
    whole = {row[1]: row[3] for row in rows if row[1]}
    intact = {row[1]: row[3] for row in every[len(order) :] if row[1]}
    assert whole == {length: intact[length] for length in whole}
    assert set(whole) == {"5000", "32768", "32769"}
    assert sum(bool(row[2]) for row in rows) == 2


def test_linux_cooked(tmp_path: Path) -> None:
    """A capture of the device "any" does not know where frames went."""
    header = struct.pack(">HHH", 0, 1, 6)
    frames = [header + each[6:12] + b"\0\0" + each[12:] for each in frames_of(read_capture("mxoe-every-type"))]
    path = tmp_path / "cooked.pcap"
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 113))
        for place, frame in enumerate(frames):
            out.write(struct.pack("<4I", place, 0, len(frame), len(frame)) + frame)
    expected = [json.loads(line) for line in mxwire("decode", "--json=full", path)]
    seen = list(packets(path))
    assert len(seen) == len(expected)
    for record, packet in zip(expected, seen, strict=True):
        compared(record | {"vlan": []}, packet, start=16)


def test_fragments_that_disagree_about_the_length(tmp_path: Path) -> None:
    """The first fragment's word counts; a last one that claims gigabytes must not get them."""
    plain = codec_of(omx())
    made = []
    for number, length in ((0, 8), (1, 0x7000_0000)):
        data = bytes(4)
        fields = {"frag_seqnum": number, "frag_length": 4, "length": length, "data": data, "frag_pipeline": None}
        made.append(plain.build(Medium(**_HEADER, **fields)))
    path = rewrite(tmp_path / "gigabytes.pcap", made)
    rows = columns(path, ["mxoe.reassembled.length", "mxoe.medium.contradiction"], "-o", "mxoe.dialect:omx")
    assert rows[1][0] == "8"
    assert rows[1][1]


_HEADER: dict[str, Any] = {
    "dst_mac": bytes.fromhex("5254000a0002"),
    "src_mac": bytes.fromhex("5254000a0001"),
    "ethertype": 0x86DF,
    "dst_src_peer_index": 1,
    "dst_endpoint": 3,
    "src_endpoint": 5,
    "lib_seqnum": 1,
    "lib_piggyack": 1,
    "match_a": 0,
    "match_b": 0,
    "session": 7,
    "checksum": 0,
}
