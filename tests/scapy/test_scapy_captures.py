"""The scapy layers against real frames: no byte is lost, and every field is what mxwire itself decodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.packet import Padding

from mxwire.capture import open_capture
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.scapy import LAYERS, MXoE, MXoEBody, parse_mxoe, read_mxoe, to_frame
from mxwire.wire.decoder import DecodedBatch, Decoder

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcap"))
DIALECTS = ("mxoe", "omx", "omx:1500")

every_capture = pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)


@cache
def decoded(path: Path) -> list[tuple[DecodedBatch, int]]:
    decoder = Decoder()
    with open_capture(str(path)) as capture:
        return [(each, index) for each in map(decoder.decode, capture) for index in range(len(each))]


def uncut(path: Path) -> Iterator[bytes]:
    for batch, index in decoded(path):
        if batch.batch.length[index] >= batch.batch.wire_length[index]:
            yield batch.batch.frame(index)


def test_there_are_captures_of_both_dialects():
    assert {path.name[:4] for path in CAPTURES} >= {"mxoe", "omx1", "omx9"}
    assert any(True for _ in uncut(CAPTURES[0]))


@every_capture
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_byte_is_lost_in_either_dialect(path, dialect, monkeypatch):
    monkeypatch.setitem(conf.contribs["mxoe"], "dialect", dialect)
    for batch, index in decoded(path):
        frame = batch.batch.frame(index)
        packet = Ether(frame)
        assert bytes(packet) == frame
        assert bytes(packet.copy()) == frame
        assert packet.haslayer(MXoE)


@every_capture
def test_every_field_agrees_with_mxwire(path):
    for batch, index in decoded(path):
        frame, row = batch.frame(index), batch.located.frame(index)
        packet = parse_mxoe(batch.batch.frame(index), batch.dialect(index))
        layout = batch.codec(index).layout(frame.layout_name)
        body = packet[MXoE].payload
        assert type(body).__name__.startswith("MXoE" + type(frame).__name__)
        assert isinstance(body, LAYERS["MXoE" + type(frame).__name__])
        seen = {**packet.fields, **packet[MXoE].fields, **body.fields}
        for field in layout.fields:
            if field.kind == "mac" or field.name == "ethertype":
                continue
            value = seen.pop(field.attribute)
            if field.kind == "undefined" and field.attribute != "dst_src_peer_index":
                assert value == row[field.offset : field.end]
            elif field.kind == "undefined":
                assert value == int.from_bytes(row[field.offset : field.end], "big")
            else:
                assert value == getattr(frame, field.attribute), field.name
        assert set(seen) == {"dst", "src", "type"}
        assert bytes.fromhex(seen["dst"].replace(":", "")) == frame.dst_mac
        assert bytes.fromhex(seen["src"].replace(":", "")) == frame.src_mac
        assert seen["type"] == frame.ethertype


@every_capture
def test_a_packet_rebuilt_from_its_values_is_the_same(path):
    """Lengths that are computed, minimum lengths and the layout: all as the real sender has them, and padding."""
    for batch, index in decoded(path):
        if batch.batch.length[index] < batch.batch.wire_length[index]:
            continue
        frame = batch.batch.frame(index)
        packet = parse_mxoe(frame, batch.dialect(index))
        body = packet[MXoE].payload
        assert isinstance(body, MXoEBody)
        padding = body.payload.load if isinstance(body.payload, Padding) else b""
        end = len(frame) - len(padding)
        assert bytes(packet)[:end] == frame[:end]
        assert frame.endswith(padding)
        values = dict(body.fields)
        if body.layout.payload is not None and body.layout.payload.length_field:
            del values[body.layout.payload.length_field]
        made = Ether(**packet.fields) / MXoE(dst_src_peer_index=packet.dst_src_peer_index) / type(body)(**values)
        built = bytes(made)
        assert len(built) == len(frame)
        assert built[:end] == frame[:end]
        assert not any(built[end:])


@every_capture
def test_summaries_and_frames_are_those_of_mxwire(path):
    packets = read_mxoe(path)
    assert len(packets) == len(decoded(path))
    for packet, (batch, index) in zip(packets, decoded(path), strict=True):
        frame, dialect = batch.frame(index), batch.dialect(index)
        assert packet[MXoE].dialect == dialect
        words = ("MXoE", endpoints_text(frame), type_text(frame), summary(frame, dialect))
        assert f" / {' '.join(word for word in words if word)}" in packet.summary()
        complete = batch.batch.length[index] >= batch.batch.wire_length[index]
        if complete or batch.codec(index).layout(frame.layout_name).payload is None:
            assert to_frame(packet) == frame
        assert packet.wirelen == batch.batch.wire_length[index]
        assert float(packet.time) == pytest.approx(int(batch.batch.timestamp_ns[index]) / 1e9, abs=1e-6)


def test_a_dialect_can_be_set_for_a_capture():
    path = CAPTURES[0]
    assert {packet[MXoE].dialect.name for packet in read_mxoe(path, "omx:1500")} == {"omx:1500"}
