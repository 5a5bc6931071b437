"""Scanners find the records and blocks of good data and of garbage, and the one compiled by numba the same ones."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
from capture_builders import enhanced, interface, record, section, simple
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.capture import open_capture
from mxwire.capture.scan import PYTHON_SCANNER, ScannerChoice, gather_words, numba_scanner
from mxwire.errors import MxwireError


@pytest.fixture(scope="module")
def compiled_scanner():
    pytest.importorskip("numba")
    return numba_scanner()


small_words = st.sampled_from([0, 1, 2, 3, 6, 11, 12, 16, 20, 28, 32, 0x0A0D0D0A, 2**31, 2**32 - 1])
garbage = st.binary(max_size=300) | st.lists(small_words, max_size=60).map(
    lambda words: struct.pack(f"<{len(words)}I", *words)
)
blocks = st.lists(
    st.sampled_from([section(), interface(), enhanced(bytes(5)), simple(bytes(8)), enhanced(b"")]), max_size=10
).map(b"".join)
records = st.lists(st.binary(max_size=20).map(record), max_size=10).map(b"".join)


def same(one, other):
    assert one[0].tolist() == other[0].tolist()
    assert one[1] == other[1]
    assert one[0].dtype == other[0].dtype == np.int64


def array_of(data):
    return np.frombuffer(bytearray(data), np.uint8)


@given(data=st.tuples(records, garbage), little_endian=st.booleans(), largest=st.sampled_from([4, 262144]))
def test_records(compiled_scanner, data, little_endian, largest):
    buffer = array_of(b"".join(data))
    for start in {0, min(5, len(buffer)), len(buffer)}:
        arguments = (buffer, start, len(buffer), little_endian, largest)
        same(PYTHON_SCANNER.records(*arguments), compiled_scanner.records(*arguments))


runs = st.lists(st.tuples(st.sampled_from([0, 1, 60]), st.sampled_from([1, 255, 256, 257, 1023, 1300])), max_size=4)


@given(runs=runs, cut=st.integers(0, 80), little_endian=st.booleans(), largest=st.sampled_from([59, 262144]))
@settings(max_examples=50)
def test_runs_of_records_of_equal_length(runs, cut, little_endian, largest):
    lengths = [length for length, count in runs for _ in range(count)]
    order = "<" if little_endian else ">"
    data = b"".join(struct.pack(f"{order}4I", 1, 2, length, length) + bytes(length) for length in lengths)
    buffer = array_of(data[: max(len(data) - cut, 0)])
    ends = np.cumsum([16 + length for length in lengths], dtype=np.int64)
    stops = np.flatnonzero((ends > len(buffer)) | (np.array(lengths) > largest))
    whole = int(stops[0]) if len(stops) else len(lengths)
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    same(PYTHON_SCANNER.records(buffer, 0, len(buffer), little_endian, largest), (starts[:whole], int(starts[whole])))


@given(
    data=st.tuples(blocks, garbage), little_endian=st.booleans(), wanted=st.sampled_from([(2, 32), (3, 16), (6, 32)])
)
def test_blocks(compiled_scanner, data, little_endian, wanted):
    buffer = array_of(b"".join(data))
    for start in {0, min(28, len(buffer)), len(buffer)}:
        arguments = (buffer, start, len(buffer), little_endian, *wanted)
        same(PYTHON_SCANNER.blocks(*arguments), compiled_scanner.blocks(*arguments))


def test_a_real_capture(compiled_scanner, real_capture):
    buffer = array_of(real_capture.read_bytes())
    arguments = (buffer, 24, len(buffer), True, 262144)
    same(PYTHON_SCANNER.records(*arguments), compiled_scanner.records(*arguments))
    assert compiled_scanner.records(*arguments)[1] == len(buffer)


@pytest.mark.parametrize("little_endian", [True, False])
def test_gathering_words(little_endian):
    data = bytes(range(40))
    words = gather_words(array_of(data), np.array([0, 1, 28], np.int64), 3, little_endian)
    order = "<" if little_endian else ">"
    assert words.T.tolist() == [list(struct.unpack_from(order + "3I", data, at)) for at in (0, 1, 28)]
    assert gather_words(array_of(b""), np.zeros(0, np.int64), 3, little_endian).shape == (3, 0)


def test_numba_is_chosen_when_it_pays(compiled_scanner):
    choice = ScannerChoice(None)
    choice.reconsider(10_000_000)
    assert choice.scanner is PYTHON_SCANNER
    choice.reconsider(30_000_000)
    assert choice.scanner == compiled_scanner
    never = ScannerChoice(False)
    never.reconsider(1e9)
    assert never.scanner is PYTHON_SCANNER
    assert ScannerChoice(True).scanner == compiled_scanner


def test_without_numba(monkeypatch, real_capture):
    monkeypatch.setitem(sys.modules, "mxwire.capture.scan_numba", None)  # makes importing it an ImportError
    choice = ScannerChoice(None)
    choice.reconsider(1e9)
    assert choice.scanner is PYTHON_SCANNER
    with pytest.raises(MxwireError, match=r"numba cannot be used \(.*\); python -m pip install "):
        open_capture(real_capture, numba=True)
