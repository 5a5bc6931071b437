"""Frames of real hosts are rebuilt byte for byte, except for the bytes they never wrote."""

from __future__ import annotations

import pytest

from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import PullReply

from .support import CAPTURES, defined_bytes, dialect_of, frames_of, layouts, read_capture


@pytest.fixture(params=CAPTURES)
def capture(request):
    return request.param


@pytest.fixture
def whole(capture):
    """The frames of a capture that were not cut."""
    batch = read_capture(capture)
    return frames_of(batch.select(batch.length == batch.wire_length))


def test_every_frame_is_well_formed(capture):
    batch = read_capture(capture)
    codec = codec_of(dialect_of(capture))
    for index, raw in enumerate(frames_of(batch)):
        assert not isinstance(codec.parse(raw, int(batch.wire_length[index])), Malformed), raw[:64].hex()


def test_built_again_it_is_the_same(capture, whole):
    codec = codec_of(dialect_of(capture))
    known = layouts(dialect_of(capture))
    for raw in whole:
        frame = codec.parse(raw)
        built = codec.build(frame)
        assert len(built) == len(raw)
        mask = defined_bytes(known[frame.layout_name], raw)
        for place, defined in enumerate(mask):
            if defined:
                assert built[place] == raw[place], (frame, place)


def test_undefined_bytes_do_not_matter(capture, whole):
    """RAW announcements apart, which are known by their zeros."""
    codec = codec_of(dialect_of(capture))
    known = layouts(dialect_of(capture))
    for raw in whole:
        frame = codec.parse(raw)
        if frame.layout_name == "raw_omxoed":
            continue
        mask = defined_bytes(known[frame.layout_name], raw)
        scribbled = bytes(byte if defined else byte ^ 0xFF for byte, defined in zip(raw, mask, strict=True))
        assert codec.parse(scribbled) == frame


def test_a_cut_frame_has_the_bytes_that_were_kept(capture, whole):
    """Cut to 128 bytes, as a capture with a snap length does: same fields, the payload as far as it goes."""
    codec = codec_of(dialect_of(capture))
    for raw in whole:
        if len(raw) <= 128:
            continue
        full, cut = codec.parse(raw), codec.parse(raw[:128], len(raw))
        assert type(cut) is type(full)
        for name in full.__slots__:
            kept, complete = getattr(cut, name), getattr(full, name)
            assert complete.startswith(kept) if isinstance(complete, bytes) else kept == complete
        if isinstance(full, PullReply):
            assert cut.data == raw[32:128]
