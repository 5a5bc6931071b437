"""Seeded captures for benchmarks: traffic in the mxoe dialect, built by mxwire's codec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from mxwire.wire.byteorder import PULL_MAGIC_PREFIX
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import ConnectStatus, NackType
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    NackLib,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Tiny,
    Truc,
)

SEED = 20080613
HOSTS = tuple(bytes.fromhex(f"0060dd47{number:04x}") for number in range(4))
ENDPOINTS = 4
FRAMES_A_BATCH = 10_000
MEAN_GAP_NS = 3_000
FULL_REPLY = MXOE.reply_payload
REGION_MAGIC = PULL_MAGIC_PREFIX << 8 | 0x80
PIPELINE = 12
"""Base-2 logarithm of Open-MX's fragment size."""


@dataclass(frozen=True)
class Traffic:
    """A kind of capture: the frequency of each kind of frame, in thousandths."""

    name: str
    shares: dict[str, int]


SMALL = Traffic("small", {"tiny": 640, "truc": 110, "notify": 70, "rndv": 70, "pull": 70, "connect": 36, "nack": 4})
MIXED = Traffic(
    "mixed",
    {
        "reply": 289,
        "medium": 90,
        "tiny": 421,
        "pull": 60,
        "rndv": 35,
        "notify": 35,
        "truc": 60,
        "connect": 9,
        "nack": 1,
    },
)


def write_capture(path: Path, traffic: Traffic, frames: int) -> None:
    """Write a pcap file with times in nanoseconds; equal arguments give equal files."""
    random = Random(SEED)
    made = _Maker(random).frames(traffic)
    now = 1_700_000_000 * 10**9
    with create_capture(path, format="pcap") as writer:
        for first in range(0, frames, FRAMES_A_BATCH):
            built = [build(frame, MXOE) for frame in islice(made, min(FRAMES_A_BATCH, frames - first))]
            times = []
            for _ in built:
                now += random.randrange(2 * MEAN_GAP_NS)
                times.append(now)
            writer.write(FrameBatch.from_frames(built, times, first_number=first + 1))


class _Maker:
    """A generator of frames with fields like those of a busy cluster."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content = random.randbytes(1 << 20)
        self.number = 0

    def frames(self, traffic: Traffic) -> Iterator[Frame]:
        """Yield frames without limit, in the proportions of ``traffic``."""
        makers: list[Callable[[], Frame]] = [getattr(self, kind) for kind in traffic.shares]
        while True:
            for make in self.random.choices(makers, list(traffic.shares.values()), k=1000):
                self.number += 1
                yield make()

    def tiny(self) -> Frame:
        # Most control messages fit into the padded frame; the others raise the average above 60 bytes.
        length = self.random.choice((0, 4, 8, 8, 16, 16, 24, 32, 32))
        return Tiny(**self.addresses(), **self.endpoints(), **self.message(length), data=self.data(length))

    def medium(self) -> Frame:
        length = self.random.choice((200, 1024, 2048, 4096, 8192, 16384, 32768))
        last = (length - 1) >> PIPELINE
        fragment = self.random.randint(0, last)
        held = min(length - (fragment << PIPELINE), 1 << PIPELINE)
        return Medium(
            **self.addresses(),
            **self.endpoints(),
            **self.message(length),
            frag_length=held,
            frag_seqnum=fragment,
            frag_pipeline=PIPELINE,
            data=self.data(held),
        )

    def rndv(self) -> Frame:
        return Rndv(
            **self.addresses(),
            **self.endpoints(),
            **self.message(8),
            **self.region(),
            msg_length=self.random.randrange(32769, 4 << 20),
            pulled_rdma_offset=0,
        )

    def pull(self) -> Frame:
        block = self.random.randrange(64)
        return Pull(
            **self.addresses(),
            **self.endpoints(),
            **self.region(),
            session=self.session(),
            total_length=64 * MXOE.block_length,
            pulled_rdma_offset=0,
            src_pull_handle=self.random.getrandbits(32),
            src_magic=REGION_MAGIC,
            first_frame_offset=0,
            block_length=MXOE.block_length,
            frame_index=block * MXOE.frames_per_block,
        )

    def reply(self) -> Frame:
        frame = self.random.randrange(512)
        return PullReply(
            **self.addresses(),
            frame_seqnum=frame % 256,
            frame_length=FULL_REPLY,
            msg_offset=frame * FULL_REPLY,
            dst_pull_handle=self.random.getrandbits(32),
            dst_magic=REGION_MAGIC,
            data=self.data(FULL_REPLY),
        )

    def notify(self) -> Frame:
        return Notify(
            **self.addresses(),
            **self.endpoints(),
            **self.region(),
            session=self.session(),
            total_length=self.random.randrange(32769, 4 << 20),
            lib_seqnum=self.number & 0x3FFF,
            lib_piggyack=self.number & 0x3FFF,
        )

    def truc(self) -> Frame:
        session = self.session()
        return Truc(
            **self.addresses(),
            **self.endpoints(),
            session=session,
            liback_session_id=session,
            liback_lib_seqnum=self.number & 0x3FFF,
            liback_acknum=self.number,
            liback_send_seq=self.number & 0x3FFF,
        )

    def connect(self) -> Frame:
        common = {
            **self.addresses(),
            **self.endpoints(),
            "src_dst_peer_index": self.random.randrange(len(HOSTS)),
            "src_session_id": self.session(),
            "target_recv_seqnum_start": 1,
            "connect_seqnum": self.number & 0xFF,
        }
        if self.random.random() < 0.5:
            return ConnectRequest(**common, app_key=0x12345678)
        return ConnectReply(**common, target_session_id=self.session(), connect_status_code=ConnectStatus.SUCCESS)

    def nack(self) -> Frame:
        return NackLib(
            **self.addresses(),
            **self.endpoints(),
            nack_type=NackType.ENDPT_CLOSED,
            lib_seqnum=self.number & 0x3FFF,
        )

    def addresses(self) -> dict[str, Any]:
        source, destination = self.random.sample(HOSTS, 2)
        return {"dst_mac": destination, "src_mac": source}

    def endpoints(self) -> dict[str, Any]:
        random = self.random
        return {
            "dst_src_peer_index": random.randrange(len(HOSTS)),
            "dst_endpoint": random.randrange(ENDPOINTS),
            "src_endpoint": random.randrange(ENDPOINTS),
        }

    def message(self, length: int) -> dict[str, Any]:
        return {
            "length": length,
            "lib_seqnum": self.number & 0x3FFF,
            "lib_piggyack": self.number & 0x3FFF,
            "match_a": self.random.getrandbits(32),
            "match_b": self.number,
            "session": self.session(),
        }

    def region(self) -> dict[str, Any]:
        return {"pulled_rdma_id": self.random.randrange(256), "pulled_rdma_seqnum": self.number & 0xFF}

    def session(self) -> int:
        return 0x5A000000 | self.random.randrange(16)

    def data(self, length: int) -> bytes:
        start = self.random.randrange(len(self.content) - length)
        return self.content[start : start + length]
