"""Conditions on fields: parsed from a line, and checked against received values; frames and expectations in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from mxwire.ethernet import ADDRESS_SIZE, mac_text
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.expression import Scope, Value, parse_expression
from mxwire.scenarios.outcome import FieldDifference
from mxwire.scenarios.steps import Condition, ExpectStep, Relation
from mxwire.scenarios.tokens import Words
from mxwire.wire.codec import Malformed
from mxwire.wire.packets import Frame

_SIGNS: Final = {"!=": Relation.DIFFERENT, ">=": Relation.AT_LEAST, "<=": Relation.AT_MOST, "=": Relation.EQUAL}


class Bindings(Scope, Protocol):
    """A scope in which names can be bound."""

    def bind(self, name: str, value: Value) -> None:
        """Bind ``$name`` to a value."""

    def unbind(self, name: str) -> None:
        """Remove the binding of ``$name``."""


def parse_condition(words: Words) -> Condition:
    """Parse the condition after a field name: ``=5``, ``=1 or 2``, ``=10..20``, ``=10±2``, ``=*``, ``!=5``, ``>=5``."""
    sign = words.take()
    if sign.kind != "sign" or sign.text not in _SIGNS:
        raise sign.error(f"expected '=' and a value, found {sign.shown}")
    relation = _SIGNS[sign.text]
    if relation is not Relation.EQUAL:
        return Condition(relation, (parse_expression(words),))
    if words.accept("*"):
        return Condition(Relation.ANY)
    first = _alternative(words)
    others = []
    while words.now.text == "or" and words.now.kind == "name":
        words.take()
        others.append(_alternative(words))
    return Condition(first.relation, first.values, tuple(others))


def _alternative(words: Words) -> Condition:
    value = parse_expression(words)
    if words.accept(".."):
        return Condition(Relation.RANGE, (value, parse_expression(words)))
    if words.accept("±", "+/-"):
        return Condition(Relation.NEAR, (value, parse_expression(words)))
    return Condition(Relation.EQUAL, (value,))


def differences(
    conditions: Mapping[str, Condition], found: Mapping[str, Value], scope: Bindings
) -> list[FieldDifference]:
    """Return the fields that do not meet their conditions; if all do, bind the names that have no value yet."""
    wrong = []
    new: list[str] = []
    for field, condition in conditions.items():
        name, value = _unbound(condition, scope), found[field]
        if name is not None:
            # At once, since a later condition of the same line may use the name.
            scope.bind(name, value)
            new.append(name)
        elif not any(_holds(each, value, scope) for each in (condition, *condition.others)):
            wrong.append(
                FieldDifference(
                    field, expected_text(condition, scope, field), shown(value, field) + _where(condition, value, scope)
                )
            )
    if wrong:
        # The names stay free for the next frame or branch that is compared.
        for name in new:
            scope.unbind(name)
    return wrong


def _where(condition: Condition, value: Value, scope: Scope) -> str:
    """Return the position of the first difference between byte strings, unless their beginnings show it."""
    if condition.relation is not Relation.EQUAL or condition.others or not isinstance(value, bytes):
        return ""
    expected = condition.values[0].value(scope)
    if not isinstance(expected, bytes) or len(expected) <= 8 or shown(expected) != shown(value):
        return ""
    first = next((place for place, (one, other) in enumerate(zip(expected, value, strict=False)) if one != other), 0)
    return f" that differ from byte {first} onwards"


def _unbound(condition: Condition, scope: Scope) -> str | None:
    """Return the unbound name that the condition would bind, if it consists of one."""
    if condition.relation is not Relation.EQUAL or condition.others:
        return None
    name = condition.values[0].alone
    return name if name is not None and scope.bound(name) is None else None


def _holds(condition: Condition, value: Value, scope: Scope) -> bool:
    if condition.relation is Relation.ANY:
        return True
    first = condition.values[0].value(scope)
    if condition.relation is Relation.EQUAL:
        return value == first
    if condition.relation is Relation.DIFFERENT:
        return value != first
    # Bytes have no order; bounds on them are wrong for any value.
    if not isinstance(value, int):
        return False
    low = condition.values[0].number(scope)
    match condition.relation:
        case Relation.AT_LEAST:
            return value >= low
        case Relation.AT_MOST:
            return value <= low
        case Relation.NEAR:
            return abs(value - low) <= condition.values[1].number(scope)
        case _:
            return low <= value <= condition.values[1].number(scope)


_WORDS: Final = {
    Relation.EQUAL: "{}",
    Relation.DIFFERENT: "anything but {}",
    Relation.AT_LEAST: "at least {}",
    Relation.AT_MOST: "at most {}",
    Relation.NEAR: "{} ± {}",
    Relation.RANGE: "{} to {}",
}


def expected_text(condition: Condition, scope: Scope, field: str = "") -> str:
    """Describe the values of a field that a condition accepts."""
    return " or ".join(_condition_text(each, scope, field) for each in (condition, *condition.others))


def _condition_text(condition: Condition, scope: Scope, field: str) -> str:
    if condition.relation is Relation.ANY or _unbound(condition, scope) is not None:
        return "anything"
    try:
        values = [shown(each.value(scope), field) for each in condition.values]
    except ScriptError:
        # The text describes a failure, which may itself be the reason that a name has no value.
        return "a value that this frame does not have"
    return _WORDS[condition.relation].format(*values)


def shown(value: Value, field: str = "") -> str:
    """Format the value of a field briefly: numbers above 255 in hexadecimal too, addresses with colons, long byte
    strings by their beginning."""
    if isinstance(value, int):
        return f"{value} ({value:#x})" if value > 255 else str(value)
    if field in _ADDRESSES and len(value) == ADDRESS_SIZE:
        return mac_text(value)
    if value and all(32 <= each < 127 for each in value) and len(value) <= 24:
        return f'"{value.decode()}"'
    beginning = value[:8].hex()
    return f"{len(value)} bytes {beginning}…" if len(value) > 8 else f"{len(value)} bytes {beginning}".rstrip()


_ADDRESSES: Final = {"dst_mac", "src_mac"}
_NOT_SAID: Final = {*_ADDRESSES, "ethertype", "ptype"}
LONGEST: Final = 160


def packet_of(frame: Frame | Malformed) -> str:
    """Return the packet name of a frame."""
    return "a malformed frame" if isinstance(frame, Malformed) else frame.layout_name.upper()


def field_values(frame: Frame, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of fields, by attribute; ``match`` combines both halves of the match information."""
    values: dict[str, Value] = {}
    for name in names:
        if name == "match":
            values[name] = getattr(frame, "match_a", 0) << 32 | getattr(frame, "match_b", 0)
        else:
            value = getattr(frame, name, None)
            # Some fields exist in one dialect only, and scenarios are played in both.
            values[name] = 0 if value is None else value
    return values


def described(frame: Frame | Malformed) -> str:
    """Describe a frame in one line."""
    if isinstance(frame, Malformed):
        return f"a malformed frame ({frame.reason.text})"
    fields = [
        f"{each.name}={shown(value, each.name)}"
        for each in dataclasses.fields(frame)
        if each.name not in _NOT_SAID and (value := getattr(frame, each.name)) is not None
    ]
    text = f"{packet_of(frame)} {' '.join(fields)}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def expectation_text(step: ExpectStep, conditions: Mapping[str, str]) -> str:
    """Describe the frame that a step expects, with values in place of names."""
    words = [step.packet, *(f"{name}={value}" for name, value in conditions.items())]
    if step.after:
        words.append(f"after {step.after / 1e6:g} ms")
    if step.within is not None:
        words.append(f"within {step.within / 1e6:g} ms")
    return " ".join(words)
