"""The rules themselves, a file for each group of chapters of the specification; importing this registers them all."""

from __future__ import annotations

from mxwire.rules.chapters import (
    acknowledging,
    connecting,
    discovery,
    encapsulation,
    endpoints,
    nacks,
    names,
    numbering,
    pulling,
    rendezvous,
    retransmission,
    sending,
)

__all__ = [
    "acknowledging",
    "connecting",
    "discovery",
    "encapsulation",
    "endpoints",
    "nacks",
    "names",
    "numbering",
    "pulling",
    "rendezvous",
    "retransmission",
    "sending",
]
