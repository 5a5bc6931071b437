"""Colours of a scenario's text on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_HEAD: Final = re.compile(r"[a-z][a-z-]*:(?=\s)")
_WORDS: Final = re.compile(
    r"""
    (?P<comment>\#.*)
  | (?P<text>"(?:[^"\\]|\\.)*")
  | (?P<value>\$\w+(?:\.\w+)?)
  | (?P<time>\d+(?:\.\d+)?\s?(?:ns|us|ms|s)\b)
  | (?P<packet>(?<=[<>]\s)[A-Z][A-Z_]+|(?<=\s)[A-Z][A-Z_]+(?=\s))
  | (?P<field>\b\w+(?=[!<>]?=))
    """,
    re.VERBOSE,
)
_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "comment": {"dim": True},
    "text": {"fg": "green"},
    "value": {"fg": "magenta"},
    "time": {"fg": "yellow"},
    "packet": {"bold": True},
    "field": {"fg": "cyan"},
}
_SIGNS: Final = {">": "blue", "<": "green", "!": "red", "?": "yellow"}


def coloured(line: str, style: Callable[..., str]) -> str:
    """A line of a scenario in colours; ``style`` is :func:`click.style`."""
    if _HEAD.match(line):
        key, colon, rest = line.partition(":")
        return style(key + colon, fg="cyan") + rest
    made, at = "", 0
    for found in _WORDS.finditer(line):
        made += line[at : found.start()] + style(found[0], **_COLOURS[str(found.lastgroup)])
        at = found.end()
    made += line[at:]
    indent = len(line) - len(line.lstrip())
    sign = line[indent : indent + 1]
    if sign in _SIGNS:
        made = made[:indent] + style(sign, fg=_SIGNS[sign], bold=True) + made[indent + 1 :]
    return made
