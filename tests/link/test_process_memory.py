"""Memory of another process, through /proc and through calls: the same results, and none after its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from mxwire.link.process_memory import CalledMemory, ProcessMemory, copy_refusal

OWNER = """
import ctypes, sys
from mxwire.link.process_memory import own_token, permit_reading
permit_reading()
memory = ctypes.create_string_buffer(bytes(range(64)), 64)
token, place = own_token()
print(token.hex(), place, ctypes.addressof(memory), flush=True)
while line := sys.stdin.readline():
    print(memory.raw.hex(), flush=True)
"""


class Owner:
    """A process with 64 bytes that others may access."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", OWNER], **pipes)
        token, place, memory = self._line().split()
        self.token = bytes.fromhex(token), int(place)
        self.place = int(memory)
        self.pidfd = os.pidfd_open(self.process.pid)

    def _line(self) -> str:
        return self.process.stdout.readline()

    def content(self) -> bytes:
        """Its 64 bytes, as it sees them."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return bytes.fromhex(self._line())

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def owner() -> Iterator[Owner]:
    owner = Owner()
    yield owner
    owner.end()
    os.close(owner.pidfd)


@pytest.mark.parametrize("way", ["proc", "calls"])
def test_memory_is_read_and_written_until_its_process_ends(owner, way):
    def opened(token: bytes, place: int) -> ProcessMemory | CalledMemory:
        pid = owner.process.pid
        return ProcessMemory(pid, token, place) if way == "proc" else CalledMemory(pid, owner.pidfd, token, place)

    token, place = owner.token
    with pytest.raises(PermissionError):
        opened(bytes(16), place)
    with pytest.raises(PermissionError):
        opened(token, 4096)
    try:
        found = opened(token, place)
    except PermissionError:
        assert copy_refusal() is not None
        return
    with closing(found) as memory:
        parts = [bytearray(3), bytearray(5)]
        assert memory.read(owner.place + 2, parts) and b"".join(parts) == bytes(range(2, 10))
        assert memory.write(owner.place + 4, [b"abc", memoryview(b"de")])
        assert owner.content() == bytes(range(4)) + b"abcde" + bytes(range(9, 64))
        for nowhere in (0, 1 << 62, 1 << 63, (1 << 64) - 1):
            assert not memory.read(nowhere, [bytearray(8)]) and not memory.write(nowhere, [bytes(8)])
        owner.end()
        assert not memory.read(owner.place, [bytearray(8)]) and not memory.write(owner.place, [bytes(8)])


def test_calls_need_the_process_to_live(owner):
    """Another process may have its id: the pidfd of one that has ended is enough to refuse."""
    token, place = owner.token
    ended = subprocess.Popen([sys.executable, "-c", ""])
    pidfd = os.pidfd_open(ended.pid)
    ended.wait()
    try:
        with pytest.raises(PermissionError):
            CalledMemory(owner.process.pid, pidfd, token, place)
    finally:
        os.close(pidfd)


def test_calls_need_no_descriptor_of_the_caller(owner):
    """A channel closes its pidfd before the transfers of its process end."""
    given = os.dup(owner.pidfd)
    try:
        found = CalledMemory(owner.process.pid, given, *owner.token)
    except PermissionError:
        assert copy_refusal() is not None
        return
    finally:
        os.close(given)
    with closing(found) as memory:
        assert memory.read(owner.place, [bytearray(8)])
    assert not memory.read(owner.place, [bytearray(8)])
