"""Arrows of text ladders, and a short exchange between two hosts with one arrow per frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mxwire.frames import FrameBatch
from mxwire.report.ascii_text import cut
from mxwire.report.summary import summary, type_text
from mxwire.wire.codec import parse
from mxwire.wire.dialect import Dialect

NARROWEST: Final = 44
"""Minimum characters between the two hosts."""
_AROUND: Final = 8
"""Characters of an arrow besides its label."""
WIDEST: Final = 96
"""Maximum characters between the two hosts."""
_MARK: Final = "  ◀ not as expected"


def room_for(labels: Iterable[str], widest: int) -> int:
    """The number of characters between the hosts that all ``labels`` need, at most ``widest``."""
    return min(max([NARROWEST, *(len(label) + _AROUND for label in labels)]), widest)


def arrow(label: str, room: int, forward: bool) -> str:
    """An arrow with ``label``, from left to right if ``forward``; a label that does not fit is cut."""
    label = cut(label, room - _AROUND)
    line = "─" * (room - 6 - len(label))
    return f"│─ {label} {line}▶│" if forward else f"│◀{line} {label} ─│"


def exchange_lines(
    frames: FrameBatch, sent: Sequence[bool], dialect: Dialect, *, names: tuple[str, str], marked: int | None = None
) -> Iterator[str]:
    """One line per frame, with times in milliseconds since the first frame.

    ``sent`` is True for frames from the left host; ``marked`` is the place of an unexpected frame.
    """
    labels = []
    for place in range(len(frames)):
        frame = parse(frames.frame(place), dialect)
        labels.append(f"{type_text(frame)} {summary(frame, dialect)}")
    inner = room_for(labels, WIDEST)
    yield f"{'ms':>12}  {names[0]:{inner}}{names[1]}"
    first = int(frames.timestamp_ns[0]) if len(frames) else 0
    for place, label in enumerate(labels):
        after = f"{(int(frames.timestamp_ns[place]) - first) / 1e6:.3f}"
        yield f"{after:>12}  {arrow(label, inner, bool(sent[place]))}{_MARK if place == marked else ''}"
