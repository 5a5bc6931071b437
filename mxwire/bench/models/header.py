"""The header that all models share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final

HEADER: Final = Struct("!BBHHHIIIIII")
PAYLOAD: Final = 4096
"""Maximum payload of a frame in bytes, unless a layer is made with another."""
SMALLEST_PAYLOAD: Final = 256
"""Minimum of that: libraries put short messages, requests and descriptors into one frame."""
LARGEST_PAYLOAD: Final = 65_535 - HEADER.size


class FrameKind(IntEnum):
    """The purpose of a frame."""

    REQUEST = 1
    REPLY = 2
    DATA = 3
    ACK = 4
    NACK = 5
    CREDIT = 6
    RENDEZVOUS = 7
    READY = 8
    DEPOSIT = 9
    NOTIFY = 10
    READ = 11
    MEET = 12


_KINDS: Final = {int(each): each for each in FrameKind}


class FrameFlag(IntFlag):
    """Properties of a frame."""

    NONE = 0
    FIRST = 1
    """The first frame of its message."""
    LAST = 2
    NOTIFIES = 4
    """The receiver's program is to be notified of the message."""


ONLY: Final = FrameFlag.FIRST | FrameFlag.LAST
"""Flags of a message in one frame."""


@dataclass(slots=True)
class ModelFrame:
    """A frame of a model. ``data`` is user memory or a buffer until the frame is packed."""

    kind: FrameKind
    flags: FrameFlag = FrameFlag.NONE
    source_port: int = 0
    target_port: int = 0
    sequence: int = 0
    ack: int = 0
    place: int = 0
    """Buffer, tag or handler."""
    offset: int = 0
    key: int = 0
    data: memoryview | bytes = b""
    on_packed: Callable[[], object] | None = None
    """Called once ``data`` have been read, so that user memory may change if no retransmission reads it again."""


def packed(model: int, frame: ModelFrame) -> bytes:
    """Return the header and the payload of a frame."""
    ports = frame.source_port, frame.target_port
    fields = frame.sequence, frame.ack, frame.place, frame.offset, len(frame.data), frame.key
    raw = b"".join((HEADER.pack(model, frame.kind, frame.flags, *ports, *fields), frame.data))
    if frame.on_packed is not None:
        frame.on_packed()
    return raw


def unpacked(raw: memoryview) -> tuple[int, ModelFrame] | None:
    """Return the model and the frame in ``raw``, which may end with padding; None if it is malformed."""
    if len(raw) < HEADER.size:
        return None
    model, kind, flags, source, target, sequence, ack, place, offset, length, key = HEADER.unpack_from(raw)
    data = raw[HEADER.size : HEADER.size + length]
    if kind not in _KINDS or flags & ~(ONLY | FrameFlag.NOTIFIES) or len(data) < length:
        return None
    fields = source, target, sequence, ack, place, offset, key, data
    return model, ModelFrame(_KINDS[kind], FrameFlag(flags), *fields)
