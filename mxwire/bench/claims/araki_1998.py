"""The claims of the comparison of five libraries (Araki and others, 1998).

The libraries are the models (:mod:`mxwire.bench.models`). Times are those of virtual time
(:mod:`mxwire.bench.claims.library_study`), and of the study ``models``, in which they run on this machine. There the
adapter's work is done in their calls, unless a carrier is ``with card``: then another process does it. Claims about
their calls, their recovery and their protection are judged by models that are played in memory: counts are the same on
every machine, and need no recording.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from statistics import correlation
from typing import Final

from mxwire.bench.claims.claim import (
    Check,
    ClaimEvidence,
    ClaimVerdict,
    Judge,
    Quantity,
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
from mxwire.bench.claims.library_study import AM, CARD_SIZES, COMPARED_MODELS, STUDY, moved_parameters
from mxwire.bench.logp import BANDWIDTH, BANDWIDTHS, COMPARED, ROUND_TRIPS
from mxwire.bench.models.active_messages import SHORT
from mxwire.bench.models.behaviour import LIBRARIES, ROWS, copies, delivered, looks
from mxwire.bench.models.catalogue import CARD, MODELS, UNSYNCHRONISED, model_of
from mxwire.bench.models.comparison import BURST, CEILING, KNEE
from mxwire.bench.models.comparison import STUDY as COMPARISON

_CARRIERS: Final = ("frames", "tcp")
_LENGTH: Final = 4096
_LARGE: Final = 1 << 20
_LONG: Final = 65536
"""A length in bytes at which rates are near their maximum, and to which no table was fitted."""
_NONE: Final = 0.05
"""Share of half a round trip up to which a library has no overhead."""
_WORD: Final = 4
"""Bytes by which messages become longer at a step."""
_MESSAGES: Final = 2000
_SENDERS: Final = (1, 2, 4, 8)


def _value(series: str, name: str, size: int) -> Term:
    """A value of the model that supports a verdict."""
    return modelled(series, name, size, STUDY)


def _rate(carrier: str, size: int, kind: str = BANDWIDTHS[0]) -> Term:
    return _value(BANDWIDTH, f"{carrier}, {kind}", size)


def _share_of_a_trip(own: Term, trip: Term) -> Term:
    """The receiver's overhead over half a round trip."""

    def text(own: Quantity, trip: Quantity) -> str:
        return f"o_r of {own.text} / half a round trip {text_of(trip.value, trip.unit)}:"

    return computed(operator.truediv, text, own, trip)


def _drop(carrier: str, kind: str) -> Term:
    """The rate at the length from which messages of BIP are long over that just below."""
    rates = _rate(carrier, 256, kind), _rate(carrier, 252, kind)
    return computed(operator.truediv, lambda *_: f"{carrier}, {kind}, 256 B over 252 B", *rates)


def _here(series: str, name: str, size: int) -> Term:
    """A value of a model on this machine."""
    return live(COMPARISON, series, name, size)


def _spread_of_shares() -> Term:
    """The highest share of the null model's rate over the lowest one, on this machine."""
    rates = [_most(each) for each in (*COMPARED_MODELS, CEILING)]

    def text(*found: Quantity) -> str:
        shares = [
            f"{name} {each.value / found[-1].value:.0%}" for name, each in zip(COMPARED_MODELS, found, strict=False)
        ]
        return f"shares of {found[-1].text}: {', '.join(shares)}; highest over lowest:"

    return computed(lambda *each: max(each[:-1]) / min(each[:-1]), text, *rates)


def _overhead(series: str, size: int) -> Term:
    """An overhead of Active Messages on this machine, by the method of a series."""
    return computed(lambda each: each, lambda each: f"{series}, of {each.label}", _here(series, "gam", size), unit="µs")


def _knee(name: str, first: int, last: int) -> Term:
    """The size of the step behind ``last`` bytes, up or down, beyond the slope from ``first`` on."""
    terms = [given("RTT/2", name, size, STUDY) for size in (first, last, last + _WORD)]

    def step(begin: float, end: float, after: float) -> float:
        return abs(after - end - (end - begin) * _WORD / (last - first))

    return computed(step, lambda *_: f"step of {name} behind {last} B", *terms, unit="µs")


def _steps(name: str, before: int, last: int, after: int) -> tuple[Check, ...]:
    """The steps between lengths next to a knee."""
    terms = [given("RTT/2", name, size, STUDY) for size in (before, last, after)]
    return (
        Check(difference(terms[1], terms[0], f"{name} from {before} to {last} B")),
        Check(difference(terms[2], terms[1], f"{name} from {last} to {after} B")),
    )


def _latency(library: str) -> Term:
    """Half a round trip of 4 B on this machine."""
    return _here("RTT/2", library, 4)


def _spread_of_latencies() -> Term:
    """The longest latency over the shortest one, on this machine."""

    def text(*found: Quantity) -> str:
        shown = ", ".join(f"{name} {each.value:.3g}" for name, each in zip(COMPARED_MODELS, found, strict=True))
        return f"half round trips of 4 B, µs: {shown}; longest over shortest:"

    return computed(lambda *each: max(each) / min(each), text, *map(_latency, COMPARED_MODELS))


def _price_of_function() -> Term:
    """The correlation of latencies on this machine with the number of functions of table 1, without AM."""
    names = COMPARED_MODELS[1:]
    functions = [
        sum((facts.within, facts.between, facts.multiprogramming, facts.overflow != "data loss"))
        + (facts.errors == "tolerated")
        for facts in (MODELS[each].facts for each in names)
    ]
    counted = ", ".join(f"{_title(each)} {count}" for each, count in zip(names, functions, strict=True))
    return computed(
        lambda *times: correlation(functions, times) if len(set(times)) > 1 else 0.0,
        lambda *_: f"functions: {counted}; correlation with the latency",
        *map(_latency, names),
    )


def _longer(series: str, name: str) -> Term:
    """The difference from 256 B to 1 KiB."""
    return difference(_value(series, name, 1024), _value(series, name, 256), f"{name} from 256 B to 1 KiB")


def _most(library: str) -> Term:
    """The rate of long messages on this machine."""
    return _here(BANDWIDTH, f"{library}, {BANDWIDTHS[0]}", _LARGE)


def stages_of_messages(_: ClaimEvidence) -> ClaimVerdict:
    """Judge in virtual time whether a delay of a stage moves one parameter of LogP at most, and which."""
    texts, single = [], True
    for carrier in (AM, UNSYNCHRONISED, "fm2", "pm", "vmmc2"):
        found = moved_parameters(carrier)
        single &= all(len(each) <= 1 for each in found)
        facts = model_of(carrier)[0].facts
        moved = [" and ".join(each) or "-" for each in found]
        others = [f"{paper} for {own}" for own, paper in zip(moved, facts.stages, strict=True) if own != paper]
        differs = f" (the table has {', '.join(others)})" if others else ""
        texts.append(f"{facts.title} {', '.join(moved)}{differs}")
    return ClaimVerdict.of(single, "; ".join(texts), "modelled")


def place_of_data(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether the zero copies of PM hold in place only, and those of BIP and VMMC anywhere."""
    found = {each: (copies(each, copied=False), copies(each)) for each in ("gam", "fm2", "bip", "pm", "vmmc2")}
    shown = [f"{_title(each)} {sum(one):g} and {sum(other):g}" for each, (one, other) in found.items()]
    totals = {each: (sum(one), sum(other)) for each, (one, other) in found.items()}
    holds = totals["pm"][0] == 0 < totals["pm"][1] and totals["bip"] == totals["vmmc2"] == (0, 0)
    numbers = f"copies per byte in place and elsewhere: {', '.join(shown)}"
    return ClaimVerdict.of(holds, numbers)


def _bandwidth(carrier: str, kind: str) -> Term:
    return live("logp", BANDWIDTH, f"{carrier}, {kind}", _LENGTH)


def _expected(carrier: str) -> Term:
    """The bandwidth that the gap of parametrised round trips predicts, in MB/s."""
    gap = live("logp", "g", carrier + ROUND_TRIPS, _LENGTH)
    return computed(lambda each: _LENGTH / each, lambda _: f"{carrier}, length / gap,", gap, unit="MB/s")


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
    return ClaimVerdict.of(bool(negative), numbers, "live")


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
    return ClaimVerdict.of(2 * agreeing > len(points), numbers, "live")


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
    return ClaimVerdict.of(holds, numbers)


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
    return ClaimVerdict.of(found == expected, f"copies per byte: {numbers}")


def price_of_reliability(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether retransmission by the library needs a copy more, and by the firmware none."""
    plain, kept, firmware = (copies(each)[0] for each in ("gam", "am2", "vmmc2"))
    numbers = f"copies per byte at the sender: {_title('gam')} {plain:g}, {_title('am2')} {kept:g}, "
    numbers += f"{_title('vmmc2')} {firmware:g}"
    return ClaimVerdict.of((kept - plain, firmware) == (1, 0), numbers)


def search_for_messages(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the models whether only VMMC looks at more places for the next message if there are more senders."""
    found = {senders: looks(senders) for senders in _SENDERS}
    vmmc, queue = ([each[name] for each in found.values()] for name in ("vmmc2", "pm"))
    holds = all(one < other for one, other in pairwise(vmmc)) and set(queue) == {1.0}
    senders = ", ".join(map(str, _SENDERS))
    shown = [", ".join(f"{each:g}" for each in values) for values in (vmmc, queue)]
    numbers = (
        f"places polled per message with {senders} senders: {_title('vmmc2')} {shown[0]}; {_title('pm')} {shown[1]}"
    )
    return ClaimVerdict.of(holds, numbers)


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S1-T1-a": _row("overflow"),
    "S1-T1-b": survival,
    "S1-T1-c": _row("between"),
    "S1-T2-a": copies_of_the_table,
    "S1-T2-b": price_of_reliability,
    "S1-F4-c": (Check(_spread_of_latencies(), most=3.5),),
    "S1-T3-a": stages_of_messages,
    "S1-T3-b": tuple(
        Check(ratio(_overhead(own, size), _overhead(other, size)), 0.85, 1.15)
        for own, other in ((BURST, "o_s"), (KNEE, "o_r"))
        for size in (4, _LENGTH)
    ),
    "S1-F4-d": (*_steps(UNSYNCHRONISED, 248, 252, 256), *_steps("vmmc2", 60, 64, 68)),
    "S1-F4-f": tuple(
        Check(ratio(_knee(AM, 4, SHORT), _knee(*other)), most=1)
        for other in ((UNSYNCHRONISED, 64, 252), ("vmmc2", 4, 64))
    ),
    "S1-F7-a": tuple(
        Check(_share_of_a_trip(*(_here(series, f"vmmc2{CARD}", size) for series in ("o_r", "RTT/2"))), most=_NONE)
        for size in CARD_SIZES
    ),
    "S1-F7-c": (
        Check(_share_of_a_trip(*(_value(series, "vmmc2", _LENGTH) for series in ("o_r", "RTT/2"))), most=_NONE),
        Check(difference(_value("o_r", "vmmc2", _LENGTH), _value("o_r", "vmmc2", 4), "growth of o_r"), 0, 0.01),
    ),
    "S1-F8-a": (
        *(Check(_longer("L", each), least=0.1) for each in (AM, "fm2", "pm", "vmmc2")),
        # The model has the stages of BIP's messages in o_s.
        Check(_longer("L", UNSYNCHRONISED)),
    ),
    "S1-F10-c": tuple(
        Check(ratio(least_of(*(_rate(each, size) for each in ("fm2", "pm")), unit="MB/s"), _rate(other, size)), least=1)
        for size, other in product((64, 256, 1024), (AM, "bip", "vmmc2"))
    ),
    "S1-F10-e": (Check(ratio(_drop("bip", BANDWIDTHS[0]), _drop(UNSYNCHRONISED, BANDWIDTHS[1])), most=0.9),),
    "S1-F10-f": (Check(_spread_of_shares(), least=1.2),),
    "S1-F11-a": tuple(
        check
        for each in _CARRIERS
        for check in (
            Check(ratio(_bandwidth(each, "unidirectional"), _expected(each)), 0.9, 1.1),
            Check(ratio(_bandwidth(each, "ping-pong"), _bandwidth(each, "unidirectional")), most=1),
        )
    ),
    "S1-D-a": search_for_messages,
    "S1-D-b": place_of_data,
    "S1-D-c": (Check(_price_of_function(), least=0.5),),
    "S1-D-d": negative_latency,
    "S1-D-e": methods_agree,
    "S1-D-f": tuple(
        Check(
            ratio(least_of(*(_rate(each, _LONG) for each in ("bip", "pm", "vmmc2")), unit="MB/s"), _rate(each, _LONG)),
            1,
        )
        for each in (AM, "fm2")
    ),
}
