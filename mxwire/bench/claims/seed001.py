"""The claims of the comparison of five libraries (seed 001).

The libraries (AM, BIP, FM, PM, VMMC) are here as data paths in virtual time only (:mod:`mxwire.bench.cost.libraries`).
Claims about their calls, their recovery or their protection need the libraries themselves.
"""

from __future__ import annotations

from typing import Final

from mxwire.bench.claims.claim import (
    ClaimEvidence,
    ClaimVerdict,
    all_of,
    by_construction,
    claims,
    combined,
    compared,
    disturbed,
    modelled,
    text_of,
    unanswered,
)
from mxwire.bench.claims.library_study import NOT_SYNCHRONISED, STUDY
from mxwire.bench.logp import BANDWIDTH, ROUND_TRIPS
from mxwire.bench.rounds import within

_US: Final = "µs"
_MODELS: Final = (
    "it needs the five libraries with their calls and their recovery, of which only the data paths are modelled (a "
    "later study: communication models side by side)"
)
_IN_MEMORY: Final = (
    "it needs sends and receives of one library in place and with a copy, in warm and cold memory (a later study: "
    "communication models side by side)"
)
_BUILT: Final = "the data path was built that way"
_CARRIERS: Final = ("frames", "tcp")
_LENGTH: Final = 4096
_SHORT: Final = 64
_DIFFERENT: Final = "methods differ"
_COPYING: Final = ("AM", "FM")
_DESCRIBING: Final = ("PM", "VMMC")
_LIBRARIES: Final = ("AM", "BIP", "FM", "PM", "VMMC")


def _value(evidence: ClaimEvidence, series: str, name: str, size: int) -> float:
    """A value of the model that supports a verdict."""
    return evidence.model(series, name, size, STUDY)


def _built(evidence: ClaimEvidence, series: str, names: tuple[str, ...], sizes: tuple[int, int]) -> ClaimVerdict:
    """Report the values of libraries at two sizes, which their data paths decide."""
    texts = []
    for name in names:
        low, high = (evidence.given(series, name, size, STUDY) for size in sizes)
        texts.append(f"{name} {text_of(low)} and {text_of(high, _US)}")
    return by_construction(f"{series} at {sizes[0]:,} and {sizes[1]:,} B: {', '.join(texts)}", _BUILT)


for _number, _text, _reason, _paper in (
    ("S1-T1-a", "Full buffers are prevented, tolerated, or lose data, by library.", _MODELS, ""),
    ("S1-T1-b", "Network errors are tolerated by AM-II and VMMC only.", _MODELS, ""),
    ("S1-T1-c", "AM-II, PM, VMMC and FM-2.1 protect nodes from each other.", _MODELS, ""),
    ("S1-T2-a", "The copies per side are those of the table.", _MODELS, ""),
    ("S1-T2-b", "Reliability in the library costs a copy, in the firmware none.", _MODELS, ""),
    ("S1-T3-a", "Each stage is charged to one parameter of LogP.", _MODELS, ""),
    ("S1-F2-a", "DMA beats programmed I/O above 32 to 512 B.", "it compares entries of a cost table", ""),
):
    unanswered(_number, _text, _reason, _paper)


def _least(evidence: ClaimEvidence) -> ClaimVerdict:
    """The latencies of all libraries at 4 B."""
    found = evidence.models("RTT/2", _LIBRARIES, 4, STUDY)
    return modelled(min(found, key=found.__getitem__) == "BIP", str(found))


for _number, _text, _paper in (
    ("S1-F4-a", "BIP has the least latency at 4 B.", "about 6 µs"),
    ("S1-F4-b", "At 4 B the order is BIP, FM and PM, VMMC, AM.", "6, 9, 9, 13, up to 17 µs"),
    ("S1-F4-c", "All latencies lie within a factor of 3.5.", "5 to 17 µs"),
    ("S1-F4-e", "Protection and reliability are cheap.", "+3 µs; +2.5 to 3.5 µs"),
    ("S1-D-c", "Function and latency are inversely related, with exceptions.", ""),
):
    claims(_number, _text, _paper)(_least)


@claims("S1-F4-d", "Latencies have knees at 256 B (BIP) and 64 B (VMMC).", "256 B and 64 B")
def knees(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time: the step to the next length is more than three times the one before."""
    texts, holds = [], True
    for name, sizes in (("BIP", (248, 252, 256)), ("VMMC", (60, 64, 68))):
        before, last, after = (_value(evidence, "RTT/2", name, size) for size in sizes)
        holds &= abs(after - last) > 3 * abs(last - before)
        texts.append(f"{name}: {last - before:+.2f} µs from {sizes[0]} to {sizes[1]} B, {after - last:+.2f} µs beyond")
    return modelled(holds, "; ".join(texts))


@claims("S1-F5-a", "The gap of BIP jumps at 256 B, because its messages are synchronised.", "a jump")
def gap_jump(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time: at least 1.5 times from 252 to 256 B, and less than 1.2 times without the synchronisation."""
    ratios = [_value(evidence, "g", name, 256) / _value(evidence, "g", name, 252) for name in ("BIP", NOT_SYNCHRONISED)]
    numbers = f"from 252 to 256 B {ratios[0]:.2f} times, without synchronisation {ratios[1]:.2f} times"
    return modelled(ratios[0] >= 1.5 and ratios[1] < 1.2, numbers)


@claims("S1-F5-b", "AM has the largest gap at 4 KB.", "153.5 µs")
def largest_gap(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time."""
    found = evidence.models("g", _LIBRARIES, 4096, STUDY)
    return modelled(max(found, key=found.__getitem__) == "AM", str(found))


@claims("S1-F6-a", "The overhead of asynchronous sends does not depend on the length.")
def describing_sends(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time: a send of PM or VMMC leaves a descriptor."""
    return _built(evidence, "o_s", _DESCRIBING, (512, 4096))


@claims("S1-F6-b", "The overhead of sends that copy grows with the length.")
def copying_sends(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: sends into the kernel, which copies; from 64 B to 4 KiB, within one frame."""
    return _grows(evidence, "o_s")


def _grows(evidence: ClaimEvidence, parameter: str) -> ClaimVerdict:
    judged, texts = [], []
    for carrier in _CARRIERS:
        low, high = (evidence.live("logp", parameter, carrier, size) for size in (_SHORT, _LENGTH))
        judged.append(compared(low, high, ""))
        texts.append(f"{carrier} {text_of(low.median)} and {text_of(high.median, _US)}")
    return all_of(judged, f"{parameter} at {_SHORT} and {_LENGTH:,} B: {', '.join(texts)}")


unanswered(
    "S1-F6-c",
    "Programmed I/O has less overhead at 4 B than described sends.",
    "it needs an adapter in a process of its own, to which a send leaves a descriptor (a later study: communication "
    "models side by side)",
)


@claims("S1-F7-a", "A receiver of VMMC has no overhead.", "0")
def deposits(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time."""
    return _built(evidence, "o_r", ("VMMC",), (4, 4096))


@claims("S1-F7-b", "The overhead of receives is flat for BIP, PM and VMMC, and grows for AM and FM, which copy.")
def copying_receives(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: receives that copy out of the kernel; from 64 B to 4 KiB, within one frame."""
    return _grows(evidence, "o_r")


@claims("S1-F8-a", "L grows with the length, except for BIP.")
def latency_growth(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time, from 256 B to 1 KiB: FM is one packet there, and BIP uses DMA."""
    growth = {name: _value(evidence, "L", name, 1024) - _value(evidence, "L", name, 256) for name in _LIBRARIES}
    others = min(value for name, value in growth.items() if name != "BIP")
    numbers = "from 256 B to 1 KiB: " + ", ".join(f"{name} {value:+.1f} µs" for name, value in growth.items())
    return modelled(others > 0 and abs(growth["BIP"]) < 0.1 * others, numbers)


@claims("S1-F8-b", "FM overlaps sending and receiving of a message.", "L falls at 2 KB")
def overlap(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time."""
    values = [evidence.given("L", "FM", size, STUDY) for size in (1024, 2048, 4096)]
    numbers = f"L at 1, 2 and 4 KiB: {', '.join(map(text_of, values))} µs"
    return by_construction(numbers, "the length of FM's packets, 1 KiB, is a guess that decides where L falls")


def _maxima(evidence: ClaimEvidence) -> ClaimVerdict:
    """The rates of all libraries at 1 MiB."""
    found = evidence.models(BANDWIDTH, _LIBRARIES, 1 << 20, STUDY)
    return modelled(max(found, key=found.__getitem__) == "BIP", str(found))


claims("S1-F10-a", "Without copies the maximum is highest.", "95 to 125 of 133 MB/s")(_maxima)
claims("S1-F10-b", "One copy more halves the maximum.", "AM at 0.4 of BIP")(_maxima)


@claims("S1-F10-c", "FM and PM lead from 64 B to 1 KB.")
def middle_lengths(evidence: ClaimEvidence) -> ClaimVerdict:
    """In virtual time: each of both above each other library, in one direction."""
    texts, holds = [], True
    for size in (64, 256, 1024):
        rates = evidence.models(BANDWIDTH, _LIBRARIES, size, STUDY)
        holds &= min(rates["FM"], rates["PM"]) > max(rates[name] for name in ("AM", "BIP", "VMMC"))
        texts.append(f"{size:,} B: " + ", ".join(f"{name} {text_of(value)}" for name, value in rates.items()))
    return modelled(holds, "; ".join(texts) + " MB/s")


for _number, _text, _paper in (
    ("S1-F10-d", "Bandwidth falls when messages leave the cache, with copies only.", "256 and 512 KB"),
    ("S1-D-b", "Zero copy holds only for data that is used in place.", ""),
):
    unanswered(_number, _text, _IN_MEMORY, _paper)
unanswered("S1-D-a", "Finding the next message costs VMMC more with more senders.", _MODELS)


@claims("S1-F11-a", "Unidirectional bandwidth is length / gap, and at least that of a ping-pong.")
def gap_bandwidth(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, bare frames and TCP, 4 KiB: the gap of parametrised round trips predicts the bandwidth within 10%."""
    judged, texts = [], []
    for carrier in _CARRIERS:
        gap = evidence.live("logp", "g", carrier + ROUND_TRIPS, _LENGTH)
        one_way, alternating = (
            evidence.live("logp", BANDWIDTH, f"{carrier}, {each}", _LENGTH) for each in ("unidirectional", "ping-pong")
        )
        expected = combined(carrier, gap, gap, lambda each, _: _LENGTH / each)
        if not disturbed(one_way, gap) and not within(one_way.median, expected.median, 0.1):
            judged.append(ClaimVerdict("refuted", ""))
        judged.append(compared(alternating, one_way, ""))
        texts.append(
            f"{carrier}: {text_of(one_way.median)} against {text_of(expected.median)} by the gap, "
            f"ping-pong {text_of(alternating.median, 'MB/s')}"
        )
    return all_of(judged, "; ".join(texts))


@claims("S1-F12-a", "Both directions at once carry more than one.", "all engines of the adapter in use")
def simultaneous(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, bare frames and TCP, 4 KiB: summed over both directions, above 1.1 times."""
    judged, texts = [], []
    for carrier in _CARRIERS:
        one, both = (
            evidence.live("logp", BANDWIDTH, f"{carrier}, {each}", _LENGTH)
            for each in ("unidirectional", "simultaneous")
        )
        judged.append(compared(one, both, "", factor=1 / 1.1))
        texts.append(f"{carrier}: {both.median / one.median:.2f} times {text_of(one.median, 'MB/s')}")
    return all_of(judged, "; ".join(texts))


@claims("S1-D-d", "L is 0 or negative where sends overlap the flight.", derived=True)
def negative_latency(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: at any point."""
    points = [each for each in evidence.series("logp", "L").measurements if not disturbed(each)]
    if not points:
        return ClaimVerdict("undecided", "all points were disturbed", "live")
    negative = [each for each in points if each.median <= 0]
    numbers = f"{len(negative)} of {len(points)} points"
    if negative:
        least = min(negative, key=lambda each: each.median)
        numbers += f"; {text_of(least.median)} µs for {least.name} at {least.parameters['size']:,} B"
    return ClaimVerdict("confirmed" if negative else "refuted", numbers, "live")


@claims("S1-D-e", "Two methods for o and g agree.", derived=True)
def agreement(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: the paper's fragments and parametrised round trips, within 15% at most of the points."""
    points = [each for name in ("o_s", "g") for each in evidence.series("logp", name).measurements]
    # The points of the second method have no verdict of their own.
    points = [each for each in points if not each.name.endswith(ROUND_TRIPS)]
    points = [each for each in points if not disturbed(each) and "undecided" not in each.marks]
    if not points:
        return ClaimVerdict("undecided", "all points were disturbed or undecided", "live")
    agreed = sum(_DIFFERENT not in each.marks for each in points)
    return ClaimVerdict("confirmed" if 2 * agreed > len(points) else "refuted", f"{agreed} of {len(points)}", "live")
