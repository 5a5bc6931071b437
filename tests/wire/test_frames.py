"""Batches of frames: what is taken out of them lies in the same memory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch

FRAMES = [bytes([number]) * (60 + number) for number in range(5)]


@pytest.mark.parametrize(("first", "end"), [(0, 5), (1, 3), (4, 9), (2, 2)])
def test_a_part_is_a_view_of_some_frames(first: int, end: int) -> None:
    batch = FrameBatch.from_frames(FRAMES, [7, 8, 9, 10, 11], link_type=LINKTYPE_LINUX_SLL, first_number=3)
    part = batch.part(first, end)
    assert [part.frame(place) for place in range(len(part))] == FRAMES[first:end]
    assert part.timestamp_ns.tolist() == [7, 8, 9, 10, 11][first:end]
    assert part.number.tolist() == [3, 4, 5, 6, 7][first:end]
    assert part.wire_length.tolist() == part.length.tolist() == [60, 61, 62, 63, 64][first:end]
    assert part.link_type == LINKTYPE_LINUX_SLL
    assert part.buffer is batch.buffer
    arrays = [each.name for each in dataclasses.fields(FrameBatch) if each.name not in ("buffer", "link_type")]
    for name in arrays if len(part) else []:
        assert np.shares_memory(getattr(part, name), getattr(batch, name)), name
