"""Seeded captures of whole conversations: tiny messages back and forth, and large ones that are pulled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from mxwire.wire.byteorder import PULL_MAGIC_PREFIX
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, Notify, Pull, PullReply, Rndv, Tiny, Truc

HOSTS = tuple(bytes.fromhex(f"0060dd47{number:04x}") for number in range(2))
SESSIONS = 0x11111111, 0x22222222
KEY = 0x12345678
GAP_NS = 3_000
FRAMES_A_BATCH = 5_000
LARGE = 1 << 20
REPLY = MXOE.reply_payload
BLOCK = MXOE.block_length
FRAMES_A_BLOCK = MXOE.frames_per_block
CONTENT = bytes(range(256)) * (REPLY // 256)
MAGIC = (PULL_MAGIC_PREFIX << 8 | 0x80) ^ 2


def write_capture(path: Path, kind: str, frames: int) -> None:
    """Write a pcap file of ``tiny`` or ``large`` messages; equal arguments give equal files."""
    made = _frames(kind)
    now = 1_700_000_000 * 10**9
    with create_capture(path, format="pcap") as writer:
        for first in range(0, frames, FRAMES_A_BATCH):
            size = min(FRAMES_A_BATCH, frames - first)
            built = [build(frame, MXOE) for frame in islice(made, size)]
            times = [now + GAP_NS * place for place in range(first, first + size)]
            writer.write(FrameBatch.from_frames(built, times, first_number=first + 1))


def _frames(kind: str) -> Iterator[Frame]:
    yield from _connect()
    yield from _tiny() if kind == "tiny" else _large()


def _ends(sender: int) -> dict[str, Any]:
    return {
        "dst_mac": HOSTS[1 - sender],
        "src_mac": HOSTS[sender],
        "src_endpoint": 1 + sender,
        "dst_endpoint": 2 - sender,
        "dst_src_peer_index": 1,
    }


def _connect() -> Iterator[Frame]:
    common: dict[str, Any] = {"src_dst_peer_index": 1, "target_recv_seqnum_start": 1, "connect_seqnum": 0}
    for sender in (0, 1):
        yield ConnectRequest(**_ends(sender), **common, src_session_id=SESSIONS[sender], app_key=KEY)
        yield ConnectReply(
            **_ends(1 - sender),
            **common,
            src_session_id=SESSIONS[sender],
            target_session_id=SESSIONS[1 - sender],
            connect_status_code=0,
        )


def _number(position: int) -> int:
    return position & 0x3FFF


def _message(sender: int, position: int, acked: int) -> dict[str, Any]:
    return {
        **_ends(sender),
        "lib_seqnum": _number(position),
        "lib_piggyack": _number(acked),
        "session": SESSIONS[1 - sender],
    }


def _tiny() -> Iterator[Frame]:
    """Yield a ping-pong; every fourth answer is an explicit acknowledgement, as with a slow application."""
    for position in count(1):
        match = {"match_a": 0, "match_b": position & 0xFFFFFFFF}
        yield Tiny(**_message(0, position, position), **match, length=8, data=CONTENT[:8])
        if position % 4 == 0:
            session = SESSIONS[0]
            yield Truc(
                **_ends(1),
                session=session,
                liback_session_id=session,
                liback_lib_seqnum=_number(position + 1),
                liback_acknum=position,
                liback_send_seq=_number(position + 1),
            )
        yield Tiny(**_message(1, position, position + 1), **match, length=8, data=CONTENT[:8])


def _large() -> Iterator[Frame]:
    """Yield messages one after the other, each with four blocks in flight."""
    for position in count(1):
        region = {"pulled_rdma_id": 0, "pulled_rdma_seqnum": position & 0xFF}
        yield Rndv(
            **_message(0, position, position),
            **region,
            match_a=0,
            match_b=position & 0xFFFFFFFF,
            msg_length=LARGE,
            pulled_rdma_offset=0,
        )
        handle = 0x23 + position
        blocks = range(LARGE // BLOCK)
        for block in blocks[:4]:
            yield _pull(block, region, handle)
        for block in blocks:
            for place in range(FRAMES_A_BLOCK):
                yield _reply(block * FRAMES_A_BLOCK + place, handle)
            if block + 4 in blocks:
                yield _pull(block + 4, region, handle)
        yield Notify(**_message(1, position, position + 1), **region, total_length=LARGE)


def _pull(block: int, region: dict[str, int], handle: int) -> Frame:
    return Pull(
        **_ends(1),
        **region,
        session=SESSIONS[0],
        total_length=LARGE,
        pulled_rdma_offset=0,
        src_pull_handle=handle,
        src_magic=MAGIC,
        first_frame_offset=0,
        block_length=BLOCK,
        frame_index=block * FRAMES_A_BLOCK,
    )


def _reply(frame: int, handle: int) -> Frame:
    return PullReply(
        dst_mac=HOSTS[1],
        src_mac=HOSTS[0],
        frame_seqnum=frame % 256,
        frame_length=REPLY,
        msg_offset=frame * REPLY,
        dst_pull_handle=handle,
        dst_magic=MAGIC,
        data=CONTENT,
    )
