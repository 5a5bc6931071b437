"""How things are said to a person, the same in all rooms."""

from __future__ import annotations


def count_of(number: int, noun: str, several: str = "", *, none: str = "0") -> str:
    """``1 frame``, ``2 frames``; ``several`` is the plural where it has no plain s, ``none`` stands for zero."""
    return f"{number or none} {noun if number == 1 else several or noun + 's'}"
