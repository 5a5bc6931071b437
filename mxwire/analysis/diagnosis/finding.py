"""Findings of a diagnosis: trouble, confidence, parties, evidence and advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from mxwire.ethernet import mac_text

Confidence = Literal["high", "medium", "low"]
"""``high``: other causes are very unlikely; ``medium``: the likeliest of a few causes, which the advice names;
``low``: a hint that is worth checking."""
_CONFIDENCES: Final[tuple[Confidence, ...]] = get_args(Confidence)

Weight = Literal["proof", "sign", "hint"]
"""``proof``: hardly anything else explains the observation; ``sign``: the diagnosis is its likeliest cause; ``hint``:
another cause is as likely, or the observation only adds detail."""

Severity = Literal["error", "warning", "note"]
"""``error``: communication fails; ``warning``: it works, but incorrectly or more slowly than possible; ``note``: no
fault."""
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""Severities, the worst first."""

FRAMES_SHOWN: Final = 8
"""Maximum number of frames listed per item of evidence."""


@dataclass(frozen=True, slots=True, order=True)
class Party:
    """A host, or an endpoint of it."""

    address: int
    """Ethernet address as an integer."""
    endpoint: int | None = None

    def __str__(self) -> str:
        """Return the address, and the endpoint if there is one."""
        host = mac_text(self.address)
        return host if self.endpoint is None else f"{host} endpoint {self.endpoint}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence in the capture."""

    text: str
    """A sentence without its full stop."""
    frames: tuple[int, ...] = ()
    """Numbers of the frames; if there are many, only the first."""
    time_ns: int | None = None
    """Time of the first of these frames."""
    weight: Weight = "hint"
    times: int = 1
    """Number of independent observations."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a trouble; None if the capture does not show it."""

    ns: int | None = None
    """Time for which it stalled transfers, in nanoseconds; simultaneous waits count once."""
    frames: int | None = None
    """Number of additional frames sent, or captured, because of the trouble."""


UNKNOWN_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class Finding:
    """One trouble of a capture."""

    id: str
    """Name of the diagnosis in the catalogue, which also contains the title; for example ``mtu-too-small``."""
    concerns: tuple[Party, ...]
    summary: str
    """Summary of this case, one sentence."""
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    """Advice, the most likely remedy first."""
    severity: Severity = "warning"
    cost: Cost = UNKNOWN_COST
    doubts: tuple[str, ...] = ()
    """Circumstances that weaken the evidence, each a sentence without its full stop."""

    @property
    def confidence(self) -> Confidence:
        """The probability of the diagnosis, according to its evidence and the doubts."""
        return confidence_of(self.evidence, len(self.doubts))


def confidence_of(shown: Iterable[Evidence], doubts: int = 0) -> Confidence:
    """Return the confidence that evidence allows: high for a proof or for several signs, medium for one sign, low for
    hints; one step less per doubt.
    """
    signs = sum(_SEVERAL if each.weight == "proof" else each.times for each in shown if each.weight != "hint")
    return _CONFIDENCES[min(max(_SEVERAL - signs, 0) + doubts, len(_CONFIDENCES) - 1)]


_SEVERAL: Final = 2
"""Number of signs that make a diagnosis as certain as a proof."""


def evidence(
    text: str, frames: Iterable[int] = (), time_ns: int | None = None, weight: Weight = "hint", times: int = 1
) -> Evidence:
    """Return evidence with at most :data:`FRAMES_SHOWN` frames, without repetitions."""
    return Evidence(text, tuple(dict.fromkeys(frames))[:FRAMES_SHOWN], time_ns, weight, times)


def weighed(shown: Iterable[Evidence], weight: Weight, times: int = 1) -> list[Evidence]:
    """Return evidence of one kind, which was observed ``times`` times altogether."""
    return [replace(each, weight=weight, times=0 if place else times) for place, each in enumerate(shown)]


def standstill(waits: Iterable[tuple[int, int]]) -> int | None:
    """Return the nanoseconds covered by at least one of ``waits`` (start and end); None if there are no waits."""
    total, until = 0, 0
    for start, end in sorted(waits):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total or None


def seconds(nanoseconds: int) -> str:
    """Return a duration as text, in ms if it is less than 1 s when rounded."""
    return f"{nanoseconds / 1e9:.1f} s" if nanoseconds >= 999.95e6 else f"{nanoseconds / 1e6:.1f} ms"


KEPT: Final = 4096
"""Maximum number of keys that are remembered: pairs of hosts or endpoints, flows."""
SHOWN: Final = 4
"""Number of samples kept per key, for display."""


@dataclass(slots=True)
class Observations:
    """Observations of one kind: their number, and the first ones as evidence."""

    count: int = 0
    shown: list[Evidence] = field(default_factory=list)

    def add(self, new: Evidence, number: int = 1) -> None:
        """Add evidence of a number of observations."""
        self.count += number
        if len(self.shown) < SHOWN:
            self.shown.append(new)
