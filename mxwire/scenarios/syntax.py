"""Syntax highlighting of scenarios: a syntax file of Vim with the words of the language, and colours on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from mxwire.scenarios.expression import CONSTANTS, FUNCTIONS, KNOWN_WORDS
from mxwire.scenarios.head import KEYS
from mxwire.scenarios.vocabulary import ALIASES, FLAGS, FRAME, PACKETS, VERBS
from mxwire.texts import file_text

STATEMENTS = ("any", "as", "burst", "either", "for", "let", "no", "nothing", "or", "order", "repeat", "wait")
MODIFIERS = ("after", "info", "should", "within")


def vim() -> str:
    """Return the syntax file."""
    keywords = {*STATEMENTS, *MODIFIERS}
    return file_text(__file__, "mxs.vim") % {
        "head": r"\|".join(sorted(KEYS)),
        "statements": _listed(STATEMENTS),
        "modifiers": _listed(MODIFIERS),
        "packets": _listed([*PACKETS, *ALIASES, FRAME]),
        "verbs": _listed({*VERBS, *FLAGS} - keywords),
        "known": _listed({*KNOWN_WORDS, *CONSTANTS} - keywords),
        "functions": _listed(FUNCTIONS),
    }


def _listed(words: Iterable[str]) -> str:
    return " ".join(sorted(words))


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
    text, at = "", 0
    for match in _WORDS.finditer(line):
        text += line[at : match.start()] + style(match[0], **_COLOURS[str(match.lastgroup)])
        at = match.end()
    text += line[at:]
    indent = len(line) - len(line.lstrip())
    sign = line[indent : indent + 1]
    if sign in _SIGNS:
        text = text[:indent] + style(sign, fg=_SIGNS[sign], bold=True) + text[indent + 1 :]
    return text
