"""Captures of whole conversations: tiny messages back and forth, and large ones that are pulled, by pairs of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from mxwire.units import SECOND
from mxwire.wire.byteorder import PULL_MAGIC_PREFIX
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET, header_type, layout_of
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)
from mxwire.wire.selection import formats_by_type

SESSIONS = 0x11111111, 0x22222222
KEY = 0x12345678
GAP_NS = 3_000
RESEND_NS = 600_000_000
DUPLICATE = 100
LOST = 1_000
"""Rounds of the faulty traffic, of which one is duplicated or retransmitted."""
FRAMES_A_BATCH = 5_000
LARGE = 1 << 20
REPLY = MXOE.reply_payload
BLOCK = MXOE.block_length
FRAGMENT = 4096
FRAMES_A_BLOCK = MXOE.frames_per_block
CONTENT = bytes(range(256)) * (REPLY // 256)
MAGIC = (PULL_MAGIC_PREFIX << 8 | 0x80) ^ 2


def write_capture(path: Path, kind: str, frames: int, hosts: int = 2) -> None:
    """Write a pcap file of ``tiny``, ``large``, ``mixed`` or ``faulty`` messages between pairs of ``hosts`` that send
    in turn; equal arguments give equal files."""
    made = _in_turn([getattr(_Pair(first), kind)() for first in range(0, hosts, 2)])
    now = 1_700_000_000 * 10**9
    with create_capture(path, format="pcap") as writer:
        for first in range(0, frames, FRAMES_A_BATCH):
            built, times = [], []
            while len(built) < min(FRAMES_A_BATCH, frames - first):
                frame = next(made)
                if frame is None:
                    now += RESEND_NS
                    continue
                built.append(build(frame, MXOE))
                times.append(now)
                now += GAP_NS
            writer.write(FrameBatch.from_frames(built, times, first_number=first + 1))


def write_many(path: Path, frames: int, hosts: int) -> None:
    """Write at least ``frames`` frames of the tiny messages of :func:`write_capture`, without building each of them.

    Only the first four rounds of each pair are built; all further ones repeat these with higher numbers. No pair has
    more than 16,000 rounds.
    """
    pairs, cycle = hosts // 2, _CYCLE * (hosts // 2)
    write_capture(path, "tiny", _CONNECTS * pairs + cycle, hosts)
    records = np.fromfile(path, _RECORD, offset=_FILE_HEADER).copy()[-cycle:]
    time = records["seconds"].astype(np.int64) * SECOND + records["nanoseconds"]
    rows = records["frame"].reshape(_CYCLE, pairs, -1)
    with path.open("ab") as file:
        for _ in range(-(-(frames - _CONNECTS * pairs) // cycle) - 1):
            time += cycle * GAP_NS
            records["seconds"], records["nanoseconds"] = np.divmod(time, SECOND)
            for row in rows:
                kind = formats_by_type(MXOE)[PacketType(row[0, TYPE_OFFSET])]
                header = row.view(header_type(layout_of(kind), size=row.shape[1]))
                for name, step in _STEPS.items():
                    if name in (header.dtype.names or ()):
                        header[name] += step
            records.tofile(file)


_CONNECTS, _CYCLE = 4, 9
"""Frames of a pair before its first message, and of four rounds."""
_STEPS = {
    **dict.fromkeys(("lib_seqnum", "lib_piggyack", "match_b", "liback.lib_seqnum", "liback.send_seq"), 4),
    "liback.acknum": 1,
}
"""Differences of fields between four rounds and the next four."""
_RECORD = np.dtype([("seconds", "<u4"), ("nanoseconds", "<u4"), ("lengths", "<u4", 2), ("frame", "u1", 60)])
"""A frame in the file: all have the least length."""
_FILE_HEADER = 24
Made = Iterator[Frame | None]
"""Frames, and None for the time after which a host retransmits."""


def _in_turn(sources: list[Made]) -> Made:
    while True:
        for each in sources:
            yield next(each)


def _number(position: int) -> int:
    return position & 0x3FFF


class _Pair:
    """Two hosts with one endpoint each; every method yields frames without limit, beginning with the connects."""

    def __init__(self, first: int) -> None:
        self.hosts = tuple(bytes.fromhex(f"0060dd47{first + number:04x}") for number in range(2))
        self.libacks = 0

    def tiny(self) -> Made:
        """Yield a ping-pong; every fourth answer is an explicit acknowledgement, as with a slow application."""
        yield from self._connect()
        for position in count(1):
            yield from self._round(position)

    def faulty(self) -> Made:
        """Yield a ping-pong in which the network duplicates frames and loses acks, so that hosts retransmit."""
        yield from self._connect()
        for position in count(1):
            for frame in self._round(position):
                yield frame
                if position % DUPLICATE == 0:
                    yield frame
                if position % LOST == 0 and isinstance(frame, Tiny):
                    yield None
                    yield frame

    def mixed(self) -> Made:
        """Yield messages of all kinds: eight rounds of tiny ones, a small one, a medium one and a large one."""
        yield from self._connect()
        position = 0
        while True:
            for _ in range(8):
                position += 1
                yield from self._round(position)
            yield from self._eager(position + 1, Small, 100)
            yield from self._eager(position + 2, Medium, 6_000)
            yield from self._pulled(position + 3, 8 * BLOCK)
            position += 3

    def large(self) -> Made:
        """Yield messages one after the other, each with four blocks in flight."""
        yield from self._connect()
        for position in count(1):
            yield from self._pulled(position, LARGE)

    def _ends(self, sender: int) -> dict[str, Any]:
        return {
            "dst_mac": self.hosts[1 - sender],
            "src_mac": self.hosts[sender],
            "src_endpoint": 1 + sender,
            "dst_endpoint": 2 - sender,
            "dst_src_peer_index": 1,
        }

    def _connect(self) -> Iterator[Frame]:
        common: dict[str, Any] = {"src_dst_peer_index": 1, "target_recv_seqnum_start": 1, "connect_seqnum": 0}
        for sender in (0, 1):
            yield ConnectRequest(**self._ends(sender), **common, src_session_id=SESSIONS[sender], app_key=KEY)
            yield ConnectReply(
                **self._ends(1 - sender),
                **common,
                src_session_id=SESSIONS[sender],
                target_session_id=SESSIONS[1 - sender],
                connect_status_code=0,
            )

    def _message(self, sender: int, position: int, acked: int) -> dict[str, Any]:
        return {
            **self._ends(sender),
            "lib_seqnum": _number(position),
            "lib_piggyack": _number(acked),
            "session": SESSIONS[1 - sender],
        }

    def _round(self, position: int) -> Iterator[Frame]:
        """Yield a message and its answer."""
        match = {"match_a": 0, "match_b": position & 0xFFFFFFFF}
        yield Tiny(**self._message(0, position, position), **match, length=8, data=CONTENT[:8])
        if position % 4 == 0:
            yield self._liback(position)
        yield Tiny(**self._message(1, position, position + 1), **match, length=8, data=CONTENT[:8])

    def _liback(self, position: int) -> Frame:
        self.libacks += 1
        session = SESSIONS[0]
        return Truc(
            **self._ends(1),
            session=session,
            liback_session_id=session,
            liback_lib_seqnum=_number(position + 1),
            liback_acknum=self.libacks,
            liback_send_seq=_number(position + 1),
        )

    def _eager(self, position: int, kind: type[Small | Medium], length: int) -> Iterator[Frame]:
        """Yield a SMALL or MEDIUM, and its answer of the same length."""
        for sender, acked in ((0, position), (1, position + 1)):
            fields = {**self._message(sender, position, acked), "match_a": 0, "match_b": position, "length": length}
            if kind is Small:
                yield Small(**fields, data=CONTENT[:length])
                continue
            for fragment in range(-(-length // FRAGMENT)):
                held = min(length - fragment * FRAGMENT, FRAGMENT)
                yield Medium(
                    **fields,
                    frag_length=held,
                    frag_seqnum=fragment,
                    frag_pipeline=FRAGMENT.bit_length() - 1,
                    data=CONTENT[:held],
                )

    def _pulled(self, position: int, length: int) -> Iterator[Frame]:
        """Yield a large message."""
        region = {"pulled_rdma_id": 0, "pulled_rdma_seqnum": position & 0xFF}
        yield Rndv(
            **self._message(0, position, position),
            **region,
            match_a=0,
            match_b=position & 0xFFFFFFFF,
            msg_length=length,
            pulled_rdma_offset=0,
        )
        handle = 0x23 + position
        blocks = range(length // BLOCK)
        for block in blocks[:4]:
            yield self._pull(block, region, handle, length)
        for block in blocks:
            for place in range(FRAMES_A_BLOCK):
                yield self._reply(block * FRAMES_A_BLOCK + place, handle)
            if block + 4 in blocks:
                yield self._pull(block + 4, region, handle, length)
        yield Notify(**self._message(1, position, position + 1), **region, total_length=length)

    def _pull(self, block: int, region: dict[str, int], handle: int, length: int) -> Frame:
        return Pull(
            **self._ends(1),
            **region,
            session=SESSIONS[0],
            total_length=length,
            pulled_rdma_offset=0,
            src_pull_handle=handle,
            src_magic=MAGIC,
            first_frame_offset=0,
            block_length=BLOCK,
            frame_index=block * FRAMES_A_BLOCK,
        )

    def _reply(self, frame: int, handle: int) -> Frame:
        return PullReply(
            dst_mac=self.hosts[1],
            src_mac=self.hosts[0],
            frame_seqnum=frame % 256,
            frame_length=REPLY,
            msg_offset=frame * REPLY,
            dst_pull_handle=handle,
            dst_magic=MAGIC,
            data=CONTENT,
        )
