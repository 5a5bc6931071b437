"""Real hosts deliver other bytes, or deliver twice, after a partner has died: defects, which the judge must know.

The same runs with hosts without defects satisfy every invariant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mxwire.protocol.arguments import Segments
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.simulation import RunOutcome, Scenario, Simulation, draw_scenario, receiver
from mxwire.units import MICROSECOND, MILLISECOND
from mxwire.wire.dialect import omx

AS_FOUND = replace(OPEN_MX_1_5_AS_FOUND, hz=250)
SHARED_HANDLE = Scenario(
    40005440,
    messages=19,
    workload="stream",
    profiles=(AS_FOUND,),
    processes=2,
    largest=150_000,
    resend_maximum=16,
    gap=0,
    loss=0.193,
    delay=MICROSECOND,
    held=20 * MICROSECOND,
    coalescing=10 * MICROSECOND,
    kill=1,
    partition=1,
)
"""The PULL of a killed process is repeated while its successor pulls under the same handle (D-13)."""
DEAD_REGION = replace(draw_scenario(40005440), profiles=(AS_FOUND,))
"""The NOTIFY of a pull from a dead session ends the send of the next session whose region has the same number and
counter (R-MEA-14); the region then holds another message (R-PUL-15)."""
DELIVERED_TWICE = Scenario(
    50000141,
    messages=40,
    dialect=omx(9000),
    profiles=(AS_FOUND,),
    largest=2_000_000,
    resend_maximum=16,
    gap=0,
    loss=0.192,
    duplicate=0.145,
    reorder=0.184,
    corrupt=0.028,
    delay=2 * MILLISECOND,
    held=200 * MICROSECOND,
    kill=1,
    pause=1,
    mtu=1,
)
"""A restarted host expects number 1 again after a CONNECT request that was lost at first (D-1, R-CON-12)."""
OUT_OF_ORDER = draw_scenario(50000203, profiles=(AS_FOUND,), kill=2)
"""A message that is delivered twice is in no order."""
LATE_AFTER_LOSS = Scenario(
    800013367,
    messages=40,
    dialect=omx(9000),
    profiles=(AS_FOUND,),
    largest=129,
    resend_maximum=24,
    gap=0,
    reorder=0.3,
    held=30 * MILLISECOND,
)
"""A message that was reported as lost is delivered after a later one, by a receiver that was not reset (D-4)."""
RUNS = {
    "handle": SHARED_HANDLE,
    "region": DEAD_REGION,
    "twice": DELIVERED_TWICE,
    "order": OUT_OF_ORDER,
    "late": LATE_AFTER_LOSS,
}


def run(scenario: Scenario) -> RunOutcome:
    return Simulation(scenario).run()


@pytest.mark.rule("D-1", "D-13", "R-MEA-14", "R-CON-12")
@pytest.mark.parametrize("name", RUNS)
def test_defects_of_real_hosts_are_not_those_of_the_engine(name: str) -> None:
    outcome = run(RUNS[name])
    assert outcome.held, outcome.breaches
    assert outcome.counts["unchecked"] > 0


@pytest.mark.parametrize("name", RUNS)
def test_hosts_without_defects_satisfy_every_invariant_in_the_same_runs(name: str) -> None:
    outcome = run(replace(RUNS[name], profiles=(replace(OPEN_MX_1_5, hz=250),)))
    assert outcome.held and not outcome.unchecked, outcome.breaches
    assert outcome.counts["unchecked"] == 0


@pytest.mark.rule("D-13")
def test_only_a_pull_of_an_earlier_opening_excuses_other_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "shares_handles", lambda card: False)
    outcome = run(SHARED_HANDLE)
    assert [each.invariant for each in outcome.breaches] == ["content"]


@pytest.mark.parametrize("changes", [{}, {"kill": 1}])
def test_other_bytes_without_such_a_pull_are_a_breach(changes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    original = Segments.put

    def damaged(memory: Segments, offset: int, data: Any, start: int = 0, size: int | None = None) -> int:
        return original(memory, offset, bytes(each ^ 1 for each in bytes(data[start:][:size])))

    monkeypatch.setattr(Segments, "put", damaged)
    outcome = run(Scenario(3, profiles=(AS_FOUND,), messages=40, **changes))
    assert "content" in {each.invariant for each in outcome.breaches}
