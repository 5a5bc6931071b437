"""Frames by themselves and frames in batches are the same: in whole runs, not one frame differs, nor its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mxwire.frames import FrameBatch
from mxwire.protocol import Node
from mxwire.simulation import Simulation, draw_scenario

_receive, _transmit = Node.receive, Node.transmit
MOST = 28
"""No more frames come by themselves from a ring."""


class Count:
    """Number of frames that were transmitted alone."""

    arrived = left = 0


def receive_few(node: Node, batch: FrameBatch, now: int, interface: int = 0) -> None:
    if len(batch) > MOST:
        _receive(node, batch, now, interface)
        return
    Count.arrived += 1
    node.receive_few([batch.frame(place) for place in range(len(batch))], now, interface)


def transmit_few(node: Node, now: int, interface: int = 0) -> FrameBatch:
    found = node.transmit_few(now, interface)
    if isinstance(found, FrameBatch):
        return found
    Count.left += len(found) > 0
    return FrameBatch.from_frames(found, [now] * len(found), first_number=node._sent - len(found) + 1)


@pytest.fixture
def by_themselves() -> Iterator[pytest.MonkeyPatch]:
    Count.arrived = Count.left = 0
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@given(seed=st.integers(0, 1 << 20))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_runs_are_the_same(seed: int, by_themselves: pytest.MonkeyPatch) -> None:
    scenario = draw_scenario(seed, messages=20)
    usual = Simulation(scenario).run()
    assume(usual.counts["frames"])  # None where one application sends to another one of its host.
    before = Count.arrived, Count.left
    with by_themselves.context() as patch:
        patch.setattr(Node, "receive", receive_few)
        patch.setattr(Node, "transmit", transmit_few)
        other = Simulation(scenario).run()
    assert Count.arrived > before[0] and Count.left > before[1]
    assert (other.digest, other.held) == (usual.digest, usual.held)
