"""The claims of the comparison of five libraries (Araki and others, 1998).

The times of the libraries (AM, BIP, FM, PM, VMMC) are those of data paths in virtual time
(:mod:`mxwire.bench.cost.libraries`). Claims about their calls, their recovery and their protection are judged by the
models (:mod:`mxwire.bench.models`), which are played in memory: counts are the same on every machine, and need no
recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
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
from mxwire.bench.models.behaviour import LIBRARIES, ROWS, copies, delivered, looks
from mxwire.bench.models.catalogue import MODELS

_CARRIERS: Final = ("frames", "tcp")
_LENGTH: Final = 4096
_LIBRARIES: Final = ("AM", "BIP", "FM", "PM", "VMMC")
_LARGE: Final = 1 << 20
_MESSAGES: Final = 2000
_SENDERS: Final = (1, 2, 4, 8)


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


def _row(name: str) -> Judge:
    """Judge by the behaviour of the models whether all libraries have a row of the paper's tables 1 and 2."""

    def judge(_: ClaimEvidence) -> ClaimVerdict:
        found = {library: ROWS[name](library) for library in LIBRARIES}
        wrong = [library for library in LIBRARIES if found[library] != getattr(MODELS[library].facts, name)]
        values = {True: "yes", False: "no"}
        numbers = ", ".join(f"{_title(library)} {values.get(value, value)}" for library, value in found.items())
        return ClaimVerdict("refuted" if wrong else "confirmed", numbers, "counted")

    return judge


def _title(library: str) -> str:
    return MODELS[library].facts.title


def survival(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models which of them deliver all messages through a network that loses frames."""
    found = {library: delivered(library, _MESSAGES) for library in LIBRARIES}
    survivors = {library for library, (count, end) in found.items() if count == _MESSAGES and not end}
    stopped = all(end.startswith("network error") for library, (_, end) in found.items() if library not in survivors)
    numbers = ", ".join(f"{_title(library)} {count:,}" for library, (count, _) in found.items())
    numbers += f" of {_MESSAGES:,} messages through a network that loses 1% of the frames; all others name the error"
    holds = survivors == {"am2", "vmmc2"} and stopped
    return ClaimVerdict("confirmed" if holds else "refuted", numbers, "counted")


def copies_of_the_table(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether a side copies as often as in its row of table 2."""
    found = {library: copies(library) for library in LIBRARIES}
    # PIO is a copy by the processor, and the reliability of AM-II is another one.
    expected = {
        library: (
            ("copy" in facts.send) + ("PIO" in facts.send) + ("copy" in facts.reliability),
            "copy" in facts.receive,
        )
        for library, facts in ((each, MODELS[each].facts) for each in LIBRARIES)
    }
    numbers = ", ".join(f"{_title(library)} {one:g} + {other:g}" for library, (one, other) in found.items())
    return ClaimVerdict("confirmed" if found == expected else "refuted", f"copies per byte: {numbers}", "counted")


def price_of_reliability(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether retransmission by the library needs a copy more, and by the firmware none."""
    plain, kept, firmware = (copies(each)[0] for each in ("gam", "am2", "vmmc2"))
    numbers = f"copies per byte at the sender: {_title('gam')} {plain:g}, {_title('am2')} {kept:g}, "
    numbers += f"{_title('vmmc2')} {firmware:g}"
    return ClaimVerdict("confirmed" if (kept - plain, firmware) == (1, 0) else "refuted", numbers, "counted")


def search_for_messages(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether only VMMC looks at more places for the next message if there are more senders."""
    found = {senders: looks(senders) for senders in _SENDERS}
    vmmc, queue = ([each[name] for each in found.values()] for name in ("vmmc2", "pm"))
    holds = all(one < other for one, other in pairwise(vmmc)) and set(queue) == {1.0}
    senders = ", ".join(map(str, _SENDERS))
    shown = [", ".join(f"{each:g}" for each in values) for values in (vmmc, queue)]
    numbers = f"looks per message with {senders} senders: {_title('vmmc2')} {shown[0]}; {_title('pm')} {shown[1]}"
    return ClaimVerdict("confirmed" if holds else "refuted", numbers, "counted")


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S1-T1-a": _row("overflow"),
    "S1-T1-b": survival,
    "S1-T1-c": _row("between"),
    "S1-T2-a": copies_of_the_table,
    "S1-T2-b": price_of_reliability,
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
    "S1-D-a": search_for_messages,
    "S1-D-d": negative_latency,
    "S1-D-e": methods_agree,
}
