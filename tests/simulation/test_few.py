"""Frames by themselves and frames in batches are the same: in whole runs, not one frame differs, nor its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxwire.frames import FrameBatch
from mxwire.protocol import Node
from mxwire.simulation import Simulation, draw_scenario

_transmit_few = Node.transmit_few


class Count:
    """Number of calls that were replaced by one with a batch."""

    arrived = left = 0


def receive_batch(node: Node, frames: list[bytes], now: int, interface: int = 0) -> None:
    Count.arrived += 1
    node.receive(FrameBatch.from_frames(frames, [now] * len(frames)), now, interface)


def transmit_batch(
    node: Node, now: int, interface: int = 0, timely: bool = True, limit: int = 0
) -> list[bytes] | FrameBatch:
    frames = _transmit_few(node, now, interface, timely, limit=0)
    assert isinstance(frames, FrameBatch) or not frames
    Count.left += len(frames) > 0
    return frames


@pytest.fixture
def in_batches() -> Iterator[pytest.MonkeyPatch]:
    Count.arrived = Count.left = 0
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    assert Count.arrived and Count.left


@given(seed=st.integers(0, 1 << 20))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_runs_are_the_same(seed: int, in_batches: pytest.MonkeyPatch) -> None:
    scenario = draw_scenario(seed, messages=20)
    usual = Simulation(scenario).run()
    with in_batches.context() as patch:
        patch.setattr(Node, "receive_few", receive_batch)
        patch.setattr(Node, "transmit_few", transmit_batch)
        other = Simulation(scenario).run()
    assert (other.digest, other.held) == (usual.digest, usual.held)
