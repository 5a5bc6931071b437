"""The verdict of the rules on a captured conversation."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.rules import Judge, Vantage
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import Dialect

Watched = tuple[int, bytes]
"""The time at which a frame was observed, in ns, and its bytes."""


def findings(frames: Iterable[Watched], dialect: Dialect, vantage: Vantage) -> list[str]:
    """Every malformed frame, and every breach of a rule that is not excused."""
    judge = Judge(dialect, vantage)
    codec = codec_of(dialect)
    found = []
    for number, (time_ns, raw) in enumerate(frames, 1):
        frame = codec.parse(raw)
        if isinstance(frame, Malformed):
            found.append(f"frame {number}: {frame.reason.text}")
        found += [str(each) for each in judge.observe(time_ns, frame, raw, number) if each.severity != "note"]
    return found + [str(each) for each in judge.finish() if each.severity != "note"]
