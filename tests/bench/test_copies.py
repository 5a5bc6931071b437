"""Copies of messages, counted in a traced process."""

from __future__ import annotations

import os
import platform
import socket

import numpy as np
import pytest

from mxwire.bench.intranode.agent_copies import agent_copies
from mxwire.bench.roles import program
from mxwire.bench.roles.common import CONTENT
from mxwire.bench.roles.copies import CopyTrail
from mxwire.bench.roles.tracing import trace, traced_engine
from mxwire.errors import MxwireError
from mxwire.myriexpress import build

SIZE = 4096


def copies_of(play, operations: int = 1) -> dict[str, int]:
    def marked() -> None:
        for _ in range(operations):
            os.getppid()
            play()
        os.getppid()

    try:
        found = trace(marked, operations).copied
    except MxwireError as error:
        pytest.skip(str(error))
    if found is None:
        pytest.skip(f"copies are not counted on {platform.machine()}")
    return found


def test_copies_of_a_message_are_counted_through_their_whole_path():
    message = memoryview(CONTENT)[:SIZE]

    def play() -> None:
        first = bytes(message)
        second = np.zeros(SIZE, np.uint8)
        second[:] = np.frombuffer(first, np.uint8)
        b"".join([b"header of the frame", second.data])

    assert copies_of(play, 3) == {"sent": 3 * 3 * SIZE, "received": 0}


def test_copies_of_other_memory_do_not_count():
    other = bytes(SIZE)
    assert copies_of(lambda: bytes(memoryview(other))) == {"sent": 0, "received": 0}


def test_received_bytes_are_followed_from_the_call_of_the_kernel():
    left, right = socket.socketpair()
    other = bytes(SIZE)

    def play() -> None:
        left.send(other)
        place = bytearray(SIZE)
        right.recv_into(place)
        bytes(place)

    assert copies_of(play) == {"sent": 0, "received": SIZE}


def test_the_engine_copies_large_messages_once_per_side():
    try:
        found = traced_engine("mxoe", 65536, 2)
    except MxwireError as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip(f"copies are not counted on {platform.machine()}")
    assert found == {"bytes copied": 2 * 65536}


def test_memory_that_is_written_again_is_no_longer_part_of_a_message():
    trail = CopyTrail((1000, 2000), [])
    trail.copy(5000, 1000, 1000)
    trail.copy(5200, 9000, 100)
    trail.copy(7000, 5000, 1000)
    assert trail.copied["sent"] == 1000 + 900
    trail.forget()
    trail.copy(8000, 7000, 1000)
    trail.copy(8000, 1500, 1000)
    assert trail.copied["sent"] == 1900 + 500


def test_rings_and_received_memory_are_followed_apart_from_sent_messages():
    trail = CopyTrail((0x1000, 0x2000), [(0x10000, 0x20000)])
    trail.copy(0x30000, 0x10100, 64)
    trail.arrived(0x40000, 100)
    trail.copy(0x50000, 0x40000, 100)
    trail.copy(0x60000, 0x1F00, 8)
    assert trail.copied == {"sent": 0, "received": 164}


def test_a_library_that_is_not_built_is_named_without_its_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(program, "last_prefix", lambda: tmp_path)
    assert program.library_refusal().startswith("libmyriexpress.so is not built: run mxwire library build")


@pytest.mark.parametrize("version", ["0.1-0123456789ab Python 3.11", build._full_stamp().partition(" /")[0]])
def test_a_stale_library_is_named_without_the_path_of_its_python(monkeypatch, tmp_path, version):
    installation = build.Installation(tmp_path)
    for each in (installation.library, installation.engine, installation.stamp_file):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text(f"{version} /usr/lib/other/python3", encoding="utf-8")
    monkeypatch.setattr(program, "last_prefix", lambda: tmp_path)
    refusal = program.library_refusal()
    assert version in refusal and "was built by another " in refusal and "/" not in refusal


@pytest.mark.parametrize(
    ("way", "copies", "kernels"), [("shared", 1, 0), ("through the kernel", 0, 2), ("through the rings", 3, 0)]
)
def test_an_agent_copies_a_message_once_in_shared_memory(way, copies, kernels):
    """As a network processor that reads and writes the memory of applications; elsewhere the kernel copies twice."""
    try:
        found = agent_copies(way, 1 << 20, 1)
    except MxwireError as error:
        pytest.skip(str(error))
    assert found.pop("by the kernel") == pytest.approx(kernels, abs=0.01)
    if platform.machine() == "x86_64":
        assert found["by the agent"] >= copies - 0.01
        # Through the rings, a record that finds no room is copied once more, and data that is late is pulled again.
        assert way == "through the rings" or found["by the agent"] == pytest.approx(copies, abs=0.01)
