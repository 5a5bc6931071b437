"""Chapters 13 to 16: rendezvous, pull, notify, nacks."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, on_wire, permits

_DROP = "what a receiver does with a packet that it does not answer is not on the wire"
_COMPLETION = "what an application is told is not on the wire"

RULES: Final = (
    *chapter(
        "Rendezvous",
        on_wire("R-RDV-01", "SHOULD", "A RNDV names a region and its use counter: 23 first, one more each time."),
        on_wire("R-RDV-02", "MUST", "The offset of the RNDV is copied into every PULL."),
        inside(
            "R-RDV-03",
            "fact",
            "A RNDV is acked when matched or recorded, not when pulled.",
            "acks may come at any time after that",
        ),
        on_wire("R-RDV-04", "MUST", "Nothing to be pulled: no PULL, only a NOTIFY."),
        inside("R-RDV-05", "fact", "At most 128 RNDV of an endpoint wait for their NOTIFY.", "a local limit"),
    ),
    *chapter(
        "Pull",
        on_wire("R-PUL-01", "MUST", "Blocks are cut by P, B and the offset; each PULL asks for a whole one."),
        on_wire("R-PUL-02", "SHOULD", "Up to 4 blocks are outstanding, counted from the oldest incomplete one."),
        on_wire("R-PUL-03", "SHOULD", "Magic from the endpoint; a handle stands for one transfer."),
        on_wire("R-PUL-04", "MUST", "Region, counter and offset as in the RNDV, which is pulled at most once."),
        inside("R-PUL-05", "fact", "Which replies are accepted, in six tests.", _DROP),
        inside("R-PUL-06", "fact", "Each accepted reply re-arms the timer.", "acceptance is not on the wire"),
        on_wire("R-PUL-07", "SHOULD", "A later block complete: older ones are requested again, once."),
        on_wire("R-PUL-08", "SHOULD", "After 1000 ms all incomplete blocks are requested again."),
        on_wire("R-PUL-09", "SHOULD", "A pull is given up after 1000 resend delays."),
        on_wire("R-PUL-10", "MUST", "The handle dies with the last frame: no PULL after the NOTIFY."),
        on_wire("R-PUL-11", "MUST", "Nothing is pulled of an empty message."),
        on_wire("R-PUL-12", "MUST", "Each valid PULL is answered at once and once, in order."),
        on_wire("R-PUL-13", "MUST", "Number, length, offset and data of each reply follow from its PULL."),
        on_wire("R-PUL-14", "MUST", "PULLs are refused for endpoint, session, region; not served then."),
        permits("R-PUL-15", "fact", "total_length, counter and source endpoint of a PULL are not checked."),
    ),
    *chapter(
        "Notify",
        on_wire("R-NOT-01", "MUST", "One NOTIFY ends each large message: bytes pulled or 0, region and counter."),
        inside("R-NOT-02", "fact", "A NOTIFY completes the send with its region and counter.", _COMPLETION),
        inside("R-NOT-03", "fact", "A send whose RNDV is not acked yet stays open.", _COMPLETION),
    ),
    *chapter(
        "Nacks",
        on_wire("R-NAK-01", "MUST", "Nothing is nacked but numbered packets, CONNECTs and PULLs."),
        on_wire("R-NAK-02", "MUST", "One nack for each refused packet, to the host that its index names."),
        on_wire("R-NAK-03", "SHOULD", "The fields of a nack are copies of the refused packet's."),
        inside("R-NAK-04", "fact", "Nacks to closed endpoints and from strangers are ignored.", _DROP),
        inside("R-NAK-05", "fact", "A nack of an unacked number completes that request.", _COMPLETION),
        inside("R-NAK-06", "fact", "Any other nack completes the oldest pending connect.", _COMPLETION),
        on_wire("R-NAK-07", "MUST", "NACK_LIB has type 1, 2 or 3."),
        inside("R-NAK-08", "fact", "A nack of a NOTIFY fails the large receive.", _COMPLETION),
        on_wire("R-NAK-09", "MUST", "NACK_MCP has type 1, 2, 3 or 4; the pull then ends with a NOTIFY of 0."),
        inside(
            "R-NAK-10", "fact", "A nack does not reset the partner.", "what a partner has stored is not on the wire"
        ),
    ),
)
