"""Errors in scenarios, with file, line, column, the line itself and a caret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from mxwire import words
from mxwire.errors import MxwireError


@dataclass(frozen=True, slots=True)
class ScriptPlace:
    """A position in a scenario; lines and columns count from 1."""

    file: str
    line: int
    column: int
    text: str
    """The whole line."""


class ScriptError(MxwireError):
    """A scenario that cannot be parsed, or cannot be played as written."""

    def __init__(self, text: str, place: ScriptPlace | None = None) -> None:
        self.place = place
        self.reason = text
        if place is None:
            super().__init__(text)
            return
        shown = "".join(each if each.isprintable() else " " for each in place.text)
        caret = " " * (place.column - 1) + "^"
        super().__init__(f"{place.file}:{place.line}:{place.column}: {text}\n  {shown}\n  {caret}")


suggestion = partial(words.suggestion, most=2, listed=20)
"""The end of an error about an unknown word: the closest known words, or all of them if there are few."""
