"""The plugin reads every field of every real capture as mxwire does, and adds the expected expert information."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.encapsulation import locate
from mxwire.wire.enums import hostname_text
from mxwire.wire.layout import layout_of
from tests.captures import write_capture
from tests.wire.mutation import mutated, scattered

from .support import Items, columns, mxwire, needs_tshark, packets, parts
from .test_expert_triggers import EXPERT_INFOS
from .test_expert_triggers import NAMES as EXPERTS

pytestmark = needs_tshark

FRAMES_SPOILT = 6000


def number(text: str) -> int:
    return int(text, 0)


class Place:
    """A frame as both programs read it, in words for a failure: most frames need none."""

    def __init__(self, record: dict[str, Any], says: dict[str, str]) -> None:
        self.record, self.says = record, says

    def __repr__(self) -> str:
        return f"frame {self.record['frame']}: {self.record} {self.says}"


def plugin_says(packet: Items) -> dict[str, str]:
    """A packet of the plugin in the form of a record of ``mxwire decode --json``."""
    return {name.removeprefix("mxoe."): items[0][0] for name, items in packet.items()}


def compared(record: dict[str, Any], packet: Items, start: int = 14) -> int:
    """Check one record against the plugin's fields; return the number of values compared."""
    says = plugin_says(packet)
    where = Place(record, says)
    expected = dict(record["fields"])
    for name, value in expected.items():
        if name == "hostname" and value == "":
            continue
        assert name in says, (name, where)
        given = says[name] if isinstance(value, str) else number(says[name])
        assert given == value, (name, given, where)
    extra = (says.keys() & FIELD_NAMES) - expected.keys()
    assert not extra, (extra, where)
    malformed = record["malformed"]
    if malformed is None:
        assert "malformed.reason" not in says, where
    else:
        assert says["malformed.reason"] == malformed["reason"], where
        assert number(says["malformed.offset"]) == malformed["offset"], where
    if record["type"] is not None:
        assert "ptype" in says, where
    check_payload(record, packet, where)
    check_places(record, packet, where, start)
    return len(expected) + 3


def check_payload(record: dict[str, Any], packet: Items, where: Place) -> None:
    shown = packet.get("mxoe.data") or packet.get("mxoe.opaque")
    payload = record["payload"]
    present = 0 if payload is None else min(payload["length"], record["captured"] - payload["offset"])
    if present <= 0:
        assert shown is None, where
        return
    assert shown is not None and shown[0][1:] == (payload["offset"], present), (shown, where)


def check_places(record: dict[str, Any], packet: Items, where: Place, start: int) -> None:
    """Behind the Ethernet header every byte belongs to exactly one item."""
    covered: list[tuple[int, int, str]] = []
    for name, values in packet.items():
        if name == "mxoe.match" or name.startswith(("mxoe.reassembled", "mxoe.analysis", "mxoe.fragment")):
            continue
        covered += [(at, at + size, name) for _, at, size in values if size]
    end = start + 4 * len(record["vlan"])
    for first, behind, name in sorted(covered):
        assert first == end, (first, end, name, where)
        end = behind
    assert end == max(record["captured"], start + 4 * len(record["vlan"])), where


def _names() -> set[str]:
    from mxwire.dissector.tables import LAYOUTS

    shown = ("integer", "mac")
    return {
        each.name
        for layout in map(layout_of, LAYOUTS.values())
        for each in layout.fields
        if each.kind in shown or each.text
    }


FIELD_NAMES = _names()


def final_dialects(records: list[dict[str, Any]]) -> dict[frozenset[str], str]:
    return {_pair(each): each["dialect"] for each in records if each["dialect"] is not None}


def final_dialects_of_plugin(records: list[dict[str, Any]], seen: list[Items]) -> dict[frozenset[str], str]:
    """The plugin's knowledge at the end of each pair's traffic, since it reads the frames one by one."""
    pairs = zip(records, seen, strict=True)
    return {_pair(record): each["mxoe.dialect"][0][0] for record, each in pairs if "mxoe.dialect" in each}


def _pair(record: dict[str, Any]) -> frozenset[str]:
    return frozenset((record["source"], record["destination"]))


def test_all_fields_and_experts_of_all_captures(captures: Path) -> None:
    records = [json.loads(line) for line in mxwire("decode", "--json=full", captures)]
    seen = list(packets(captures))
    assert len(seen) == len(records)
    assert final_dialects_of_plugin(records, seen) == final_dialects(records)
    for name, rows in parts(captures):
        values = sum(compared(record, packet) for record, packet in zip(records[rows], seen[rows], strict=True))
        assert values > 10 * len(records[rows]), name
        experts = {f"mxoe.{each}" for each in EXPERTS} & set().union(*seen[rows])
        assert sorted(experts) == [f"mxoe.{each}" for each in EXPERT_INFOS[name]], name


def test_the_info_column_has_the_words_of_mxwire(captures: Path) -> None:
    lines = mxwire("decode", "--no-analysis", captures)
    expected = [re.sub(r"\s+", " ", line.split("→", 1)[1].split(None, 1)[1]) for line in lines]
    given = [_as_in_mxwire(row[0]) for row in columns(captures, ["_ws.col.Info"], "-o", "mxoe.analysis:FALSE")]
    for name, rows in parts(captures):
        assert [_loose(each) for each in given[rows]] == [_loose(each) for each in expected[rows]], name
    assert len(given) == len(expected) == rows.stop


def _as_in_mxwire(info: str) -> str:
    """mxwire has the endpoints before the type, the plugin behind it."""
    kind, _, rest = info.partition(" ")
    match = re.match(r"(\d*→\d*) ", rest)
    return f"{match.group(1)} {kind} {rest[match.end() :]}" if match else f"{kind} {rest}"


def _loose(text: str) -> str:
    # Wireshark 4.4 escapes backslashes too.
    return re.sub(r"\s+", " ", text.replace("\\\\", "\\")).strip()


@pytest.mark.parametrize(
    ("dialect", "preferences"),
    [(MXOE, ["dialect:mxoe"]), (omx(), ["dialect:omx"]), (omx(1500), ["dialect:omx", "frame_limit:1500"])],
    ids=["mxoe", "omx9000", "omx1500"],
)
def test_spoilt_frames(dialect: Dialect, preferences: list[str], tmp_path: Path) -> None:
    """Wrong lengths, cut frames, VLAN tags: verdict, place of the fault, fields, payload."""
    random = Random(f"plugin {dialect}")
    batch = scattered([mutated(random) for _ in range(FRAMES_SPOILT)], random)
    path = write_capture(tmp_path / "spoilt.pcap", batch)
    located = locate(batch)
    options = [part for each in (*preferences, "byte_order:network") for part in ("-o", f"mxoe.{each}")]
    seen = list(packets(path, *options))
    assert len(seen) == len(batch)
    codec = codec_of(dialect)
    verdicts = set()
    for index, place in enumerate(located.batch.number - 1):
        packet = seen[place]
        shift, wire_length = int(located.shift[index]), int(located.wire_length[index])
        frame = codec.parse(located.frame(index), wire_length)
        verdicts.add(frame.reason if isinstance(frame, Malformed) else None)
        record = _record(frame, codec, index, shift, wire_length, int(located.batch.length[index]))
        record["vlan"] = [0] * (shift // 4)
        # Wireshark calls no dissector for a frame that ends with its EtherType.
        if record["captured"] > 14 + shift:
            compared(record, packet)
    assert len(verdicts) == 8


def _record(frame: Any, codec: Any, index: int, shift: int, wire_length: int, captured: int) -> dict[str, Any]:
    """The record of ``mxwire decode --json`` for a frame, in one dialect."""
    made: dict[str, Any] = {"frame": index + 1, "captured": captured, "payload": None, "malformed": None}
    if isinstance(frame, Malformed):
        raw: dict[str, Any] = dict(frame.fields)
        made["malformed"] = {"reason": frame.reason.text, "offset": frame.offset + shift}
        made["type"] = frame.packet_type
    else:
        layout = codec.layout(frame.layout_name)
        raw = {each.name: getattr(frame, each.attribute) for each in layout.fields if each.kind in ("integer", "mac")}
        made["type"] = int(frame.ptype)
        payload = layout.payload
        if payload is not None and payload.text:
            raw[payload.name] = getattr(frame, payload.attribute)
        elif payload is not None:
            length = getattr(frame, payload.length_field) if payload.length_field else wire_length - payload.offset
            made["payload"] = {"offset": payload.offset + shift, "length": length}
    made["fields"] = {name: _plain(name, value) for name, value in raw.items()}
    return made


def _plain(name: str, value: int | bytes) -> int | str:
    if isinstance(value, int):
        return value
    return value.hex(":") if name.endswith("_mac") else hostname_text(value)


def test_words_for_spoilt_frames(tmp_path: Path) -> None:
    random = Random("words")
    batch = scattered([mutated(random) for _ in range(FRAMES_SPOILT)], random)
    path = write_capture(tmp_path / "spoilt.pcap", batch)
    located = locate(batch)
    options = ["-o", "mxoe.dialect:mxoe", "-o", "mxoe.byte_order:network", "-o", "mxoe.analysis:FALSE"]
    rows = columns(path, ["_ws.col.Protocol", "_ws.col.Info"], *options)
    codec = codec_of(MXOE)
    for index, place in enumerate(located.batch.number - 1):
        row = rows[place]
        frame = codec.parse(located.frame(index), int(located.wire_length[index]))
        if row[0] != "MXoE":
            assert int(located.captured[index]) <= 14, row
            continue
        words = summary(frame, MXOE)
        expected = " ".join(filter(None, (type_text(frame), endpoints_text(frame), words)))
        # tshark writes what a column cannot show as escapes, and cuts long columns.
        assert _loose(row[1])[:60] == _loose(json.loads(json.dumps(expected)))[:60], (index, row, expected)
