"""The claims of the comparison of five libraries (Araki and others, 1998).

The libraries (AM, BIP, FM, PM, VMMC) are here as data paths in virtual time only (:mod:`mxwire.bench.cost.libraries`).
Claims about their calls, their recovery or their protection need the libraries themselves.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from mxwire.bench.claims.claim import (
    Check,
    Claim,
    ClaimEvidence,
    ClaimVerdict,
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

_MODELS: Final = (
    "it needs the five libraries with their calls and their recovery, of which only the data paths are modelled (a "
    "later study: communication models side by side)"
)
_IN_MEMORY: Final = (
    "it needs sends and receives of one library in place and with a copy, in warm and cold memory (a later study: "
    "communication models side by side)"
)
_DESCRIPTOR: Final = (
    "it needs an adapter in a process of its own, to which a send leaves a descriptor (a later study: communication "
    "models side by side)"
)
_BUILT: Final = "the data path was built that way"
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


CLAIMS: Final = (
    *(
        Claim(number, text, checks=reason)
        for number, text, reason in (
            ("S1-T1-a", "Full buffers are prevented, tolerated, or lose data, by library.", _MODELS),
            ("S1-T1-b", "Network errors are tolerated by AM-II and VMMC only.", _MODELS),
            ("S1-T1-c", "AM-II, PM, VMMC and FM-2.1 protect nodes from each other.", _MODELS),
            ("S1-T2-a", "The copies per side are those of the table.", _MODELS),
            ("S1-T2-b", "Reliability in the library costs a copy, in the firmware none.", _MODELS),
            ("S1-T3-a", "Each stage is charged to one parameter of LogP.", _MODELS),
            ("S1-F2-a", "DMA beats programmed I/O above 32 to 512 B.", "it compares entries of a cost table"),
            ("S1-F6-b", "The overhead of sends that copy grows with the length.", _MODELS),
            ("S1-F6-c", "Programmed I/O has less overhead at 4 B than described sends.", _DESCRIPTOR),
            (
                "S1-F7-b",
                "The overhead of receives is flat for BIP, PM and VMMC, and grows for AM and FM, which copy.",
                _MODELS,
            ),
            ("S1-D-a", "Finding the next message costs VMMC more with more senders.", _MODELS),
            ("S1-D-b", "Zero copy holds only for data that is used in place.", _IN_MEMORY),
        )
    ),
    *(
        Claim(number, text, paper, _latencies())
        for number, text, paper in (
            ("S1-F4-a", "BIP has the least latency at 4 B.", "about 6 µs"),
            ("S1-F4-b", "At 4 B the order is BIP, FM and PM, VMMC, AM.", "6, 9, 9, 13, up to 17 µs"),
            ("S1-F4-c", "All latencies lie within a factor of 3.5.", "5 to 17 µs"),
            ("S1-F4-e", "Protection and reliability are cheap.", "+3 µs; +2.5 to 3.5 µs"),
            ("S1-D-c", "Function and latency are inversely related, with exceptions.", ""),
        )
    ),
    Claim(
        "S1-F4-d",
        "Latencies have knees at 256 B (BIP) and 64 B (VMMC).",
        "256 B and 64 B",
        (*_steps("BIP", 248, 252, 256), *_steps("VMMC", 60, 64, 68)),
        built="the model changes from writing to DMA at these lengths",
    ),
    Claim(
        "S1-F5-a",
        "The gap of BIP jumps at 256 B, because its messages are synchronised.",
        "a jump",
        (
            Check(ratio(_value("g", "BIP", 256), _value("g", "BIP", 252)), least=1.5),
            Check(ratio(_value("g", "BIP", 256), _value("g", NOT_SYNCHRONISED, 256)), least=1.3),
        ),
    ),
    Claim(
        "S1-F5-b",
        "AM has the largest gap at 4 KB.",
        "153.5 µs",
        tuple(Check(ratio(_value("g", "AM", _LENGTH), _value("g", each, _LENGTH)), least=1) for each in _LIBRARIES[1:]),
    ),
    Claim(
        "S1-F6-a",
        "The overhead of asynchronous sends does not depend on the length.",
        checks=_shown("o_s", ("PM", "VMMC"), (512, 4096)),
        built=_BUILT,
    ),
    Claim("S1-F7-a", "A receiver of VMMC has no overhead.", "0", _shown("o_r", ("VMMC",), (4, 4096)), built=_BUILT),
    Claim(
        "S1-F8-a",
        "L grows with the length, except for BIP.",
        checks=tuple(
            Check(difference(_value("L", each, 1024), _value("L", each, 256), f"{each} from 256 B to 1 KiB"), least=0.1)
            for each in ("AM", "FM", "PM", "VMMC")
        ),
        note="that of BIP does not grow by construction",
    ),
    Claim(
        "S1-F8-b",
        "FM overlaps sending and receiving of a message.",
        "L falls at 2 KB",
        _shown("L", ("FM",), (1024, 2048, 4096)),
        built="the length of FM's packets, 1 KiB, is a guess that decides where L falls",
    ),
    Claim("S1-F10-a", "Without copies the maximum is highest.", "95 to 125 of 133 MB/s", _rates()),
    Claim("S1-F10-b", "One copy more halves the maximum.", "AM at 0.4 of BIP", _rates()),
    Claim(
        "S1-F10-c",
        "FM and PM lead from 64 B to 1 KB.",
        checks=tuple(
            Check(
                ratio(
                    least_of(*(_value(BANDWIDTH, each, size) for each in ("FM", "PM")), unit="MB/s"),
                    _value(BANDWIDTH, other, size),
                ),
                least=1,
            )
            for size, other in product((64, 256, 1024), ("AM", "BIP", "VMMC"))
        ),
    ),
    Claim(
        "S1-F10-d",
        "Bandwidth falls when messages leave the cache, with copies only.",
        "256 and 512 KB",
        _IN_MEMORY,
    ),
    Claim(
        "S1-F11-a",
        "Unidirectional bandwidth is length / gap, and at least that of a ping-pong.",
        checks=tuple(
            check
            for each in _CARRIERS
            for check in (
                Check(ratio(_bandwidth(each, "unidirectional"), _expected(each)), 0.9, 1.1),
                Check(ratio(_bandwidth(each, "ping-pong"), _bandwidth(each, "unidirectional")), most=1),
            )
        ),
    ),
    Claim(
        "S1-F12-a",
        "Both directions at once carry more than one.",
        "all engines of the adapter in use",
        tuple(
            Check(ratio(_bandwidth(each, "simultaneous", adapters=True), _bandwidth(each, "unidirectional")), least=1.1)
            for each in _CARRIERS
        ),
    ),
    Claim("S1-D-d", "L is 0 or negative where sends overlap the flight.", checks=negative_latency, derived=True),
    Claim("S1-D-e", "Two methods for o_s, o_r and g agree.", checks=methods_agree, derived=True),
)
