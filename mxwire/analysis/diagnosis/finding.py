"""Findings of a diagnosis: trouble, confidence, parties, evidence and advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from mxwire.ethernet import mac_text

Confidence = Literal["high", "medium", "low"]
"""``high``: hardly anything else looks like this; ``medium``: the likeliest of a few causes, named in the advice;
``low``: a hint, worth a look."""

Severity = Literal["error", "warning", "note"]
"""``error``: something cannot work; ``warning``: it works, but wrong or slower than it could; ``note``: nothing is
wrong."""

FRAMES_SHOWN: Final = 8
"""Frames of one piece of evidence that are named."""


@dataclass(frozen=True, slots=True, order=True)
class Party:
    """A host, or an endpoint of it."""

    address: int
    """Ethernet address as an integer."""
    endpoint: int | None = None

    def __str__(self) -> str:
        """As a person writes it."""
        host = mac_text(self.address)
        return host if self.endpoint is None else f"{host} endpoint {self.endpoint}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence in the capture."""

    text: str
    """A sentence without its full stop."""
    frames: tuple[int, ...] = ()
    """Numbers of the frames, the first ones where there are many."""
    time_ns: int | None = None
    """Time of the first of them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a trouble; None if the capture does not show it."""

    ns: int | None = None
    """Nanoseconds during which transfers stood still because of it; waits at the same time count once."""
    frames: int | None = None
    """Frames that were sent, or recorded, in addition because of it."""


UNKNOWN_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class Finding:
    """One trouble of a capture."""

    id: str
    """Its name in the catalogue, for example ``mtu-too-small``; the title stands there."""
    confidence: Confidence
    concerns: tuple[Party, ...]
    summary: str
    """Summary of this case, one sentence."""
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    """Advice, the most likely remedy first."""
    severity: Severity = "warning"
    cost: Cost = UNKNOWN_COST


def evidence(text: str, frames: Iterable[int] = (), time_ns: int | None = None) -> Evidence:
    """Evidence with at most :data:`FRAMES_SHOWN` frames, each once."""
    return Evidence(text, tuple(dict.fromkeys(frames))[:FRAMES_SHOWN], time_ns)


def standstill(waits: Iterable[tuple[int, int]]) -> int | None:
    """Nanoseconds that at least one of the waits covers, each from when until when; None where there is none."""
    total, until = 0, 0
    for start, end in sorted(waits):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total or None


def seconds(nanoseconds: int) -> str:
    """A duration in a person's words."""
    return f"{nanoseconds / 1e9:.1f} s" if nanoseconds >= 1e9 else f"{nanoseconds / 1e6:.1f} ms"


KEPT: Final = 4096
"""Kinds that are remembered: pairs of hosts, of endpoints, flows."""
SHOWN: Final = 4
"""Number of samples kept of each, for display."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def keep(kept: dict[_Key, list[_Value]], key: _Key, value: _Value) -> bool:
    """Keep a value if it is one of the first of its kind; False where the kind is one too many to be remembered."""
    if key not in kept and len(kept) >= KEPT:
        return False
    values = kept.setdefault(key, [])
    if len(values) < SHOWN:
        values.append(value)
    return True
