"""Damage to captures: each mangler takes frames and returns them as a faulty recording would contain them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.captures import Record

BURST_NS = 50_000
FAR = 3600 * 10**9

Frames = list[Record]
Mangler = Callable[[Frames], Frames]


def same(frames: Frames) -> Frames:
    return frames


def mirrored(frames: Frames) -> Frames:
    """A mirror port of both directions of a link shows each frame twice."""
    return [(time + late, *rest) for time, *rest in frames for late in (0, 1000)]


def mirrored_later(frames: Frames) -> Frames:
    """The same, with the duplicate received by another queue."""
    return sorted([*frames, *((time + 60_000, *rest) for time, *rest in frames)], key=lambda each: each[0])


def neighbours_swapped(frames: Frames) -> Frames:
    """A card delivers frames in the wrong order, and they are timestamped on delivery."""
    mangled = [*frames]
    place = 0
    while place + 1 < len(mangled):
        one, other = mangled[place : place + 2]
        if other[0] - one[0] <= BURST_NS:
            mangled[place : place + 2] = [(one[0], *other[1:]), (other[0], *one[1:])]
            place += 1
        place += 1
    return mangled


def queues(frames: Frames) -> Frames:
    """A card with several queues delivers frames late, with correct timestamps."""
    random = Random(5)
    return sorted(frames, key=lambda each: each[0] + random.randrange(2_000_000))


def queues_with_wrong_times(frames: Frames) -> Frames:
    """The same, with the times of delivery: nearly every pair of neighbours is swapped."""
    random = Random(5)
    mixed = sorted(frames, key=lambda each: each[0] + random.randrange(2_000_000))
    return [(time, *rest) for (time, *_), (_, *rest) in zip(frames, mixed, strict=True)]


def one_direction(frames: Frames) -> Frames:
    first = frames[0][1][6:12] if frames else b""
    return [each for each in frames if each[1][6:12] == first]


def with_gaps(frames: Frames) -> Frames:
    """The capture has lost frames."""
    random = Random(6)
    return [each for each in frames if random.random() > 0.2]


def begun_late(frames: Frames) -> Frames:
    return frames[len(frames) // 2 :]


def ended_early(frames: Frames) -> Frames:
    return frames[: len(frames) * 3 // 4]


def cut(frames: Frames) -> Frames:
    """Only the first bytes of each frame were kept."""
    return [(time, data[: 24 + 8 * (place % 6)], length) for place, (time, data, length) in enumerate(frames)]


def others_mixed_in(frames: Frames) -> Frames:
    """ARP, IP, short garbage and tagged MXoE frames between them."""
    noise = [bytes(12) + b"\x08\x06" + bytes(46), bytes(12) + b"\x08\x00" + bytes(range(80)), b"\1\2\3", b""]
    mangled: Frames = []
    for place, (time, data, length) in enumerate(frames):
        mangled.append((time, noise[place % 4], len(noise[place % 4])))
        tag = b"\x81\x00\x00\x07" if place % 3 else b""
        mangled.append((time, data[:12] + tag + data[12:], length + len(tag)))
    return mangled


def bits_flipped(frames: Frames) -> Frames:
    random = Random(7)
    mangled: Frames = []
    for time, data, length in frames:
        changed = bytearray(data)
        for _ in range(random.randrange(4)):
            changed[random.randrange(14, len(changed))] ^= 1 << random.randrange(8)
        mangled.append((time, bytes(changed), length))
    return mangled


def rubbish(frames: Frames) -> Frames:
    """Random bytes after a right EtherType, with every packet type."""
    random = Random(8)
    mangled: Frames = []
    for place, (time, data, _) in enumerate(frames):
        made = data[:16] + bytes([place % 256]) + random.randbytes(random.randrange(200))
        mangled.append((time, made, len(made)))
    return mangled


def clock_set_back(frames: Frames) -> Frames:
    half = len(frames) // 2
    return [(time - FAR if place >= half else time, *rest) for place, (time, *rest) in enumerate(frames)]


def without_clock(frames: Frames) -> Frames:
    return [(0, *rest) for _, *rest in frames]


def clock_gone_mad(frames: Frames) -> Frames:
    random = Random(9)
    return [(random.randrange(1 << 62), *rest) for _, *rest in frames]


def nothing(_frames: Frames) -> Frames:
    return []


def one_frame(frames: Frames) -> Frames:
    return frames[:1]


MANGLERS: tuple[Mangler, ...] = (
    same,
    mirrored,
    mirrored_later,
    neighbours_swapped,
    queues,
    queues_with_wrong_times,
    one_direction,
    with_gaps,
    begun_late,
    ended_early,
    cut,
    others_mixed_in,
    bits_flipped,
    rubbish,
    clock_set_back,
    without_clock,
    clock_gone_mad,
    nothing,
    one_frame,
)
HARMLESS: tuple[Mangler, ...] = (mirrored, mirrored_later, neighbours_swapped, queues)
"""Damage after which every fact can still be determined, or is reported as unknown."""
