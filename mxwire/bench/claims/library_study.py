"""The studies of the libraries of 1998: ``libraries`` in virtual time, and ``models`` on this machine.

``libraries`` has LogP and bandwidths of their models in virtual time.

Series are those of :mod:`mxwire.bench.logp` and, for Active Messages, of :mod:`mxwire.bench.models.comparison`, over
``size``. Carriers are the models as the paper used them: ``gam copied`` (its handler copies data to the program's
memory), ``bip``, ``bip unsynchronised``, ``fm2``, ``pm`` (data in the library's buffers), ``vmmc2``, and ``null``. The
paper has announced receives of BIP only where messages follow each other, so half round trips, o_r and L of BIP are
those of ``bip unsynchronised``. Sizes are those of the paper and those next to the lengths at which a library changes
from writing to DMA; longer messages have bandwidths only.

The series ``transfers`` (MB/s, over ``size``) has the costs of the table as rates: the paper's figure 2. It is an input
of the model, and no evidence for anything.

``models`` is the comparison of :mod:`mxwire.bench.models.comparison`, and LogP with the adapter's part of a library in
a process of its own, since claims on overheads are about processors that have an adapter. BIP is not among the latter:
whether its receives wait for a round trip depends on the length, and without this synchronisation a flood of long
messages is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.cost.calibration import varied_costs
from mxwire.bench.cost.libraries import LINE, WORD
from mxwire.bench.cost.tables import MYRINET, MYRINET_FITTED, Costs, FittedNumber
from mxwire.bench.cost.testbed import MODELLED, VirtualTestbed
from mxwire.bench.logp import BANDWIDTH, LogpStudy
from mxwire.bench.models.catalogue import CARD, COPIED, UNSYNCHRONISED
from mxwire.bench.models.comparison import PLACES, ComparisonStudy, compare_models
from mxwire.bench.record import VARIED, Measurement, Recording, Series
from mxwire.bench.study import StudyOptions, vary
from mxwire.bench.testbed import StudyTestbed

STUDY: Final = "libraries"
AM: Final = "gam" + COPIED
VARIED_CARRIERS: Final = (AM, "bip", UNSYNCHRONISED, "fm2", "pm", "vmmc2")
CARRIERS: Final = (*VARIED_CARRIERS, "null")
SIZES: Final = (4, 16, 20, 60, 64, 68, 128, 248, 252, 256, 512, 1024, 2048, 4096, 16384, 65536, 262144, 1 << 20)
JUDGED_SIZES: Final = (4, 16, 20, 64, 68, 252, 256, 1024, 4096, 65536)
"""Sizes at which claims are judged."""
COMPARED_MODELS: Final = ("gam", "bip", "fm2", "pm", "vmmc2")
"""The libraries that run on this machine."""
COMPARED_SIZES: Final = (4, 4096, 65536, 1 << 20)
"""Lengths in bytes of their messages."""
COMPARED_CARDS: Final = (f"gam{CARD}{COPIED}", *(each + CARD for each in ("fm2", "pm", "vmmc2")))
"""The libraries whose overheads are measured on this machine."""
CARD_SIZES: Final = (4, 256, 4096)
"""Lengths in bytes of their messages."""
_LONGEST: Final = 4096
"""Length of the longest message whose LogP is computed."""
_WINDOW: Final = 16
"""Messages in flight of a flood: as many as a receiver of PM has buffers."""
_FLOOD: Final = 3 * _WINDOW
_LONG: Final = {"count": 3, "window": 1, "depth": 3}
"""A short flood: each of its messages is cut into hundreds of packets."""
_FEW: Final = 2
"""Repetitions of what is equal each time."""
TRANSFERS: Final = "transfers"
_TRANSFERRED: Final = tuple(1 << power for power in range(2, 17))
_QUICK: Final = 2
"""Sizes of a quick study."""
_STAGED: Final = 1024
"""Length in bytes of a message in one packet of any library."""
_DELAY: Final = 10_000.0
_WORK: Final = 500_000
"""Work that decides the interval of a flood, in ns."""
_FIT_CHANGE: Final = 0.02
_FIT_WEIGHT: Final = 0.02
_NO_EVIDENCE: Final = ("pio_read", "dma_start_host")
"""Guesses on which no verdict rests: of the null model, and of rates of transfers that no library uses."""
_REFIT_STEPS: Final = 3
"""Steps of a fit that begins near its result."""


def run_libraries(options: StudyOptions) -> Recording:
    """Compute all series, and those that depend on a guess with other values of it."""
    with VirtualTestbed(MYRINET) as testbed:
        recording = options.begin(STUDY, testbed.conditions)
        recording.facts["fitted"] = [asdict(each) for each in MYRINET.fitted_to]
        _compute(testbed, recording, options, CARRIERS, SIZES[:_QUICK] if options.quick else SIZES)
        recording.series.append(_transfers(MYRINET))

    def compute(costs: Costs, others: StudyOptions) -> list[Recording]:
        found = Recording(STUDY, recording.conditions)
        with VirtualTestbed(costs) as testbed:
            _compute(testbed, found, others, VARIED_CARRIERS, JUDGED_SIZES)
        return [found]

    vary(recording, options, _varied_tables(), compute)
    for each in MYRINET.contradicted if VARIED in recording.facts else ():
        options.progress(f"{STUDY}, fitted to {each.text}")
        # Only claims on this number are judged again: the other numbers of such a table are wrong.
        found_there = numbers_of(fit(replace(MYRINET, fitted_to=(*MYRINET.fitted_to, each)), steps=_REFIT_STEPS))[each]
        point = [each.series, each.name, each.x, found_there]
        recording.facts[VARIED].append({"guess": f"that the table is not fitted to {each.text}", "points": [point]})
    return recording


def measure_libraries(testbed: StudyTestbed, options: StudyOptions) -> Recording:
    """Measure the libraries on a testbed, and LogP of those with a card that is a process of its own."""
    recording = compare_models(testbed, options, COMPARED_MODELS, COMPARED_SIZES)
    recording.facts[PLACES] = {"sides": testbed.placement, "cards": testbed.cards}
    cards = Recording(recording.study, recording.conditions)
    try:
        LogpStudy(testbed, cards, options, CARD_SIZES, _WINDOW).run(COMPARED_CARDS)
    finally:
        recording.join(cards)
    return recording


def _varied_tables() -> Iterator[tuple[str, Costs]]:
    slopes = _slopes(MYRINET, MYRINET_FITTED)
    yield from varied_costs(MYRINET, partial(fit, steps=_REFIT_STEPS, slopes=slopes), without=_NO_EVIDENCE)


def _transfers(costs: Costs) -> Series:
    """The rates at which a table moves data between memory and adapter."""

    def curve(name: str, time: Callable[[int], float]) -> list[Measurement]:
        rates = ((size, size / time(size) * 1e3) for size in _TRANSFERRED)
        return [Measurement(name, "MB/s", (rate,), {"size": size}, marks=(MODELLED,)) for size, rate in rates]

    return Series(
        TRANSFERS,
        "MB/s",
        measurements=[
            *curve("written by words", lambda size: size / WORD * costs.pio_word),
            *curve("written by lines", lambda size: -(-size // LINE) * costs.pio_line),
            *curve("read by words", lambda size: size / WORD * costs.pio_read),
            *curve("DMA to the adapter", lambda size: costs.dma_start + size * costs.to_adapter),
            *curve("DMA from the adapter", lambda size: costs.dma_start + size * costs.from_adapter),
            *curve("DMA to, started by the host", lambda size: costs.dma_start_host + size * costs.to_adapter),
            *curve("DMA from, started by the host", lambda size: costs.dma_start_host + size * costs.from_adapter),
        ],
    )


def _compute(
    testbed: StudyTestbed, recording: Recording, options: StudyOptions, carriers: Sequence[str], sizes: Sequence[int]
) -> None:
    LogpStudy(testbed, recording, options, tuple(each for each in sizes if each <= _LONGEST), _WINDOW).run(carriers)
    rest = Recording(STUDY, recording.conditions)
    ComparisonStudy(testbed, rest, options, sizes).run(carriers)
    recording.join(rest)


@cache
def moved_parameters(carrier: str) -> tuple[tuple[str, ...], ...]:
    """The parameters of LogP that become longer if a stage of a message does, for each stage of the paper's table 3."""
    more = _DELAY / _STAGED
    stages: tuple[dict[str, float], ...] = (
        {"copy_cold": more},
        {"pio_word": more * WORD, "pio_line": more * LINE, "to_adapter": more},
        {"adapter_send": _DELAY},
        {"from_adapter": more},
        {"copy_warm": more},
    )
    before = _parameters(MYRINET, carrier)
    found = []
    for each in stages:
        slower: dict[str, Any] = {name: getattr(MYRINET, name) + value for name, value in each.items()}
        after = _parameters(replace(MYRINET, **slower), carrier)
        found.append(tuple(name for name, value in after.items() if value - before[name] > _DELAY / 2))
    return tuple(found)


def _parameters(costs: Costs, carrier: str) -> dict[str, float]:
    """The overheads and the latency of a message in one packet, in ns."""
    with VirtualTestbed(costs) as testbed:
        run = {"carrier": carrier, "size": _STAGED, "count": _FLOOD, "window": _WINDOW, "depth": _WINDOW, "work": _WORK}
        sent, received = (
            testbed.run("flood", active_sends=each, **run)[0]["interval"] - _WORK for each in (True, False)
        )
        found, _ = testbed.run("trips", carrier=carrier, sizes=[_STAGED], counts=[_FEW])
    return {"o_s": sent, "L": found["points"][str(_STAGED)]["median"] - sent - received, "o_r": received}


def numbers_of(costs: Costs) -> dict[FittedNumber, float]:
    """The numbers to which a table was fitted, with what the models find."""
    numbers = {}
    with VirtualTestbed(costs) as testbed:
        for each in costs.fitted_to:
            carrier, size = each.name.partition(",")[0], int(each.x)
            if each.series == BANDWIDTH:
                found, _ = testbed.run("flood", carrier=carrier, size=size, **_LONG)
                numbers[each] = size / found["interval"] * 1e3
            elif each.series == "g":
                flood = {"count": _FLOOD, "window": _WINDOW, "depth": _WINDOW}
                numbers[each] = testbed.run("flood", carrier=carrier, size=size, **flood)[0]["interval"] / 1e3
            else:
                found, _ = testbed.run("trips", carrier=carrier, sizes=[size], counts=[_FEW])
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
    costs: Costs, names: Sequence[str] = MYRINET_FITTED, steps: int = 12, slopes: NDArray[np.float64] | None = None
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
