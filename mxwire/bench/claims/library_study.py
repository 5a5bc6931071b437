"""The study ``libraries``: LogP and bandwidths of the libraries of 1998, whose models run in virtual time.

Series are those of :mod:`mxwire.bench.logp` and, for Active Messages, of :mod:`mxwire.bench.models.comparison`, over
``size``. Carriers are the models as the paper used them: ``gam copied`` (its handler copies data to the program's
memory), ``bip``, ``bip unsynchronised``, ``fm2``, ``pm`` (data in the library's buffers), ``vmmc2``, and ``null``. The
paper announces receives of BIP where messages follow each other, so its half round trips, o_r and L are those of
``bip unsynchronised``. Sizes are those of the paper and those next to the lengths at which a library changes from
writing to DMA; longer messages have bandwidths only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.cost.calibration import varied_costs
from mxwire.bench.cost.stage import VirtualStage
from mxwire.bench.cost.tables import MYRINET, MYRINET_FITTED, Costs, FittedNumber
from mxwire.bench.logp import BANDWIDTH, LogpStudy
from mxwire.bench.models.catalogue import COPIED, UNSYNCHRONISED
from mxwire.bench.models.comparison import ComparisonStudy
from mxwire.bench.record import VARIED, Recording
from mxwire.bench.stage import StudyStage
from mxwire.bench.study import StudyOptions

STUDY: Final = "libraries"
AM: Final = "gam" + COPIED
VARIED_CARRIERS: Final = (AM, "bip", UNSYNCHRONISED, "fm2", "pm", "vmmc2")
CARRIERS: Final = (*VARIED_CARRIERS, "null")
SIZES: Final = (4, 16, 60, 64, 68, 128, 248, 252, 256, 512, 1024, 2048, 4096, 16384, 65536, 262144, 1 << 20)
JUDGED_SIZES: Final = (4, 64, 252, 256, 1024, 4096, 65536)
"""Sizes at which claims are judged."""
_LONGEST: Final = 4096
"""Length of the longest message whose LogP is computed."""
_WINDOW: Final = 16
"""Messages in flight of a flood: as many as a receiver of PM has buffers."""
_FLOOD: Final = 3 * _WINDOW
_LONG: Final = {"count": 3, "window": 1, "depth": 3}
"""A short flood: each of its messages is cut into hundreds of packets."""
_FEW: Final = 2
"""Repetitions of what is equal each time."""
_QUICK: Final = 2
"""Sizes of a quick study."""
_FIT_CHANGE: Final = 0.02
_FIT_WEIGHT: Final = 0.02
_REFIT_STEPS: Final = 3
"""Steps of a fit that begins near its result."""


def run_libraries(options: StudyOptions) -> Recording:
    """Compute all series, and those that depend on a guess with other values of it."""
    with VirtualStage(MYRINET) as stage:
        recording = options.begin(STUDY, stage.conditions)
        recording.facts["fitted"] = [asdict(each) for each in MYRINET.fitted_to]
        _compute(stage, recording, options, CARRIERS, SIZES[:_QUICK] if options.quick else SIZES)
    if recording.complete and not options.quick:
        recording.facts[VARIED] = list(_varied(recording, options))
    return recording


def _varied(recording: Recording, options: StudyOptions) -> Iterator[dict[str, Any]]:
    slopes = _slopes(MYRINET, MYRINET_FITTED)
    for name, costs in varied_costs(MYRINET, lambda changed: fit(changed, steps=_REFIT_STEPS, slopes=slopes)):
        options.progress(f"{STUDY}, with {name}")
        found = Recording(STUDY, recording.conditions)
        with VirtualStage(costs) as stage:
            _compute(stage, found, StudyOptions(), VARIED_CARRIERS, JUDGED_SIZES)
        yield {"guess": name, "points": found.values()}


def _compute(
    stage: StudyStage, recording: Recording, options: StudyOptions, carriers: Sequence[str], sizes: Sequence[int]
) -> None:
    LogpStudy(stage, recording, options, tuple(each for each in sizes if each <= _LONGEST), _WINDOW).run(carriers)
    rest = Recording(STUDY, recording.conditions)
    ComparisonStudy(stage, rest, options, sizes).run(carriers)
    recording.join(rest)


def numbers_of(costs: Costs) -> dict[FittedNumber, float]:
    """The numbers to which a table was fitted, with what the models find."""
    numbers = {}
    with VirtualStage(costs) as stage:
        for each in costs.fitted_to:
            carrier, size = each.name.partition(",")[0], int(each.x)
            if each.series == BANDWIDTH:
                found, _ = stage.run("flood", carrier=carrier, size=size, **_LONG)
                numbers[each] = size / found["interval"] * 1e3
            elif each.series == "g":
                flood = {"count": _FLOOD, "window": _WINDOW, "depth": _WINDOW}
                numbers[each] = stage.run("flood", carrier=carrier, size=size, **flood)[0]["interval"] / 1e3
            else:
                found, _ = stage.run("trips", carrier=carrier, sizes=[size], counts=[_FEW])
                numbers[each] = found["points"][str(size)]["median"] / 1e3
    return numbers


def _changed(costs: Costs, names: Sequence[str], values: NDArray[np.float64]) -> Costs:
    changed: dict[str, Any] = dict(zip(names, map(float, np.exp(values)), strict=True))
    return replace(costs, **changed)


def _values(costs: Costs, names: Sequence[str]) -> NDArray[np.float64]:
    return np.log([getattr(costs, each) for each in names])


def _errors(costs: Costs) -> NDArray[np.float64]:
    return np.array([log(found / each.value) for each, found in numbers_of(costs).items()])


def _slopes(costs: Costs, names: Sequence[str]) -> NDArray[np.float64]:
    """The change of the logarithm of each number by that of each value."""
    start, error = _values(costs, names), _errors(costs)
    changes = _FIT_CHANGE * np.eye(len(names))
    moved = [_errors(_changed(costs, names, start + each)) for each in changes]
    return np.array([(each - error) / _FIT_CHANGE for each in moved]).T


def fit(
    costs: Costs,
    names: Sequence[str] = MYRINET_FITTED,
    steps: int = 12,
    slopes: NDArray[np.float64] | None = None,
) -> Costs:
    """Fit the values ``names`` of a table to the numbers that it states, by least squares of their ratios.

    The fit starts at the present values and is weakly bound to them, so that a value on which no number depends is
    unchanged. With the ``slopes`` of a table nearby, it computes none.
    """
    values = start = _values(costs, names)
    for _ in range(steps):
        table = _changed(costs, names, values)
        error, found = _errors(table), _slopes(table, names) if slopes is None else slopes
        weighted = np.vstack([found, _FIT_WEIGHT * np.eye(len(names))])
        step, *_ = np.linalg.lstsq(weighted, -np.concatenate([error, _FIT_WEIGHT * (values - start)]), rcond=None)
        values = values + np.clip(step, -0.5, 0.5)
    return _changed(costs, names, values)
