"""Parser of scenarios: the first sign or word of a line determines its step, indentation determines blocks."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from mxwire.scenarios import steps
from mxwire.scenarios.errors import ScriptError, ScriptPlace, suggestion
from mxwire.scenarios.expression import Expression, parse_expression
from mxwire.scenarios.head import Head
from mxwire.scenarios.line_parser import BLOCK_WORDS, FIRST_WORDS, parse_line
from mxwire.scenarios.script import Script
from mxwire.scenarios.tokens import Token, Words, tokens_of
from mxwire.scenarios.vocabulary import has_field, unknown_field

LONGEST_FILE: Final = 1 << 20
DEEPEST_BLOCK: Final = 8


@dataclass(slots=True)
class _ScriptLine:
    place: ScriptPlace
    indent: int
    tokens: list[Token]


def parse(text: str, file: str = "<text>", name: str = "") -> Script:
    """Parse the text of a scenario.

    Raises :class:`~mxwire.scenarios.errors.ScriptError` with file, line and column of an error.
    """
    if len(text) > LONGEST_FILE:
        raise ScriptError(f"{file}: {len(text)} characters exceed the limit of a scenario ({LONGEST_FILE})")
    head = Head()
    lines = _lines(text, file, head)
    body, rest = _block(lines, 0, 0, 0)
    assert rest == len(lines)
    start = ScriptPlace(file, 1, 1, text.partition("\n")[0])
    if not body:
        raise ScriptError("the scenario has no steps: write > to send a frame, < to expect one", start)
    if "title" not in head.values:
        raise ScriptError("the head has no title: write a line like  title: A wrong key is refused", start)
    values: dict[str, Any] = {"rules": (), **head.values}
    script = Script(
        file=file, name=name or file.removesuffix(".mxs"), text=text, steps=body, actors=tuple(head.actors), **values
    )
    check_names(script)
    return script


# Scripts are pickled as their text, since the functions in their steps cannot be.
copyreg.pickle(Script, lambda script: (parse, (script.text, script.file, script.name)))


def _lines(text: str, file: str, head: Head) -> list[_ScriptLine]:
    """Return the lines of the body, after parsing the head."""
    lines: list[_ScriptLine] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        place = ScriptPlace(file, number, indent + 1, line)
        if "\t" in line[:indent]:
            raise ScriptError("indentation with a tab: use spaces", place)
        # The first step ends the head: a later line with a colon is a mistake in a step.
        if not lines and not indent and _may_be_head(bare) and head.take(bare, place):
            continue
        lines.append(_ScriptLine(place, indent, tokens_of(line, file, number)))
    return lines


def _may_be_head(line: str) -> bool:
    # "burst:" has the form of a key without a value.
    return line.partition(":")[0].split(" ")[0] not in BLOCK_WORDS


def _block(lines: list[_ScriptLine], at: int, indent: int, deep: int) -> tuple[tuple[steps.ScenarioStep, ...], int]:
    """Parse the steps of one indentation, starting at line ``at``; return them and the index of the line after them."""
    if deep > DEEPEST_BLOCK:
        raise ScriptError(f"more than {DEEPEST_BLOCK} nested blocks", lines[at].place)
    block: list[steps.ScenarioStep] = []
    while at < len(lines) and lines[at].indent >= indent:
        line = lines[at]
        if line.indent > indent:
            raise ScriptError("this line is indented, but no block is open", line.place)
        words = Words(line.tokens)
        first = words.now.text
        if first in _BLOCKS:
            step, at = _BLOCKS[first](lines, at, words, deep)
            block.append(step)
        elif first == "or":
            raise ScriptError("'or:' has no 'either:' before it", line.place)
        else:
            block.append(parse_line(words, line.place))
            at += 1
    # Fewer spaces than here but more than outside would silently end the wrong block.
    if deep and at < len(lines) and lines[at].indent not in _outer(lines, at):
        raise ScriptError("the indentation matches no block above", lines[at].place)
    return tuple(block), at


def _outer(lines: list[_ScriptLine], at: int) -> set[int]:
    """Return the indentations of the blocks that are open before line ``at``."""
    open_ones: list[int] = []
    for line in lines[:at]:
        while open_ones and open_ones[-1] >= line.indent:
            open_ones.pop()
        open_ones.append(line.indent)
    return set(open_ones)


def _body(lines: list[_ScriptLine], at: int, deep: int) -> tuple[tuple[steps.ScenarioStep, ...], int]:
    """Parse the steps of the block that begins at line ``at``."""
    if at + 1 >= len(lines) or lines[at + 1].indent <= lines[at].indent:
        raise ScriptError("this block has no steps: indent them below it", lines[at].place)
    return _block(lines, at + 1, lines[at + 1].indent, deep + 1)


def _burst(lines: list[_ScriptLine], at: int, words: Words, deep: int) -> tuple[steps.ScenarioStep, int]:
    words.take()
    _colon(words)
    body, end = _body(lines, at, deep)
    _only(body, (steps.SendStep, steps.RepeatStep), "a burst may only contain frames that are sent (>)")
    return steps.BurstStep(lines[at].place, body), end


def _any(lines: list[_ScriptLine], at: int, words: Words, deep: int) -> tuple[steps.ScenarioStep, int]:
    words.take()
    words.expect("order", "after 'any'")
    _colon(words)
    body, end = _body(lines, at, deep)
    expected = tuple(each for each in body if isinstance(each, steps.ExpectStep))
    _only(body, (steps.ExpectStep,), "'any order' may only contain frames that are expected (<)")
    return steps.AnyOrderStep(lines[at].place, expected), end


def _either(lines: list[_ScriptLine], at: int, words: Words, deep: int) -> tuple[steps.ScenarioStep, int]:
    words.take()
    _colon(words)
    place = lines[at].place
    branches = []
    while True:
        body, end = _body(lines, at, deep)
        if not isinstance(body[0], steps.ExpectStep):
            raise ScriptError("each branch must begin with the frame (<) that selects it", body[0].place)
        branches.append(body)
        if end >= len(lines) or lines[end].indent != place.column - 1 or lines[end].tokens[0].text != "or":
            break
        at = end
        words = Words(lines[at].tokens)
        words.take()
        _colon(words)
    if len(branches) < 2:
        raise ScriptError("'either:' needs an 'or:' after it", place)
    return steps.EitherStep(place, tuple(branches)), end


def _repeat(lines: list[_ScriptLine], at: int, words: Words, deep: int) -> tuple[steps.ScenarioStep, int]:
    words.take()
    count = parse_expression(words)
    name = words.bound("a name").text[1:] if words.accept("as") else ""
    _colon(words)
    body, end = _body(lines, at, deep)
    return steps.RepeatStep(lines[at].place, count, body, name), end


def _colon(words: Words) -> None:
    words.expect(":")
    words.end()


def _only(body: tuple[steps.ScenarioStep, ...], kinds: tuple[type, ...], text: str) -> None:
    for each in body:
        if not isinstance(each, kinds):
            raise ScriptError(text, each.place)
        if isinstance(each, steps.RepeatStep):
            _only(each.body, kinds, text)


_BLOCKS: Final[dict[str, Callable[[list[_ScriptLine], int, Words, int], tuple[steps.ScenarioStep, int]]]] = {
    "burst": _burst,
    "any": _any,
    "either": _either,
    "repeat": _repeat,
}
assert set(_BLOCKS) | {"or"} == set(BLOCK_WORDS) and not set(BLOCK_WORDS) & set(FIRST_WORDS)


def check_names(script: Script) -> None:
    """Raise :class:`~mxwire.scenarios.errors.ScriptError` at the first unbound name or undeclared tester."""
    testers = {"", *(each.name for each in script.actors)}
    for step in steps.walk(script.steps):
        for name in (getattr(step, "tester", ""), getattr(step, "to", "")):
            if name not in testers:
                known = suggestion(name, testers - {""})
                raise ScriptError(f"unknown tester {name}{known} (declare it in the head: tester: {name})", step.place)
    _ScriptNames().body(script.steps)


class _ScriptNames:
    """Names bound so far, each with its packet if it stands for frames of one packet; else empty."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    def body(self, body: Iterable[steps.ScenarioStep]) -> None:
        for step in body:
            self.step(step)

    def step(self, step: steps.ScenarioStep) -> None:
        match step:
            case steps.SendStep():
                self.use(step.fields.values())
                for patch in step.patches:
                    self.use((patch.offset, patch.value))
                self.use(each for each in (step.cut, step.pad) if each is not None)
                self.bind(step.bind, step.packet)
            case steps.ExpectStep():
                self.conditions(step.fields.values())
                self.bind(step.bind, step.packet)
            case steps.CallStep():
                self.use(step.arguments.values())
                self.target(step.target, step)
                self.bind(step.bind, "")
            case steps.CheckStep():
                self.target(step.target, step)
                self.conditions(step.conditions.values())
            case steps.LetStep():
                self.use([step.value])
                self.bind(step.name, "")
            case steps.RepeatStep():
                self.use([step.count])
                self.bind(step.name, "")
                self.body(step.body)
            case steps.BurstStep() | steps.AnyOrderStep():
                self.body(step.body)
            case steps.EitherStep():
                for branch in step.branches:
                    self.body(branch)

    def bind(self, name: str, packet: str) -> None:
        if name:
            # Branches may bind a name to frames of different packets.
            self.bound[name] = packet if self.bound.get(name, packet) == packet else ""

    def target(self, name: str, step: steps.ScenarioStep) -> None:
        if name and name not in self.bound:
            raise ScriptError(f"${name} has no value yet{suggestion('$' + name, self._shown())}", step.place)

    def conditions(self, conditions: Iterable[steps.Condition]) -> None:
        for condition in conditions:
            only = condition.relation is steps.Relation.EQUAL and not condition.others
            if only and condition.values[0].alone:
                self.bound.setdefault(condition.values[0].alone, "")
                continue
            for each in (condition, *condition.others):
                self.use(each.values)

    def use(self, expressions: Iterable[Expression]) -> None:
        for each in expressions:
            for name, _, field in sorted(used.partition(".") for used in each.names):
                if name not in self.bound:
                    raise ScriptError(
                        f"${name} has no value yet: nothing before this line binds it"
                        f"{suggestion('$' + name, self._shown())}",
                        each.place,
                    )
                packet = self.bound[name]
                if field and packet and not has_field(packet, field):
                    raise ScriptError(unknown_field(packet, field), each.place)

    def _shown(self) -> list[str]:
        return [f"${each}" for each in self.bound]
