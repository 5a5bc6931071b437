"""The claims of the note on kernel and user space (InsideHPC, 2009). It gives no figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mxwire.bench.channels.hosts import LOCAL, TWO_COPIES
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
from mxwire.bench.path import FRAMES_IN_C, NOT_STEERED, TRIP

_LENGTH: Final = 4096
_SHORT: Final = 64


def _trip(name: str, size: int = _SHORT) -> Term:
    """Half a round trip, polling."""
    return live("path", TRIP, f"{name}, spinning", size)


def _both(rung: str) -> tuple[Term, Term]:
    """The half round trips of a rung, with and without steering."""
    return _trip(rung), live("path", TRIP, f"{rung}, spinning, {NOT_STEERED}", _SHORT)


def kernel_copies(evidence: ClaimEvidence) -> ClaimVerdict:
    """Report the copies of the kernel's calls and of the process itself at 4 KiB, by path."""
    texts = []
    for rung in ("tcp", "udp", "ring", "mxoe"):
        counts = evidence.point("path", TRIP, f"{rung}, blocking", _LENGTH).counts
        try:
            sent = counts["bytes to the kernel"] + counts["bytes copied, sent"]
            received = counts["bytes from the kernel"] + counts["bytes copied, received"]
        except KeyError:
            raise EvidenceError("path: copies were not counted") from None
        texts.append(f"{rung} {sent / _LENGTH:.2f} and {received / _LENGTH:.2f}")
    reason = (
        "no path here is into the application's own memory: a process copies out of a ring itself (it needs an adapter "
        "with RDMA, or a later study: paths within a host)"
    )
    numbers = f"copies of 4 KiB, sending and receiving: {', '.join(texts)}; {reason}"
    return ClaimVerdict("not applicable", numbers, "counted")


_USER_SPACE: Final = tuple(least_of(xdp, local) for xdp, local in zip(_both("xdp"), (_trip(LOCAL),) * 2, strict=True))
"""The faster of AF_XDP and the local path, with and without steering."""

CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S0-a": tuple(Check(ratio(_trip(TWO_COPIES, size), _trip(LOCAL, size)), least=1) for size in (65536, 1 << 20)),
    "S0-b": tuple(
        Check(ratio(kernel, user), least=1)
        for rung in ("frames", "udp", "tcp")
        for kernel, user in zip(_both(rung), _USER_SPACE, strict=True)
    ),
    "S0-c": tuple(
        Check(ratio(frames, tcp), most=0.7) for frames, tcp in zip(_both(FRAMES_IN_C), _both("tcp"), strict=True)
    ),
    "S0-d": (Check(ratio(_trip("tcp"), live("path", TRIP, "tcp, blocking", _SHORT)), most=0.5),),
    "S0-e": kernel_copies,
}
