"""The functions that judge, one module per topic of the specification; importing this package registers them all."""

from __future__ import annotations

from mxwire.rules.chapters import (
    acks,
    connects,
    discovery,
    encapsulation,
    endpoints,
    nacks,
    names,
    numbers,
    pulls,
    rendezvous,
    retransmission,
    sends,
)

__all__ = [
    "acks",
    "connects",
    "discovery",
    "encapsulation",
    "endpoints",
    "nacks",
    "names",
    "numbers",
    "pulls",
    "rendezvous",
    "retransmission",
    "sends",
]
