"""Observation of frames by a host while nothing progresses."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from mxwire.frames import FrameBatch
from mxwire.host.stall import ENOUGH, OBSERVE_AGAIN, SHORT, DialectMonitor, PeerObserver

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
    """While a host is observed, messages take longer; in batches, which a monitor does not need, twice as long."""
    core = pair.alpha.core
    monitor = DialectMonitor(core)
    assert core.observers == [] and len(core.samplers) == 1
    for _ in range(ENOUGH):
        receiving = pair.two.ireceive(maximum=1)
        pair.one.issend(pair.partner, b"x")
        pair.two.wait(receiving, PATIENCE)
    assert core.samplers == [] and monitor.found() == []
    monitor.close()


@without_agent
def test_an_observer_counts_single_frames_as_those_of_a_batch(pair: Pair) -> None:
    core, peer = pair.alpha.core, pair.partner.peer.address
    own = core.links[0].address
    observers = PeerObserver(core), PeerObserver(core)
    for length in (20, SHORT, SHORT + 1, 3000):
        received, sent = (own + peer).ljust(length, b"\x01"), (peer + own).ljust(length, b"\x02")
        for frame, outward in ((received, False), (sent, True), (peer.ljust(14, b"\x03"), False)):
            observers[0]._count([frame], outward)
            observers[1]._count(FrameBatch.from_frames([b"other", frame]).part(1, 2), outward)
    for each in observers:
        assert dict(each.received) == {peer: 4, bytes([3] * 6): 4} and dict(each.long_received) == {peer: 2}
        assert dict(each.long_sent) == {peer: 2} and each._left == ENOUGH - 12
        each.close()
    assert observers[0]._kept == observers[1]._kept and core.samplers == []
