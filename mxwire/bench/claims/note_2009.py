"""The claims of the note on kernel and user space (InsideHPC, 2009). It gives no figures."""

from __future__ import annotations

from typing import Final

from mxwire.bench.channels.hosts import LOCAL, TWO_COPIES
from mxwire.bench.claims.claim import (
    Check,
    Claim,
    ClaimEvidence,
    ClaimVerdict,
    EvidenceError,
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

CLAIMS: Final = (
    Claim(
        "S0-a",
        "Additional copies add latency.",
        checks=tuple(Check(ratio(_trip(TWO_COPIES, size), _trip(LOCAL, size)), least=1) for size in (65536, 1 << 20)),
    ),
    Claim(
        "S0-b",
        "The path through the kernel is slower than that through user space.",
        checks=tuple(
            Check(ratio(kernel, user), least=1)
            for rung in ("frames", "udp", "tcp")
            for kernel, user in zip(_both(rung), _USER_SPACE, strict=True)
        ),
    ),
    Claim(
        "S0-c",
        "The processing of TCP/IP is a large share of the kernel's path.",
        checks=tuple(
            Check(ratio(frames, tcp), most=0.7) for frames, tcp in zip(_both(FRAMES_IN_C), _both("tcp"), strict=True)
        ),
        note="a share of at least 30%, against bare frames in C",
    ),
    Claim(
        "S0-d",
        "Today the wake-up costs more than all else.",
        checks=(Check(ratio(_trip("tcp"), live("path", TRIP, "tcp, blocking", _SHORT)), most=0.5),),
        derived=True,
    ),
    Claim(
        "S0-e",
        "The kernel's path has one copy more on each side than a path into the application's memory.",
        checks=kernel_copies,
    ),
    Claim(
        "S0-f",
        "Protocol work in the receiver's context is cheaper.",
        checks="it needs a third processor, since with two the other one is the sender's (a later study: split of "
        "processor time)",
    ),
)
