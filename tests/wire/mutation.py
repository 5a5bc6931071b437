"""Spoils frames: the same ones for the same seed."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np

from mxwire.frames import FrameBatch

from .support import CAPTURES, VERDICT_FILES, frames_of, read_capture, read_verdicts

ETHERTYPE = b"\x86\xdf"
TAGS = ("8100", "88a8", "9100")
_BYTES = (0, 1, 0x7F, 0x80, 0xFF)


@cache
def seeds() -> tuple[bytes, ...]:
    """Real frames to start from: what was sent to the driver, and every tenth frame of the captures."""
    found = [each.frame for name in VERDICT_FILES for each in read_verdicts(name)]
    for capture in CAPTURES:
        found += frames_of(read_capture(capture))[::10]
    return tuple(each[:12] + ETHERTYPE + each[14:] for each in found)


def mutated(random: Random) -> tuple[bytes, int]:
    """One spoilt frame, as captured, and its length on the wire; the EtherType is kept."""
    frame = bytearray(random.choice(seeds()))
    if random.random() < 0.3:
        frame[16:17] = bytes([random.choice((1, 3, 4, *range(35, 46)))])
    for _ in range(random.randrange(5)):
        place = random.randrange(min(len(frame), 70))
        frame[place] = random.choice(_BYTES) if random.random() < 0.5 else random.randrange(256)
    frame[12:14] = ETHERTYPE
    if random.random() < 0.15:
        frame += random.randbytes(random.randrange(1, 40))
    if random.random() < 0.3:
        del frame[random.randrange(14, min(len(frame), 80) + 1) :]
    if random.random() < 0.2:
        for tag in random.choices(TAGS, k=random.choice((1, 1, 2, 3))):
            frame[12:12] = bytes.fromhex(tag) + random.randbytes(2)
    length = len(frame)
    if random.random() < 0.2:
        del frame[random.randrange(14, min(length, 100) + 1) :]
    return bytes(frame), length


def scattered(frames: list[tuple[bytes, int]], random: Random) -> FrameBatch:
    """A batch of frames with other bytes between them, in any order in the buffer, the last one at its very end."""
    order = list(range(len(frames)))
    random.shuffle(order)
    offset = [0] * len(frames)
    pieces: list[bytes] = []
    at = 0
    for place in order:
        gap = random.randbytes(random.randrange(4))
        offset[place] = at + len(gap)
        pieces += [gap, frames[place][0]]
        at += len(gap) + len(frames[place][0])
    return FrameBatch(
        buffer=np.frombuffer(b"".join(pieces), np.uint8),
        offset=np.array(offset, np.int64),
        length=np.array([len(frame) for frame, _ in frames], np.int64),
        wire_length=np.array([length for _, length in frames], np.int64),
        timestamp_ns=np.zeros(len(frames), np.int64),
        number=np.arange(1, len(frames) + 1),
    )
