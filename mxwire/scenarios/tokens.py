"""Tokens of a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mxwire.scenarios.errors import ScriptError, ScriptPlace

_PATTERN: Final = re.compile(
    r"""
    (?P<space>\s+|\#.*)
  | (?P<mac>[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}\b)
  | (?P<duration>\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s)\b)
  | (?P<number>0[xX][0-9a-fA-F]+\b|\d+\b)
  | (?P<text>"(?:[^"\\]|\\.)*")
  | (?P<value>\$[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.|!=|<=|>=|\+/-|[-±=+*/%&|^()<>!?:,@\[\]])
    """,
    re.VERBOSE,
)
UNITS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Nanoseconds of each unit of time."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``kind`` is mac, duration, number, text, value, name, sign or end."""

    kind: str
    text: str
    place: ScriptPlace

    def error(self, text: str) -> ScriptError:
        """Return an error at this token."""
        return ScriptError(text, self.place)

    @property
    def shown(self) -> str:
        """The token, quoted for an error."""
        return "the end of the line" if self.kind == "end" else repr(self.text)


def tokens_of(text: str, file: str, line: int) -> list[Token]:
    """Split a line into tokens, ending with one of kind ``end``.

    Raises :class:`~mxwire.scenarios.errors.ScriptError` for characters that do not form a token.
    """
    tokens = []
    at = 0
    while at < len(text):
        match = _PATTERN.match(text, at)
        if match is None:
            raise ScriptError(_no_word(text[at:]), ScriptPlace(file, line, at + 1, text))
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match[0], ScriptPlace(file, line, at + 1, text)))
        at = match.end()
    return [*tokens, Token("end", "", ScriptPlace(file, line, len(text.rstrip()) + 1, text))]


def _no_word(text: str) -> str:
    """Describe an error where no token begins."""
    if text[0] == '"':
        return "a text without its closing quote"
    number = re.match(r"\d\w*", text)
    if number is not None:
        return f"{number[0]!r} is not a number, nor a time like 20ms"
    return f"{text[0]!r} is not valid here"


class Words:
    """Reader of the tokens of a line, from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def now(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    @property
    def then(self) -> Token:
        """The token after the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Read a token."""
        token = self.now
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, *texts: str) -> Token | None:
        """Read the next token if it is one of ``texts``."""
        return self.take() if self.now.kind in ("sign", "name") and self.now.text in texts else None

    def expect(self, text: str, what: str = "") -> Token:
        """Read a token that must be ``text``; ``what`` continues the error."""
        found = self.accept(text)
        if found is None:
            raise self.now.error(f"expected {text!r}{what and ' ' + what}, found {self.now.shown}")
        return found

    def name(self, what: str) -> Token:
        """Read a name; ``what`` describes it in the error."""
        if self.now.kind != "name":
            raise self.now.error(f"expected {what}, found {self.now.shown}")
        return self.take()

    def bound(self, what: str) -> Token:
        """Read a ``$name``; ``what`` describes it in the error."""
        if self.now.kind != "value":
            raise self.now.error(f"expected {what} like $first, found {self.now.shown}")
        return self.take()

    def end(self) -> None:
        """Raise unless the line is finished."""
        if self.now.kind != "end":
            raise self.now.error(f"nothing more may follow here, but {self.now.shown} does")


def nanoseconds(token: Token) -> int:
    """Return the nanoseconds of a duration token."""
    unit = re.sub(r"[\d.\s]", "", token.text)
    return round(float(token.text.removesuffix(unit).strip()) * UNITS[unit])


def unquoted(token: Token) -> bytes:
    """Decode a quoted text (escapes: ``\\0``, ``\\n``, ``\\t``, ``\\r``, ``\\xNN``, ``\\"``, ``\\\\``)."""
    simple = {"0": b"\0", "n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}
    body, content, at = token.text[1:-1], b"", 0
    while at < len(body):
        if body[at] != "\\":
            content += body[at].encode("utf-8", "surrogateescape")
            at += 1
        elif body[at + 1] == "x" and re.fullmatch("[0-9a-fA-F]{2}", body[at + 2 : at + 4]):
            content += bytes.fromhex(body[at + 2 : at + 4])
            at += 4
        elif body[at + 1] in simple:
            content += simple[body[at + 1]]
            at += 2
        else:
            raise token.error(f'\\{body[at + 1]} is not an escape: use \\0, \\n, \\xNN, \\" or \\\\')
    return content
