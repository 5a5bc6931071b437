"""The Construct structures, used by themselves, agree with the codec compiled from them."""

from __future__ import annotations

from typing import Any

import pytest
from construct import Container
from hypothesis import given

from mxwire.wire.codec import Codec, Malformed
from mxwire.wire.layout import Layout

from .strategies import conversations, relaxed
from .support import CAPTURES, dialect_of, frames_of, layouts, read_capture


def flat(container: Container, prefix: str = "") -> dict[str, Any]:
    """Field values by specification name, without Construct's own entries."""
    values: dict[str, Any] = {}
    for name, value in container.items():
        if name == "_io":
            continue
        if isinstance(value, Container):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value if isinstance(value, bytes) else int(value)
    return values


def said_by(frame: Any, layout: Layout) -> dict[str, Any]:
    return {each.name: getattr(frame, each.attribute) for each in layout.fields if each.kind != "undefined"}


@pytest.mark.parametrize("capture", CAPTURES)
def test_structures_and_codec_read_real_frames_alike(capture):
    batch = read_capture(capture)
    dialect = dialect_of(capture)
    codec = Codec(dialect)
    known = layouts(dialect)
    whole = batch.select(batch.length == batch.wire_length)
    for raw in frames_of(whole):
        frame = codec.parse(raw)
        assert not isinstance(frame, Malformed)
        layout = known[frame.layout_name]
        read = flat(layout.format.struct.parse(raw))
        assert {name: read[name] for name in said_by(frame, layout)} == said_by(frame, layout)


@relaxed
@given(conversations())
def test_structures_and_codec_build_alike(conversation):
    dialect, frame = conversation
    layout = layouts(dialect)[frame.layout_name]
    values: dict[str, Any] = {}
    for name, value in said_by(frame, layout).items():
        *outer, inner = name.split(".")
        (values.setdefault(outer[0], {}) if outer else values)[inner] = value
    built = layout.format.struct.build(values)
    whole = Codec(dialect).build(frame)
    assert whole[: len(built)] == built
    assert not any(whole[len(built) :])


@relaxed
@given(conversations())
def test_sizes_of_the_structures_are_where_the_layouts_end(conversation):
    dialect, frame = conversation
    layout = layouts(dialect)[frame.layout_name]
    raw = Codec(dialect).build(frame)
    payload = getattr(frame, layout.payload.attribute) if layout.payload else b""
    read = layout.format.struct.parse(raw)
    assert len(layout.format.struct.build(read)) == layout.header_end + len(payload)
