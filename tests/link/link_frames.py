"""Frames for the tests of links."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.ethernet import BROADCAST, ETHERTYPE_MXOE
from mxwire.frames import FrameBatch

STRANGER = bytes.fromhex("0200deadbeef")


def frame(
    to: bytes, sender: bytes = STRANGER, *, ethertype: int = ETHERTYPE_MXOE, payload: bytes = b"\0" * 46
) -> bytes:
    return to + sender + ethertype.to_bytes(2, "big") + payload


def tagged(to: bytes, sender: bytes = STRANGER, *, vlan: int = 5, payload: bytes = b"\0" * 46) -> bytes:
    return to + sender + b"\x81\x00" + vlan.to_bytes(2, "big") + ETHERTYPE_MXOE.to_bytes(2, "big") + payload


def numbered(to: bytes, count: int, length: int = 60, sender: bytes = STRANGER, first: int = 0) -> list[bytes]:
    """Frames of ``length`` bytes with their number and a pattern that depends on it."""
    return [
        frame(to, sender, payload=number.to_bytes(4, "big") + bytes([number % 251]) * (length - 18))
        for number in range(first, first + count)
    ]


def batch(frames: Iterable[bytes]) -> FrameBatch:
    return FrameBatch.from_frames(frames)


def contents(received: FrameBatch) -> list[bytes]:
    return [received.frame(index) for index in range(len(received))]


__all__ = ["BROADCAST", "STRANGER", "batch", "contents", "frame", "numbered", "tagged"]
