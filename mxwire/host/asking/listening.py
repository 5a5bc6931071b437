"""Listening to the frames of a live host that are no messages: names, connects, refusals, announcements."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.host.core import Core
from mxwire.host.watcher import Watcher
from mxwire.protocol import Peer
from mxwire.wire.codec import TYPE_OFFSET, Malformed, codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.packets import Frame

_TYPES: Final = np.zeros(256, np.bool_)
_TYPES[
    [
        PacketType.RAW,
        PacketType.HOST_QUERY,
        PacketType.HOST_REPLY,
        PacketType.CONNECT,
        PacketType.NACK_LIB,
        PacketType.NACK_MCP,
    ]
] = True
"""The types that are listened to, which are alike in all dialects."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A frame that has passed our interface."""

    frame: Frame
    time_ns: int
    """When it arrived, by the kernel, or when we sent it; nanoseconds since 1970."""
    sent: bool
    """Whether we have sent it."""


class Listener(Watcher):
    """Tells ``tell`` of such frames, and ``met`` of the addresses of all that come, while the core is turned."""

    def __init__(self, core: Core, tell: Callable[[Heard], None], met: Callable[[bytes], None] | None = None) -> None:
        self._tell = tell
        self._met = met
        self._codec = codec_of(MXOE)
        super().__init__(core)

    def _watch(self, batch: FrameBatch, sent: bool) -> None:
        now = time.time_ns()
        if self._met is not None and not sent:
            for start in batch.offset.tolist():
                self._met(batch.buffer[start + SOURCE.start : start + SOURCE.stop].tobytes())
        long_enough = np.flatnonzero(batch.length > TYPE_OFFSET)
        types = batch.buffer[batch.offset[long_enough] + TYPE_OFFSET]
        for place in long_enough[_TYPES[types]].tolist():
            frame = self._codec.parse(batch.frame(place))
            if not isinstance(frame, Malformed):
                self._tell(Heard(frame, now if sent else int(batch.timestamp_ns[place]), sent))


def is_other(peer: Peer) -> bool:
    """Whether a peer is not one of our own interfaces."""
    return peer.own is None
