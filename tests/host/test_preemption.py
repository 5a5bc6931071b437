"""A polling thread detects that others take its CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from mxwire.host.perf.preemption import WINDOW_NS, PreemptionMeter, Usage

PATIENCE_S = 60


@pytest.mark.parametrize(
    ("usage", "preempted"),
    [
        (Usage(WINDOW_NS, WINDOW_NS // 2, 5), True),
        (Usage(WINDOW_NS, WINDOW_NS * 79 // 100, 1), True),
        (Usage(WINDOW_NS, WINDOW_NS * 81 // 100, 50), False),
        (Usage(WINDOW_NS - 1, 0, 5), False),
        (Usage(WINDOW_NS * 9, WINDOW_NS, 0), False),
    ],
    ids=["half", "just below", "just above", "too short", "blocked, not preempted"],
)
def test_detection_of_preemption(usage: Usage, preempted: bool) -> None:
    assert usage.preempted is preempted


def test_a_busy_cpu_is_noticed() -> None:
    """Two programs that spin on the same CPU: each has it for a part of the time only, on any machine."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        meter = PreemptionMeter()
        end = time.monotonic() + PATIENCE_S
        found = None
        while found is None and time.monotonic() < end:
            meter.start()
            for _ in range(100_000):
                pass
            found = meter.stop()
    finally:
        rival.kill()
        rival.wait()
        os.sched_setaffinity(0, allowed)
    assert found is not None and found.switches > 0 and found.wall_ns >= WINDOW_NS


def test_short_times_are_added_up_and_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quarter = WINDOW_NS // 4
    readings = iter([Usage(each * quarter, each * quarter // 2, each) for each in range(12)])
    monkeypatch.setattr(Usage, "now", classmethod(lambda cls: next(readings)))
    meter = PreemptionMeter()
    found = []
    for _ in range(6):
        meter.start()
        found.append(meter.stop())
    assert [each is not None for each in found] == [False, False, False, True, False, False]
    assert found[3] == Usage(4 * quarter, 4 * (quarter // 2), 4)
