"""New packets: what they hold by default, how long they are, and in which dialect."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.fields import ByteField
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Packet, Padding, Raw, bind_bottom_up, bind_layers, fuzz, split_bottom_up, split_layers

from mxwire.errors import MxwireError
from mxwire.scapy import LAYERS, MXoE, fragment_medium, from_frame, parse_mxoe, to_frame
from mxwire.scapy.layers import BODY_OFFSET
from mxwire.wire.codec import Malformed, build, parse
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import layout_of

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"
ETHER = Ether(dst=B, src=A)
DIALECTS = (MXOE, omx(), omx(1500), omx(generation="N3"))
PACKAGE = Path(__file__).parents[2] / "mxwire"
ROOM = 60


def formats():
    return [(dialect, each) for dialect in DIALECTS for each in dialect.formats]


def made(dialect, packet_format, **fields):
    return ETHER / MXoE(dialect=dialect) / LAYERS["MXoE" + packet_format.frame_class](dialect=dialect, **fields)


@pytest.mark.parametrize(("dialect", "packet_format"), formats(), ids=str)
class TestEveryLayout:
    def test_the_fields_are_those_of_the_layout_in_order(self, dialect, packet_format):
        layout, body = layout_of(packet_format), made(dialect, packet_format)[MXoE].payload
        expected = [each.attribute for each in layout.fields if each.offset >= BODY_OFFSET]
        assert [each.name for each in body.fields_desc] == expected
        assert body.layout is layout
        for each in body.fields_desc:
            size = next(field.size for field in layout.fields if field.attribute == each.name)
            assert size is None or each.i2len(body, getattr(body, each.name)) in (size, 0) or each.sz == size

    def test_a_default_packet_is_a_valid_frame_of_its_type(self, dialect, packet_format):
        built = bytes(made(dialect, packet_format))
        assert len(built) >= ROOM
        frame = parse(built, dialect)
        assert not isinstance(frame, Malformed)
        assert type(frame).__name__ == packet_format.frame_class or packet_format.name == "raw_omxoed"
        assert parse_mxoe(built, dialect)[MXoE].payload.layout.name == frame.layout_name
        defaults = {each.attribute: each.default for each in layout_of(packet_format).fields if each.default}
        assert {name: getattr(frame, name) for name in defaults} == defaults

    def test_it_builds_the_same_as_the_codec(self, dialect, packet_format):
        packet = made(dialect, packet_format)
        frame = to_frame(packet)
        if packet_format.name == "raw":
            return
        assert build(frame, dialect) == bytes(packet)
        assert bytes(from_frame(frame, dialect)) == bytes(packet)
        assert to_frame(from_frame(frame, dialect)) == frame

    def test_it_can_be_shown_copied_and_fuzzed(self, dialect, packet_format):
        packet = made(dialect, packet_format)
        assert packet_format.frame_class in packet.show(dump=True)
        assert packet.copy() == packet
        assert packet.copy()[MXoE].payload.dialect == dialect
        assert isinstance(bytes(fuzz(packet.copy())), bytes)
        assert packet.summary()


def test_lengths_are_computed_from_the_payload():
    assert (ETHER / MXoE() / LAYERS["MXoETiny"](data=b"hello")).copy()[MXoE].payload.length is None
    assert to_frame(ETHER / MXoE() / LAYERS["MXoETiny"](data=b"hello")).length == 5
    assert to_frame(ETHER / MXoE() / LAYERS["MXoEPullReply"](data=bytes(4096))).frame_length == 4096
    assert to_frame(ETHER / MXoE() / LAYERS["MXoETruc"]()).length == 16
    assert to_frame(ETHER / MXoE() / LAYERS["MXoEConnectRequest"]()).length == 16
    assert to_frame(ETHER / MXoE() / LAYERS["MXoERndv"]()).length == 8


def test_a_length_that_is_given_is_kept():
    packet = ETHER / MXoE() / LAYERS["MXoETiny"](length=33, data=b"hello")
    assert isinstance(to_frame(packet), Malformed)
    assert bytes(packet)[20:22] == b"\0\x21"


@pytest.mark.parametrize(("dialect", "size"), [("mxoe", 4096), ("omx", 8192), ("omx:1500", 1452)])
def test_a_medium_without_a_message_length_is_the_end_of_its_message(dialect, size):
    medium = LAYERS["MXoEMedium"]
    assert to_frame(ETHER / MXoE() / medium(dialect=dialect, data=b"abc")).length == 3
    packet = ETHER / MXoE() / medium(dialect=dialect, frag_seqnum=2, data=b"abc")
    assert to_frame(packet).length == 2 * size + 3
    assert to_frame(packet).frag_length == 3


@pytest.mark.parametrize("name", [b"a\0", b"vm2:0\0", bytes(80)])
def test_a_host_reply_is_60_bytes_plus_the_name(name):
    assert len(bytes(ETHER / MXoE() / LAYERS["MXoEHostReply"](hostname=name))) == 60 + len(name)


def test_a_host_reply_has_at_least_a_nul():
    """A length of 0 corrupts the memory of a real receiver (R-HOST-08)."""
    assert to_frame(ETHER / MXoE() / LAYERS["MXoEHostReply"]()).length == 1


@pytest.mark.parametrize("length", [0, 1, 19, 20, 21, 32])
def test_frames_are_at_least_60_bytes_with_and_without_tags(length):
    body = MXoE() / LAYERS["MXoETiny"](data=bytes(length))
    assert len(bytes(ETHER / body)) == max(60, 40 + length)
    assert len(bytes(ETHER / Dot1Q(vlan=7) / body)) == max(60, 40 + length) + 4
    assert len(bytes(body)) == 26 + length, "without a link layer there is no least length"


def test_given_padding_counts():
    body = MXoE() / LAYERS["MXoETiny"](data=b"abcd")
    built = bytes(ETHER / body / Padding(b"x" * 16))
    assert len(built) == 60 and built[44:] == b"x" * 16
    assert len(bytes(ETHER / body / Padding(b"x" * 30))) == 74


def test_parsed_frames_shorter_than_60_bytes_are_not_padded():
    frame = bytes(ETHER / MXoE() / LAYERS["MXoETiny"](data=b"hello"))[:45]
    assert bytes(Ether(frame)) == frame


def test_tags_and_cooked_headers_are_looked_through():
    tagged = Ether(bytes(ETHER / Dot1Q(vlan=7) / MXoE() / LAYERS["MXoESmall"](data=bytes(99))))
    assert tagged.haslayer(LAYERS["MXoESmall"]) and to_frame(tagged).length == 99
    cooked = CookedLinux(bytes(CookedLinux(proto=0x86DF) / MXoE() / LAYERS["MXoESmall"](data=bytes(99))))
    assert cooked.haslayer(LAYERS["MXoESmall"])


def test_frames_of_unknown_and_reserved_types_stay_raw():
    for packet_type in (0, 2, 32, 255):
        packet = Ether(bytes(ETHER / MXoE(ptype=packet_type) / Raw(b"abc")))
        assert isinstance(packet[MXoE].payload, Raw)
        assert "MALFORMED" in packet.summary()


def test_a_layer_of_ones_own_can_be_bound_to_a_free_type():
    class Own(Packet):
        fields_desc = [ByteField("x", 0)]  # noqa: RUF012

    bind_layers(MXoE, Own, ptype=77)
    try:
        assert Ether(bytes(ETHER / MXoE() / Own(x=5)))[Own].x == 5
    finally:
        split_layers(MXoE, Own, ptype=77)


def test_another_ethertype_can_be_bound():
    bind_bottom_up(Ether, MXoE, type=0x88B5)
    try:
        frame = bytes(Ether(dst=B, src=A, type=0x88B5) / MXoE() / LAYERS["MXoETiny"](data=b"x"))
        assert to_frame(Ether(frame)).ethertype == 0x88B5
    finally:
        split_bottom_up(Ether, MXoE, type=0x88B5)


class TestDialects:
    def test_the_session_sets_it(self, monkeypatch):
        assert LAYERS["MXoEMedium"]().dialect == MXOE
        monkeypatch.setitem(conf.contribs["mxoe"], "dialect", "omx:1500")
        assert LAYERS["MXoEMedium"]().dialect == omx(1500)
        assert type(LAYERS["MXoEMedium"]()) is LAYERS["MXoEMediumOmx"]
        frame = bytes(ETHER / MXoE() / LAYERS["MXoEPull"](block_length=70000))
        assert Ether(frame)[LAYERS["MXoEPull"]].block_length == 70000
        assert type(Ether(frame)[MXoE].payload) is LAYERS["MXoEPullOmx"]

    def test_a_packet_sets_it_for_itself(self):
        packet = ETHER / MXoE() / LAYERS["MXoEPull"](dialect="omx", block_length=70000)
        assert packet[MXoE].dialect == omx()
        assert parse_mxoe(bytes(packet), "omx")[LAYERS["MXoEPull"]].block_length == 70000

    def test_the_head_passes_it_on(self):
        packet = ETHER / MXoE(dialect="omx") / LAYERS["MXoEPull"](block_length=5, src_magic=7)
        assert type(packet[MXoE].payload) is LAYERS["MXoEPullOmx"]
        assert (packet.block_length, packet.src_magic) == (5, 7)
        raw = MXoE(bytes(packet)[14:], dialect="omx")
        assert raw.payload.dialect == omx()

    def test_a_packet_keeps_its_values(self, monkeypatch):
        packet = ETHER / MXoE() / LAYERS["MXoEMedium"](data=b"x")
        before = bytes(packet)
        monkeypatch.setitem(conf.contribs["mxoe"], "dialect", "omx")
        assert bytes(packet) == bytes(packet.copy()) == before
        assert packet.copy()[MXoE].payload.dialect == MXOE

    def test_head_and_packet_must_agree_where_both_say(self):
        with pytest.raises(MxwireError, match="in dialect mxoe, the MXoE below it in omx:9000"):
            MXoE(dialect="omx") / LAYERS["MXoEMedium"](dialect="mxoe")

    def test_a_field_that_a_dialect_does_not_have_is_an_error(self):
        with pytest.raises(MxwireError, match="MEDIUM has no frag_pipeline in dialect omx"):
            MXoE(dialect="omx") / LAYERS["MXoEMedium"](frag_pipeline=11)
        with pytest.raises(AttributeError):
            LAYERS["MXoEMedium"](dialect="omx", frag_pipeline=11)

    @pytest.mark.parametrize("wrong", ["foo", "omx:1", 7])
    def test_no_such_dialect(self, wrong):
        for layer in (MXoE, LAYERS["MXoEMedium"], LAYERS["MXoETiny"]):
            with pytest.raises(MxwireError, match=r"dialect|frame limit"):
                layer(dialect=wrong)

    def test_a_layout_brings_a_dialect_that_has_it(self, monkeypatch):
        packet = ETHER / MXoE() / LAYERS["MXoEPullOmx"](block_length=70000)
        assert packet[MXoE].dialect == packet[MXoE].payload.dialect == omx()
        assert eval(packet.command(), {"Ether": Ether, "MXoE": MXoE, **LAYERS}) == packet
        monkeypatch.setitem(conf.contribs["mxoe"], "dialect", "omx:1500")
        assert LAYERS["MXoEPullOmx"]().dialect == omx(1500)
        assert LAYERS["MXoEPullMxoe"]().dialect == MXOE
        with pytest.raises(MxwireError, match="MXoEPullOmx is not a layout of dialect mxoe"):
            LAYERS["MXoEPullOmx"](dialect="mxoe")

    def test_layers_are_found_by_their_general_name(self):
        packet = ETHER / MXoE() / LAYERS["MXoEMedium"](dialect="omx")
        assert LAYERS["MXoEMedium"] in packet
        assert LAYERS["MXoEMediumMxoe"] not in packet
        assert packet[LAYERS["MXoEMedium"]].dialect == omx()
        assert "MXoEMediumOmx" in packet


def test_sequence_numbers_show_their_session_number():
    shown = LAYERS["MXoETiny"](lib_seqnum=20481, lib_piggyack=5).show(dump=True)
    assert "20481 (1/4097)" in shown and "lib_piggyack= 5" in shown
    assert "nack_type = BAD_SESSION" in LAYERS["MXoENackLib"](nack_type=3).show(dump=True)


def test_an_announcement_is_distinguished_from_other_raw_packets():
    packet = ETHER / MXoE() / LAYERS["MXoEAnnouncement"](nic_id_hi=0x0200, nic_id_lo=1, serial=5)
    assert len(bytes(packet)) == 64
    assert bytes(packet)[14:16] == b"\0\0"
    assert Ether(bytes(packet))[LAYERS["MXoEAnnouncement"]].serial == 5
    assert LAYERS["MXoERaw"] in Ether(bytes(ETHER / MXoE() / LAYERS["MXoERaw"](opaque=b"x" * 47)))


@given(st.binary(max_size=120), st.sampled_from([*map(int, PacketType), None]), st.sampled_from(DIALECTS))
@settings(max_examples=600, deadline=None)
def test_any_bytes_are_dissected_without_an_error_and_kept(data, packet_type, dialect):
    if packet_type is not None and len(data) >= 3:
        data = data[:2] + bytes([packet_type]) + data[3:]
    frame = bytes.fromhex("0200000000020200000000 0186df") + data
    packet = parse_mxoe(frame, dialect)
    assert bytes(packet) == frame
    assert bytes(packet.copy()) == frame
    packet.summary()
    packet.show(dump=True)
    packet.hashret()
    packet.answers(packet)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_values_come_back(data):
    dialect, packet_format = data.draw(st.sampled_from(formats()))
    if packet_format.name in ("raw", "raw_omxoed"):
        return
    layout = layout_of(packet_format)
    values = {}
    for each in layout.fields:
        if each.offset < BODY_OFFSET or each.name == "is_reply":
            continue
        if each.kind == "undefined":
            values[each.attribute] = data.draw(st.binary(min_size=each.size, max_size=each.size))
        elif each.kind == "integer" and not (layout.payload and layout.payload.length_field == each.name):
            values[each.attribute] = data.draw(st.integers(0, (1 << 8 * each.size) - 1))
        elif each.kind == "payload":
            values[each.attribute] = data.draw(st.binary(max_size=80))
    packet = made(dialect, packet_format, **values)
    again = parse_mxoe(bytes(packet), dialect)[MXoE].payload
    assert {name: getattr(again, name) for name in values} == values


def test_scapy_stays_in_its_room():
    """scapy is GPL-2.0-only; nothing else of mxwire imports it, or the room that does."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "scapy" or "scapy" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            assert not [name for name in names if name.split(".")[0] == "scapy" or name.startswith("mxwire.scapy")], (
                path
            )


def test_without_scapy_there_is_one_clear_line():
    program = (
        "import sys; sys.modules['scapy'] = None\n"
        "from mxwire.errors import MxwireError\n"
        "try:\n    import mxwire.scapy\n"
        "except ImportError as error:\n    assert isinstance(error, MxwireError); print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "mxwire.scapy needs scapy" in done.stdout and "-m pip install 'scapy>=" in done.stdout


def test_star_import_gives_all_layers():
    program = "from mxwire.scapy import *; print(len(Ether() / MXoE() / MXoETiny()), MXoEMedium(dialect='omx').dialect)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["60", "omx:9000"]


def test_helpers_refuse_packets_without_mxoe():
    with pytest.raises(MxwireError, match="no MXoE in this packet"):
        to_frame(Ether(dst=B, src=A) / Raw(b"x"))
    with pytest.raises(MxwireError, match="colour is not a field"):
        fragment_medium(b"x", colour=5)
