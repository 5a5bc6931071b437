"""Probes: frames that a diagnostic tool sends to learn something from a host's driver, and that no driver sends.

``mxwire discover``, ``ping`` and ``doctor`` send them. What they ask is answered or refused like anything else, but
rules about drivers do not apply to them.
"""

from __future__ import annotations

from typing import Final

from mxwire.wire.packets import HostQuery, Pull

QUERY_MAGICS: Final = range(0x4000_0000, 0x8000_0000)
"""Magics of queries that are probes. A driver counts up from 0x13052008 by one each time it forgets all names
(R-HOST-03), so it never gets there."""
ENDPOINTS: Final = 32
"""Endpoints that a host may have: 0 to 31 (R-EP-01)."""
NOBODY: Final = 255
"""An endpoint number that no host has."""


def is_probe(frame: object) -> bool:
    """Whether a frame is a query for a name with such a magic, or a PULL between endpoints that no host has."""
    if isinstance(frame, HostQuery):
        return frame.magic in QUERY_MAGICS
    return isinstance(frame, Pull) and frame.src_endpoint >= ENDPOINTS and frame.dst_endpoint >= ENDPOINTS
