"""The words of the language, from the formats: packets and their fields; and the calls of an application."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Final

from mxwire.protocol import Counter, EventKind
from mxwire.scenarios.errors import suggestion
from mxwire.wire.packets import FRAME_CLASSES, Frame, Raw

PACKETS: Final[dict[str, type[Frame]]] = {each.layout_name.upper(): each for each in FRAME_CLASSES}
"""Packets by the name of their layout."""
FRAME: Final = "FRAME"
"""A frame of any type: its head, and ``opaque`` bytes behind the type."""
ALIASES: Final = {"CONNECT": "CONNECT_REQUEST", "ANNOUNCEMENT": "RAW_OMXOED", "LIBACK": "TRUC"}
"""Other names of packets."""

COMPUTED: Final[dict[str, dict[str, str]]] = {
    "match": {"match_a": "bits 63 to 32", "match_b": "bits 31 to 0"},
}
"""Fields that stand for two."""
OWN_FIELDS: Final = {"PULL_REPLY": {"frame": "number of the frame in the transfer; all else follows from it"}}
"""Fields of frames that are sent which are not on the wire."""

FLAGS: Final = {"synchronous", "consume"}
VERBS: Final[dict[str, dict[str, str]]] = {
    "open": {"endpoint": "n", "key": "n", "context_bits": "n", "context_shift": "n", "session": "n"},
    "connect": {"endpoint": "n", "key": "n", "resend_maximum": "n"},
    "send": {"length": "n", "data": "b", "match": "n", "pieces": "n", "resend_maximum": "n", "seed": "n"},
    "receive": {"length": "n", "match": "n", "mask": "n", "pieces": "n"},
    "probe": {"match": "n", "mask": "n"},
    "cancel": {},
    "connect_self": {},
    "disconnect": {},
    "close": {},
    "reopen": {},
    "stop": {},
    "go": {},
    "consume": {},
    "keep": {},
    "forget_names": {},
    "add_peer": {},
}
"""What an application can be made to do: the calls, and what they take."""
VERBS_OF_A_TARGET: Final = {"cancel"}

COUNTERS: Final = {each.name.lower(): each for each in Counter}
EVENTS: Final = {each.name.lower(): each for each in EventKind}
RESULTS: Final = {
    "status": "how it ended",
    "done": "1 when it has ended",
    "transferred": "bytes that were transferred",
    "length": "bytes of the whole message",
    "match": "match information of the message",
    "data": "what is in the buffer, as far as bytes were transferred",
    "buffer": "the whole buffer",
    "found": "1 where a probe has found a message",
    "value": "what a call has returned",
    "session": "session id of an endpoint",
}
"""What can be asked of what a call has returned."""
PEER: Final = {"name": "host name that the host knows, empty if none", "index": "what the host was taught"}


@cache
def fields_of(packet: str) -> dict[str, str]:
    """The names of a packet's fields with the attributes that they are, aliases included."""
    found: dict[str, str] = {}
    for each in dataclasses.fields(class_of(packet)):
        found[each.name] = each.name
        if each.name.startswith("liback_"):
            found.setdefault(each.name.removeprefix("liback_"), each.name)
    if packet == "TRUC":
        # A receiver looks at the liback; the packet's own length and session are found under their own names.
        found |= {"acknum": "liback_acknum", "lib_seqnum": "liback_lib_seqnum"}
    return found


def class_of(packet: str) -> type[Frame]:
    """The class of a packet's frames."""
    return Raw if packet == FRAME else PACKETS[packet]


@cache
def is_bytes(packet: str, field: str) -> bool:
    """Whether a field holds bytes, and no number."""
    attribute = fields_of(packet).get(field, field)
    return next(
        (each.type == "bytes" for each in dataclasses.fields(class_of(packet)) if each.name == attribute), False
    )


def packet_named(word: str) -> str | None:
    """The packet that a word means."""
    word = ALIASES.get(word, word)
    return word if word in PACKETS or word == FRAME else None


def unknown_packet(word: str) -> str:
    """What to say of a word that is no packet."""
    return f"no packet is called {word}{suggestion(word, [*PACKETS, *ALIASES, FRAME])}"


def unknown_field(packet: str, word: str) -> str:
    """What to say of a word that is no field."""
    known = [*fields_of(packet), *(["match"] if "match_a" in fields_of(packet) else []), *OWN_FIELDS.get(packet, ())]
    return f"{packet} has no field {word}{suggestion(word, known)}"


def has_field(packet: str, word: str) -> bool:
    """Whether a word is a field of a packet that can be compared."""
    return word in fields_of(packet) or (word in COMPUTED and "match_a" in fields_of(packet))
