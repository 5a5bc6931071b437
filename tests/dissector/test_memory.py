"""The plugin's memory is bounded, whatever is captured: little per frame, and the rest in total."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    Pull,
    PullReply,
    Rndv,
    Tiny,
    Truc,
)
from tests.frames import A, B, make_frame

from .conftest import Once
from .support import needs_tshark, run_tshark
from .test_conversation import rewrite
from .test_fuzz import write_spoilt

pytestmark = [needs_tshark, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]

PROBE = Path(__file__).with_name("memory.lua")
FRAMES = 10_000
NEEDED = 320
"""Bytes that Lua keeps at most for a frame, so that it can be shown again, whatever the frame."""
NEEDED_IN_ALL = 13 << 18
"""The plugin itself, its tables, and what it remembers of conversations where that is as little as it can be."""
NEEDED_A_SIZE = 1300
"""The same for a frame that reveals a frame limit that no host had before; there are 65,000."""
REMEMBERED = 512
"""Bytes for each of the things that the preference ``mxoe.history`` counts."""
GARBAGE = 4
"""Memory that tshark takes in excess of the need: garbage not yet collected, and what belongs to Wireshark's objects.
"""
RESIDENT_IN_ALL = 10 << 20

BACK = {"src_mac": B, "dst_mac": A, "src_endpoint": 2, "dst_endpoint": 1}


def tiny(number: int, **others: Any) -> Tiny:
    return make_frame(Tiny, lib_seqnum=number, **others)


def request(number: int, session: int, **others: Any) -> ConnectRequest:
    return make_frame(ConnectRequest, src_session_id=session, connect_seqnum=number % 256, **others)


def pull(handle: int) -> Pull:
    return make_frame(
        Pull, total_length=1 << 31, pulled_rdma_id=handle % 256, src_pull_handle=handle, block_length=32768
    )


def strangers() -> Iterator[Frame]:
    """Each frame from another host to another host."""
    for number in range(1 << 20):
        source, destination = (b"\2\1" + each.to_bytes(4, "big") for each in (2 * number, 2 * number + 1))
        yield tiny(1, src_mac=source, dst_mac=destination)


def strange_endpoints() -> Iterator[Frame]:
    for number in range(1 << 16):
        yield request(number, number, src_endpoint=number & 255, dst_endpoint=number >> 8)


def sessions() -> Iterator[Frame]:
    """The same endpoint, opened again and again."""
    for number in range(1 << 20):
        yield request(number, number)


def queries() -> Iterator[Frame]:
    for number in range(1 << 20):
        yield make_frame(HostQuery, magic=number)


def names() -> Iterator[Frame]:
    for number in range(1 << 20):
        yield make_frame(HostReply, hostname=b"%080d" % number)


def unacknowledged() -> Iterator[Frame]:
    for number in range(1 << 20):
        yield tiny(number % (1 << 14))


def the_same() -> Iterator[Frame]:
    while True:
        yield tiny(1)


def refused() -> Iterator[Frame]:
    """One message, refused again and again."""
    yield tiny(1)
    while True:
        yield make_frame(NackLib, BACK, nack_type=2)


def fragments() -> Iterator[Frame]:
    """Of messages that will never be complete."""
    for number in range(1 << 20):
        fragment = {"lib_seqnum": number % (1 << 14), "length": 30000, "frag_seqnum": 1, "frag_pipeline": 12}
        yield make_frame(Medium, data=b"x", **fragment)


def announced() -> Iterator[Frame]:
    for number in range(1 << 20):
        region = {"pulled_rdma_id": number % 256, "pulled_rdma_seqnum": number // 256 % 256}
        yield make_frame(Rndv, lib_seqnum=number % (1 << 14), msg_length=1 << 20, **region)


def handles() -> Iterator[Frame]:
    for number in range(1 << 20):
        yield pull(number)


def replies() -> Iterator[Frame]:
    """One transfer without an end, one byte per frame."""
    yield pull(1)
    for number in range(1 << 20):
        place = {"frame_seqnum": number % 256, "msg_offset": number * 4096}
        yield make_frame(PullReply, BACK, dst_pull_handle=1, data=b"x", **place)


def forgetful() -> Iterator[Frame]:
    """A receiver that acknowledges many messages at once, and then wants them all again."""
    yield request(0, 7)
    for number in range(1, 41):
        yield tiny(number)
    for number in range(1 << 20):
        yield make_frame(ConnectReply, BACK, src_session_id=7, target_session_id=number + 100)
        yield make_frame(Truc, BACK, liback_session_id=7, liback_acknum=1, liback_lib_seqnum=41, liback_send_seq=41)


def changing_sizes() -> Iterator[Frame]:
    """Each pair of hosts with another frame size."""
    for number in range(1 << 15):
        size = 300 + number
        source, destination = b"\2\2" + number.to_bytes(4, "big"), b"\2\3" + number.to_bytes(4, "big")
        ends = {"src_mac": source, "dst_mac": destination}
        yield make_frame(PullReply, ends, frame_seqnum=1, msg_offset=size, dst_pull_handle=1, data=bytes(size))


HOSTILE: tuple[Callable[[], Iterator[Frame]], ...] = (
    strangers, strange_endpoints, sessions, queries, names, unacknowledged, the_same, refused, fragments, announced,
    handles, replies, forgetful, changing_sizes,
)  # fmt: skip


def used(path: Path, *options: str, plugin: bool = True) -> tuple[int, int]:
    """Bytes: the most that tshark has had, and what Lua needs in the end."""
    errors = run_tshark(path, "-X", f"lua_script:{PROBE}", *options, timeout=300, plugin=plugin)[1]
    found = re.search(r"^memory (\d+) (\d+)$", errors, re.MULTILINE)
    assert found, errors
    return int(found[1]) << 10, int(found[2]) << 10


@pytest.fixture
def without(tmp_path: Path, once: Once) -> Callable[[int], int]:
    """The bytes that tshark has had without the plugin for a number of the shortest frames."""

    def most(frames: int) -> str:
        return str(used(write(tmp_path / "short.pcap", the_same, frames), plugin=False)[0])

    return lambda frames: int(once(f"memory without plugin for {frames}", lambda: most(frames)))


def bounded(path: Path, without: int, frames: int, a_frame: int, history: int, *options: str) -> None:
    """Compare memory with that of tshark without the plugin."""
    resident, needed = used(path, "-o", f"mxoe.history:{history}", "-o", "mxoe.memory:1", *options)
    allowed = NEEDED_IN_ALL + frames * a_frame + history * REMEMBERED
    assert needed < allowed
    assert resident - without < RESIDENT_IN_ALL + GARBAGE * allowed


def write(path: Path, frames: Callable[[], Iterator[Frame]], count: int) -> Path:
    codec = codec_of(omx() if frames is changing_sizes else MXOE)
    return rewrite(path, [codec.build(each) for each in islice(frames(), count)], 100_000)


@pytest.mark.parametrize("frames", HOSTILE, ids=lambda each: each.__name__)
def test_hostile_frames_take_little(
    frames: Callable[[], Iterator[Frame]], tmp_path: Path, without: Callable[[int], int]
) -> None:
    path = write(tmp_path / "hostile.pcap", frames, FRAMES)
    bounded(path, without(FRAMES), FRAMES, NEEDED_A_SIZE if frames is changing_sizes else NEEDED, 1000)


def test_memory_is_bounded(tmp_path: Path, without: Callable[[int], int]) -> None:
    """Many more hosts, directions and messages than are to be remembered."""
    path = write(tmp_path / "strangers.pcap", strangers, 2 * FRAMES)
    bounded(path, without(2 * FRAMES), 2 * FRAMES, NEEDED, 10_000)


def test_spoilt_frames_take_little(tmp_path: Path, without: Callable[[int], int]) -> None:
    path = tmp_path / "spoilt.pcap"
    write_spoilt(path, FRAMES, "memory")
    bounded(path, without(FRAMES), FRAMES, NEEDED, 1000)
    bounded(path, without(FRAMES), FRAMES, NEEDED, 10_000, "-2")
