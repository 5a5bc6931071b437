"""Ranks of a parallel program: several processes on each of two hosts, over the wire and locally at the same time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .recorder import Recorder

ROOT = Path(__file__).parents[2]
RANKS = ROOT / "tests" / "host" / "local_ranks.py"
LONGEST_S = 120


@pytest.mark.parametrize(("face", "count"), [("blocking", 2), ("asyncio", 3)])
def test_ranks_on_two_hosts(jumbo_cable, face, count):
    """R-LOC-02: all to all; a rank reaches those of its host through memory, the others over the wire.

    No process refuses a frame for the endpoint of another one, and only one answers for its host.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT) + os.pathsep + os.environ.get("PYTHONPATH", "")}
    with Recorder(jumbo_cable[0]) as watcher:
        running = [
            port.namespace.start(
                *(sys.executable, str(RANKS), face, port.interface, f"{own}:{count},{other}:{count}"),
                env=environment,
                cwd=ROOT,
            )
            for port, own, other in zip(jumbo_cable, ("alpha", "beta"), ("beta", "alpha"), strict=True)
        ]
        for each in running:
            _, errors = each.communicate(timeout=LONGEST_S)
            assert each.returncode == 0, errors
    frames = [raw for _, raw in watcher.frames]
    assert len(frames) > 1000
    assert not [raw for raw in frames if raw[:6] == raw[6:12]], "no local message is on the wire"
