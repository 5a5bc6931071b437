"""Captures for several modules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from wire.support import frames_of, read_capture

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch

from .support import DIALECTS, captures_of


@pytest.fixture(scope="module", params=DIALECTS)
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All captures of a dialect in one, one after the other, each between hosts of its own: it takes tshark longer to
    start than to read them all."""
    path = tmp_path_factory.mktemp("captures") / f"{request.param}.pcap"
    with create_capture(path) as writer:
        start = 0
        for which, name in enumerate(captures_of(request.param)):
            batch = read_capture(name)
            times = (batch.timestamp_ns - batch.timestamp_ns[0] + start).tolist()
            frames = [_of_hosts(raw, which) for raw in frames_of(batch)]
            made = FrameBatch.from_frames(frames, times)
            writer.write(replace(made, wire_length=batch.wire_length))
            start = times[-1] + 100_000_000_000
    return path


def _of_hosts(raw: bytes, which: int) -> bytes:
    """A frame between two other hosts."""
    changed = bytearray(raw)
    for address in (0, 6):
        if changed[address : address + 6] != b"\xff" * 6:
            changed[address + 3] = which + 1
    return bytes(changed)
