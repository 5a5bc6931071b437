"""Chapters 1 to 4: model, discovery, names, endpoints."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, on_wire, permits

_ORDER = "the order of work inside a host; the wire shows only its outcome"

RULES: Final = (
    *chapter(
        "Model",
        inside(
            "R-GEN-01",
            "MUST",
            "The library works only while the application is inside it; peers bear arbitrarily late acks.",
            "whether an application is inside its library is not on the wire",
        ),
        inside(
            "R-GEN-02",
            "fact",
            "A pass of the library: received events, completions, retransmissions, delayed sends, due acks.",
            _ORDER,
        ),
        inside(
            "R-GEN-03",
            "fact",
            "Time is counted in kernel ticks, formulas in ticks divide as integers.",
            "ticks of another host's clock are not on the wire; periods are judged with that tolerance",
        ),
    ),
    *chapter(
        "Peer discovery",
        inside(
            "R-DISC-01",
            "MUST",
            "A host talks only to addresses in its peer table, and no packet of the driver's adds one.",
            "what is in a peer table is not on the wire",
        ),
        on_wire("R-DISC-02", "SHOULD", "A daemon announces itself 8 times at 1000 ms, then every 180 s."),
        inside(
            "R-DISC-03",
            "SHOULD",
            "An unknown NIC id is added to the table without name, and a new series of 8 announcements begins.",
            "whether a daemon knew another one already is not on the wire",
        ),
        inside(
            "R-DISC-04",
            "SHOULD",
            "A known NIC id with another serial begins a new series; the own id is ignored.",
            "what a daemon remembers is not on the wire",
        ),
        inside(
            "R-DISC-05",
            "fact",
            "Only NIC id and serial of an announcement count; peers are never removed.",
            "what a daemon evaluates is not on the wire",
        ),
        on_wire("R-DISC-06", "MUST", "RAW frames have at most 1024 bytes; a receiver queues 33 of them."),
        inside(
            "R-DISC-07",
            "MUST",
            "Whoever wants to be found announces itself, or is entered by hand.",
            "tables that are filled by hand leave no trace",
        ),
    ),
    *chapter(
        "Host names",
        inside(
            "R-HOST-01",
            "SHOULD",
            "A peer without name is asked at once, on every interface.",
            "when a peer enters a table is not on the wire",
        ),
        on_wire("R-HOST-02", "SHOULD", "Nameless peers are asked again every 5 s."),
        on_wire("R-HOST-03", "SHOULD", "The magic begins with 0x13052008 and grows by 1 when names are forgotten."),
        on_wire("R-HOST-04", "SHOULD", "A query is answered once, if it is for this address and from a known peer."),
        inside(
            "R-HOST-05",
            "fact",
            "A query teaches the reverse index, not the querier's name.",
            "what a host has learnt shows in the indexes that it uses (W-5)",
        ),
        on_wire("R-HOST-06", "MUST", "A reply goes back with the query's magic and the interface's name."),
        inside(
            "R-HOST-07",
            "fact",
            "A reply with another magic is dropped; others set the name and teach the index, asked for or not.",
            "what a host has stored is not on the wire",
        ),
        on_wire("R-HOST-08", "MUST", "A name has 1 to 80 bytes, with NUL."),
        permits("R-HOST-09", "fact", "Names are no precondition of messages: a CONNECT alone teaches both indexes."),
    ),
    *chapter(
        "Endpoints",
        on_wire("R-EP-01", "MUST", "Endpoints beyond the host's limit get nack type 1, closed ones type 2."),
        on_wire("R-EP-02", "MUST", "A session id is new at each opening, and packets carry the destination's."),
        inside(
            "R-EP-03",
            "fact",
            "The generation field is never written nor read.",
            "undefined bytes are not judged",
        ),
        inside(
            "R-EP-04",
            "fact",
            "The key is compared during connect only.",
            "that it is compared nowhere else shows in nothing",
        ),
        inside(
            "R-EP-05",
            "fact",
            "An endpoint belongs to one interface.",
            "which interfaces belong to one host is not on the wire",
        ),
    ),
)
