"""The table of this machine: unit costs fitted to half round trips that were measured here.

Both hosts of the model have one core, since card and library of mxwire run in one process. The fit uses a few lengths
only (:data:`FITTED`); half round trips of other lengths are predictions, and may be compared with measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.tables import HERE, Costs, FittedNumber, Source
from mxwire.bench.imb.patterns import benchmark_by_name, measured
from mxwire.errors import MxwireError
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

FITTED: Final = (0, 1024, RENDEZVOUS_THRESHOLD, 65536, 1 << 20)
"""Lengths in bytes whose half round trips the fit uses: one per unknown."""
PREDICTED: Final = (64, 4096, 16384, 262144, 4 << 20)
"""Lengths in bytes that check it."""
_START: Final = (5_000.0, 1.0, 10_000.0, 500.0, 0.2)
"""First values: a call, a byte of a MEDIUM, a MEDIUM, a page, a byte of a PULL_REPLY."""
_FRAME: Final = 500.0
"""A frame without its data, which no length determines."""
_FAST: Final = 1e12
"""Rate of a virtual cable, which does not limit."""
_STEPS: Final = 8
_CHANGE: Final = 0.05
_ENOUGH: Final = 0.005


def calibrate(measured_us: Mapping[int, float], about: str = "this machine") -> Costs:
    """Fit the table of this machine to half round trips of mxoe, in µs by length; all of :data:`FITTED` are needed.

    Raises :class:`~mxwire.errors.MxwireError` if one is missing or not positive.
    """
    missing = [str(each) for each in FITTED if not measured_us.get(each, 0) > 0]
    if missing:
        raise MxwireError(f"costs of this machine: half round trips of {', '.join(missing)} bytes are missing")
    wanted = np.array([measured_us[each] for each in FITTED])
    values = np.array(_START)
    found = _predicted(values, about)
    for _ in range(_STEPS):
        error = found / wanted - 1
        if np.abs(error).max() < _ENOUGH:
            break
        slopes = []
        for place in range(len(values)):
            moved = values.copy()
            moved[place] *= 1 + _CHANGE
            slopes.append((_predicted(moved, about) - found) / wanted / _CHANGE)
        step, *_ = np.linalg.lstsq(np.array(slopes).T, -error, rcond=None)
        # Costs stay positive, and a step changes them by at most a factor of four: the model has kinks.
        values = values * np.clip(1 + step, 0.25, 4.0)
        found = _predicted(values, about)
    numbers = tuple(FittedNumber("half round trip", "mxoe, spinning", each, measured_us[each]) for each in FITTED)
    return replace(_costs(values, about), fitted_to=numbers)


def half_round_trip(costs: Costs, length: int, dialect: Dialect = MXOE) -> float:
    """Half a round trip of a length in µs between two hosts of a table."""
    benchmark = benchmark_by_name("PingPong")
    fabric = EndpointFabric([ModelHostOptions(costs, dialect)] * 2, 2)
    times = fabric.run(lambda comm: measured(comm, lambda rank: benchmark.make(rank, length, ""), 1, 2))[0]
    return sum(times) / len(times) / 2000


def _predicted(values: NDArray[np.float64], about: str) -> NDArray[np.float64]:
    costs = _costs(values, about)
    return np.array([half_round_trip(costs, each) for each in FITTED])


def _costs(values: NDArray[np.float64], about: str) -> Costs:
    call, warm, medium, pin, cold = map(float, values)
    sources: dict[str, Source] = {"frame_send": "guess", "frame_receive": "guess"}
    fitted = ("call", "event", "medium", "copy_warm", "copy_cold", "local_copy", "combine", "pin")
    return Costs(
        HERE,
        about,
        line=_FAST,
        cores=1,
        call=call,
        event=call,
        frame_send=_FRAME,
        frame_receive=_FRAME,
        medium=medium,
        copy_warm=warm,
        copy_cold=cold,
        local_copy=warm,
        combine=warm,
        pin=pin,
        sources=sources | dict.fromkeys(fitted, "fitted"),
    )
