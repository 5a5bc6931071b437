"""Chapters 17 to 19: truncation and cancel, close and restart, local traffic."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, of_real_hosts, on_wire

_INVISIBLE = "local, nothing on the wire"
_CLOSING = "closing is not on the wire"

RULES: Final = (
    *chapter(
        "Truncation, cancel, vectors",
        inside(
            "R-MSC-01",
            "fact",
            "A receive that is too short is cut; only of large messages the sender is told.",
            "buffers are not on the wire",
        ),
        inside("R-MSC-02", "fact", "Unmatched receives and unanswered connects can be cancelled.", _INVISIBLE),
        inside("R-MSC-03", "fact", "Vectors are invisible.", _INVISIBLE),
    ),
    *chapter(
        "Close, disconnect, restart",
        inside("R-CLS-01", "fact", "There is no close or disconnect packet.", _CLOSING),
        inside("R-CLS-02", "fact", "Closing drops everything unfinished; packets are nacked from then on.", _CLOSING),
        inside("R-CLS-03", "fact", "Disconnect forgets the partner completely.", _INVISIBLE),
        inside(
            "R-CLS-04",
            "fact",
            "A restart is noticed by a CONNECT with another session, or suspected by nacks.",
            "what a partner suspects is not on the wire",
        ),
        inside(
            "R-CLS-05", "fact", "What a full reset of a partner does.", "what a partner has stored is not on the wire"
        ),
        of_real_hosts("R-CLS-06", "fact", "Waking an application up is local.", "the engine never blocks anybody"),
        inside(
            "R-CLS-07",
            "SHOULD",
            "After a restart the surviving side waits for the other one's CONNECT.",
            "when a host notices a restart is not on the wire",
        ),
        inside(
            "R-CLS-08",
            "fact",
            "A pull goes on after its endpoint was closed, until the time limit.",
            _CLOSING,
        ),
    ),
    *chapter(
        "Never on the wire",
        on_wire("R-LOC-01", "MUST", "Messages of an endpoint to itself never reach the wire."),
        on_wire("R-LOC-02", "SHOULD", "Messages between endpoints of one host never reach it either."),
        inside(
            "R-LOC-03",
            "fact",
            "Each interface is a peer of its own.",
            "which interfaces belong to one host is not on the wire",
        ),
    ),
)
