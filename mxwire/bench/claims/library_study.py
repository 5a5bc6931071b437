"""The study ``libraries``: LogP and bandwidth of the five libraries of 1998 in virtual time.

Series: ``RTT/2``, ``g``, ``o_s``, ``o_r`` and ``L`` (µs, by ``size``) of ``AM``, ``BIP``, ``FM``, ``PM`` and ``VMMC``,
with ``BIP, not synchronised`` in ``g``; ``bandwidth`` (MB/s of 10^6 bytes; unidirectional). Sizes are those of the
paper and those next to the lengths at which a library changes from writing to DMA.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Final

from mxwire.bench.cost.calibration import varied_costs
from mxwire.bench.cost.libraries import LIBRARIES, LibraryPair, fit
from mxwire.bench.cost.stage import MODELLED, VirtualStage
from mxwire.bench.cost.tables import MYRINET, Costs
from mxwire.bench.logp import BANDWIDTH, PARAMETERS
from mxwire.bench.record import VARIED, Recording
from mxwire.bench.study import Points, StudyOptions, kept, varied_points

STUDY: Final = "libraries"
SIZES: Final = (4, 16, 60, 64, 68, 128, 248, 252, 256, 512, 1024, 2048, 4096)
BANDWIDTH_SIZES: Final = (64, 256, 1024, 4096, 16384, 65536, 262144, 1 << 20)
NOT_SYNCHRONISED: Final = "BIP, not synchronised"
_QUICK: Final = 2
"""Sizes of a quick study."""
_REFIT_STEPS: Final = 3
"""Steps of a fit that begins near its result."""


def run_libraries(options: StudyOptions) -> Recording:
    """Compute all series, and those that depend on a guess with other values of it."""
    recording = options.begin(STUDY, VirtualStage(MYRINET).conditions)
    recording.facts["fitted"] = [asdict(each) for each in MYRINET.fitted_to]
    points = Points(recording)
    with kept(recording, points):
        _compute(points, MYRINET, options)
        if not options.quick:
            tables = varied_costs(MYRINET, partial(fit, steps=_REFIT_STEPS))
            recording.facts[VARIED] = list(varied_points(recording, tables, _compute, options))
    return recording


def _compute(points: Points, costs: Costs, options: StudyOptions) -> None:
    points.declare("µs", *PARAMETERS)
    points.declare("MB/s", BANDWIDTH)
    for path in LIBRARIES:
        options.progress(f"{STUDY}, {path.name}")
        pair = LibraryPair(costs, path)
        for size in SIZES[:_QUICK] if options.quick else SIZES:
            _add(points, path.name, pair, size)
            if path.waits_for_receive:
                interval = pair.interval(size, synchronised=False)
                points.add("g", NOT_SYNCHRONISED, interval / 1e3, marks=(MODELLED,), size=size)
        for size in BANDWIDTH_SIZES[:_QUICK] if options.quick else BANDWIDTH_SIZES:
            points.add(BANDWIDTH, path.name, size / pair.interval(size) * 1e3, marks=(MODELLED,), size=size)


def _add(points: Points, name: str, pair: LibraryPair, size: int) -> None:
    trip, sent, received = pair.half_round_trip(size), pair.send_overhead(size), pair.receive_overhead(size)
    values = (trip, pair.interval(size), sent, received, trip - sent - received)
    for parameter, value in zip(PARAMETERS, values, strict=True):
        # To whole ns: a difference of equal times is 0.
        points.add(parameter, name, round(value) / 1e3, marks=(MODELLED,), size=size)
