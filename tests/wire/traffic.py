"""Small conversations of any dialect, built with the codec, and real ones with swapped senders."""

from __future__ import annotations

import dataclasses
from functools import cache

from mxwire.frames import FrameBatch
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import Frame, Medium, Pull, PullReply
from tests.frames import A, B, make_frame

from .support import dialect_of, frames_of, read_capture

C, D = bytes.fromhex("02000000000c"), bytes.fromhex("02000000000d")


def medium(dialect: Dialect, length: int, size: int, source: bytes = A, destination: bytes = B) -> list[Frame]:
    """A message in fragments of ``size`` bytes; a pipeline where the dialect has one."""
    return [
        make_frame(
            Medium,
            src_mac=source,
            dst_mac=destination,
            length=length,
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
            make_frame(
                Pull,
                src_mac=puller,
                dst_mac=owner,
                total_length=length,
                block_length=min(dialect.block_length, length - block),
                frame_index=block // dialect.reply_payload,
            )
        )
        for start in range(block, min(block + dialect.block_length, length), dialect.reply_payload):
            size = min(dialect.reply_payload, length - start)
            frames.append(
                make_frame(
                    PullReply,
                    src_mac=owner,
                    dst_mac=puller,
                    frame_seqnum=start // dialect.reply_payload % 256,
                    msg_offset=start,
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
