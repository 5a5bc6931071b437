"""Frames that ask a host something which its protocol stack answers without any application."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mxwire.protocol import Peer
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import HostQuery, NackMcp, Pull
from mxwire.wire.probes import NOBODY

_MAGIC: Final = 0x6D787700 | (0x80 ^ NOBODY)
"""Not that of any real host, so that nobody takes the question for one of theirs who reads a capture; but its low byte
means, as in theirs, an endpoint that we do not have (R-PUL-03, R-NAK-09)."""
_PADDED: Final = 1 << 8
"""The bit of the magic that tells answers to long questions from those to short ones."""


class _Handle(Enum):
    """What stands where a dialect has a PULL's handle; each is a legal value of what the other dialect has there."""

    OMX = 1
    MXOE = 2


def host_query(own: bytes, peer: Peer, magic: int) -> bytes:
    """Ask a peer for its name, with a magic of our choice, which the reply repeats (R-HOST-06)."""
    return codec_of(MXOE).build(
        HostQuery(dst_mac=peer.address, src_mac=own, src_dst_peer_index=peer.index, magic=magic)
    )


def dialect_question(own: bytes, peer: Peer, length: int = 0) -> bytes:
    """A PULL from an endpoint that no host has, and which any host so refuses (R-EP-01, R-PUL-14).

    The refusal repeats the PULL's handle. As the dialects have it in different places, and other values stand there
    (wire format, section 6.9), it tells which dialect the host speaks. The frame is padded to ``length`` bytes. It is
    only answered when the peer has told our index.
    """
    magic = _MAGIC ^ (_PADDED if length else 0)
    long = codec_of(omx()).build(_pull(own, peer, _Handle.OMX, magic))
    short = codec_of(MXOE).build(_pull(own, peer, _Handle.MXOE, magic))
    fields = codec_of(MXOE).layout("pull").by_name
    # What omx has here is the use counter of the region, padding and an offset, none of which is looked at.
    start, end = fields["src_pull_handle"].offset, fields["first_frame_offset"].offset
    return (long[:start] + short[start:end] + long[end:]).ljust(length, b"\0")


def _pull(own: bytes, peer: Peer, handle: _Handle, magic: int) -> Pull:
    return Pull(
        dst_mac=peer.address,
        src_mac=own,
        dst_src_peer_index=peer.index_for(0),
        dst_endpoint=NOBODY,
        src_endpoint=NOBODY,
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
    """``mxoe`` or ``omx``, and whether the question was padded, if a refusal answers one of ours."""
    if frame.src_magic not in (_MAGIC, _MAGIC ^ _PADDED):
        return None
    dialect = {_Handle.OMX.value: "omx", _Handle.MXOE.value: "mxoe"}.get(frame.src_pull_handle)
    return None if dialect is None else (dialect, frame.src_magic != _MAGIC)
