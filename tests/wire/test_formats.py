"""The formats agree with the machine-readable specification."""

from __future__ import annotations

import dataclasses
import re

import pytest
from construct import Struct, VarInt

from mxwire.ethernet import ETHERTYPE_MXOE, SHORTEST_FRAME
from mxwire.wire import dialect as dialects
from mxwire.wire.byteorder import HOST_MAGIC_PREFIX, PULL_MAGIC_PREFIX
from mxwire.wire.codec import Malformed, parse
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.enums import RESERVED_TYPES, ConnectStatus, NackType, PacketType, TrucType, packet_type_name
from mxwire.wire.layout import TYPE_OFFSET, layout_of
from mxwire.wire.numbers import (
    NO_PEER_INDEX,
    RAW_FRAME_MAXIMUM,
    RENDEZVOUS_THRESHOLD,
    RNDV_LENGTH,
    SMALL_MAXIMUM,
    TINY_MAXIMUM,
)
from mxwire.wire.selection import ANNOUNCEMENT_LENGTH

from .support import layouts, specification

SPECIFICATION = specification()
FAMILIES = {"mxoe": MXOE, "omx": omx()}
LAYOUTS = [(family, name) for family in FAMILIES for name in SPECIFICATION["layouts"][family]]
UNDEFINED_INDEX = {"host_query", "host_reply", "pull_reply"}
"""Packets in which ``dst_src_peer_index`` is undefined (section 4)."""


def expected_kind(layout_name: str, field: dict) -> str:
    undefined_here = field["name"] == "dst_src_peer_index" and layout_name in UNDEFINED_INDEX
    if field["type"] == "pad" or field["name"] == "src_generation" or undefined_here:
        return "undefined"
    return {"mac": "mac", "bytes": "payload"}.get(field["type"], "integer")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layout_of_the_specification_is_there_and_no_other(family):
    assert set(layouts(FAMILIES[family])) == set(SPECIFICATION["layouts"][family])


@pytest.mark.parametrize(("family", "name"), LAYOUTS)
def test_a_layout_is_as_specified(family, name):
    layout, specified = layouts(FAMILIES[family])[name], SPECIFICATION["layouts"][family][name]
    wanted = [(each["name"], each["offset"], each["size"]) for each in specified]
    assert [(each.name, each.offset, each.size) for each in layout.fields] == wanted
    assert {each.name: each.kind for each in layout.fields} == {
        each["name"]: expected_kind(name, each) for each in specified
    }
    # Only plain u16 and u32 follow the sender's byte order; those marked always are big-endian.
    ordered = {each["name"]: each["type"] in ("u16", "u32") for each in specified}
    assert all(each.sender_order == ordered[each.name] for each in layout.fields if each.kind == "integer")
    assert [each.length_field for each in layout.fields if each.kind == "payload"] == [
        each.get("length_field") for each in specified if each["type"] == "bytes"
    ]
    assert layout.header_end == SPECIFICATION["header_end"][family][name]
    fixed = {each["name"]: each["value"] for each in specified if "value" in each}
    assert {name: layout.by_name[name].default for name in fixed} == fixed
    assert name in SPECIFICATION["packet_layout_of_type"][layout.packet_type.name]
    assert layout.by_name["ptype"].default == layout.packet_type
    assert [each.offset for each in layout.fields] == [0, *(each.end for each in layout.fields[:-1])]


@pytest.mark.parametrize(("family", "name"), LAYOUTS)
def test_everything_is_explained(family, name):
    layout = layouts(FAMILIES[family])[name]
    for each in layout.fields:
        assert each.meaning.endswith("."), each.name
        assert re.match(r"\d+(\.\d+)?\b", each.section), each.name
    assert layout.format.summary.endswith(".")
    assert re.match(r"6\.\d+$", layout.format.section)


def test_enums():
    for enum, name in (
        (PacketType, "packet_types"),
        (TrucType, "truc_types"),
        (NackType, "nack_types"),
        (ConnectStatus, "connect_status"),
    ):
        assert {each.name: each.value for each in enum} == SPECIFICATION[name]
    assert SPECIFICATION["ethertype"] == ETHERTYPE_MXOE


@pytest.mark.parametrize(
    ("layout_name", "field", "enum"),
    [
        ("rndv", "ptype", PacketType),
        ("truc", "liback.type", TrucType),
        ("nack_lib", "nack_type", NackType),
        ("nack_mcp", "nack_type", NackType),
        ("connect_reply", "connect_status_code", ConnectStatus),
    ],
)
def test_fields_know_the_names_of_their_values(layout_name, field, enum):
    found = layouts(MXOE)[layout_name].by_name[field]
    assert found.values == tuple((each.value, each.name) for each in enum)
    assert found.value_name(max(enum)) == max(enum).name
    assert found.value_name(255) is None


def test_packet_type_names():
    assert packet_type_name(0x29) == "PULL"
    assert packet_type_name(200) == "200"


def test_every_packet_type_agrees_with_the_specification():
    names = {number: name for name, number in SPECIFICATION["packet_types"].items()}
    for value in range(256):
        status = SPECIFICATION["packet_type_status"].get(names.get(value, ""), "unrecognized, dropped")
        found = parse(bytes(16) + bytes([value]) + bytes(3) + b"\x00\x10" * 20, MXOE)
        reason = found.reason.text if isinstance(found, Malformed) else ""
        if status.startswith("implemented"):
            assert reason not in ("invalid type", "unknown type"), value
        else:
            assert reason == ("invalid type" if status.startswith("reserved") else "unknown type"), value


def test_reserved_types():
    wanted = {name for name, status in SPECIFICATION["packet_type_status"].items() if status.startswith("reserved")}
    assert {each.name for each in RESERVED_TYPES} == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min_frame_length", SHORTEST_FRAME),
        ("unknown_peer_index", NO_PEER_INDEX),
        ("head_size", TYPE_OFFSET),
        ("raw_frame_bytes_max", RAW_FRAME_MAXIMUM),
        ("tiny_bytes_max", TINY_MAXIMUM),
        ("small_bytes_max", SMALL_MAXIMUM),
        ("rendezvous_threshold_default", RENDEZVOUS_THRESHOLD),
        ("rndv_data_bytes", RNDV_LENGTH),
        ("rndv_data_bytes", layouts(MXOE)["rndv"].by_name["length"].default),
        ("connect_data_bytes", layouts(MXOE)["connect_request"].by_name["length"].default),
        ("connect_data_bytes", layouts(MXOE)["connect_reply"].by_name["length"].default),
        ("liback_data_bytes", layouts(MXOE)["truc"].by_name["length"].default),
        ("omxoed_frame_length", ANNOUNCEMENT_LENGTH),
    ],
)
def test_constants(name, value):
    assert value == SPECIFICATION["constants"][name]


def test_magics():
    assert SPECIFICATION["constants"]["pull_magic_constant"] >> 8 == PULL_MAGIC_PREFIX
    assert SPECIFICATION["constants"]["host_query_magic_initial"] >> 8 == HOST_MAGIC_PREFIX


@pytest.mark.parametrize(
    ("dialect", "wanted"),
    [(MXOE, SPECIFICATION["dialects"]["mxoe"])]
    + [(omx(limit), SPECIFICATION["dialects"]["omx"][f"mtu_{limit}"]) for limit in (1500, 4096, 9000)],
    ids=str,
)
def test_sizes_of_the_dialects(dialect: Dialect, wanted: dict):
    assert dialect.frame_limit == wanted.get("configured_frame_limit", wanted.get("frame_bytes_max"))
    assert dialect.reply_payload == wanted["pull_reply_payload_max"]
    assert dialect.frames_per_block == wanted["pull_frames_per_block"]
    assert dialect.block_length == wanted["pull_block_bytes_max"]
    assert dialect.fragment_payload == wanted["medium_fragment_payload"]
    assert dialect.receive_slot == wanted["receive_slot_size"]
    assert dialect.fragments_maximum == wanted["medium_fragments_max"]
    assert dialect.medium_maximum == wanted.get("medium_message_max_by_threshold", wanted.get("medium_message_max"))


@pytest.mark.parametrize(
    ("limit", "fragment", "slot", "reply", "block"),
    [(4144, 4096, 4096, 4112, 131584), (8239, 4096, 4096, 8207, 262624), (8240, 8192, 8192, 8208, 262656)],
)
def test_sizes_for_other_limits(limit, fragment, slot, reply, block):
    """The table of the wire format, section 7, where the machine-readable form has no row."""
    dialect = omx(limit)
    assert (dialect.fragment_payload, dialect.receive_slot) == (fragment, slot)
    assert (dialect.reply_payload, dialect.block_length) == (reply, block)


@pytest.mark.parametrize(
    ("limit", "reply"),
    [(1500, 1024), (1999, 1024), (2000, 2048), (2999, 2048), (3000, 4096), (5000, 8192), (9000, 8192)],
)
def test_replies_of_the_first_generations(limit, reply):
    """Differences, section 4.2."""
    assert omx(limit, "N2").reply_payload == reply
    assert omx(limit, "N2").frames_per_block == 32
    assert omx(9000, "N1").block_length == 253952


@pytest.mark.parametrize(("limit", "fragment"), [(1500, 1024), (4096, 2048), (9000, 4096)])
def test_fragments_of_the_second_generation(limit, fragment):
    """The largest power of two that fits the frame and the receiver's 4096-byte slot (differences, section 4.2)."""
    assert (omx(limit, "N2").fragment_payload, omx(limit, "N2").receive_slot) == (fragment, 4096)


def test_offsets_that_the_dialects_name():
    wanted = SPECIFICATION["dialects"]["mxoe"]
    assert layout_of(MXOE.pull_format).header_end == wanted["pull_request_header_end"]
    assert layout_of(MXOE.medium_format).header_end == wanted["medium_data_offset"] == dialects.MEDIUM_DATA_OFFSET
    assert layouts(MXOE)["pull_reply"].header_end == dialects.PULL_REPLY_DATA_OFFSET


def test_third_generation_has_a_medium_of_its_own():
    """Differences, section 4.2: 16-bit length as in mxoe, the pipeline byte is padding as in omx."""
    fields = layouts(omx(9000, "N3"))["medium"].by_name
    assert (fields["length"].offset, fields["length"].size) == (20, 2)
    assert fields["pad1"].offset == 43
    assert "frag_pipeline" not in fields
    assert layout_of(omx(9000, "N3").pull_format) is layout_of(omx().pull_format)
    assert layouts(omx(9000, "N3"))["medium"].format.section == "differences, 4.2"


@pytest.mark.parametrize("generation", ["N1", "N2"])
def test_first_generations_share_the_medium_of_mxoe(generation):
    assert omx(9000, generation).medium_format is MXOE.medium_format
    assert omx(9000, generation).pull_format is omx().pull_format


def test_a_building_block_that_layouts_do_not_know_is_refused():
    """Rather than guessed at: everything derived would be wrong in silence."""
    strange = dataclasses.replace(MXOE.pull_format, struct=Struct("number" / VarInt * "A number. [9]"))
    with pytest.raises(TypeError, match="field number of the formats"):
        layout_of(strange)
