"""Index of the places where each rule is implemented, judged and tested, from its number in the source.

A rule's number in a docstring, a comment, a table or a test marker relates the surrounding symbol to the rule. The
places are kept in ``index.json`` beside this file, because an installed package has no tests to scan.
``python -m mxwire.rules.index`` rewrites that file, ``--check`` reports whether it is current.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from mxwire.rules import chapters  # registers the rules
from mxwire.rules.catalogue import CATALOGUE
from mxwire.rules.chapters.encapsulation import MALFORMED
from mxwire.rules.registry import RULES

__all__ = ["Places", "chapters", "places", "scan"]

TARGET: Final = Path(__file__).with_name("index.json")
ENGINE: Final = "mxwire/protocol"
TESTS: Final = ("tests", "replay")
"""Folders with tests, and with scenarios, which are played against the engine and against live hosts."""
NOT_A_TEST: Final = "tests/rules/test_index.py"
"""Excluded, because it lists the rules without a test."""
_MALFORMED_AT: Final = "mxwire/rules/chapters/encapsulation.py:MALFORMED"

_NUMBER: Final = re.compile(r"\b(?:(R-[A-Z]+-)(\d\d)|(D-)(\d{1,2})|(W-)(\d(?:\.\d+)?))\b")
_RANGE: Final = re.compile(r"\b((?:R-[A-Z]+|D)-)(\d{1,2}) (?:to|through) \1(\d{1,2})\b")


@dataclass(frozen=True, slots=True)
class Places:
    """Places of a rule, each as ``path:symbol`` with the path from the root of the repository."""

    engine: tuple[str, ...] = ()
    """Places in the engine, ``mxwire/protocol``."""
    judge: tuple[str, ...] = ()
    """Functions that judge the rule."""
    tests: tuple[str, ...] = ()
    """Tests of the rule and their tables, and scenarios."""


@cache
def places() -> dict[str, Places]:
    """Return the places of every rule of the catalogue, as of the last scan."""
    stored = json.loads(TARGET.read_text(encoding="utf-8"))
    return {
        number: Places(**{kind: tuple(found) for kind, found in stored.get(number, {}).items()}) for number in CATALOGUE
    }


@dataclass(slots=True)
class _Found:
    engine: set[str] = field(default_factory=set)
    judge: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)


def scan(root: Path) -> dict[str, Places]:
    """Scan the checkout at ``root`` and return the places of every rule of the catalogue."""
    collected = {number: _Found() for number in CATALOGUE}
    for rule in RULES:
        for number in (rule.number, *rule.also):
            collected[number].judge.add(rule.symbol)
    for number, _ in MALFORMED.values():
        collected[number].judge.add(_MALFORMED_AT)
    for number, place in _mentions(root, ENGINE):
        if number in collected:
            collected[number].engine.add(place)
    for folder in TESTS:
        for number, place in _mentions(root, folder):
            if number in collected and not place.startswith(NOT_A_TEST):
                collected[number].tests.add(place)
    return {
        number: Places(tuple(sorted(each.engine)), tuple(sorted(each.judge)), tuple(sorted(each.tests)))
        for number, each in collected.items()
    }


def _mentions(root: Path, below: str) -> Iterator[tuple[str, str]]:
    """Yield the rule numbers below a folder, each with its surrounding symbol."""
    for path in sorted(each for each in (root / below).rglob("*") if each.suffix in (".py", ".toml", ".mxs")):
        source = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        symbols = _symbols(source) if path.suffix == ".py" else []
        for line, text in enumerate(source.splitlines(), 1):
            for number in numbers_in(text):
                symbol = _around(symbols, line)
                yield number, f"{name}:{symbol}" if symbol else name


def numbers_in(text: str) -> Iterator[str]:
    """Yield the rule numbers in a text; ``R-MED-02 to R-MED-04`` yields three."""
    for match in _RANGE.finditer(text):
        prefix, first, last = match.groups()
        width = len(first)
        # Both ends are found below, as numbers of their own.
        yield from (f"{prefix}{number:0{width}}" for number in range(int(first) + 1, int(last)))
    for match in _NUMBER.finditer(text):
        yield match[0]


def _symbols(source: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and dotted name of every function and class, outer ones first."""
    symbols: list[tuple[int, int, str]] = []

    def walk(nodes: Iterable[ast.AST], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                symbols.append((first, node.end_lineno or first, prefix + node.name))
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name):
                    symbols.append((node.lineno, node.end_lineno or node.lineno, prefix + target.id))
            elif isinstance(node, ast.If):
                walk(node.body, prefix)

    walk(ast.parse(source).body, "")
    return symbols


def _around(symbols: list[tuple[int, int, str]], line: int) -> str:
    """Return the innermost symbol around a line: a function, a class or a module-level variable."""
    around = [each for each in symbols if each[0] <= line <= each[1]]
    return around[-1][2] if around else ""


def _text(found: dict[str, Places]) -> str:
    return json.dumps({number: asdict(each) for number, each in found.items()}, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Write the file, or with ``--check`` return 1 if it is out of date."""
    text = _text(scan(Path(__file__).parents[2]))
    if arguments == ["--check"]:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET.name} is {'current' if current else 'stale: run python -m mxwire.rules.index'}")
        return 0 if current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
