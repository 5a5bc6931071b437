"""The claims of the comparison of five libraries (seed 001).

Most of them compare models of communication (AM, BIP, FM, PM, VMMC) that mxwire does not implement; their identifiers
are listed with this reason.
"""

from __future__ import annotations

from typing import Final

from mxwire.bench.claims.claim import (
    ClaimEvidence,
    ClaimVerdict,
    all_of,
    claims,
    compared,
    disturbed,
    text_of,
    unanswered,
)
from mxwire.bench.rounds import within

_MODELS: Final = "the libraries that it compares are not implemented here"
_HARDWARE: Final = (
    "programmed I/O and DMA of an adapter of 1998 are not here, and a cost table would contain the answer"
)
_CARRIERS: Final = ("frames", "tcp")
_LENGTH: Final = 4096
_BANDWIDTH: Final = "bandwidth"
_DIFFERENT: Final = "methods differ"

for _number, _text, _reason, _paper in (
    ("S1-T1-a", "Full buffers are prevented, tolerated, or lose data, by library.", _MODELS, ""),
    ("S1-T1-b", "Network errors are tolerated by AM-II and VMMC only.", _MODELS, ""),
    ("S1-T1-c", "AM-II, PM, VMMC and FM-2.1 protect nodes from each other.", _MODELS, ""),
    ("S1-T2-a", "The copies per side are those of the table.", _MODELS, ""),
    ("S1-T2-b", "Reliability in the library costs a copy, in the firmware none.", _MODELS, ""),
    ("S1-T3-a", "Each stage is charged to one parameter of LogP.", _MODELS, ""),
    ("S1-F2-a", "DMA beats programmed I/O above 32 to 512 B.", _HARDWARE, ""),
    ("S1-F4-a", "BIP has the least latency at 4 B.", _MODELS, "about 6 µs"),
    ("S1-F4-b", "At 4 B the order is BIP, FM and PM, VMMC, AM.", _MODELS, "6, 9, 9, 13, up to 17 µs"),
    ("S1-F4-c", "All latencies lie within a factor of 3.5.", _MODELS, "5 to 17 µs"),
    ("S1-F4-d", "Latencies have knees at 256 B (BIP) and 64 B (VMMC).", _MODELS, ""),
    ("S1-F4-e", "Protection and reliability are cheap.", _MODELS, "+3 µs; +2.5 to 3.5 µs"),
    ("S1-F5-a", "The gap of BIP jumps at 256 B.", _MODELS, ""),
    ("S1-F5-b", "AM has the largest gap at 4 KB.", _MODELS, "153.5 µs"),
    ("S1-F6-a", "The overhead of asynchronous sends does not depend on the length.", _MODELS, ""),
    ("S1-F6-b", "The overhead of sends that copy grows with the length.", _MODELS, ""),
    ("S1-F6-c", "Programmed I/O has less overhead at 4 B than described sends.", _HARDWARE, ""),
    ("S1-F7-a", "A receiver of VMMC has no overhead.", _MODELS, "0"),
    ("S1-F7-b", "The overhead of receives is flat for BIP, PM and VMMC, and grows for AM and FM.", _MODELS, ""),
    ("S1-F8-a", "L grows with the length, except for BIP.", _MODELS, ""),
    ("S1-F8-b", "FM overlaps sending and receiving of a message.", _MODELS, "L falls at 2 KB"),
    ("S1-F10-a", "Without copies the maximum is highest.", _MODELS, "95 to 125 of 133 MB/s"),
    ("S1-F10-b", "One copy more halves the maximum.", _MODELS, "AM at 0.4 of BIP"),
    ("S1-F10-c", "FM and PM lead from 64 B to 1 KB.", _MODELS, ""),
    ("S1-F10-d", "Bandwidth falls when messages leave the cache, with copies only.", _MODELS, "256 and 512 KB"),
    ("S1-D-a", "Finding the next message costs VMMC more with more senders.", _MODELS, ""),
    ("S1-D-b", "Zero copy holds in place only.", _MODELS, ""),
    ("S1-D-c", "Function and latency are inversely related, with exceptions.", _MODELS, ""),
):
    unanswered(_number, _text, _reason, _paper)


@claims("S1-F11-a", "Unidirectional bandwidth is length / gap, and at least that of a ping-pong.")
def gap_bandwidth(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, bare frames and TCP, 4 KiB: consistent within 10 %; otherwise the measurement is wrong."""
    judged, texts = [], []
    for carrier in _CARRIERS:
        gap = evidence.live("logp", "g", carrier, _LENGTH)
        one_way, alternating = (
            evidence.live("logp", _BANDWIDTH, f"{carrier}, {each}", _LENGTH) for each in ("unidirectional", "ping-pong")
        )
        expected = _LENGTH / gap.median
        if not within(one_way.median, expected, 0.1):
            judged.append(ClaimVerdict("refuted", ""))
        judged.append(compared(alternating, one_way, ""))
        texts.append(
            f"{carrier}: {text_of(one_way.median)} against {text_of(expected)} by the gap, "
            f"ping-pong {text_of(alternating.median, 'MB/s')}"
        )
    return all_of(judged, "; ".join(texts))


@claims("S1-F12-a", "Both directions at once carry more than one.", "all engines of the adapter in use")
def simultaneous(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, bare frames and TCP, 4 KiB: summed over both directions, above 1.1 times."""
    judged, texts = [], []
    for carrier in _CARRIERS:
        one, both = (
            evidence.live("logp", _BANDWIDTH, f"{carrier}, {each}", _LENGTH)
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
    found = [each for each in points if each.median <= 0]
    numbers = f"{len(found)} of {len(points)} points"
    if found:
        least = min(found, key=lambda each: each.median)
        numbers += f"; {text_of(least.median)} µs for {least.name} at {least.parameters['size']:,} B"
    return ClaimVerdict("confirmed" if found else "refuted", numbers, "live")


@claims("S1-D-e", "Two methods for o and g agree.", derived=True)
def agreement(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: the paper's fragments and parametrised round trips, within 15 % at most of the points."""
    points = [each for name in ("o_s", "g") for each in evidence.series("logp", name).measurements]
    points = [each for each in points if not disturbed(each)]
    if not points:
        return ClaimVerdict("undecided", "all points were disturbed", "live")
    agreed = sum(_DIFFERENT not in each.marks for each in points)
    return ClaimVerdict("confirmed" if 2 * agreed > len(points) else "refuted", f"{agreed} of {len(points)}", "live")
