"""The claims of the note on kernel and user space (InsideHPC, 2009). It gives no figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mxwire.bench.channels.hosts import LOCAL, ONE_COPY
from mxwire.bench.claims.claim import (
    Check,
    ClaimEvidence,
    ClaimVerdict,
    EvidenceError,
    Judge,
    Term,
    least_of,
    live,
    ratio,
)
from mxwire.bench.path import NOT_STEERED, TRIP
from mxwire.words import size_text

_SHORT: Final = 64
_LONG: Final = 65536
_LARGE: Final = 1 << 20
_MORE: Final = 0.9
"""Copies per byte that count as one more."""


def _trip(name: str, size: int = _SHORT) -> Term:
    """Half a round trip, polling."""
    return live("path", TRIP, f"{name}, spinning", size)


def _both(rung: str) -> tuple[Term, Term]:
    """The half round trips of a rung, with and without steering."""
    return _trip(rung), live("path", TRIP, f"{rung}, spinning, {NOT_STEERED}", _SHORT)


def kernel_copies(evidence: ClaimEvidence) -> ClaimVerdict:
    """Judge by the copies of the kernel's calls and of the process itself whether TCP has one more in all than a path
    out of the memory of the sender into that of the receive."""
    totals, texts = [], []
    for name, size in (("tcp, blocking", _LONG), (f"{ONE_COPY}, spinning", _LARGE)):
        counts = evidence.point("path", TRIP, name, size).counts
        try:
            sent = counts["bytes to the kernel"] + counts["bytes copied, sent"]
            received = counts["bytes from the kernel"] + counts["bytes copied, received"]
        except KeyError:
            raise EvidenceError("path: copies were not counted") from None
        totals.append((sent + received) / size)
        texts.append(f"{name.partition(',')[0]} {sent / size:.2f} and {received / size:.2f} at {size_text(size)}")
    numbers = f"copies per byte, sending and receiving: {', '.join(texts)}; the one copy stands for the transfer"
    return ClaimVerdict.of(totals[0] - totals[1] > _MORE, numbers)


_USER_SPACE: Final = tuple(least_of(xdp, local) for xdp, local in zip(_both("xdp"), (_trip(LOCAL),) * 2, strict=True))
"""The faster of AF_XDP and the local path, with and without steering."""

CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S0-b": tuple(
        Check(ratio(kernel, user), least=1)
        for rung in ("frames", "udp", "tcp")
        for kernel, user in zip(_both(rung), _USER_SPACE, strict=True)
    ),
    "S0-e": kernel_copies,
}
