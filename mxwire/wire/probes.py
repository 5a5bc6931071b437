"""Probes: frames that diagnostic tools send to examine a host's driver, and that no driver sends.

``mxwire discover``, ``ping`` and ``doctor`` send them. Drivers answer or refuse them like any other frame, but the
rules about senders do not apply to them.
"""

from __future__ import annotations

from typing import Final

from mxwire.wire.numbers import ENDPOINT_MAXIMUM, QUERY_MAGICS
from mxwire.wire.packets import HostQuery, Pull

NO_ENDPOINT: Final = 255
"""An endpoint number that no host has."""


def is_probe(frame: object) -> bool:
    """Return True for a query with a probing magic, or a PULL between endpoints that no host has."""
    if isinstance(frame, HostQuery):
        return frame.magic in QUERY_MAGICS
    return isinstance(frame, Pull) and min(frame.src_endpoint, frame.dst_endpoint) >= ENDPOINT_MAXIMUM
