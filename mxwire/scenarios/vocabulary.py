"""The words of the language: packets and fields from the formats, and the calls of an application."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Final

from mxwire.protocol import Counter, EventKind
from mxwire.scenarios.errors import suggestion
from mxwire.texts import meanings
from mxwire.wire.packets import FRAME_CLASSES, Frame, Raw

PACKETS: Final[dict[str, type[Frame]]] = {each.layout_name.upper(): each for each in FRAME_CLASSES}
"""Packets by the names of their layouts."""
FRAME: Final = "FRAME"
"""A frame of any type: its Ethernet header and type, followed by ``opaque`` bytes."""
ALIASES: Final = {"CONNECT": "CONNECT_REQUEST", "ANNOUNCEMENT": "RAW_OMXOED", "LIBACK": "TRUC"}
"""Alternative names of packets."""

COMPUTED: Final[dict[str, dict[str, str]]] = {"match": {"match_a": "bits 63 to 32", "match_b": "bits 31 to 0"}}
"""Fields that combine two fields of the layout."""
OWN_FIELDS: Final = {"PULL_REPLY": {"frame": "number of the frame in the transfer, which determines the other fields"}}
"""Fields of sent frames that are not on the wire."""

FLAGS: Final = {"synchronous", "consume"}
VERBS: Final[dict[str, dict[str, str]]] = {
    "open": {"endpoint": "n", "key": "n", "context_bits": "n", "context_shift": "n", "session": "n", "process": "n"},
    "connect": {"endpoint": "n", "local": "n", "key": "n", "resend_maximum": "n"},
    "send": {**dict.fromkeys(("length", "match", "pieces", "resend_maximum", "seed", "local"), "n"), "data": "b"},
    "receive": {"length": "n", "match": "n", "mask": "n", "pieces": "n"},
    "probe": {"match": "n", "mask": "n"},
    "disconnect": {"local": "n"},
    **{each: {} for each in ("cancel", "connect_self", "close", "reopen", "kill", "stop", "go")},
    **{each: {} for each in ("consume", "keep", "forget_names", "add_peer")},
}
"""Calls of the application, with their parameters."""
VERBS_OF_A_TARGET: Final = {"cancel"}

COUNTERS: Final = {each.name.lower(): each for each in Counter}
EVENTS: Final = {each.name.lower(): each for each in EventKind}
RESULTS: Final = meanings(__file__, "words.md", "Results")
"""Values of a call's result, with their meanings."""
PEER: Final = meanings(__file__, "words.md", "Peer")


@cache
def fields_of(packet: str) -> dict[str, str]:
    """Return the names of a packet's fields with their attributes, including aliases."""
    fields: dict[str, str] = {}
    for each in dataclasses.fields(class_of(packet)):
        fields[each.name] = each.name
        if each.name.startswith("liback_"):
            fields.setdefault(each.name.removeprefix("liback_"), each.name)
    if packet == "TRUC":
        # A receiver uses the liback's fields; the packet's own length and session keep their own names.
        fields |= {"acknum": "liback_acknum", "lib_seqnum": "liback_lib_seqnum"}
    return fields


def attribute_of(packet: str, field: str) -> str:
    """Return the attribute for the name or alias of a field; other names stay as they are."""
    return fields_of(packet).get(field, field)


def class_of(packet: str) -> type[Frame]:
    """Return the frame class of a packet."""
    return Raw if packet == FRAME else PACKETS[packet]


@cache
def is_bytes(packet: str, field: str) -> bool:
    """Return whether a field holds bytes rather than a number."""
    attribute = attribute_of(packet, field)
    return next(
        (each.type == "bytes" for each in dataclasses.fields(class_of(packet)) if each.name == attribute), False
    )


def packet_named(word: str) -> str | None:
    """Return the packet for a name or an alias; None if there is none."""
    word = ALIASES.get(word, word)
    return word if word in PACKETS or word == FRAME else None


def unknown_packet(word: str) -> str:
    """Return the error for an unknown packet."""
    return f"unknown packet {word}{suggestion(word, [*PACKETS, *ALIASES, FRAME])}"


def unknown_field(packet: str, word: str) -> str:
    """Return the error for an unknown field."""
    known = [*fields_of(packet), *(["match"] if "match_a" in fields_of(packet) else []), *OWN_FIELDS.get(packet, ())]
    return f"{packet} has no field {word}{suggestion(word, known)}"


def has_field(packet: str, word: str) -> bool:
    """Return whether a field of a packet can be compared."""
    return word in fields_of(packet) or (word in COMPUTED and "match_a" in fields_of(packet))
