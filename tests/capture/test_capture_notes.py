"""Comments and names are read as they were written, and damage ends the reading, not the program."""

from __future__ import annotations

import struct

import pytest
from capture_builders import FRAME, block, end_of_options, enhanced, interface, option, section, simple
from hypothesis import given
from hypothesis import strategies as st

from mxwire.capture import create_capture
from mxwire.capture.notes import CaptureNotes, read_notes
from mxwire.errors import CaptureError
from mxwire.frames import FrameBatch


@pytest.mark.parametrize("order", ["<", ">"])
def test_comments_of_both_byte_orders(tmp_path, order):
    first = option(1, "première".encode(), order) + option(1, b"second line", order) + end_of_options(order)
    path = tmp_path / "a.pcapng"
    path.write_bytes(
        section(order)
        + interface(order)
        + simple(FRAME, order)
        + enhanced(FRAME, order)
        + enhanced(FRAME[:-1], order, options=first)
        + enhanced(FRAME, order, options=option(2, b"\0\0\0\0", order) + option(1, b"last", order))
    )
    assert read_notes(path).comments == {3: "première\nsecond line", 4: "last"}


def test_written_notes_are_read_again(tmp_path):
    path = tmp_path / "a.pcapng"
    names = {b"\2\0\0\0\0\1": "left", b"\2\0\0\0\0\2": "rïght"}
    with create_capture(path) as writer:
        writer.write_names(names)
        writer.write(FrameBatch.from_frames([FRAME] * 4), {2: "two", 4: "four\nlines"})
        writer.write(FrameBatch.from_frames([FRAME] * 2, first_number=5), {6: "six"})
    assert list(read_notes(path).names.items()) == list(names.items())
    assert read_notes(path).comments == {2: "two", 4: "four\nlines", 6: "six"}


def test_other_files_have_none(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(60))
    assert read_notes(path) == CaptureNotes()
    path.write_bytes(b"")
    assert read_notes(path) == CaptureNotes()
    with pytest.raises(CaptureError, match="cannot be read"):
        read_notes(tmp_path / "nowhere")


def _whole():
    return (
        section()
        + interface()
        + block(4, struct.pack("<HH", 2, 11) + bytes(6) + b"left\0" + bytes(5))
        + enhanced(FRAME, options=option(1, b"one") + end_of_options())
        + enhanced(FRAME, options=option(1, b"two") + end_of_options())
    )


def test_of_a_cut_off_file_the_beginning_counts(tmp_path):
    path = tmp_path / "a.pcapng"
    path.write_bytes(_whole()[:-8])
    assert read_notes(path).comments == {1: "one"}


@given(st.data())
def test_broken_files_do_no_harm(tmp_path_factory, data):
    whole = bytearray(_whole())
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "broken.pcapng"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    assert set(read_notes(path).comments) <= set(range(1, 30))
