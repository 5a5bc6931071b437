"""The cost of reading: little memory whatever the size, no numba where it does not pay, no writable install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "mxwire"

MEASURE = """
import json, resource, struct, sys, zlib
from mxwire.capture import open_capture

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

class Endless:
    '''A capture of the given size that is made while it is read.'''
    def __init__(self, header, piece, count):
        self.left, self.pieces, self.piece = header, count, piece
    def read(self, size):
        if not self.left:
            if not self.pieces:
                return b""
            self.pieces -= 1
            self.left = self.piece
        data, self.left = self.left[:size], self.left[size:]
        return data

header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
record = lambda size: struct.pack("<IIII", 1, 2, size, size) + bytes(size)
"""


def measure(program, environment=None):
    shown = subprocess.run(
        [sys.executable, "-P", "-c", MEASURE + program], check=True, stdout=subprocess.PIPE, env=environment
    ).stdout
    return json.loads(shown)


def test_a_large_stream_takes_little_memory():
    program = """
piece = (record(60) * 2 + record(4128)) * 250
count = 400_000_000 // len(piece)
before = peak()
with open_capture(Endless(header, piece, count), numba=False) as reader:
    frames = sum(len(batch) for batch in reader)
print(json.dumps([peak() - before, frames == count * 750, reader.bytes_read]))
"""
    grown, all_there, size = measure(program)
    assert all_there
    assert size > 399_000_000
    assert grown < 100 << 20


def test_a_compression_bomb_takes_little_memory():
    """A few kilobytes that become 400 MB of empty frames must not become them all at once."""
    program = """
import zstandard
packer = zstandard.ZstdCompressor().compressobj()
packed = packer.compress(header)
zeros = record(250_000)
packed += b"".join(packer.compress(zeros) for _ in range(1600)) + packer.flush()
import io
before = peak()
with open_capture(io.BytesIO(packed), numba=False) as reader:
    frames = sum(len(batch) for batch in reader)
print(json.dumps([peak() - before, frames, len(packed)]))
"""
    grown, frames, size = measure(program)
    assert frames == 1600
    assert size < 1 << 20
    assert grown < 100 << 20


def test_a_small_capture_loads_no_numba():
    program = """
import io
with open_capture(io.BytesIO(header + record(60) * 1000)) as reader:
    frames = sum(len(batch) for batch in reader)
print(json.dumps([frames, sorted(set(sys.modules) & {"numba", "llvmlite", "scapy"})]))
"""
    assert measure(program) == [1000, []]


def test_numba_works_where_nothing_can_be_written(tmp_path):
    """From an archive and without a home, numba has no place for its cache (and even root cannot make one)."""
    pytest.importorskip("numba")
    archive = str(tmp_path / "mxwire.zip")
    with ZipFile(archive, "w") as written:
        for path in PACKAGE.rglob("*.py"):
            written.write(path, path.relative_to(PACKAGE.parent))
    program = """
import io, mxwire
with open_capture(io.BytesIO(header + record(60) * 1000), numba=True) as reader:
    frames = sum(len(batch) for batch in reader)
print(json.dumps([frames, mxwire.__file__]))
"""
    environment = {"PATH": os.environ["PATH"], "HOME": "/proc/nowhere", "PYTHONPATH": archive}
    assert measure(program, environment) == [1000, f"{archive}/mxwire/__init__.py"]


def test_retained_memory_is_not_cleared_again_for_the_next_batch():
    program = """
import numpy
from mxwire.capture import retain_freed_memory

def faults_of_a_batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for array in [numpy.empty(3 << 20, numpy.uint8) for _ in range(10)]:
        array[::4096] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults_of_a_batch()
cleared = faults_of_a_batch()
retain_freed_memory()
faults_of_a_batch()
print(json.dumps([cleared, faults_of_a_batch()]))
"""
    cleared, retained = measure(program)
    assert cleared > 1000
    assert retained < 100
