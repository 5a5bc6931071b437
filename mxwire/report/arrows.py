"""Arrows of text ladders: one labelled line per frame between two hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NARROWEST: Final = 44
"""Minimum characters between the two hosts."""
_AROUND: Final = 8
"""Characters of an arrow besides its label."""


def room_for(labels: Iterable[str], widest: int) -> int:
    """The number of characters between the hosts that all ``labels`` need, at most ``widest``."""
    return min(max([NARROWEST, *(len(label) + _AROUND for label in labels)]), widest)


def arrow(label: str, room: int, forward: bool) -> str:
    """An arrow with ``label``, from left to right if ``forward``; a label that does not fit is cut."""
    most = room - _AROUND
    label = label if len(label) <= most else label[: most - 1] + "…"
    line = "─" * (room - 6 - len(label))
    return f"│─ {label} {line}▶│" if forward else f"│◀{line} {label} ─│"
