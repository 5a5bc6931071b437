"""The claims of the paper on Open-MX (Goglin, 2011)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from mxwire.bench.claims.claim import (
    Check,
    ClaimEvidence,
    ClaimVerdict,
    EvidenceError,
    Judge,
    Term,
    all_of,
    computed,
    difference,
    given,
    mean_of,
    modelled,
    rate,
    ratio,
)
from mxwire.bench.claims.model_study import (
    COALESCED,
    COALESCING_US,
    COLLECTIVE,
    COLLECTIVE_SIZES,
    SHARE,
    SHARE_SIZES,
    SLOW,
    STREAM,
    TABLE_1,
    TRIP,
)
from mxwire.bench.mtu import PACKETS_OF_MXOE
from mxwire.words import size_text

_LARGE: Final = 4 << 20
_MIB: Final = 1 << 20
_BY_DELAY: Final = "rate by delay"
_LINE_1G: Final = 1e9 / 8 / _MIB
_MIDDLE: Final = (16384, 65536, 262144)


def _rate(name: str, length: int = _LARGE, series: str = TRIP) -> Term:
    """Rate of a half round trip of the model in MiB/s."""
    return rate(modelled(series, name, length), length)


def _given_rate(name: str) -> Term:
    """The rate of the longest message as a premise."""
    return rate(given(TRIP, name, _LARGE), _LARGE)


def _gain(name: str, length: int, algorithm: str = "") -> Term:
    """The time of a collective over TCP, by that over Open-MX."""
    tcp, own = (modelled(COLLECTIVE, f"{name}, {each}{algorithm}", length) for each in ("tcp", "open-mx"))
    return computed(
        lambda one, other: one / other, lambda *_: f"gain of {name}{algorithm}, at {size_text(length)}:", tcp, own
    )


def _mean_gain(length: int) -> Term:
    """The mean gain over TCP of the collectives, as the paper's table."""
    return mean_of(f"mean gain at {size_text(length)}", *(_gain(each, length) for each in TABLE_1))


def _share(kind: str, size: int = _LARGE) -> Term:
    return modelled(SHARE, kind, size)


def _idle(suffix: str) -> Term:
    """The mean idle time per message, over the lengths of the paper's figure."""
    times = [
        computed(
            lambda share, whole: share * whole,
            lambda *_: "",
            _share(f"idle{suffix}", size),
            modelled(STREAM, f"open-mx{suffix}", size),
        )
        for size in SHARE_SIZES
    ]
    return mean_of(f"idle time per message{suffix}", *times, unit="µs")


def _advantage(delay: float) -> Term:
    """The time by which TCP takes longer."""
    tcp, own = (given(COALESCED, each, delay) for each in ("tcp", "open-mx"))
    return difference(tcp, own, f"time that TCP takes longer at {delay:g} µs of coalescing")


def bound(evidence: ClaimEvidence) -> ClaimVerdict:
    """Judge in virtual time: never exceeded, and reached within 15% where it is below the rate without delay."""
    checks = []
    for name, delay in product(("mxoe, 8 frames per block", f"{PACKETS_OF_MXOE}, 8 frames per block"), (7.0, 70.0)):
        reached, limit = (modelled(_BY_DELAY, f"{kind}{name}", delay, "mtu") for kind in ("", "bound: "))
        limits = limit(evidence).value < modelled(_BY_DELAY, name, 0, "mtu")(evidence).value
        if limits or reached(evidence).value > limit(evidence).value:
            checks.append(Check(ratio(reached, limit), 0.85 if limits else 0, 1))
    if not checks:
        raise EvidenceError("mtu: the bound limits none of the points")
    return all_of(each.verdict(evidence) for each in checks)


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S2-F9-b": tuple(Check(ratio(_advantage(each), _advantage(0)), 0.85, 1.15) for each in COALESCING_US[1:]),
    "S2-F9-c": tuple(
        Check(
            difference(modelled(COALESCED, each, COALESCING_US[-1]), modelled(COALESCED, each, 0)),
            0.85 * COALESCING_US[-1],
            1.15 * COALESCING_US[-1],
        )
        for each in ("open-mx", "tcp")
    ),
    "S2-F9-d": (
        *(Check(_rate(each, series=SLOW), least=0.9 * _LINE_1G) for each in ("open-mx", "tcp")),
        *(Check(ratio(modelled(SLOW, "tcp", each), modelled(SLOW, "open-mx", each)), 1, 1.1) for each in _MIDDLE),
    ),
    "S2-T1-a": tuple(
        Check(ratio(_mean_gain(COLLECTIVE_SIZES[0]), _mean_gain(each)), least=1) for each in COLLECTIVE_SIZES[1:]
    ),
    "S2-T1-b": tuple(
        Check(ratio(_mean_gain(middle), _mean_gain(other)), most=1)
        for middle, other in product(COLLECTIVE_SIZES[1:3], (COLLECTIVE_SIZES[0], COLLECTIVE_SIZES[-1]))
    ),
    "S2-T1-c": (
        Check(
            computed(
                lambda one, other: (one - 1) / (other - 1),
                lambda one, other: f"gain of Barrier {one.value:.2f} / {other.text}, each less 1:",
                _gain("Barrier", 0),
                _mean_gain(COLLECTIVE_SIZES[0]),
            ),
            0.5,
            2,
        ),
    ),
    "S2-T1-d": tuple(
        Check(_gain("Bcast", COLLECTIVE_SIZES[-1], f", {each}"), most=1) for each in ("binomial", "scatter+ring")
    ),
    "S2-F10-a": (Check(ratio(_rate("open-mx, in place"), _given_rate("open-mx")), least=1.3),),
    "S2-F11-b": (
        Check(difference(_share("idle, engine"), _share("idle"), "less use of a core at 4 MiB:"), least=0),
        Check(ratio(_idle(", engine"), _idle("")), least=1),
    ),
    "S2-T2-a": (
        Check(ratio(_rate("open-mx, engine"), _given_rate("open-mx")), least=1.2),
        Check(ratio(_rate("omx:1500, engine"), _given_rate("omx:1500")), most=1.15),
    ),
    "S2-F12-c": (Check(ratio(_rate("open-mx", series=SLOW), _rate("omx:1500", series=SLOW)), 1, 1.1),),
    "S2-F13-b": tuple(
        Check(ratio(_rate("mixed", length), _rate("mx", length)), least=least)
        for length, least in ((_MIB, 0.65), (_LARGE, 0.9))
    ),
    "S2-F14-c": bound,
}
