"""The claims of the comparison of five libraries (Araki and others, 1998).

The libraries (AM, BIP, FM, PM, VMMC) are here as data paths in virtual time only (:mod:`mxwire.bench.cost.libraries`).
Claims about their calls, their recovery or their protection need the libraries themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from mxwire.bench.claims.claim import (
    Check,
    ClaimEvidence,
    ClaimVerdict,
    Judge,
    Term,
    computed,
    difference,
    given,
    least_of,
    live,
    modelled,
    ratio,
    text_of,
)
from mxwire.bench.claims.library_study import NOT_SYNCHRONISED, STUDY
from mxwire.bench.logp import BANDWIDTH, COMPARED, ROUND_TRIPS

_CARRIERS: Final = ("frames", "tcp")
_LENGTH: Final = 4096
_LIBRARIES: Final = ("AM", "BIP", "FM", "PM", "VMMC")
_LARGE: Final = 1 << 20


def _value(series: str, name: str, size: int) -> Term:
    """A value of the model that supports a verdict."""
    return modelled(series, name, size, STUDY)


def _shown(series: str, names: tuple[str, ...], sizes: tuple[int, ...]) -> tuple[Check, ...]:
    """Values of libraries, which their data paths decide."""
    return tuple(Check(given(series, name, size, STUDY)) for name, size in product(names, sizes))


def _steps(name: str, before: int, last: int, after: int) -> tuple[Check, ...]:
    """The steps between lengths next to a knee."""
    terms = [given("RTT/2", name, size, STUDY) for size in (before, last, after)]
    return (
        Check(difference(terms[1], terms[0], f"{name} from {before} to {last} B")),
        Check(difference(terms[2], terms[1], f"{name} from {last} to {after} B")),
    )


def _latencies() -> tuple[Check, ...]:
    """The latencies of all libraries at 4 B."""
    return tuple(Check(ratio(_value("RTT/2", "BIP", 4), _value("RTT/2", each, 4)), most=1) for each in _LIBRARIES)


def _rates() -> tuple[Check, ...]:
    """The rates of all libraries at 1 MiB."""
    rates = [_value(BANDWIDTH, each, _LARGE) for each in _LIBRARIES]
    return tuple(Check(ratio(each, rates[1]), most=1) for each in rates)


def _bandwidth(carrier: str, kind: str, *, adapters: bool = False) -> Term:
    return live("logp", BANDWIDTH, f"{carrier}, {kind}", _LENGTH, adapters=adapters)


def _expected(carrier: str) -> Term:
    """The bandwidth that the gap of parametrised round trips predicts, in MB/s."""
    gap = live("logp", "g", carrier + ROUND_TRIPS, _LENGTH)
    return computed(lambda each: _LENGTH / each, lambda _: f"{carrier} by its gap", gap, unit="MB/s")


def negative_latency(evidence: ClaimEvidence) -> ClaimVerdict:
    """Judge live whether L is 0 or negative at any point."""
    points = [each for each in evidence.series("logp", "L").measurements if "disturbed" not in each.marks]
    if not points:
        return ClaimVerdict("undecided", "all points were disturbed", "live")
    negative = [each for each in points if each.median <= 0]
    numbers = f"{len(negative)} of {len(points)} points"
    if negative:
        least = min(negative, key=lambda each: each.median)
        numbers += f"; {text_of(least.median)} µs for {least.name} at {least.parameters['size']:,} B"
    return ClaimVerdict("confirmed" if negative else "refuted", numbers, "live")


def methods_agree(evidence: ClaimEvidence) -> ClaimVerdict:
    """Judge live whether both methods agree at most of the points; those that are undecided do not."""
    points = [
        each
        for name in COMPARED
        for each in evidence.series("logp", name).measurements
        # The points of the second method have no verdict of their own.
        if not each.name.endswith(ROUND_TRIPS)
    ]
    differing = sum("methods differ" in each.marks for each in points)
    undecided = sum(
        "methods differ" not in each.marks and bool({"undecided", "disturbed"} & set(each.marks)) for each in points
    )
    agreeing = len(points) - differing - undecided
    numbers = (
        f"{agreeing} of {len(points)} points agree, {differing} differ, {undecided} undecided ({', '.join(COMPARED)})"
    )
    return ClaimVerdict("confirmed" if 2 * agreeing > len(points) else "refuted", numbers, "live")


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    **dict.fromkeys(("S1-F4-a", "S1-F4-b", "S1-F4-c", "S1-F4-e", "S1-D-c"), _latencies()),
    "S1-F4-d": (*_steps("BIP", 248, 252, 256), *_steps("VMMC", 60, 64, 68)),
    "S1-F5-a": (
        Check(ratio(_value("g", "BIP", 256), _value("g", "BIP", 252)), least=1.5),
        Check(ratio(_value("g", "BIP", 256), _value("g", NOT_SYNCHRONISED, 256)), least=1.3),
    ),
    "S1-F5-b": tuple(
        Check(ratio(_value("g", "AM", _LENGTH), _value("g", each, _LENGTH)), least=1) for each in _LIBRARIES[1:]
    ),
    "S1-F6-a": _shown("o_s", ("PM", "VMMC"), (512, 4096)),
    "S1-F7-a": _shown("o_r", ("VMMC",), (4, 4096)),
    "S1-F8-a": tuple(
        Check(difference(_value("L", each, 1024), _value("L", each, 256), f"{each} from 256 B to 1 KiB"), least=0.1)
        for each in ("AM", "FM", "PM", "VMMC")
    ),
    "S1-F8-b": _shown("L", ("FM",), (1024, 2048, 4096)),
    "S1-F10-a": _rates(),
    "S1-F10-b": _rates(),
    "S1-F10-c": tuple(
        Check(
            ratio(
                least_of(*(_value(BANDWIDTH, each, size) for each in ("FM", "PM")), unit="MB/s"),
                _value(BANDWIDTH, other, size),
            ),
            least=1,
        )
        for size, other in product((64, 256, 1024), ("AM", "BIP", "VMMC"))
    ),
    "S1-F11-a": tuple(
        check
        for each in _CARRIERS
        for check in (
            Check(ratio(_bandwidth(each, "unidirectional"), _expected(each)), 0.9, 1.1),
            Check(ratio(_bandwidth(each, "ping-pong"), _bandwidth(each, "unidirectional")), most=1),
        )
    ),
    "S1-F12-a": tuple(
        Check(ratio(_bandwidth(each, "simultaneous", adapters=True), _bandwidth(each, "unidirectional")), least=1.1)
        for each in _CARRIERS
    ),
    "S1-D-d": negative_latency,
    "S1-D-e": methods_agree,
}
