"""The formats of the independent peer against every hex dump of the worked examples, and that it is independent."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.wire.example_packets import PACKETS

from .independent.frames import Codec, dialect
from .independent.transfers import Block, blocks, pieces

EXAMPLES = (Path(__file__).parents[1] / "data" / "sequence-examples.md").read_text(encoding="utf-8")
DUMPS = re.findall(r"```\n(0000 .*?)```", EXAMPLES, re.DOTALL)
ROW = re.compile(r"^[0-9a-f]{4} ((?: +(?:[0-9a-f]{2}|\.\.))+)$", re.MULTILINE)
NAMES = {"dst_src_peer_index_copy": "copied_peer_index"}
"""Fields that the peer calls by another name, beside those of a TRUC, which have no prefix there."""


def shown(dump: str) -> list[int | None]:
    """The bytes of a dump, None for an undefined one."""
    text = " ".join(ROW.findall(dump)).split()
    return [None if each == ".." else int(each, 16) for each in text]


def test_every_dump_is_here():
    assert len(DUMPS) == len(PACKETS)


@pytest.mark.parametrize("place", range(len(PACKETS)))
def test_a_frame_is_as_in_the_example(place):
    packet = PACKETS[place]
    codec = Codec(dialect(packet.dialect), noise=0x5C)
    fields = {NAMES.get(name, name).removeprefix("liback_"): value for name, value in packet.fields.items()}
    frame = codec.build(packet.kind, fields, packet.data)
    expected = shown(DUMPS[place])
    assert len(expected) >= 32
    # The bytes that the example leaves out are those that the peer fills with noise, except for a checksum.
    assert [each if each is not None else 0x5C for each in expected] == list(frame[: len(expected)])
    read = codec.read(frame)
    assert (read.kind, read.data) == (packet.kind, packet.data)
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
