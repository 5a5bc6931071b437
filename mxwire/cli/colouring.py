"""A scenario in colours."""

from __future__ import annotations

import re
from typing import Any, Final

import click

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


def coloured(line: str) -> str:
    """A line of a scenario with the codes of a terminal's colours."""
    if _HEAD.match(line):
        key, colon, rest = line.partition(":")
        return click.style(key + colon, fg="cyan") + rest
    made, at = "", 0
    for found in _WORDS.finditer(line):
        made += line[at : found.start()] + click.style(found[0], **_COLOURS[str(found.lastgroup)])
        at = found.end()
    made += line[at:]
    indent = len(line) - len(line.lstrip())
    sign = line[indent : indent + 1]
    if sign in _SIGNS:
        made = made[:indent] + click.style(sign, fg=_SIGNS[sign], bold=True) + made[indent + 1 :]
    return made
