"""The claims of the comparison of mechanisms within a node (Buntinas, Mercier and Gropp, 2006).

The twins in C stand for the paper's mechanisms, cross memory attach for its kernel module Kaput, and TCP over loopback
and raw frames for its adapter. The slowdown of the other side is that of the mechanism in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mxwire.bench.claims.claim import Check, ClaimEvidence, ClaimVerdict, Judge, Term, difference, live, ratio
from mxwire.bench.intranode.pair_starter import IN_C
from mxwire.bench.intranode.study import (
    ACCESS,
    DISTURBANCES,
    LARGE,
    PLACES,
    REGISTRATION,
    SENDER_COUNTS,
    SENDER_MEMORY,
    SENDERS,
    SERVED,
    SET_UP,
    SLOTS,
    STUDY,
)
from mxwire.words import size_text

_BUFFER, _CELLS, _GET, _PUT, _PTRACE, _TCP = "shared-buffer", "cell-queue", "cma-get", "cma-put", "ptrace", "tcp"
_PEAK: Final = 0.9
"""Share of the best rate from which a curve has its knee."""


def _disturbed(name: str, side: str) -> Term:
    return live(STUDY, DISTURBANCES[0], f"{name}, {side}", LARGE)


def _best_slot(name: str) -> Judge:
    """Judge whether the best size of buffers or cells is an inner one (shared buffer), or the largest (cells)."""

    def judge(evidence: ClaimEvidence) -> ClaimVerdict:
        curve = [each for each in evidence.series(STUDY, SLOTS).curve(name + IN_C) if each.parameters["slot"] < LARGE]
        best = max(curve, key=lambda each: each.median)
        knee = next(each for each in curve if each.median >= _PEAK * best.median)
        sizes = [size_text(each.parameters["slot"]) for each in (best, knee)]
        least, most = (size_text(each.parameters["slot"]) for each in (curve[0], curve[-1]))
        numbers = f"best at {sizes[0]}, 90% of that from {sizes[1]} on; measured from {least} to {most}"
        inner = best not in (curve[0], curve[-1])
        wanted = inner if name == _BUFFER else best is curve[-1]
        return ClaimVerdict.of(wanted, numbers, "live")

    return judge


def _polled_places(evidence: ClaimEvidence) -> ClaimVerdict:
    """Judge whether a receiver polls one place for all senders with a queue of cells, and one each with buffers."""
    few, many = SENDER_COUNTS[0], SENDER_COUNTS[-1]
    numbers, grows = [], []
    for name in (_CELLS + IN_C, _BUFFER):
        places = [evidence.point(STUDY, SENDERS, name, count).counts for count in (few, many)]
        grows.append(places[1][PLACES] > places[0][PLACES])
        texts = (f"{each[PLACES]:g} with {size_text(int(each[SENDER_MEMORY]))}" for each in places)
        numbers.append(f"{name}: {' and '.join(texts)} of shared memory")
    text = f"places polled with {few} and {many} senders: {'; '.join(numbers)}"
    return ClaimVerdict.of(grows == [False, True], text)


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S3-T3-a": (Check(ratio(live(STUDY, SET_UP, _BUFFER, 1), live(STUDY, REGISTRATION, "register", 4096)), least=1),),
    "S3-F3-a": _best_slot(_BUFFER),
    "S3-F3-b": _best_slot(_CELLS),
    "S3-T4-e": (Check(difference(_disturbed("cell-stack", "destination"), _disturbed(_CELLS, "destination")), most=0),),
    "S3-T5-e": _polled_places,
    "S3-T5-f": (
        Check(ratio(live(STUDY, SERVED, f"{_BUFFER}, signal, get", 1), live(STUDY, ACCESS, f"{_GET}, passive", 1)), 2),
    ),
}
