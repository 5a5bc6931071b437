"""Expressions: numbers and bytes, computed from constants, bound names and the tester's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final, Protocol

from mxwire.ethernet import mac_bytes
from mxwire.protocol import Status
from mxwire.scenarios.errors import ScriptError, ScriptPlace, suggestion
from mxwire.scenarios.tokens import Token, Words, unquoted
from mxwire.texts import meanings
from mxwire.wire.enums import ConnectStatus, NackType
from mxwire.wire.numbers import NO_PEER_INDEX, NO_SESSION

Value = int | bytes
LONGEST: Final = 1 << 24
"""Maximum number of bytes that a function returns."""
DIGITS: Final = 40
DEEPEST: Final = 40
"""Maximum depth of nested brackets, well below Python's recursion limit."""


class Scope(Protocol):
    """Lookup of names."""

    def bound(self, name: str) -> Value | None:
        """Return the value of ``$name`` or ``$frame.field``; None if it is not bound."""

    def word(self, name: str) -> Value | None:
        """Return a value of the tester's state by its name in the language; None if it is not known yet."""


CONSTANTS: Final[dict[str, int]] = {
    **{each.name: int(each) for each in NackType if each},
    "BAD_KEY": int(ConnectStatus.BAD_KEY),
    "UNKNOWN": NO_PEER_INDEX,
    "NONE": NO_SESSION,
    **{each.name.lower(): int(each) for each in Status},
}
"""Named numbers: nack types, connect status, unknown index, no session, and the status codes of requests."""

KNOWN_WORDS: Final = meanings(__file__, "words.md", "Known words")
"""Words for the tester's state, with their meanings."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression that can be evaluated."""

    place: ScriptPlace
    compute: Callable[[Scope], Value]
    names: frozenset[str] = frozenset()
    """The ``$names`` in it, with the field after the dot for names of frames."""
    alone: str | None = None
    """The name, if the expression is a single ``$name``."""
    constant: Value | None = None
    """The value, if the expression is a single number or text."""

    def value(self, scope: Scope) -> Value:
        """Evaluate the expression."""
        return self.compute(scope)

    def number(self, scope: Scope) -> int:
        """Evaluate the expression; raise :class:`~mxwire.scenarios.errors.ScriptError` unless it is a number."""
        value = self.value(scope)
        if not isinstance(value, int):
            raise ScriptError("a number is needed here, not bytes", self.place)
        return value


def parse_expression(words: Words, deep: int = 0) -> Expression:
    """Parse an expression; ``deep`` is the number of open brackets around it."""
    if deep > DEEPEST:
        raise words.now.error(f"more than {DEEPEST} nested brackets")
    return _parse_level(words, 0, deep)


_LEVELS: Final = (("|", "^", "&"), ("+", "-"), ("*", "/", "%"))


def _parse_level(words: Words, level: int, deep: int) -> Expression:
    if level == len(_LEVELS):
        return _parse_atom(words, deep)
    left = _parse_level(words, level + 1, deep)
    while words.now.kind == "sign" and words.now.text in _LEVELS[level]:
        sign = words.take()
        left = _combined(sign, left, _parse_level(words, level + 1, deep))
    return left


_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one // other,
    "%": lambda one, other: one % other,
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "^": lambda one, other: one ^ other,
}


def _combined(sign: Token, left: Expression, right: Expression) -> Expression:
    operation = _OPERATIONS[sign.text]

    def compute(scope: Scope) -> Value:
        one, other = left.value(scope), right.value(scope)
        if isinstance(one, bytes) and isinstance(other, bytes) and sign.text == "+":
            return one + other
        if not isinstance(one, int) or not isinstance(other, int):
            raise sign.error(f"{sign.text!r} needs two numbers" + (", or bytes on both sides" * (sign.text == "+")))
        if sign.text in "/%" and not other:
            raise sign.error("division by 0")
        return operation(one, other)

    return Expression(left.place, compute, left.names | right.names)


def _parse_atom(words: Words, deep: int) -> Expression:
    token = words.take()
    match token.kind:
        case "number":
            if len(token.text) > DIGITS:
                raise token.error(f"a number has at most {DIGITS} digits")
            return _constant(token, int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10))
        case "text":
            return _constant(token, unquoted(token))
        case "mac":
            return _constant(token, mac_bytes(token.text))
        case "value":
            return _bound(token)
        case "name" if words.now.text == "(" and words.now.kind == "sign":
            return _parse_call(token, words, deep)
        case "name":
            return _word(token)
        case "sign" if token.text == "(":
            inner = parse_expression(words, deep + 1)
            words.expect(")")
            # Without ``alone``: a name in brackets is compared, never bound.
            return Expression(inner.place, inner.compute, inner.names)
        case "sign" if token.text == "-":
            # A row of minus signs recurses like brackets.
            return _combined(token, _constant(token, 0), _parse_atom(words, deep + 1))
    raise token.error(f"expected a value, found {token.shown}")


def _constant(token: Token, value: Value) -> Expression:
    return Expression(token.place, lambda scope: value, constant=value)


def _bound(token: Token) -> Expression:
    name = token.text[1:]

    def compute(scope: Scope) -> Value:
        value = scope.bound(name)
        if value is None:
            raise token.error(f"${name} has no value yet")
        return value

    alone = name if "." not in name else None
    return Expression(token.place, compute, frozenset({name}), alone)


def _word(token: Token) -> Expression:
    name = token.text
    if name in CONSTANTS:
        return _constant(token, CONSTANTS[name])
    if name not in KNOWN_WORDS:
        raise token.error(f"unknown word {name}{suggestion(name, [*KNOWN_WORDS, *CONSTANTS, *FUNCTIONS])}")

    def compute(scope: Scope) -> Value:
        value = scope.word(name)
        if value is None:
            raise token.error(f"{name} is not known yet ({KNOWN_WORDS[name]})")
        return value

    return Expression(token.place, compute)


# Functions.


# Each reply of a large message takes its part of the pattern of the whole, which takes long to compute.
@lru_cache(16)
def pattern(length: int, seed: int = 0) -> bytes:
    """Return the default content of messages: ``length`` bytes that differ between positions and between seeds."""
    return Random((length << 8) | seed).randbytes(length)


def _made(length: int) -> int:
    if not 0 <= length <= LONGEST:
        raise ValueError(f"the length {length} is not between 0 and {LONGEST}")
    return length


def _hexadecimal(text: bytes) -> bytes:
    return bytes.fromhex(text.decode("ascii"))


FUNCTIONS: Final[Mapping[str, tuple[str, Callable[..., Value]]]] = {
    "pattern": ("nn?", lambda length, seed=0: pattern(_made(length), seed)),
    "zeros": ("n", lambda length: bytes(_made(length))),
    "filled": ("nn", lambda length, value: bytes([value]) * _made(length)),
    "part": ("bnn", lambda data, start, end: data[max(0, start) : max(0, end)]),
    "hex": ("b", _hexadecimal),
    "number": ("b", lambda data: int.from_bytes(data, "big")),
    "min": ("nn", min),
    "max": ("nn", max),
    "ceil": ("nn", lambda number, unit: -(-number // unit)),
    "size": ("b", len),
}
"""Functions by name: their parameters (``n`` number, ``b`` bytes, ``?`` optional) and their implementations."""


def _parse_call(token: Token, words: Words, deep: int) -> Expression:
    if token.text not in FUNCTIONS:
        raise token.error(f"unknown function {token.text}{suggestion(token.text, FUNCTIONS)}")
    takes, function = FUNCTIONS[token.text]
    kinds = takes.rstrip("?")
    words.expect("(")
    arguments: list[Expression] = []
    while not words.accept(")"):
        if arguments:
            words.expect(",", "or ')'")
        arguments.append(parse_expression(words, deep + 1))
    least = len(kinds) - takes.endswith("?")
    if not least <= len(arguments) <= len(kinds):
        raise token.error(f"{token.text} takes {least if least == len(kinds) else f'{least} or {len(kinds)}'} values")

    def compute(scope: Scope) -> Value:
        values = [each.value(scope) for each in arguments]
        # Optional parameters may be absent.
        for value, kind, each in zip(values, kinds, arguments, strict=False):
            if isinstance(value, int) is not (kind == "n"):
                raise ScriptError(f"{token.text} needs {'a number' if kind == 'n' else 'bytes'} here", each.place)
        try:
            return function(*values)
        except (ValueError, ArithmeticError) as error:
            raise token.error(f"{token.text} cannot be computed: {error}") from None

    return Expression(token.place, compute, frozenset().union(*(each.names for each in arguments)))
