"""The memory of the newer analyses is bounded, whatever passes."""

from __future__ import annotations

from random import Random

from mxwire.analysis.compatibility import Sides
from mxwire.analysis.verification import HELD, OrderedVerification
from mxwire.frames import FrameBatch
from mxwire.wire.codec import build
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Notify, Tiny
from tests.frames import make_frame

HOSTS_KEPT = 4096


def batch(frames: list[bytes]) -> FrameBatch:
    return FrameBatch.from_frames(frames, [place * 1000 for place in range(len(frames))])


def tiny(source: int, number: int) -> bytes:
    return build(make_frame(Tiny, src_mac=source.to_bytes(6, "big"), lib_seqnum=number, data=b"x"), MXOE)


def test_hosts_without_end_are_not_all_remembered():
    random, seen = Random(1), Sides()
    for _ in range(3):
        frames = [tiny(random.randrange(1 << 40) << 1, 1) for _ in range(2500)]
        for decoded in Decoder().decode_all([batch(frames)]):
            seen.observe(decoded)
    seen.finish()
    assert len(seen.hosts) == HOSTS_KEPT
    assert len(seen.exchanged) <= HOSTS_KEPT


def test_findings_without_end_are_not_all_held_back():
    """NOTIFYs of messages that were never announced, without an end."""
    frames = [
        build(
            make_frame(
                Notify,
                total_length=100_000,
                pulled_rdma_id=place % 256,
                lib_seqnum=1 + place % 8000,
                lib_piggyack=1 + place % 8000,
            ),
            MXOE,
        )
        for place in range(3 * HELD)
    ]
    verification = OrderedVerification()
    for decoded in Decoder().decode_all([batch(frames)]):
        for _ in verification.observe(decoded):
            pass
        assert len(verification._held) <= HELD and len(verification._unexplained) <= HELD
    assert verification.frames == 3 * HELD
