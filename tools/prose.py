"""Refuse expressions that the contributor guide rules out, and suggest the term to write instead.

    python tools/prose.py [FILES ...]

Checked are docstrings, comments and texts of Python files (help, errors, headings), Markdown, texts of the help, titles
and comments of scenarios, comments and texts of the Wireshark plugin, and comments of the Makefile and of TOML files;
of tests, the docstrings, comments and names of tests, since their other texts are data. The expressions are those
quoted in the last column of the glossary in CONTRIBUTING.md, and the patterns below. Code spans and quoted text are not
prose. Without FILES the whole tree is checked, except what is PENDING. Each offence is one line with file, line,
expression and suggestion; the exit code is then 1.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PENDING: list[str] = []
"""Files and folders that have not been rewritten yet, relative to ROOT."""
CHECKED = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.py",
    "mxwire/**/*.py",
    "mxwire/**/*.txt",
    "mxwire/**/*.md",
    "mxwire/**/*.toml",
    "tools/*",
    "benchmarks/**/*.py",
    "tests/**/*.py",
)
CHECKED += ("examples/*.toml", "captures/*.md", "replay/**/*.mxs", "dissectors/**/*.lua", "Makefile", "pyproject.toml")
UNITS = r"(?:second|minute|frame|line|message|host|file|page|case|cell|row|column|rule|length|object|block|packet|pair)"
NOUN = r"(?!(?:if|is|or|and|as|in|of)\b)\w+"
VERBS = r"(?:\w+s|has|had|was|can|may|must|will|would|that|which|of)"
END = r"\n\s*\n"
CLAUSE = rf"(?:(?!{END})[^.?!:])*"
SUGGESTIONS = {
    rf"\b(?:an?|one|few|\d[\d,]*)\s+{NOUN}\s+an?\s+{UNITS}\b(?!\s+{VERBS}\b)": "per",
    r"\b(?:(?:frame|message|byte|packet|call|time|run|line)s|replies|\d\S*)\s+a\s+second\b": "per second",
    r"(?<!there )\b(?:is|are|was|were)\s+no\s+(?!(?:longer|more|less|need|one|\w+er)\b)[a-z]+": "is not a …, has no …",
    r"(?<!there )\b(?:is|are|was|were)\s+(?-i:none)\b(?!\s+of)": "is absent, is None",
    r"\b(?:held|hold|holds|holding)\s+(?:\w+\s+){0,3}against\b": "check against, compare with",
    r"\blet(?:s|ting)?\s+(?:\w+\s+){1,4}leave\b": "transmit",
    rf"(?:(?<=[.!?] )|^(?:#+ |\* |- )?)(?-i:What|Who)\s(?!to\b){CLAUSE}(?:[.!]|(?={END})|\Z)": "a noun as the subject",
}
"""Patterns refused anywhere, in addition to the glossary, each with the suggestion."""
FIRST = r"\A\s*(?:What|Who|Whose|Whether|Where|How)\b"
"""Refused at the beginning of a docstring."""
NAME = r"\A(?:where|how|whether)\b|\b(?:what|who)(?:ever)?\b"
"""Refused in the name of a test."""

STRING_OR_COMMENT = re.compile(
    r'''(?s)"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^'\\]|\\.|'(?!\'\'))*\'\'\''''
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?P<comment>\#[^\n]*)"""
)
"""The parts of Python's grammar that decide which text is a comment; tokenizing all of it takes ten times as long.
"""


@cache
def glossary() -> dict[str, str]:
    """Return the expressions that the glossary refuses, longest first, each with its term."""
    found = {}
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Glossary")[2].partition("\n## ")[0]
    for line in table.splitlines():
        term, _, last = line.strip("| ").partition("|")
        for phrase in re.findall(r'"([^"]+)"', last.rpartition("|")[2]):
            found[phrase.lower()] = term.strip()
    if not found:
        raise SystemExit("CONTRIBUTING.md has no glossary")
    # "asked for again" before "asked for"
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


@cache
def refused() -> tuple[tuple[re.Pattern[str], str | None], ...]:
    """Return the patterns refused anywhere, each with its suggestion; None for that of the glossary."""
    # One pattern for all expressions: a search takes about as long for one as for all.
    phrases = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in glossary())
    others = [(re.compile(pattern, re.I | re.M), instead) for pattern, instead in SUGGESTIONS.items()]
    return (re.compile(rf"\b(?:{phrases})\b", re.I), None), *others


class Kind(Enum):
    """Kinds of prose, with patterns of their own: their expression and suggestion."""

    DOCSTRING = FIRST, "an imperative or a noun phrase; Return whether …, True if …"
    NAME = NAME, "a noun as the subject"
    OTHER = r"(?!)", ""


def texts(path: Path) -> Iterator[tuple[int, str, Kind]]:
    """Yield the prose of a file: its first line, the text, and its kind."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, re.sub(r"(?ms)^ *```.*?^ *```|<!--.*?-->", _blank, source), Kind.OTHER
    elif path.suffix == ".py" or source.startswith("#!/usr/bin/env python"):
        yield from _python(source, tests=path.name.startswith("test_") or path.is_relative_to(ROOT / "tests"))
    elif path.suffix == ".toml" and path.is_relative_to(ROOT / "mxwire"):
        yield 1, source, Kind.OTHER
    elif path.suffix == ".txt":
        yield 1, re.sub(r"(?m)^ .*", "", source), Kind.OTHER  # indented lines are examples
    elif path.suffix == ".lua":
        for found in re.finditer(r'--([^\n]*(?:\n[ \t]*--[^\n]*)*)|"((?:[^"\\\n]|\\.)*)"', source):
            yield source.count("\n", 0, found.start()) + 1, (found[1] or found[2] or "").replace("--", "  "), Kind.OTHER
    else:
        for number, line in enumerate(source.splitlines(), 1):
            if found := re.match(r"\s*#(?!!)(.*)|(?:title|about|history):(.*)", line):
                yield number, found[1] or found[2] or "", Kind.OTHER


def _python(source: str, *, tests: bool) -> Iterator[tuple[int, str, Kind]]:
    comment: list[tuple[int, str]] = []  # consecutive lines, since an expression may be broken between two
    line, end = 1, 0
    for found in STRING_OR_COMMENT.finditer(source):
        if found["comment"] is None:
            continue
        line += source.count("\n", end, found.start())
        end = found.start()
        if comment and line > comment[-1][0] + 1:
            yield comment[0][0], "\n".join(text for _, text in comment), Kind.OTHER
            comment = []
        comment.append((line, found["comment"].lstrip("# ")))
    if comment:
        yield comment[0][0], "\n".join(text for _, text in comment), Kind.OTHER
    documented = set()
    for node in ast.walk(ast.parse(source)):  # parents first
        if isinstance(node, ast.Expr):
            documented.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documented:
                yield node.lineno, node.value, Kind.DOCSTRING
            elif not tests:
                yield node.lineno, node.value, Kind.OTHER
        elif tests and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_").replace("_", " "), Kind.NAME


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def offences(path: Path) -> Iterator[str]:
    """Yield a line for each refused expression in a file."""
    for first, text, kind in texts(path):
        prose = re.sub(r'``[^`]+``|`[^`\n]+`|"[^"\n]*"', lambda found: "~" * len(found[0]), text)
        taken: list[range] = []
        for pattern, instead in ((re.compile(kind.value[0]), kind.value[1]), *refused()):
            for found in pattern.finditer(prose):
                if not any(found.start() in each or found.end() - 1 in each for each in taken):
                    taken.append(range(*found.span()))
                    line = first + text.count("\n", 0, found.start())
                    words = " ".join(found[0].split())
                    suggestion = instead or glossary()[words.lower()]
                    yield f"{os.path.relpath(path)}:{line}: {words!r}: write {suggestion}"


def main(arguments: list[str]) -> int:
    """Return the exit code: 1 if anything is refused."""
    paths = [Path(each).resolve() for each in arguments] or sorted(
        path
        for pattern in CHECKED
        for path in ROOT.glob(pattern)
        if path.is_file() and not path.relative_to(ROOT).as_posix().startswith(tuple(PENDING))
    )
    found = [line for path in paths for line in offences(path)]
    print("\n".join(found) or f"{len(paths)} checked, and nothing to improve")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
