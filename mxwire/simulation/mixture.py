"""Scenarios drawn from a seed, for campaigns in which every run has its own mix of faults."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

from mxwire.protocol.profile import (
    NATIVE_MX,
    OPEN_MX_0_5,
    OPEN_MX_1_0,
    OPEN_MX_1_1,
    OPEN_MX_1_5,
    OPEN_MX_1_5_AS_FOUND,
    Profile,
)
from mxwire.simulation.randomness import stream
from mxwire.simulation.scenario import DISCOVERIES, WORKLOADS, Scenario
from mxwire.units import MICROSECOND, MILLISECOND
from mxwire.wire.dialect import MXOE, Dialect, omx

DIALECTS: Final = (MXOE, omx(1500), omx(9000))
_RATES: Final = {"loss": 0.2, "duplicate": 0.2, "reorder": 0.3, "corrupt": 0.05}
_INCIDENTS: Final = ("kill", "crash", "pause", "stall", "partition", "filter", "mtu")


def draw_scenario(seed: int, **fixed: Any) -> Scenario:
    """Return the scenario of a seed, small enough to run many of them; ``fixed`` fields are not drawn."""
    rng = stream(seed, "mixture")
    dialect = rng.choice(DIALECTS)
    drawn: dict[str, Any] = {
        "hosts": rng.choice((2, 2, 2, 3, 3, 4, 5)),
        "messages": rng.choice((6, 12, 25, 40)),
        "workload": rng.choice(WORKLOADS),
        "dialect": dialect,
        "profiles": _profiles(rng, fixed.get("dialect", dialect)),
        "processes": rng.choice((1, 1, 1, 2)),
        "interfaces": rng.choice((1, 1, 2)),
        "discovery": rng.choices(DISCOVERIES, (8, 1, 1))[0],
        "largest": rng.choice((129, 40_000, 40_000, 150_000, 150_000, 2_000_000)),
        "resend_maximum": rng.choice((16, 24, 40)),
        "gap": rng.choice((0, 100 * MICROSECOND, 2 * MILLISECOND, 30 * MILLISECOND)),
        "delay": rng.choice((1, 10, 100, 2000)) * MICROSECOND,
        "jitter": rng.choice((0, 0, 5, 50, 1000)) * MICROSECOND,
        "held": rng.choice((20, 200, 3000, 30_000)) * MICROSECOND,
        "coalescing": rng.choice((0, 0, 10, 50)) * MICROSECOND,
    }
    for name, most in _RATES.items():
        drawn[name] = round(rng.random() * most, 3) if rng.random() < 0.4 else 0.0
    for name in _INCIDENTS:
        drawn[name] = rng.choice((1, 1, 2)) if rng.random() < 0.15 else 0
    if rng.random() < 0.2 and not (fixed.get("loss") or fixed.get("corrupt")):
        # Abandon partners soon, but only if nothing except incidents drops frames.
        drawn |= {"resend_maximum": 3, "loss": 0.0, "corrupt": 0.0}
    elif rng.random() < 0.03:
        drawn["tamper"] = 0.01
    return replace(Scenario(seed), **(drawn | fixed))


def _profiles(rng: Random, dialect: Dialect) -> tuple[Profile, ...]:
    """Return one to three profiles that understand each other."""
    known = [OPEN_MX_1_5, OPEN_MX_1_5, OPEN_MX_1_0, OPEN_MX_0_5]
    # A host that ignores the pipeline does not understand a host that uses another one.
    known += [NATIVE_MX, NATIVE_MX] if rng.random() < 0.6 or dialect.family != "mxoe" else [OPEN_MX_1_1]
    if rng.random() < 0.08:
        known.append(OPEN_MX_1_5_AS_FOUND)
    found = [rng.choice(known) for _ in range(rng.choice((1, 2, 3)))]
    return tuple(replace(each, hz=rng.choice((100, 250, 1000))) for each in found)
