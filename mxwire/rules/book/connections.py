"""Chapters 5 and 6: connect, sequence numbers."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, on_wire, permits

_STATE = "what a partner has stored is not on the wire; what follows from it is judged by other rules"

RULES: Final = (
    *chapter(
        "Connect",
        on_wire("R-CON-01", "MUST", "A request has the own session, the key, the next connect number and rx_next."),
        on_wire("R-CON-02", "SHOULD", "A request without answer is repeated every resend delay, with the same number."),
        inside(
            "R-CON-03",
            "fact",
            "A reply counts if session and connect number are those of a pending connect.",
            _STATE,
        ),
        on_wire("R-CON-04", "MUST", "A reply has status 0 or 11; others are ignored."),
        inside("R-CON-05", "fact", "What a reply of status 0 does to the requester's state.", _STATE),
        permits("R-CON-06", "MAY", "Several connects to a partner may be pending."),
        on_wire("R-CON-07", "SHOULD", "An endpoint connects to itself without a packet."),
        on_wire("R-CON-08", "MUST", "Each request gets one reply: copies, own session, rx_next, 0 or 11 by key."),
        on_wire("R-CON-09", "MUST", "Nothing but the key is checked in a request."),
        inside("R-CON-10", "fact", "What a request does to the target's state.", _STATE),
        permits("R-CON-11", "MAY", "After a request the target may send without connecting itself."),
        on_wire("R-CON-12", "SHOULD", "Connect in your own direction before sending; refuse session 0xFFFFFFFF."),
        inside(
            "R-CON-13",
            "fact",
            "Traffic in one direction needs one handshake, but large messages then stall.",
            "it follows from other rules, which are judged",
        ),
        inside("R-CON-14", "fact", "Crossing requests end with both sides connected.", _STATE),
        inside(
            "R-CON-15",
            "fact",
            "A NACK_LIB of number 0 ends the oldest pending connect.",
            "which connect an application sees fail is not on the wire",
        ),
    ),
    *chapter(
        "Sequence numbers",
        on_wire("R-SEQ-01", "MUST", "14 bits of number and 2 of session number; 0 follows 0x3FFF."),
        on_wire("R-SEQ-02", "MUST", "Differences are taken modulo 2^14."),
        on_wire("R-SEQ-03", "MUST", "The session number is the receiver's choice, and kept in every number."),
        on_wire("R-SEQ-04", "MUST", "TINY, SMALL, MEDIUM, RNDV and NOTIFY share one sequence in each direction."),
        on_wire("R-SEQ-05", "MUST", "The first number is the one that the other side asked for."),
        on_wire("R-SEQ-06", "MUST", "At most 8191 numbers are outstanding."),
        inside(
            "R-SEQ-07",
            "fact",
            "Packets with another session number, in number or piggyback, are dropped silently.",
            "a drop without an answer is not on the wire",
        ),
    ),
)
