"""Comparison of both decoding paths: frame by frame, and a batch as columns."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any

from mxwire.wire.checks import Reason
from mxwire.wire.codec import Codec, Malformed
from mxwire.wire.columns import NO_TYPE, Columns
from mxwire.wire.layout import Layout


def assert_paths_agree(columns: Columns, codecs: list[Codec]) -> Counter[str]:
    """Every frame: verdict, place of the fault, layout, fields, addresses, payload. Counts the verdicts.

    ``codecs`` has the one of each frame.
    """
    located = columns.located
    output = _by_frame(columns)
    verdicts: Counter[str] = Counter()
    for index, codec in enumerate(codecs):
        captured = located.frame(index)
        shift = int(located.shift[index])
        frame = codec.parse(captured, int(located.wire_length[index]))
        reason = Reason(columns.reason[index])
        what = f"{codec.dialect} {captured[:64].hex()} {frame} {reason!r}"
        verdicts[reason.text] += 1
        layout, names, values = output.get(index, (None, (), ()))
        data = (int(columns.payload_offset[index]), int(columns.payload_length[index]))
        if isinstance(frame, Malformed):
            assert (frame.reason, frame.offset + shift) == (reason, columns.reason_offset[index]), what
            assert (NO_TYPE if frame.packet_type is None else frame.packet_type) == columns.packet_type[index], what
            assert data == (0, -1), what
            if layout is None:
                assert frame.offset in (len(captured), 16), what
            else:
                assert layout.name == frame.layout_name, what
                fields = {name: value for name, value in frame.fields.items() if isinstance(value, int)}
                assert dict(zip(names, values, strict=True)) == fields, what
            continue
        assert reason == Reason.NONE, what
        assert columns.reason_offset[index] == 0, what
        assert layout is not None, what
        assert layout.name == frame.layout_name, what
        assert frame.ptype == columns.packet_type[index], what
        assert tuple(_attributes(layout, frame)) == values, what
        assert int.from_bytes(frame.src_mac, "big") == located.source[index], what
        assert int.from_bytes(frame.dst_mac, "big") == located.destination[index], what
        payload = layout.payload
        if payload is None or payload.text:
            assert data == (0, -1), what
        else:
            offset, length = data
            assert offset == payload.offset + shift, what
            raw = columns.batch.frame(index)
            assert raw[offset : offset + length] == getattr(frame, payload.attribute), what
            if payload.length_field:
                assert length == getattr(frame, payload.length_field), what
    return verdicts


def _by_frame(columns: Columns) -> dict[int, tuple[Layout, tuple[str, ...], tuple[Any, ...]]]:
    """The fields of each frame that is in a block."""
    output: dict[int, tuple[Layout, tuple[str, ...], tuple[Any, ...]]] = {}
    for block in columns.blocks:
        rows = zip(*(block[name].tolist() for name in block.names), strict=True)
        for place, row in zip(block.place.tolist(), rows, strict=True):
            assert place not in output
            output[place] = block.layout, block.names, row
    return output


def _attributes(layout: Layout, frame: Any) -> tuple[Any, ...]:
    return attrgetter(*(each.attribute for each in layout.defined if each.kind == "integer"))(frame)
