"""The claims of the comparison of mechanisms within a node (Buntinas, Mercier and Gropp, 2006).

The twins in C stand for the paper's mechanisms, cross memory attach for its kernel module Kaput, and TCP over loopback
and raw frames for its adapter. The slowdown of the other side is that of the mechanism in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from mxwire.bench.claims.claim import Check, ClaimEvidence, ClaimVerdict, Judge, Term, difference, live, ordered, ratio
from mxwire.bench.intranode.pair_starter import IN_C
from mxwire.bench.intranode.report import LOW, MEDIUM
from mxwire.bench.intranode.study import (
    ACCESS,
    COPY_SIZES,
    DISTURBANCES,
    LARGE,
    PLACES,
    REGISTRATION,
    SENDER_COUNTS,
    SENDER_MEMORY,
    SENDERS,
    SERVED,
    SERVING,
    SET_UP,
    SLOT_SIZES,
    SLOTS,
    SLOWED,
    STUDY,
    TRIP,
    copy_series,
    operation_series,
)
from mxwire.words import size_text

_BUFFER, _CELLS, _GET, _PUT, _PTRACE, _TCP = "shared-buffer", "cell-queue", "cma-get", "cma-put", "ptrace", "tcp"
_COLD: Final = operation_series("cold")
_COPIED: Final = 65536
"""Message of the slowdown of the other side."""
_PAST_FROM: Final = 2048
"""Length from which the paper's copies past the caches were faster."""
_PEAK: Final = 0.9
"""Share of the best rate from which a curve has its knee."""


def _trip(name: str, size: int = 1) -> Term:
    return live(STUDY, TRIP, name + IN_C, size)


def _cold(name: str, size: int) -> Term:
    return live(STUDY, _COLD, name + IN_C, size)


def _rate(name: str, slot: int) -> Term:
    return live(STUDY, SLOTS, name + IN_C, slot)


def _disturbed(name: str, side: str) -> Term:
    return live(STUDY, DISTURBANCES[0], f"{name}, {side}", LARGE)


def _slowed(name: str) -> Term:
    return live(STUDY, SLOWED, name, _COPIED)


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
        return ClaimVerdict("confirmed" if wanted else "refuted", numbers, "live")

    return judge


def _copied(routine: str, size: int) -> Term:
    return live(STUDY, copy_series("cold"), routine + IN_C, size)


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
    return ClaimVerdict("confirmed" if grows == [False, True] else "refuted", text, "counted")


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S3-T2-a": tuple(
        Check(ratio(_trip(_BUFFER), _trip(each)), most=1) for each in (_CELLS, _GET, _PUT, _PTRACE, _TCP, "veth")
    ),
    "S3-T2-b": tuple(Check(ratio(_trip(each), _trip(_BUFFER)), most=2) for each in (_GET, _PUT)),
    "S3-T2-c": (Check(ratio(_trip(_CELLS), _trip(_BUFFER)), 1.5, 3),),
    "S3-T2-d": (Check(ratio(_trip(_PTRACE), _trip(_BUFFER)), least=10),),
    "S3-T2-e": tuple(Check(ratio(_trip(each), _trip(_BUFFER)), least=5) for each in ("veth", _TCP)),
    "S3-T2-f": tuple(Check(ratio(_trip(_PUT, size), _trip(_GET, size)), 0.9, 1.1) for size in (1, LARGE)),
    "S3-T3-a": (Check(ratio(live(STUDY, SET_UP, _BUFFER, 1), live(STUDY, REGISTRATION, "register", 4096)), least=1),),
    "S3-T3-b": (Check(ratio(live(STUDY, SET_UP, _PTRACE, 1), live(STUDY, SET_UP, _BUFFER, 1)), most=1),),
    "S3-T3-d": tuple(
        Check(ratio(live(STUDY, REGISTRATION, "cached", size), live(STUDY, REGISTRATION, "register", size)), most=0.5)
        for size in (4096, 1 << 20)
    ),
    "S3-F2-a": (
        Check(ratio(_copied("past-caches", 1024), _copied("string", 1024)), least=1),
        *(
            Check(ratio(_copied("past-caches", size), _copied("string", size)), most=1)
            for size in COPY_SIZES
            if size > _PAST_FROM
        ),
    ),
    "S3-F3-a": _best_slot(_BUFFER),
    "S3-F3-b": _best_slot(_CELLS),
    "S3-F3-c": (Check(ratio(_rate(_BUFFER, SLOT_SIZES[7]), _rate(_BUFFER, LARGE)), least=1),),
    "S3-F4-a": tuple(Check(ratio(_cold(each, LARGE), _cold(_TCP, LARGE)), most=1) for each in (_BUFFER, _GET)),
    "S3-F4-b": tuple(
        Check(ratio(_cold(_BUFFER, size), _cold(_GET, size)), most=1) for size in (_COPIED, 1 << 20, LARGE)
    ),
    "S3-F4-c": (
        *ordered(_cold(_PTRACE, 16384), _cold(_TCP, 16384)),
        *ordered(_cold(_PTRACE, 1 << 20), _cold(_CELLS, 1 << 20)),
    ),
    "S3-T4-a": (
        Check(_disturbed(_BUFFER, "source"), least=MEDIUM),
        Check(_disturbed(_BUFFER, "destination"), most=LOW),
    ),
    "S3-T4-b": tuple(Check(_disturbed(_CELLS, side), least=MEDIUM) for side in ("source", "destination")),
    "S3-T4-c": (
        Check(_disturbed(_PUT, "source"), least=MEDIUM),
        Check(_disturbed(_PUT, "destination"), most=LOW),
        Check(_disturbed(_GET, "source"), most=LOW),
        Check(_disturbed(_GET, "destination"), least=MEDIUM),
    ),
    "S3-T4-e": (Check(difference(_disturbed("cell-stack", "destination"), _disturbed(_CELLS, "destination")), most=0),),
    "S3-T5-a": tuple(Check(_slowed(each), most=0.05) for each in (_GET, _PUT)),
    "S3-T5-b": (Check(_slowed(_PTRACE), least=0.5),),
    "S3-T5-c": tuple(
        Check(live(STUDY, ACCESS, f"{each}, passive", size))
        for each, size in product((_GET, _PUT, "process-file"), (1, _COPIED))
    ),
    "S3-T5-d": tuple(Check(live(STUDY, SERVING, f"{each}, thread", 1), least=0.5) for each in (_BUFFER, _CELLS)),
    "S3-T5-e": _polled_places,
    "S3-T5-f": (
        Check(ratio(live(STUDY, SERVED, f"{_BUFFER}, signal, get", 1), live(STUDY, ACCESS, f"{_GET}, passive", 1)), 2),
    ),
}
