"""The traces of each mutant of the engine (``tests/mutants.py``) on the wire, and the findings of ``mxwire verify``.

``tests/analysis/test_mutants_found.py`` runs each mutant once, captures it, verifies the capture and prints the table;
``docs/rules.md`` has it too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """A run whose capture shows the mutant."""

    rules: frozenset[str]
    """The rules found broken."""
    seed: int
    """Of the scenario."""
    at: int | None = None
    """The host that the capture is taken on; None: all frames as they are sent (``mxwire simulate --pcap``)."""
    from_start: bool = False
    """Only ``mxwire verify --from-start`` finds it."""


@dataclass(frozen=True)
class Unseen:
    """Why no capture shows it."""

    why: str
    seed: int = 0
    """Of a scenario in which the simulator notices it."""


def _found(*rules: str, seed: int, at: int | None = None, from_start: bool = False) -> Found:
    return Found(frozenset(rules), seed, at, from_start)


_MEMORY = "every frame is right; only what the receiver writes into its memory is wrong"
_ORDER = "which receive gets a message is not on the wire"
_SILENT = "nothing wrong is sent, something is left out: "

SEEN: dict[str, Found | Unseen] = {
    "pipeline ignored": Unseen(_MEMORY),
    "index echo in HOST_REPLY": _found("R-HOST-06", seed=33, at=1),
    "libacks carry the last number": _found("R-ACK-01", seed=11, at=0),
    "piggybacks carry the last number": _found("R-ACK-01", seed=7),
    "wrong pipeline value": _found("W-7", seed=26),
    "status numbers not those of MX": _found("R-CON-04", "R-CON-08", seed=13, at=1),
    "libacks without counter": _found("R-ACK-06", seed=20, at=1),
    "session bits dropped": _found("R-SEQ-03", seed=0, at=1),
    "frame numbers modulo 256 confused by the puller": _found("R-NOT-01", "R-PUL-02", seed=102, at=0),
    "frame numbers modulo 128 by the replier": _found("R-PUL-13", seed=25, at=0),
    "duplicate NOTIFY completes another send": _found("R-RDV-01", seed=23),
    "blocks not retired": Unseen(_SILENT + "blocks that are not asked for may still be, once their puller has time", 1),
    "stale start number in the connect reply": _found("R-SEQ-03", seed=0, at=1),
    "reverse index per host, not per interface": _found("W-5", seed=31, at=0),
    "nack type shifted": _found("R-NAK-07", seed=20, at=0),
    "stale replies match a new pull": _found("R-PUL-03", seed=31),
    "region offset not served": _found("R-PUL-13", seed=12),
    "RNDV consumed by the handler, sender left waiting": Unseen(_SILENT + "an application may still take the message"),
    "wrong length for a consumed RNDV": _found("R-NOT-01", seed=8, at=0),
    "truncated mediums written beyond the buffer": Unseen(_MEMORY),
    "nothing to pull, and no NOTIFY": Unseen(_SILENT + "an application may still take the message", 1),
    "nacks do not end connects": Unseen("a request that is repeated after its nack: the nack may have been lost", 34),
    "duplicates provoke no ack": Unseen(_SILENT + "the ack may have been lost, or its library sleeps", 4),
    "the newest message again": _found("R-ACK-01", seed=37, at=0),
    "incomplete mediums acked": _found("R-ACK-01", seed=9, at=0, from_start=True),
    "repeated fragments counted": _found("R-ACK-01", seed=17, at=0, from_start=True),
    "mediums never retransmitted": _found("R-RTX-02", seed=0),
    "no PULL again at the timer": Unseen(_SILENT + "a PULL may have been sent again, and lost before it was seen"),
    "sessions not checked": _found("R-PUL-14", seed=13, at=0),
    "early packets outlive a reset": _found("R-NOT-01", "R-PUL-04", seed=11, at=0),
    "unexpected messages outlive a reset": _found("R-NOT-01", "R-PUL-04", seed=99, at=0),
    "large sends complete without NOTIFY": Unseen("when a send completes for its application is not on the wire"),
    "abandoned after two retransmissions": Unseen("how often a host tries is its own choice (R-RTX-03)", 4),
    "receives tried in no order": Unseen(_ORDER, 9),
    "probe and receive take the newest": Unseen(_ORDER),
    "pieces of a vector begin with the first bytes": Unseen("which bytes a message should have is not on the wire"),
    "regions never given back": Unseen("which free region a message gets is its sender's choice"),
    "a truncated message to another process is a success": Unseen(
        "a message to a process of the same host is not on the wire"
    ),
}
"""By the name of the mutant."""
