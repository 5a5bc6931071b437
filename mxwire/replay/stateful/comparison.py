"""Comparison of a live frame with the recorded one, field by field, and the rules that require equality.

Not compared are fields that are undefined, free for the sender to choose (sessions, regions, handles, magics), or
dependent on time (acks); the rules check separately whether such values are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any, Final

from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)


class FieldRelation(Enum):
    """Relation between a field of a live frame and that of the recorded one."""

    SAME = auto()
    """Equal."""
    FREE = auto()
    """Chosen by its sender, dependent on time, or undefined."""
    INDEX = auto()
    """The peer index that the receiver assigned."""
    MINE = auto()
    """An endpoint of the played host, with its recorded number."""
    THEIRS = auto()
    """An endpoint of the live host, which may have another number."""
    SESSION = auto()
    """A session of the played host; "no session" stays so."""
    KEY = auto()
    """The key of an endpoint."""
    NUMBER = auto()
    """A sequence number of the played host."""
    CONTENT = auto()
    """Content chosen by the application."""


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """The relation required of a field, and the rule that requires it."""

    how: FieldRelation
    rule: str = ""


_FREE: Final = FieldRequirement(FieldRelation.FREE)
_CONTENT: Final = FieldRequirement(FieldRelation.CONTENT)
_ETHERNET: Final = {
    "dst_mac": _FREE,
    "src_mac": _FREE,
    "ethertype": _FREE,
    "ptype": FieldRequirement(FieldRelation.SAME, "W-6"),
}
_ENDPOINTS: Final = _ETHERNET | {
    "dst_src_peer_index": FieldRequirement(FieldRelation.INDEX, "R-HOST-05"),
    "dst_endpoint": FieldRequirement(FieldRelation.MINE, "W-6"),
    "src_endpoint": FieldRequirement(FieldRelation.THEIRS, "W-6"),
}
_NUMBERED: Final = _ENDPOINTS | {
    "lib_seqnum": _FREE,
    "lib_piggyack": _FREE,
    "session": FieldRequirement(FieldRelation.SESSION, "R-CON-12"),
}
_MESSAGE: Final = _NUMBERED | {
    "length": _CONTENT,
    "match_a": _CONTENT,
    "match_b": _CONTENT,
    "data": _CONTENT,
    "checksum": _FREE,
}
_CONNECT: Final = _ENDPOINTS | {
    "length": FieldRequirement(FieldRelation.SAME, "R-CON-01"),
    "lib_seqnum": FieldRequirement(FieldRelation.SAME, "R-CON-01"),
    "src_dst_peer_index": _FREE,
    "target_recv_seqnum_start": _FREE,
    "connect_seqnum": _FREE,
}

FIELDS: Final[Mapping[type[Frame], Mapping[str, FieldRequirement]]] = {
    ConnectRequest: _CONNECT
    | {
        "src_session_id": _FREE,
        "app_key": FieldRequirement(FieldRelation.KEY, ""),
        "is_reply": FieldRequirement(FieldRelation.SAME, "R-CON-01"),
    },
    ConnectReply: _CONNECT
    | {
        "src_session_id": FieldRequirement(FieldRelation.SESSION, "R-CON-08"),
        "target_session_id": _FREE,
        "is_reply": FieldRequirement(FieldRelation.SAME, "R-CON-08"),
        "connect_seqnum": FieldRequirement(FieldRelation.SAME, "R-CON-08"),
        "connect_status_code": FieldRequirement(FieldRelation.SAME, "R-CON-08"),
    },
    Tiny: _MESSAGE,
    Small: _MESSAGE,
    Medium: _MESSAGE
    | {
        "frag_length": FieldRequirement(FieldRelation.SAME, "R-SND-03"),
        "frag_seqnum": FieldRequirement(FieldRelation.SAME, "R-SND-03"),
        "frag_pipeline": FieldRequirement(FieldRelation.SAME, "R-MED-02"),
    },
    Rndv: _NUMBERED
    | {
        "length": FieldRequirement(FieldRelation.SAME, "R-RDV-01"),
        "match_a": _CONTENT,
        "match_b": _CONTENT,
        "checksum": _FREE,
        "msg_length": _CONTENT,
        "pulled_rdma_id": _FREE,
        "pulled_rdma_seqnum": _FREE,
        "pulled_rdma_offset": _FREE,
    },
    Pull: _ENDPOINTS
    | {
        "session": FieldRequirement(FieldRelation.SESSION, "R-CON-12"),
        "total_length": FieldRequirement(FieldRelation.SAME, "R-PUL-01"),
        "pulled_rdma_id": FieldRequirement(FieldRelation.SAME, "R-PUL-01"),
        "pulled_rdma_seqnum": FieldRequirement(FieldRelation.SAME, "R-PUL-01"),
        "pulled_rdma_offset": FieldRequirement(FieldRelation.SAME, "R-PUL-01"),
        "src_pull_handle": _FREE,
        "src_magic": _FREE,
        "first_frame_offset": FieldRequirement(FieldRelation.SAME, "R-PUL-02"),
        "block_length": FieldRequirement(FieldRelation.SAME, "R-PUL-02"),
        "frame_index": FieldRequirement(FieldRelation.SAME, "R-PUL-02"),
    },
    PullReply: _ETHERNET
    | {
        "frame_seqnum": FieldRequirement(FieldRelation.SAME, "R-PUL-13"),
        "frame_length": FieldRequirement(FieldRelation.SAME, "R-PUL-13"),
        "msg_offset": FieldRequirement(FieldRelation.SAME, "R-PUL-13"),
        "dst_pull_handle": FieldRequirement(FieldRelation.SAME, "R-PUL-12"),
        "dst_magic": FieldRequirement(FieldRelation.SAME, "R-PUL-12"),
        "data": _CONTENT,
    },
    Notify: _NUMBERED
    | {
        "total_length": FieldRequirement(FieldRelation.SAME, "R-NOT-01"),
        "pulled_rdma_id": FieldRequirement(FieldRelation.SAME, "R-NOT-01"),
        "pulled_rdma_seqnum": FieldRequirement(FieldRelation.SAME, "R-NOT-01"),
    },
    NackLib: _ENDPOINTS
    | {
        "nack_type": FieldRequirement(FieldRelation.SAME, "R-NAK-03"),
        "dst_src_peer_index_copy": FieldRequirement(FieldRelation.INDEX, "R-NAK-02"),
        "lib_seqnum": FieldRequirement(FieldRelation.NUMBER, "R-NAK-02"),
    },
    NackMcp: _ETHERNET
    | {
        "dst_src_peer_index": FieldRequirement(FieldRelation.INDEX, "R-HOST-05"),
        "src_endpoint": FieldRequirement(FieldRelation.MINE, "R-NAK-02"),
        "nack_type": FieldRequirement(FieldRelation.SAME, "R-NAK-03"),
        "src_pull_handle": FieldRequirement(FieldRelation.SAME, "R-NAK-02"),
        "src_magic": FieldRequirement(FieldRelation.SAME, "R-NAK-02"),
    },
    Truc: dict.fromkeys((each.name for each in fields(Truc)), _FREE),
}
"""Required relations by packet type and field."""

Meaning = Callable[[FieldRelation, int], Any]
"""Function from a relation and a recorded value to the value required now."""


def compare(live: Any, recorded: Any, cut: int, frame: int, meaning: Meaning) -> Iterator[ReplayFinding]:
    """Yield the differences between a live frame and a recorded one of the same type.

    ``cut`` is the number of bytes that the capture cut off the recorded frame, ``frame`` its number there.
    """
    name = type(recorded).__name__
    for field, wanted in FIELDS[type(recorded)].items():
        if wanted.how is FieldRelation.FREE:
            continue
        was, found = getattr(recorded, field), getattr(live, field)
        if field == "data" and cut:
            kept = max(0, len(was) - cut)
            was, found = was[:kept], found[:kept]
        if field == "data" and len(was) != len(found):
            # A truncated frame: the length field shows how many bytes there were.
            continue
        expected = meaning(wanted.how, was)
        if expected is None or found == expected:
            continue
        application = wanted.how in (FieldRelation.CONTENT, FieldRelation.KEY) or field == "connect_status_code"
        kind = Cause.APPLICATION if application else Cause.PROTOCOL
        yield ReplayFinding(kind, wanted.rule, f"{name}.{field}", frame, _text(field, expected), _text(field, found))


_HEXADECIMAL: Final = ("session", "key", "magic", "handle", "match", "lib_seqnum", "ethertype")


def _text(field: str, value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 16 else f"{value[:16].hex()}… ({len(value)} bytes)"
    return f"{value:#x}" if any(each in field for each in _HEXADECIMAL) else str(value)
