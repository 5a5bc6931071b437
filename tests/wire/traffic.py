"""Small conversations of any dialect, built with the codec, and real ones with swapped senders."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from mxwire.frames import FrameBatch
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import Frame, Medium, Pull, PullReply

from .support import dialect_of, frames_of, read_capture

A, B, C, D = (bytes.fromhex(f"0200000000{last:02x}") for last in (0x0A, 0x0B, 0x0C, 0x0D))


def medium(dialect: Dialect, length: int, size: int, source: bytes = A, destination: bytes = B) -> list[Frame]:
    """A message in fragments of ``size`` bytes; a pipeline where the dialect has one."""
    common: dict[str, Any] = {"dst_endpoint": 1, "src_endpoint": 2, "lib_seqnum": 3, "lib_piggyack": 4}
    return [
        Medium(
            src_mac=source,
            dst_mac=destination,
            **common,
            length=length,
            match_a=5,
            match_b=6,
            session=7,
            frag_length=min(size, length - start),
            frag_seqnum=number,
            frag_pipeline=size.bit_length() - 1,
            data=bytes(min(size, length - start)),
        )
        for number, start in enumerate(range(0, length, size))
    ]


def transfer(dialect: Dialect, length: int, owner: bytes = A, puller: bytes = B) -> list[Frame]:
    """A large message, pulled block by block and answered frame by frame."""
    frames: list[Frame] = []
    for block in range(0, length, dialect.block_length):
        frames.append(
            Pull(
                src_mac=puller,
                dst_mac=owner,
                dst_endpoint=1,
                src_endpoint=2,
                session=3,
                total_length=length,
                pulled_rdma_id=0,
                pulled_rdma_seqnum=23,
                pulled_rdma_offset=0,
                src_pull_handle=0x23,
                src_magic=0x21071980 ^ 2,
                first_frame_offset=0,
                block_length=min(dialect.block_length, length - block),
                frame_index=block // dialect.reply_payload,
            )
        )
        for start in range(block, min(block + dialect.block_length, length), dialect.reply_payload):
            size = min(dialect.reply_payload, length - start)
            frames.append(
                PullReply(
                    src_mac=owner,
                    dst_mac=puller,
                    frame_seqnum=start // dialect.reply_payload % 256,
                    frame_length=size,
                    msg_offset=start,
                    dst_pull_handle=0x23,
                    dst_magic=0x21071980 ^ 2,
                    data=bytes(size),
                )
            )
    return frames


def on_the_wire(dialect: Dialect, frames: list[Frame], *, swapped: bool = False) -> list[bytes]:
    return [codec_of(dialect, swapped=swapped).build(frame) for frame in frames]


@cache
def with_swapped(capture: str, senders: tuple[bytes, ...]) -> FrameBatch:
    """A real capture as if some of its hosts had the endian option off; cut frames stay cut."""
    batch = read_capture(capture)
    network, swapped = (codec_of(dialect_of(capture), swapped=order) for order in (False, True))
    frames = frames_of(batch)
    for index, raw in enumerate(frames):
        if raw[6:12] in senders:
            built = swapped.build(network.parse(raw, int(batch.wire_length[index])))
            frames[index] = built[: len(raw)]
    made = FrameBatch.from_frames(frames, batch.timestamp_ns.tolist())
    return dataclasses.replace(made, wire_length=batch.wire_length)
