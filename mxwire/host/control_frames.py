"""Control frames: queries that a host answers without any application, and an observer of all frames but messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.host.core import Core, FrameObserver
from mxwire.protocol import Peer
from mxwire.protocol.name_search import query
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import Frame, NackMcp, Pull
from mxwire.wire.probes import NO_ENDPOINT

_MAGIC: Final = 0x6D787700 | (0x80 ^ NO_ENDPOINT)
"""Differs from the magic of every real host, so that these frames are recognisable in a capture; its low byte
names, as that of a real host, an endpoint that this host does not have (R-PUL-03, R-NAK-09)."""
_PADDED: Final = 1 << 8
"""Bit of the magic that marks padded queries, and thereby the answers to them."""


class _Handle(Enum):
    """Values at the two places of a PULL's handle, each valid for the other dialect's field in that place."""

    OMX = 1
    MXOE = 2


def host_query(own: bytes, peer: Peer, magic: int) -> bytes:
    """Build a host query with a ``magic``, which the reply repeats (R-HOST-06)."""
    return codec_of(MXOE).build(query(own, peer.address, peer.index, magic))


def dialect_query(own: bytes, peer: Peer, length: int = 0) -> bytes:
    """Build a PULL from an endpoint that no host has, which every host therefore refuses (R-EP-01, R-PUL-14).

    The refusal repeats the PULL's handle. The dialects have it in different places (wire format, section 6.9), and the
    frame has a different value in each, so the refusal shows the dialect of the host. The frame is padded to ``length``
    bytes. A peer answers it only once its index for this host is known.
    """
    magic = _MAGIC ^ (_PADDED if length else 0)
    long = codec_of(omx()).build(_pull(own, peer, _Handle.OMX, magic))
    short = codec_of(MXOE).build(_pull(own, peer, _Handle.MXOE, magic))
    fields = codec_of(MXOE).layout("pull").by_name
    # omx has the use counter of the region, padding and an offset here; a refusing host reads none of them.
    start, end = fields["src_pull_handle"].offset, fields["first_frame_offset"].offset
    return (long[:start] + short[start:end] + long[end:]).ljust(length, b"\0")


def _pull(own: bytes, peer: Peer, handle: _Handle, magic: int) -> Pull:
    return Pull(
        dst_mac=peer.address,
        src_mac=own,
        dst_src_peer_index=peer.index_for(0),
        dst_endpoint=NO_ENDPOINT,
        src_endpoint=NO_ENDPOINT,
        session=NO_SESSION,
        total_length=1,
        pulled_rdma_id=0,
        pulled_rdma_seqnum=0,
        pulled_rdma_offset=0,
        src_pull_handle=handle.value,
        src_magic=magic,
        first_frame_offset=0,
        block_length=1,
        frame_index=0,
    )


def dialect_answer(frame: NackMcp) -> tuple[str, bool] | None:
    """The family of the dialect, and True if the query was padded; None if the refusal does not answer a dialect
    query."""
    if frame.src_magic not in (_MAGIC, _MAGIC ^ _PADDED):
        return None
    dialect = {_Handle.OMX.value: "omx", _Handle.MXOE.value: "mxoe"}.get(frame.src_pull_handle)
    return None if dialect is None else (dialect, frame.src_magic != _MAGIC)


_OBSERVED: Final = np.zeros(256, np.bool_)
_OBSERVED[
    [
        PacketType.RAW,
        PacketType.HOST_QUERY,
        PacketType.HOST_REPLY,
        PacketType.CONNECT,
        PacketType.NACK_LIB,
        PacketType.NACK_MCP,
    ]
] = True
"""Observed packet types; their layouts are the same in all dialects."""


@dataclass(frozen=True, slots=True)
class ObservedFrame:
    """A control frame that has passed an interface of this host."""

    frame: Frame
    time_ns: int
    """Time of receipt by the kernel, or time of transmission, in nanoseconds since 1970."""
    sent: bool
    """True if this host has sent it."""


class ControlFrameObserver(FrameObserver):
    """Calls ``observe`` with each control frame, and ``met`` with the source address of each received frame. ``clock``
    returns the time in ns since 1970, for frames that are sent."""

    def __init__(
        self,
        core: Core,
        observe: Callable[[ObservedFrame], None],
        met: Callable[[bytes], None] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._clock = clock
        self._pass_on = observe
        self._met = met
        self._codec = codec_of(MXOE)
        super().__init__(core, self._select)

    def _select(self, batch: FrameBatch, sent: bool) -> None:
        now = self._clock()
        if self._met is not None and not sent:
            for start in batch.offset.tolist():
                self._met(batch.buffer[start + SOURCE.start : start + SOURCE.stop].tobytes())
        long_enough = np.flatnonzero(batch.length > TYPE_OFFSET)
        types = batch.buffer[batch.offset[long_enough] + TYPE_OFFSET]
        for place in long_enough[_OBSERVED[types]].tolist():
            frame = self._codec.parse(batch.frame(place))
            if not isinstance(frame, Malformed):
                self._pass_on(ObservedFrame(frame, now if sent else int(batch.timestamp_ns[place]), sent))
