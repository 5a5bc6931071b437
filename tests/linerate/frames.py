"""Addresses and runs that the tests of the room share."""

from __future__ import annotations

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.linerate.slots import FrameSlots

HERE = bytes.fromhex("020000000001")
THERE = bytes.fromhex("020000000002")


def frames_of(slots: FrameSlots, count: int, time_ns: int = 1) -> list[bytes]:
    """The first ``count`` frames of a run, as copies."""
    frames: list[bytes] = []
    while len(frames) < count:
        part = min(count - len(frames), slots.room(len(frames)))
        frames += list(slots.batch(len(frames), part, time_ns))
    return frames


def received(frames: list[bytes], time_ns: int = 1_000) -> FrameBatch:
    """Frames as a link returns them, with times of arrival."""
    return FrameBatch.from_frames(frames, [time_ns] * len(frames))


def in_slots(frames: list[bytes], stride: int) -> FrameBatch:
    """The same, at equal distances, as a ring of slots has them."""
    memory = np.zeros(len(frames) * stride, np.uint8)
    for place, frame in enumerate(frames):
        memory[place * stride : place * stride + len(frame)] = np.frombuffer(frame, np.uint8)
    length = np.array([len(each) for each in frames], np.int64)
    offset = np.arange(len(frames), dtype=np.int64) * stride
    return FrameBatch(memory, offset, length, length, np.full(len(frames), 1_000), np.arange(len(frames)))
