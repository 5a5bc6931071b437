"""The arrows of ladders in text: a line between two hosts, with what a frame says on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NARROWEST: Final = 44
"""Least characters between the two."""
_AROUND: Final = 8
"""What an arrow has besides its label."""


def room_for(labels: Iterable[str], widest: int) -> int:
    """How many characters lie between the two hosts, so that the labels fit, or ``widest`` do."""
    return min(max([NARROWEST, *(len(label) + _AROUND for label in labels)]), widest)


def arrow(label: str, room: int, forward: bool) -> str:
    """An arrow from the left to the right one, or back; a label that is too long is cut."""
    most = room - _AROUND
    label = label if len(label) <= most else label[: most - 1] + "…"
    line = "─" * (room - 6 - len(label))
    return f"│─ {label} {line}▶│" if forward else f"│◀{line} {label} ─│"
