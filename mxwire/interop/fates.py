"""What became of a frame on its way, as the comments in the captures of a report say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

LOST: Final = "lost on the way"
_COPIES: Final = re.compile(r"arrives (\d{1,4}) times")


def fate_text(copies: int) -> str | None:
    """The comment on a frame that arrives so many times; None where nothing befell it."""
    return None if copies == 1 else f"arrives {copies} times" if copies else LOST


def copies_of(lines: Iterable[str]) -> int:
    """How often a frame with these lines of comment arrives: 0 if it was lost."""
    for line in lines:
        if line == LOST:
            return 0
        if found := _COPIES.fullmatch(line):
            return int(found[1])
    return 1
