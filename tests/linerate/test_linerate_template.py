"""Templates: valid frames of every kind and size, patched fields, frames of captures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.capture import open_capture
from mxwire.errors import MxwireError
from mxwire.ethernet import DESTINATION, SOURCE
from mxwire.frames import FrameBatch
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import (
    KINDS,
    STAMP,
    captured_templates,
    full_size,
    recognise,
    template_of,
    template_of_size,
    templates_of,
)
from mxwire.wire.codec import Malformed, parse
from mxwire.wire.dialect import MXOE, omx
from tests.cli.support import CAPTURES

from .frames import HERE, THERE, frames_of


@given(st.integers(60, 9018))
def test_every_size_has_a_valid_frame(size):
    made = template_of_size(size, HERE, THERE)
    frame = parse(made.frame, MXOE if size <= MXOE.frame_limit else omx(size))
    assert not isinstance(frame, Malformed)
    assert len(made) == size
    assert frame.dst_mac == HERE and frame.src_mac == THERE


@pytest.mark.parametrize(("kind", "size"), [("TINY", 72), ("SMALL", 168), ("MEDIUM", 4144), ("PULL_REPLY", 4128)])
def test_a_full_frame_has_the_longest_data(kind, size):
    assert full_size(kind) == size


def test_patched_fields_are_those_of_the_codec():
    """The fields of each frame, parsed by the codec, follow the sequence number."""
    slots = FrameSlots(templates_of("mix", HERE, THERE), run=7)
    for number, raw in enumerate(frames_of(slots, 1000)):
        frame = parse(raw, MXOE)
        assert not isinstance(frame, Malformed)
        if hasattr(frame, "lib_seqnum"):
            assert frame.lib_seqnum == number & 0x3FFF
        elif hasattr(frame, "msg_offset"):
            assert (frame.frame_seqnum, frame.msg_offset) == (number & 0xFF, number * 4096)
        else:
            assert frame.frame_index == number * 8


@pytest.mark.parametrize("kind", [*KINDS, "mix"])
@pytest.mark.parametrize("streams", [1, 3])
def test_stamps_number_each_stream(kind, streams):
    slots = FrameSlots(templates_of(kind, HERE, THERE), streams=streams, run=200)
    stamps = np.array([np.frombuffer(raw[-STAMP.itemsize :], STAMP)[0] for raw in frames_of(slots, 700, 1234)])
    place = stamps["place"]
    assert (place >> np.uint64(56)).tolist() == [200] * 700
    assert (place >> np.uint64(44) & np.uint64(0xFFF)).tolist() == [each % streams for each in range(700)]
    assert (place & np.uint64((1 << 44) - 1)).tolist() == [each // streams for each in range(700)]
    assert stamps["time"].tolist() == [1234] * 700


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_frame_with_any_number_is_recognised(kind):
    slots = FrameSlots([template_of(kind, HERE, THERE)])
    template = template_of(kind, HERE, THERE)
    found = recognise(frames_of(slots, 300)[-1])
    assert found is not None
    assert (found.name, found.frame, found.patches) == (template.name, template.frame, template.patches)


@given(st.binary(max_size=200))
def test_any_bytes_are_recognised_or_not_but_never_an_error(data):
    stamp = np.zeros(1, STAMP)
    stamp["magic"] = 0x726C
    for frame in (data, data + stamp.tobytes(), data.ljust(60, b"\1") + stamp.tobytes()):
        found = recognise(frame)
        assert found is None or len(found) == len(frame)


@pytest.mark.parametrize(
    ("kind", "size", "words"),
    [
        ("TINY", 59, "60 to 72 bytes"),
        ("TINY", 73, "60 to 72 bytes"),
        ("PULL", 72, "68 bytes"),
        ("SMALL", 1000, "60 to 168"),
        ("RNDV", None, "choose TINY"),
    ],
)
def test_impossible_frames_are_refused(kind, size, words):
    with pytest.raises(MxwireError, match=words):
        template_of(kind, HERE, THERE, size)


def test_the_size_of_a_mix_is_that_of_its_longest_frames():
    assert [len(each) for each in templates_of("mix", HERE, THERE)] == [72, 168, 4144, 68, 4128]
    assert [len(each) for each in templates_of("mix", HERE, THERE, 100)] == [72, 100, 100, 68, 100]
    with pytest.raises(MxwireError, match="a MEDIUM cannot have 60 bytes"):
        templates_of("mix", HERE, THERE, 60)


def test_frames_of_a_capture_keep_their_fields():
    with open_capture(CAPTURES / "mxoe-every-type.pcap") as reader:
        batches = list(reader)
    made = captured_templates(batches, HERE, THERE)
    assert len({each.name for each in made}) >= 8
    assert all(each.captured and each.name != "RAW" for each in made)
    originals = [frame for batch in batches for frame in batch]
    for each in made:
        assert each.frame[DESTINATION] == HERE and each.frame[SOURCE] == THERE
        body = each.frame[SOURCE.stop : -STAMP.itemsize]
        assert any(original[SOURCE.stop :].startswith(body) for original in originals)
        assert not isinstance(parse(each.frame, MXOE), Malformed)


def test_a_capture_without_usable_frames_is_refused():
    with pytest.raises(MxwireError, match="no frame to generate"):
        captured_templates([FrameBatch.from_frames([b"\0" * 60])], HERE, THERE)
