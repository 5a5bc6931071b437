"""The formats of the independent peer against every hex dump of the worked examples, and that it is independent."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from .independent.frames import Codec, dialect
from .independent.transfers import Block, blocks, pieces

EXAMPLES = (Path(__file__).parents[1] / "data" / "sequence-examples.md").read_text(encoding="utf-8")
DUMPS = re.findall(r"```\n(0000 .*?)```", EXAMPLES, re.DOTALL)
ROW = re.compile(r"^[0-9a-f]{4} ((?: +(?:[0-9a-f]{2}|\.\.))+)$", re.MULTILINE)
A, B = bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b")
MATCH = {"match_a": 0x00010002, "match_b": 0x00030004}
TO_B = {"dst_mac": B, "src_mac": A, "dst_src_peer_index": 3, "dst_endpoint": 5, "src_endpoint": 0}
TO_A = {"dst_mac": A, "src_mac": B, "dst_src_peer_index": 1, "dst_endpoint": 0, "src_endpoint": 5}
NUMBERED = {**TO_B, **MATCH, "session": 0x33334444, "lib_piggyack": 1}
MEDIUM = {**NUMBERED, "lib_seqnum": 3, "length": 10000}
PULL = {
    **TO_A,
    "session": 0x11112222,
    "total_length": 100000,
    "pulled_rdma_id": 0,
    "pulled_rdma_seqnum": 0x17,
    "src_pull_handle": 0x23,
    "src_magic": 0x21071985,
    "frame_index": 0,
}
REPLY = {"dst_mac": B, "src_mac": A, "dst_pull_handle": 0x23, "dst_magic": 0x21071985}
CONNECT = {"src_session_id": 0x11112222, "target_recv_seqnum_start": 1, "connect_seqnum": 0}
NACK = {"nack_type": 2, "lib_seqnum": 0, "copied_peer_index": 1, **TO_A}
STALE_PULL = {**TO_B, "src_endpoint": 5, "nack_type": 4, "src_pull_handle": 0x23, "src_magic": 0x21071985}

Expected = tuple[str, str, dict[str, Any], bytes]
IN_ORDER: list[Expected] = [
    (
        "mxoe",
        "RAW",
        {"dst_mac": b"\xff" * 6, "src_mac": A, "nic_id_hi": 0x200, "nic_id_lo": 10, "serial": 0x2DACB56D},
        b"",
    ),
    ("mxoe", "HOST_QUERY", {"dst_mac": A, "src_mac": B, "src_dst_peer_index": 3, "magic": 0x13052008}, b""),
    (
        "mxoe",
        "HOST_REPLY",
        {"dst_mac": B, "src_mac": A, "src_dst_peer_index": 1, "magic": 0x13052008, "length": 8},
        b"hosta:0\0",
    ),
    ("mxoe", "CONNECT_REQUEST", {**TO_B, **CONNECT, "src_dst_peer_index": 1, "app_key": 0x12345678}, b""),
    (
        "mxoe",
        "CONNECT_REPLY",
        {**TO_A, **CONNECT, "src_dst_peer_index": 3, "target_session_id": 0x33334444, "connect_status_code": 0},
        b"",
    ),
    ("mxoe", "TINY", {**NUMBERED, "lib_seqnum": 1, "length": 5}, b"hello"),
    (
        "mxoe",
        "TRUC",
        {**TO_A, "session": 0x11112222, "session_id": 0x11112222, "lib_seqnum": 2, "send_seq": 2, "acknum": 1},
        b"",
    ),
    ("mxoe", "SMALL", {**NUMBERED, "lib_seqnum": 2, "length": 40}, bytes(range(40))),
    ("mxoe", "MEDIUM", {**MEDIUM, "frag_length": 1808, "frag_seqnum": 2}, bytes(1808)),
    ("omx:1500", "MEDIUM", {**MEDIUM, "frag_length": 1288, "frag_seqnum": 6}, bytes(1288)),
    ("omx:9000", "MEDIUM", {**MEDIUM, "frag_length": 1808, "frag_seqnum": 1}, bytes(1808)),
    (
        "mxoe",
        "RNDV",
        {
            **NUMBERED,
            "lib_seqnum": 3,
            "msg_length": 100000,
            "pulled_rdma_id": 0,
            "pulled_rdma_seqnum": 0x17,
            "pulled_rdma_offset": 0,
        },
        b"",
    ),
    *(
        packet
        for offset in (0, 291)
        for name in ("mxoe", "omx:1500", "omx:9000")
        for packet in (
            (
                name,
                "PULL",
                {
                    **PULL,
                    "pulled_rdma_offset": offset,
                    "first_frame_offset": offset,
                    "block_length": min(100000, dialect(name).pull_payload * dialect(name).block_frames - offset),
                },
                b"",
            ),
            *(
                [
                    (
                        "mxoe",
                        "PULL_REPLY",
                        {**REPLY, "frame_seqnum": 24, "frame_length": 1696, "msg_offset": 98304},
                        bytes(1696),
                    )
                ]
                if (offset, name) == (0, "mxoe")
                else []
            ),
        )
    ),
    (
        "mxoe",
        "NOTIFY",
        {
            **TO_A,
            "session": 0x11112222,
            "total_length": 100000,
            "pulled_rdma_id": 0,
            "pulled_rdma_seqnum": 0x17,
            "lib_seqnum": 1,
            "lib_piggyack": 4,
        },
        b"",
    ),
    ("mxoe", "NACK_LIB", {**NACK, "src_endpoint": 7}, b""),
    ("mxoe", "NACK_LIB", {**NACK, "nack_type": 3, "lib_seqnum": 9}, b""),
    ("mxoe", "NACK_MCP", STALE_PULL, b""),
]


def shown(dump: str) -> list[int | None]:
    """The bytes of a dump, None for an undefined one."""
    text = " ".join(ROW.findall(dump)).split()
    return [None if each == ".." else int(each, 16) for each in text]


def test_every_dump_is_here():
    assert len(DUMPS) == len(IN_ORDER)


@pytest.mark.parametrize("place", range(len(IN_ORDER)))
def test_a_frame_is_as_in_the_example(place):
    spoken, kind, fields, data = IN_ORDER[place]
    codec = Codec(dialect(spoken), noise=0x5C)
    frame = codec.build(kind, fields, data)
    expected = shown(DUMPS[place])
    assert len(expected) >= 32
    # The bytes that the example leaves out are those that the peer fills with noise, except for a checksum.
    assert [each if each is not None else 0x5C for each in expected] == list(frame[: len(expected)])
    read = codec.read(frame)
    assert (read.kind, read.data) == (kind, data)
    assert {name: read[name] for name in fields if name in read.fields} == {
        name: value for name, value in fields.items() if name in read.fields
    }


@pytest.mark.parametrize(
    "spoken, offset, requests, last",
    [
        ("mxoe", 0, [(0, 0, 32768), (8, 0, 32768), (16, 0, 32768), (24, 0, 1696)], (24, 98304, 1696)),
        ("mxoe", 291, [(0, 291, 32477), (8, 0, 32768), (16, 0, 32768), (24, 0, 1987)], (24, 98013, 1987)),
        ("omx:1500", 0, [(0, 0, 46976), (32, 0, 46976), (64, 0, 6048)], (68, 99824, 176)),
        ("omx:1500", 291, [(0, 291, 46685), (32, 0, 46976), (64, 0, 6339)], (68, 99533, 467)),
        ("omx:9000", 0, [(0, 0, 100000)], (11, 98648, 1352)),
        ("omx:9000", 291, [(0, 291, 100000)], (11, 98357, 1643)),
    ],
)
def test_a_large_message_is_cut_as_in_the_tables(spoken, offset, requests, last):
    plan = blocks(dialect(spoken), 100000, offset)
    assert plan == [Block(*each) for each in requests]
    found = [piece for each in plan for piece in pieces(dialect(spoken), each, offset)]
    assert (found[-1].number, found[-1].msg_offset, found[-1].length) == last
    assert [each.msg_offset for each in found[1:]] == [each.msg_offset + each.length for each in found[:-1]]


def test_an_offset_beyond_a_frame():
    """The end of section 6.2."""
    first, second = pieces(dialect("mxoe"), blocks(dialect("mxoe"), 100000, 5000)[0], 5000)[:2]
    assert (first.msg_offset, first.length, second.msg_offset) == (0, 3192, 3192)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "independent").glob("*.py")), ids=lambda each: each.name
)
def test_the_peer_shares_nothing_with_mxwire(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not [each.name for each in node.names if each.name.startswith("mxwire")]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or not (node.module or "").startswith("mxwire")
