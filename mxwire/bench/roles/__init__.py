"""Roles: the work of the two sides of a measurement.

``exchanges.py`` and ``tracing.py`` have the roles of the studies, over any channel. The other modules have those of the
contests of ``benchmarks/live.py``: the active and the passive role of each contest.
"""

from __future__ import annotations

from collections.abc import Callable

from mxwire.bench.roles import frames, hosts, packets, tcp, udp
from mxwire.bench.roles.common import Found

FULL = {"large": {"count": 100}, "round trip": {"count": 3000}, "tiny rate": {"count": 20_000}}
QUICK = {"large": {"count": 6}, "round trip": {"count": 50}, "tiny rate": {"count": 640}}
"""Number of messages, by contest."""


def family(contestant: str) -> str:
    """Return the module with the roles of a contestant."""
    if contestant.startswith("frames alone"):
        return "frames"
    return "host" if contestant.startswith(("mxoe", "omx")) else contestant


Role = Callable[..., Found]
ROLES: dict[tuple[str, str], tuple[Role, Role]] = {
    ("large", "host"): (hosts.large_sender, hosts.large_receiver),
    ("large", "tcp"): (tcp.large_sender, tcp.large_receiver),
    ("large", "frames"): (frames.large_sender, frames.large_receiver),
    ("round trip", "host"): (hosts.trip_active, hosts.trip_passive),
    ("round trip", "tcp"): (tcp.trip_active, tcp.trip_passive),
    ("round trip", "udp"): (udp.trip_active, udp.trip_passive),
    ("round trip", "packet"): (packets.trip_active, packets.trip_passive),
    ("tiny rate", "host"): (hosts.rate_active, hosts.rate_passive),
    ("tiny rate", "udp"): (udp.rate_active, udp.rate_passive),
    ("mixture", "host"): (hosts.mixture_active, hosts.mixture_passive),
}
"""The active and the passive side, by contest and family."""
