"""The loops in C read the same values as the columns."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mxwire.capture import open_capture
from mxwire.wire.decoder import Decoder

FRAMES = 500


@pytest.mark.parametrize("kind", ["SMALL", "MIXED"])
def test_the_loops_in_c_read_the_same_values_as_the_columns(kind: str, module: Any, tmp_path: Path) -> None:
    traffic, peers = module("traffic"), module("peers")
    path = tmp_path / "traffic.pcap"
    traffic.write_capture(path, getattr(traffic, kind), FRAMES)
    loops = peers.contestants(tmp_path)
    for name, way in peers.LOOPS.items():
        if isinstance(loops[name], str):
            pytest.skip(f"the loop in C cannot be compiled here: {loops[name]}")
        words = [str(tmp_path / "capture_loop"), way, str(path)]
        done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)
        frames, total, _ = done.stdout.split()
        assert (int(frames), int(total)) == (FRAMES, _sum_of_columns(path))


def _sum_of_columns(path: Path) -> int:
    """Every field of every frame, both addresses, times and lengths, added modulo 2**64."""
    total = 0
    decoder = Decoder()
    with open_capture(path) as reader:
        for batch in reader:
            columns = decoder.decode(batch).columns
            located = columns.located
            arrays = [located.source, located.destination, batch.timestamp_ns, batch.wire_length]
            arrays += [block[name] for block in columns.blocks for name in block.names]
            total += sum(int(each.sum(dtype=np.uint64)) for each in arrays)
    return total % (1 << 64)
