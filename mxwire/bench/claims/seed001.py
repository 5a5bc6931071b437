"""The claims of the comparison of five libraries (seed 001).

Most of them compare models of communication (AM, BIP, FM, PM, VMMC) that mxwire does not implement; their identifiers
are listed with this reason.
"""

from __future__ import annotations

from typing import Final

from mxwire.bench.claims.claim import unanswered

_MODELS: Final = "the libraries that it compares are not implemented here"
_HARDWARE: Final = (
    "programmed I/O and DMA of an adapter of 1998 are not here, and a cost table would contain the answer"
)
_LOGP: Final = "the recorded studies do not include LogP"

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
    ("S1-F11-a", "Unidirectional bandwidth is length / gap, and at least that of a ping-pong.", _LOGP, ""),
    ("S1-F12-a", "Both directions at once carry more than one.", _LOGP, ""),
    ("S1-D-a", "Finding the next message costs VMMC more with more senders.", _MODELS, ""),
    ("S1-D-b", "Zero copy holds in place only.", _MODELS, ""),
    ("S1-D-c", "Function and latency are inversely related, with exceptions.", _MODELS, ""),
):
    unanswered(_number, _text, _reason, _paper)
for _number, _text in (
    ("S1-D-d", "L is 0 or negative where sends overlap the flight."),
    ("S1-D-e", "Two methods for o and g agree."),
):
    unanswered(_number, _text, _LOGP, derived=True)
