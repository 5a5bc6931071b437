"""The functions that judge, one module per topic of the specification; importing this package registers them all."""

from __future__ import annotations

from mxwire.rules.chapters import (  # noqa: F401 - importing them registers their rules
    acks,
    connects,
    discovery,
    encapsulation,
    endpoints,
    host_names,
    nacks,
    numbers,
    pulls,
    rendezvous,
    retransmission,
    sends,
)
