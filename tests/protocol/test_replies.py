"""The replies to PULLs: each frame is the one that the codec would build, whatever was requested before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.protocol.agent.remote_segments import RemoteSegments
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.card.replies import PullReplies, RegionTable, message_offset, region_offset, replies_needed
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import Pull, PullReply
from tests.frames import make_frame

from .world import address, pattern

PULLER, REPLIER = address(1), address(2)


def pull(dialect: Dialect, handle: int, offset: int, first: int, index: int, length: int) -> Pull:
    return make_frame(
        Pull,
        dst_mac=REPLIER,
        src_mac=PULLER,
        pulled_rdma_offset=offset,
        src_pull_handle=handle,
        first_frame_offset=first,
        block_length=length,
        frame_index=index,
    )


def expected(asked: Pull, data: bytes, dialect: Dialect) -> bytes:
    """The frames one by one (R-PUL-12, R-PUL-13)."""
    built, place, region, end = [], message_offset(asked, dialect), region_offset(asked, dialect), 0
    for number in range(replies_needed(asked, dialect)):
        room = dialect.reply_payload - (asked.first_frame_offset if number == 0 else 0)
        start, end = end, min(end + room, asked.block_length)
        reply = make_frame(
            PullReply,
            dst_mac=asked.src_mac,
            src_mac=asked.dst_mac,
            frame_seqnum=(asked.frame_index + number) & 0xFF,
            msg_offset=(place + start) % (1 << 32),
            dst_pull_handle=asked.src_pull_handle,
            dst_magic=asked.src_magic,
            data=data[region + start : region + end],
        )
        built.append(build(reply, dialect))
    return b"".join(built)


@given(
    dialect=st.sampled_from((MXOE, omx(1500))),
    blocks=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 160), st.booleans(), st.sampled_from((0, 0, 0, 100))),
        min_size=1,
        max_size=30,
    ),
    first=st.sampled_from((0, 0, 64)),
    pieces=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_any_blocks_of_two_transfers(dialect, blocks, first, pieces):
    """Blocks of two transfers in any order, again and again, beyond the headers that are made at once."""
    payload, step = dialect.reply_payload, dialect.frames_per_block
    data = pattern(162 * dialect.block_length)
    cut = len(data) // pieces
    memory = Segments([data[place : place + cut] for place in range(0, len(data), cut)])
    region = RegionTable(1, 0).register(memory, 0, b"\x02\0\0\0\0\x01")
    port = Port(0, REPLIER, "replier", dialect, OPEN_MX_1_5)
    for handle, block, short, offset in blocks:
        # The second transfer may begin within a frame; the first frame of its blocks then is not full.
        inside = first if handle and block == 0 else 0
        # Nor does anything forbid to ask for the same numbers of other places of the region.
        block = max(block, bool(offset))
        length = dialect.block_length - inside - (payload // 2 if short else 0)
        asked = pull(dialect, handle, offset, inside, block * step, length)
        count = replies_needed(asked, dialect)
        replies = PullReplies(asked, length, region, port, count)
        out = np.empty(sum(replies.lengths), np.uint8)
        replies.write(out)
        assert out.tobytes() == b"".join(replies.frames(False)) == expected(asked, data, dialect)
        assert b"".join(map(bytes, replies.frames(True))) == out.tobytes()


def test_memory_of_another_process_is_read_once_per_block():
    """Each access is a call of the kernel, which takes about as long as a frame of a link."""
    reads, data = [], pattern(64_000)

    class CountedMemory:
        def read(self, place: int, parts: list[np.ndarray]) -> bool:
            reads.append((place, sum(map(len, parts))))
            parts[0][:] = np.frombuffer(data[place : place + len(parts[0])], np.uint8)
            return True

    port = Port(0, REPLIER, "replier", MXOE, OPEN_MX_1_5)
    region = RegionTable(256, 0).register(RemoteSegments(CountedMemory(), [(0, len(data))]), 0, PULLER)
    asked = pull(MXOE, 5, 0, 0, 0, len(data))
    count = replies_needed(asked, MXOE)
    frames = PullReplies(asked, len(data), region, port, count).frames(False)
    assert count > 10 and b"".join(frames) == expected(asked, data, MXOE)
    assert reads == [(0, len(data))]
