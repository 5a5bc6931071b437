"""The claims of the note on kernel and user space (seed 000). It gives no figures."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from mxwire.bench.claims.claim import (
    ClaimEvidence,
    ClaimVerdict,
    EvidenceError,
    all_of,
    claims,
    compared,
    share_text,
    text_of,
    unanswered,
)

_TRIP: Final = "half round trip"
_ALONE: Final = "alone"
_LENGTH: Final = 4096
_US: Final = "µs"


@claims("S0-a", "Additional copies add latency.")
def copies(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live: a copy of 4 KiB against one of 64 bytes, in cold memory."""
    small, large = (evidence.live("path", _ALONE, "memory copy, cold", each) for each in (64, 4096))
    numbers = f"a cold copy takes {text_of(small.median, _US)} for 64 B, {text_of(large.median, _US)} for 4 KiB"
    return compared(small, large, numbers)


@claims("S0-b", "The path through the kernel is slower than that through user space.")
def kernel_path(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, polling, 64 bytes: TCP above UDP above packet sockets above mapped rings."""
    rungs = [evidence.live("path", _TRIP, f"{each}, spinning", 64) for each in ("ring", "frames", "udp", "tcp")]
    judged = [compared(low, high, "") for low, high in pairwise(rungs)]
    names = ("mapped ring", "packet socket", "UDP", "TCP")
    numbers = ", ".join(f"{name} {text_of(each.median)}" for name, each in zip(names, rungs, strict=True))
    return all_of(judged, f"{numbers} µs")


@claims("S0-c", "The processing of TCP/IP is a large share of the kernel's path.")
def protocol_share(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, polling, 64 bytes: at least 30%."""
    tcp, frames = (evidence.live("path", _TRIP, f"{each}, spinning", 64) for each in ("tcp", "frames"))
    share = (tcp.median - frames.median) / tcp.median
    return compared(frames, tcp, f"{share_text(share)} of {text_of(tcp.median, _US)}", factor=0.7)


@claims("S0-d", "Today the wake-up costs more than all else.", derived=True)
def wake_up(evidence: ClaimEvidence) -> ClaimVerdict:
    """Live, 64 bytes over TCP: blocking takes more than twice as long as polling."""
    polling, blocking = (evidence.live("path", _TRIP, f"tcp, {each}", 64) for each in ("spinning", "blocking"))
    numbers = f"TCP: polling {text_of(polling.median)}, blocking {text_of(blocking.median, _US)}"
    return compared(polling, blocking, numbers, factor=0.5)


@claims("S0-e", "The kernel's path has one copy more on each side than a path into the application's memory.")
def kernel_copies(evidence: ClaimEvidence) -> ClaimVerdict:
    """Counted at 4 KiB: the copies of the kernel's calls and of the process itself."""
    texts = []
    for rung in ("tcp", "udp", "ring", "mxoe"):
        counts = evidence.live("path", _TRIP, f"{rung}, blocking", _LENGTH).counts
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
    return ClaimVerdict(
        "not applicable", f"copies of 4 KiB, sending and receiving: {', '.join(texts)}; {reason}", "counted"
    )


unanswered(
    "S0-f",
    "Protocol work in the receiver's context is cheaper.",
    "it needs a third processor, since with two the other one is the sender's (a later study: split of processor time)",
)
