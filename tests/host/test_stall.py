"""Observation of frames by a host while nothing progresses."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from mxwire.host.stall import ENOUGH, OBSERVE_AGAIN, DialectMonitor

from .conftest import PATIENCE, Pair, without_agent


def test_a_dialect_monitor_observes_frames_of_every_half_minute(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each observation decodes a limited number of frames, and a new one begins when the time is over."""
    clock = SimpleNamespace(now=0.0)
    # The function of the module, since a compiled host has looked the module up before.
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monitor, observers = DialectMonitor(pair.alpha.core), []
    for clock.now in (0.0, 29.9, 30.0, 31.0, 59.9, 60.0):
        assert monitor.found() == []
        observers.append(monitor._observer)
    monitor.close()
    first, _, second, _, _, third = observers
    assert observers == [first, first, second, second, second, third]
    assert len({first, second, third}) == 3 and OBSERVE_AGAIN == 30


@without_agent
def test_a_dialect_monitor_stops_observing_after_enough_frames(pair: Pair) -> None:
    """While a host is observed, it passes each frame in a batch, which doubles the time of short messages."""
    core = pair.alpha.core
    monitor = DialectMonitor(core)
    assert len(core.observers) == 1
    for _ in range(ENOUGH):
        receiving = pair.two.ireceive(maximum=1)
        pair.one.issend(pair.partner, b"x")
        pair.two.wait(receiving, PATIENCE)
    assert core.observers == [] and monitor.found() == []
    monitor.close()
