"""The kit of captures: files are read as one batch, and written from frames or a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mxwire.capture import create_capture, open_capture
from mxwire.frames import FrameBatch, concatenate

CAPTURES = Path(__file__).parents[1] / "captures"

Record = tuple[int, bytes, int]
"""Time of capture, captured bytes and original length of a frame."""


def read_batch(path: Path | str) -> FrameBatch:
    """All frames of a capture."""
    with open_capture(path) as reader:
        return concatenate(list(reader))


def write_capture(
    path: Path | str, frames: Sequence[bytes] | FrameBatch, times: Sequence[int] | None = None, **options: Any
) -> Path:
    """Write a capture; the options are those of ``create_capture``."""
    if not isinstance(frames, FrameBatch):
        frames = FrameBatch.from_frames(list(frames), times, link_type=options.get("link_type", 1))
    with create_capture(path, **options) as writer:
        writer.write(frames)
    return Path(path)


@cache
def records_of(name: str) -> tuple[Record, ...]:
    """The frames of one of ``captures/``, with times and lengths."""
    batch = read_batch(CAPTURES / name)
    return tuple(zip(batch.timestamp_ns.tolist(), batch, batch.wire_length.tolist(), strict=True))


def batch_of(records: Sequence[Record]) -> FrameBatch:
    """The same in one batch."""
    batch = FrameBatch.from_frames([data for _, data, _ in records], [time for time, _, _ in records])
    batch.wire_length[:] = [length for _, _, length in records]
    return batch
