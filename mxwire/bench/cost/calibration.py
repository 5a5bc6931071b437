"""The table of this machine: unit costs fitted to half round trips that were measured here.

Both hosts of the model have one core, since card and library of mxwire run in one process. The fit uses a few lengths
only (:data:`FITTED`); half round trips of other lengths are predictions, and may be compared with measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import CLOVERTOWN, HERE, Costs, FittedNumber, Source
from mxwire.bench.imb.patterns import benchmark_by_name
from mxwire.errors import MxwireError
from mxwire.wire.dialect import MXOE, Dialect, as_dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

FITTED: Final = (0, 1024, RENDEZVOUS_THRESHOLD, 65536, 1 << 20)
"""Lengths in bytes whose half round trips the fit uses: one per unknown."""
PREDICTED: Final = (64, 4096, 16384, 262144, 4 << 20)
"""Lengths in bytes that check it."""
TCP_FITTED: Final = (64, 1 << 20)
"""Lengths in bytes whose half round trips of TCP the fit uses."""
_START: Final = (5_000.0, 1.0, 10_000.0, 500.0, 0.2)
"""First values: a call, a byte of a MEDIUM, a MEDIUM, a page, a byte of a PULL_REPLY."""
_FELT_BY_LARGE: Final = [0, 3, 4]
"""Places of the costs on which half round trips of large messages depend."""
_TCP_START: Final = (5_000.0, 0.2)
"""First values of TCP: a send or receipt, and a byte."""
_FRAME: Final = 500.0
"""A frame without its data, which no length determines."""
_FAST: Final = 1e12
"""Rate of a virtual cable, which does not limit."""
_STEPS: Final = 8
_CHANGE: Final = 0.05
_ENOUGH: Final = 0.005
_LONGEST: Final = 4 << 20
"""Length in bytes whose rates the tables of 2010 were fitted to."""


def calibrate(
    measured_us: Mapping[int, float], about: str = "this machine", tcp_us: Mapping[int, float] | None = None
) -> Costs:
    """Fit the table of this machine to half round trips of mxoe, in µs by length; all of :data:`FITTED` are needed.

    ``tcp_us`` are those of TCP: with all of :data:`TCP_FITTED` the table has costs of TCP, too.

    Raises :class:`~mxwire.errors.MxwireError` if a length of mxoe is missing or not positive.
    """
    missing = [str(each) for each in FITTED if not measured_us.get(each, 0) > 0]
    if missing:
        raise MxwireError(f"costs of this machine: half round trips of {', '.join(missing)} bytes are missing")
    numbers = tuple(FittedNumber("half round trip", "mxoe, spinning", each, measured_us[each]) for each in FITTED)

    known: dict[tuple[float, ...], float] = {}

    def half(values: NDArray[np.float64], length: int) -> float:
        # Most of the time goes into the longest messages, which repeat if only costs of MEDIUMs change.
        key = length, *values[_FELT_BY_LARGE if length > RENDEZVOUS_THRESHOLD else slice(None)].tolist()
        if key not in known:
            known[key] = half_round_trip(_costs(values, about), length)
        return known[key]

    def predicted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([half(values, each) for each in FITTED])

    values = _fit(np.array([measured_us[each] for each in FITTED]), np.array(_START), predicted)
    costs = replace(_costs(values, about), fitted_to=numbers)
    if tcp_us is None or not all(tcp_us.get(each, 0) > 0 for each in TCP_FITTED):
        return costs
    return _with_tcp(costs, tcp_us)


def _with_tcp(costs: Costs, tcp_us: Mapping[int, float]) -> Costs:
    """The table with costs of TCP, fitted to its half round trips."""

    def changed(values: NDArray[np.float64]) -> Costs:
        message, byte = map(float, values)
        return replace(costs, tcp_send=message, tcp_receive=message, tcp_copy=byte)

    def predicted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        table = changed(values)
        return np.array([tcp_half_round_trip(table, each) for each in TCP_FITTED])

    values = _fit(np.array([tcp_us[each] for each in TCP_FITTED]), np.array(_TCP_START), predicted)
    numbers = tuple(FittedNumber("half round trip", "tcp, spinning", each, tcp_us[each]) for each in TCP_FITTED)
    sources: dict[str, Source] = dict.fromkeys(("tcp_send", "tcp_receive", "tcp_copy"), "fitted")
    return replace(changed(values), sources=costs.sources | sources, fitted_to=costs.fitted_to + numbers)


def _fit(
    wanted: NDArray[np.float64],
    values: NDArray[np.float64],
    predicted: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Find positive costs that predict the ``wanted`` numbers, by Newton's method starting at ``values``."""
    found = predicted(values)
    for _ in range(_STEPS):
        error = found / wanted - 1
        if np.abs(error).max() < _ENOUGH:
            break
        slopes = []
        for place in range(len(values)):
            moved = values.copy()
            moved[place] *= 1 + _CHANGE
            slopes.append((predicted(moved) - found) / wanted / _CHANGE)
        step, *_ = np.linalg.lstsq(np.array(slopes).T, -error, rcond=None)
        # Costs stay positive, and a step changes them by at most a factor of four: the model has kinks.
        values = values * np.clip(1 + step, 0.25, 4.0)
        found = predicted(values)
    return values


def varied_costs(
    costs: Costs, refit: Callable[[Costs], Costs], without: Collection[str] = ()
) -> Iterator[tuple[str, Costs]]:
    """Tables in which a guess is 25% less or more and the others are fitted again, with the name of the change.

    Guesses ``without`` effect are left out.
    """
    for name, source in costs.sources.items():
        value = getattr(costs, name)
        for change in (0.75, 1.25) if source == "guess" and value and name not in without else ():
            changed: dict[str, Any] = {name: value * change}
            yield f"{name} {change - 1:+.0%}", refit(replace(costs, **changed))


def refit(costs: Costs, numbers: Costs) -> Costs:
    """Fit adapters, bottom half and TCP of a table to what ``numbers``, a table of the same machine, predicts."""

    def table(values: NDArray[np.float64]) -> Costs:
        adapter, frame, byte, message, tcp_byte = map(float, values)
        return replace(
            costs,
            adapter_send=adapter,
            adapter_receive=adapter,
            frame_receive=frame,
            copy_cold=byte,
            tcp_send=message,
            tcp_receive=message * costs.tcp_receive / costs.tcp_send,
            tcp_copy=tcp_byte,
        )

    def predicted(found: Costs) -> NDArray[np.float64]:
        jumbo, plain = as_dialect("omx:9000"), as_dialect("omx:1500")
        own = [half_round_trip(found, 0, jumbo), *(half_round_trip(found, _LONGEST, each) for each in (jumbo, plain))]
        return np.array(own + [tcp_half_round_trip(found, each) for each in (0, _LONGEST)])

    start = np.array([costs.adapter_send, costs.frame_receive, costs.copy_cold, costs.tcp_send, costs.tcp_copy])
    return table(_fit(predicted(numbers), start, lambda values: predicted(table(values))))


def half_round_trip(costs: Costs, length: int, dialect: Dialect = MXOE) -> float:
    """Half a round trip of a length in µs between two hosts of a table."""
    return fabric_half_trip(EndpointFabric([ModelHostOptions(costs, dialect)] * 2, 2), length)


def tcp_half_round_trip(costs: Costs, length: int) -> float:
    """Half a round trip of a length in µs between two hosts of a table that use TCP."""
    return fabric_half_trip(StreamFabric(costs, 2), length)


def fabric_half_trip(fabric: ModelFabric, length: int) -> float:
    """Half a round trip of a length in µs between two ranks."""
    benchmark = benchmark_by_name("PingPong")
    times = fabric.run(lambda comm: benchmark.program(comm, length, "", 1, 2))[0]
    return sum(times) / len(times) / 2000


def _costs(values: NDArray[np.float64], about: str) -> Costs:
    call, warm, medium, pin, cold = map(float, values)
    sources: dict[str, Source] = {"frame_send": "guess", "frame_receive": "guess", "signal": "guess"}
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
        signal=CLOVERTOWN.signal,
        pin=pin,
        sources=sources | dict.fromkeys(fitted, "fitted"),
    )
