"""Parser of single lines: the steps that are not blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mxwire.scenarios import steps, vocabulary
from mxwire.scenarios.conditions import parse_condition
from mxwire.scenarios.errors import ScriptError, ScriptPlace, suggestion
from mxwire.scenarios.expression import Expression, parse_expression
from mxwire.scenarios.tokens import Token, Words, nanoseconds

BLOCK_WORDS: Final = ("burst", "any", "either", "or", "repeat")
_SUBJECTS: Final[dict[str, Mapping[str, Any]]] = {
    "counters": vocabulary.COUNTERS,
    "events": vocabulary.EVENTS,
    "peer": vocabulary.PEER,
}
_FLAGS: Final = {"send": ("synchronous",)}
_LEVELS: Final = (steps.ExpectationLevel.SHOULD, steps.ExpectationLevel.INFO)
"""Words that lower the level of an expectation."""


def parse_line(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    """Parse the step in a line."""
    token = words.now
    parse = _FIRST.get(token.text)
    if parse is None or token.kind not in ("sign", "name"):
        first = ", ".join(repr(each) for each in (*FIRST_WORDS, *BLOCK_WORDS))
        hint = suggestion(token.text, [*FIRST_WORDS, *BLOCK_WORDS]) if token.kind == "name" else ""
        hint = hint if hint.startswith(": did") else f": one of {first}"
        raise token.error(f"a step cannot begin with {token.shown}{hint}")
    words.take()
    step = parse(words, place)
    words.end()
    return step


def _packet(words: Words) -> str:
    token = words.name("a packet, like TINY")
    packet = vocabulary.packet_named(token.text)
    if packet is None:
        raise token.error(vocabulary.unknown_packet(token.text))
    return packet


def _tester(words: Words) -> str:
    return words.name("the name of a tester").text if words.accept("@") else ""


def _bind(words: Words) -> str:
    return _new_name(words) if words.accept("as") else ""


def _new_name(words: Words) -> str:
    token = words.bound("a name")
    if "." in token.text:
        raise token.error(f"{token.text} cannot be bound: names have no dot")
    return token.text[1:]


def _level(words: Words) -> steps.ExpectationLevel:
    found = words.accept(*_LEVELS)
    return steps.ExpectationLevel(found.text) if found else steps.ExpectationLevel.MUST


def _duration(words: Words, what: str) -> int:
    token = words.take()
    if token.kind != "duration":
        raise token.error(f"expected a time {what}, like 20ms, found {token.shown}")
    return nanoseconds(token)


# > TINY length=5


def _send(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    tester = _tester(words)
    packet = _packet(words)
    fields: dict[str, Expression] = {}
    patches: list[steps.Patch] = []
    ends: dict[str, Expression] = {}
    while words.now.kind == "name" and words.now.text != "as":
        token = words.take()
        if token.text == "at" and words.accept("("):
            offset = parse_expression(words)
            words.expect(")")
            words.expect("=")
            patches.append(steps.Patch(offset, parse_expression(words)))
            continue
        words.expect("=", f"after {token.text}")
        if token.text in fields or token.text in ends:
            raise token.error(f"{token.text} is given twice")
        if token.text in ("cut", "pad"):
            ends[token.text] = parse_expression(words)
        elif vocabulary.has_field(packet, token.text) or token.text in vocabulary.OWN_FIELDS.get(packet, {}):
            fields[vocabulary.attribute_of(packet, token.text)] = _typed(packet, token, parse_expression(words))
        else:
            raise token.error(vocabulary.unknown_field(packet, token.text))
    return steps.SendStep(place, packet, fields, tester, tuple(patches), ends.get("cut"), ends.get("pad"), _bind(words))


def _typed(packet: str, token: Token, value: Expression) -> Expression:
    """Return ``value``; raise unless its type (number or bytes) fits the field."""
    takes_bytes = vocabulary.is_bytes(packet, token.text)
    if value.constant is not None and isinstance(value.constant, bytes) is not takes_bytes:
        raise token.error(f"{token.text} needs {'bytes' if takes_bytes else 'a number'}, and the value is not")
    return value


# < TRUC lib_seqnum=2 within 20ms


def _expect(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    if words.now.text in ("nothing", "no") and words.now.kind == "name":
        return _silence(words, place)
    tester = _tester(words)
    packet = _packet(words)
    fields: dict[str, steps.Condition] = {}
    after, within = 0, None
    while words.now.kind == "name" and words.now.text not in (
        "as",
        steps.ExpectationLevel.SHOULD,
        steps.ExpectationLevel.INFO,
    ):
        token = words.take()
        if token.text == "within":
            within = _duration(words, "after 'within'")
        elif token.text == "after":
            after = _duration(words, "after 'after'")
        elif vocabulary.has_field(packet, token.text):
            name = vocabulary.attribute_of(packet, token.text)
            if name in fields:
                raise token.error(f"{token.text} is given twice")
            fields[name] = _fitting(packet, token, parse_condition(words))
        elif words.now.kind == "duration":
            raise token.error(f"times are given with within and after, not with {token.text}")
        else:
            raise token.error(vocabulary.unknown_field(packet, token.text))
    # Such a step fails against any host, and would look like a defect of the host.
    if within is not None and within < after:
        raise ScriptError("the frame could never arrive: 'within' ends before 'after'", place)
    level, bind = _level(words), _bind(words)
    return steps.ExpectStep(place, packet, fields, tester, after, within, level, bind)


def _fitting(packet: str, token: Token, condition: steps.Condition) -> steps.Condition:
    for each in (condition, *condition.others):
        for value in each.values:
            _typed(packet, token, value)
    return condition


def _silence(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    packets: list[str] = []
    if words.take().text == "no":
        packets.append(_packet(words))
        while words.accept("or", ","):
            packets.append(_packet(words))
    words.expect("for")
    duration = _duration(words, "after 'for'")
    return steps.SilenceStep(place, duration, tuple(packets), _level(words))


# ! receive length=100 as $r


def _call(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    token = words.name("a call of the application")
    if token.text not in vocabulary.VERBS:
        raise token.error(f"applications cannot {token.text}{suggestion(token.text, vocabulary.VERBS)}")
    takes = vocabulary.VERBS[token.text]
    target = to = ""
    if token.text in vocabulary.VERBS_OF_A_TARGET:
        target = words.bound(f"a value to {token.text}").text[1:]
    arguments: dict[str, Expression] = {}
    flags: set[str] = set()
    while words.now.kind == "name" and words.now.text != "as":
        word = words.take()
        if word.text == "to" and words.now.text == "@":
            to = _tester(words)
        elif word.text == "on":
            target = words.bound("an endpoint").text[1:]
        elif word.text in _FLAGS.get(token.text, ()):
            flags.add(word.text)
        elif word.text in takes:
            words.expect("=", f"after {word.text}")
            arguments[word.text] = parse_expression(words)
        else:
            raise word.error(f"{token.text} does not take {word.text}{suggestion(word.text, takes)}")
    return steps.CallStep(place, token.text, arguments, frozenset(flags), target, to, _bind(words))


# ? $r status=success


def _check(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    target = tester = subject = ""
    if words.now.kind == "value":
        target = words.take().text[1:]
        known: Mapping[str, Any] = vocabulary.RESULTS
    else:
        token = words.name("a subject, like $receive or counters")
        subject = token.text
        if subject not in _SUBJECTS:
            raise token.error(f"unknown subject {subject}{suggestion(subject, _SUBJECTS)}")
        known = _SUBJECTS[subject]
        tester = _tester(words)
    conditions: dict[str, steps.Condition] = {}
    while words.now.kind == "name" and words.now.text not in (
        steps.ExpectationLevel.SHOULD,
        steps.ExpectationLevel.INFO,
    ):
        token = words.take()
        if token.text not in known:
            raise token.error(f"{subject or 'a result'} has no {token.text}{suggestion(token.text, known)}")
        conditions[token.text] = parse_condition(words)
    if not conditions:
        raise words.now.error("a condition is needed, like status=success")
    return steps.CheckStep(place, subject, conditions, target, tester, _level(words))


def _wait(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    return steps.WaitStep(place, _duration(words, "to wait"))


def _let(words: Words, place: ScriptPlace) -> steps.ScenarioStep:
    name = _new_name(words)
    words.expect("=")
    return steps.LetStep(place, name, parse_expression(words))


_FIRST: Final[dict[str, Callable[[Words, ScriptPlace], steps.ScenarioStep]]] = {
    ">": _send,
    "<": _expect,
    "!": _call,
    "?": _check,
    "wait": _wait,
    "let": _let,
}
FIRST_WORDS: Final = tuple(_FIRST)
