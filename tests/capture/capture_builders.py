"""Captures made byte by byte from the format specifications, so that nothing of mxwire checks itself."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from mxwire.capture import CaptureReader, open_capture
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch

FRAME = bytes.fromhex("ffffffffffff 020202020202 86df") + bytes(range(46))
SECOND = 10**9


def pcap_header(order="<", *, magic=0xA1B2C3D4, snap_length=262144, link_field=1, version=(2, 4)):
    return struct.pack(order + "IHHiIII", magic, *version, 0, 0, snap_length, link_field)


def record(frame, order="<", *, seconds=0, fraction=0, original=None):
    original = len(frame) if original is None else original
    return struct.pack(order + "IIII", seconds, fraction, len(frame), original) + frame


def pad(data):
    return data + bytes(-len(data) % 4)


def block(block_type, body, order="<"):
    length = 12 + len(pad(body))
    return struct.pack(order + "II", block_type, length) + pad(body) + struct.pack(order + "I", length)


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + pad(value)


def end_of_options(order="<"):
    return struct.pack(order + "HH", 0, 0)


def section(order="<", options=b"", version=(1, 0)):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1) + options, order)


def interface(order="<", *, link_type=1, snap_length=0, options=b""):
    return block(1, struct.pack(order + "HHI", link_type, 0, snap_length) + options, order)


def enhanced(frame, order="<", *, interface=0, ticks=0, original=None, options=b""):
    original = len(frame) if original is None else original
    header = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), original)
    return block(6, header + pad(frame) + options, order)


def simple(frame, order="<", *, original=None):
    return block(3, struct.pack(order + "I", len(frame) if original is None else original) + frame, order)


def obsolete(frame, order="<", *, interface=0, drops=7, ticks=0):
    header = struct.pack(order + "HHIIII", interface, drops, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(2, header + frame, order)


def read_all(reader: CaptureReader) -> list[tuple[int, int, int, int, bytes]]:
    """Number, link type, time, length on the wire and bytes of every frame."""
    frames = []
    for batch in reader:
        check_batch(batch)
        frames += [
            (
                int(batch.number[index]),
                batch.link_type,
                int(batch.timestamp_ns[index]),
                int(batch.wire_length[index]),
                batch.frame(index),
            )
            for index in range(len(batch))
        ]
    return frames


def frames_in(data, **arguments):
    """The frames of an intact capture."""
    with open_capture(io.BytesIO(data), **arguments) as reader:
        frames = read_all(reader)
        assert reader.warnings == []
    return frames


def check_batch(batch: FrameBatch) -> None:
    """Check the properties of every batch."""
    assert len(batch) > 0
    assert batch.buffer.dtype == np.uint8
    for column in (batch.offset, batch.length, batch.wire_length, batch.timestamp_ns, batch.number):
        assert column.dtype == np.int64
        assert column.shape == (len(batch),)
    assert batch.offset.min() >= 0
    assert batch.length.min() >= 0
    assert (batch.offset + batch.length).max() <= len(batch.buffer)
    assert (batch.wire_length >= batch.length).all()


def ended(reader: CaptureReader) -> tuple[int, str]:
    """Read to the error at the end; return the number of frames before it, and its text."""
    with pytest.raises(CaptureError) as caught:
        read_all(reader)
    return reader.frames, str(caught.value)
