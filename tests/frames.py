"""The kit of frames: a test names the fields that matter to it, and the others are those of a plain message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any, TypeVar

from mxwire.wire.packets import Frame

A, B = bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b")
QUERY_MAGIC = 0x13052008
PULL_MAGIC = 0x21071980
"""Before the number of an endpoint is added."""
_PLAIN: dict[str, Any] = {
    "dst_mac": B,
    "src_mac": A,
    "dst_endpoint": 2,
    "src_endpoint": 1,
    "session": 7,
    "src_session_id": 7,
    "src_dst_peer_index": 1,
    "target_recv_seqnum_start": 1,
    "lib_seqnum": 1,
    "lib_piggyack": 1,
    "pulled_rdma_seqnum": 23,
    "src_pull_handle": 0x23,
    "dst_pull_handle": 0x23,
    "src_magic": PULL_MAGIC ^ 1,
    "dst_magic": PULL_MAGIC ^ 1,
    "magic": QUERY_MAGIC,
    "hostname": b"node:0\0",
    "data": b"",
}
"""The first message from endpoint 1 of A to endpoint 2 of B; other fields are zero."""
_LENGTHS = ("length", "frag_length", "frame_length")

FrameT = TypeVar("FrameT", bound=Frame)


def make_frame(kind: type[FrameT], common: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> FrameT:
    """Return a frame with ``changes``, and with those fields of ``common`` that it has.

    Its lengths are those of its data unless they are given.
    """
    names = {each.name: each.default is MISSING for each in fields(kind)}
    made = {name: _PLAIN.get(name, 0) for name, required in names.items() if required}
    given = {name: value for name, value in common.items() if name in names} | changes
    carried = (made | given).get("data", given.get("hostname", _PLAIN["hostname"]))
    lengths = {name: len(carried) for name in _LENGTHS if names.get(name)}
    return kind(**made | lengths | given)
