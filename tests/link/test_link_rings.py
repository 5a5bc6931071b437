"""Rings have slots that frames fit into, in blocks that the kernel wants."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mxwire.link.ring_v2 import _block_bytes, _slot_bytes

PAGE = 4096


@given(st.integers(68, 65535))
def test_slots_hold_a_frame_and_lie_evenly_in_blocks(mtu: int) -> None:
    slot = _slot_bytes(mtu)
    assert mtu + 14 + 4 + 80 <= slot < mtu + 14 + 4 + 80 + 2048
    block = _block_bytes(slot)
    assert block % slot == 0 and block % PAGE == 0
    assert block <= 16 << 20


def test_blocks_of_the_usual_sizes_waste_little() -> None:
    for mtu in (1500, 4096, 9000):
        block = _block_bytes(_slot_bytes(mtu))
        assert block > 0.9 * (1 << (block - 1).bit_length())
