"""Spoilt frames by the hundred thousand: no error in Lua, no hang, bounded memory."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from tests.wire.mutation import mutated

from .support import needs_tshark, tshark

pytestmark = needs_tshark

FRAMES = int(os.environ.get("MXWIRE_FUZZ_FRAMES", "40000"))
"""In total; ``make nightly`` has more."""
RUNS = 4
MICROSECONDS_A_FRAME = 1500
FRAMES_A_BATCH = 20_000
MEMORY = 1 << 30
MEMORY_A_FRAME = 2 << 10
"""Bytes of address space that tshark may take; beyond, Lua has an error."""


def write_spoilt(path: Path, frames: int, seed: object) -> None:
    """Mostly few hosts and endpoints, so that the frames meet the state that earlier ones left."""
    random = Random(f"plugin fuzz {seed}")
    now = 0
    with create_capture(path) as writer:
        for first in range(0, frames, FRAMES_A_BATCH):
            made = [_spoilt(random) for _ in range(min(FRAMES_A_BATCH, frames - first))]
            size = np.array([len(frame) for frame, _ in made], np.int64)
            gaps = np.array([random.choice((1_000, 50_000, 300_000_000)) for _ in made], np.int64)
            times = now + np.cumsum(gaps)
            now = int(times[-1])
            writer.write(
                FrameBatch(
                    buffer=np.frombuffer(b"".join(frame for frame, _ in made), np.uint8),
                    offset=np.cumsum(size) - size,
                    length=size,
                    wire_length=np.array([length for _, length in made], np.int64),
                    timestamp_ns=times,
                    number=np.arange(first, first + len(made)) + 1,
                )
            )


def _spoilt(random: Random) -> tuple[bytes, int]:
    frame, length = mutated(random)
    if random.random() < 0.9:
        frame = _HOSTS[random.randrange(4)] + frame[12:]
    return frame, length


_A, _B = bytes.fromhex("5254000a0001"), bytes.fromhex("5254000a0002")
_HOSTS = (_A + _B, _B + _A, b"\xff" * 6 + _A, _A + _A)


def cpu_seconds() -> float:
    """CPU time of the programs that this process has waited for, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("run", range(RUNS))
def test_no_error_on_spoilt_frames(run: int, tmp_path: Path) -> None:
    """The tree of every frame is built; every second run in two passes and with checksums."""
    path = tmp_path / "spoilt.pcap"
    frames = FRAMES // RUNS
    write_spoilt(path, frames, run)
    options = ["-o", "mxoe.checksum:TRUE", "-2"] if run % 2 else ["-o", "mxoe.memory:1"]
    before = cpu_seconds()
    fields = ("-T", "fields", "-e", "frame.number", "-e", "mxoe.malformed.reason")
    out = tshark(path, *options, *fields, timeout=3600, memory=MEMORY + frames * MEMORY_A_FRAME)
    assert len(out.splitlines()) == frames
    assert cpu_seconds() - before < frames * MICROSECONDS_A_FRAME / 1e6
