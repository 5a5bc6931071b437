"""Completions of arguments and options, and the scripts of the shells; imports nothing slow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from mxwire.texts import file_text

Source = Callable[[], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# Generated, since loading the catalogues themselves would delay each completion.
_NAMES: Final = Path(__file__).with_name("names.json")
_RULES: Final = Path(__file__).parents[1] / "rules" / "index.json"
_DIALECTS: Final = ("auto", "mxoe", "omx", "omx:1500", "omx:9000")


# Sources of words


def catalogued(kind: str) -> Source:
    """The names of a catalogue: a key of ``names.json``."""
    return lambda: json.loads(_NAMES.read_text(encoding="utf-8"))[kind]


def packet_types() -> list[str]:
    """Names of the packet types."""
    from mxwire.wire.enums import PacketType

    return list(PacketType.__members__)


def rule_numbers() -> list[str]:
    """Numbers of the rules, and their prefixes (``R-ACK``)."""
    numbers: list[str] = list(json.loads(_RULES.read_text(encoding="utf-8")))
    return [*dict.fromkeys(each.rpartition("-")[0] for each in numbers if each.count("-") > 1), *numbers]


def interfaces() -> list[str]:
    """Network interfaces of this computer."""
    import socket

    return [name for _, name in socket.if_nameindex()]


# Completions


def offers(source: Source, *, listed: bool = False) -> Complete:
    """A completion from the words of a source, in any case; ``listed``: of the last word of a list with commas."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",") if listed else ("", "", incomplete)
        chosen = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{each}")
            for each in source()
            if each.lower().startswith(begun.lower()) and each not in chosen
        ]

    return complete


_WORD: Final = re.compile(r"[\w.]*$")
_TESTED: Final = re.compile(r"\b(type|role)\s*(?:[=!]=|in\s*\(?(?:[\w\s,]*,)?)\s*$")


def expressions(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The last word of an expression: a packet type or role where one is compared, else a field, a flag or a word."""
    found = _WORD.search(incomplete)
    word = found[0] if found else ""
    before = incomplete[: len(incomplete) - len(word)]
    tested = _TESTED.search(before)
    if tested is not None:
        words = packet_types() if tested[1] == "type" else catalogued("role")()
    else:
        flags = [f"flags.{each}" for each in catalogued("flag")()]
        words = [*catalogued("expression")(), *flags, "and", "or", "not", "in"]
    return [CompletionItem(before + each) for each in words if each.lower().startswith(word.lower())]


dialects = offers(lambda: _DIALECTS)
live_dialects = offers(lambda: _DIALECTS[1:])


def folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave folders to the shell."""
    return [CompletionItem(incomplete, type="dir")]


def scenarios(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names and folders of the library's scenarios, one level at a time, and files."""
    level = incomplete.count("/") + 1
    from mxwire.scenarios.shipped import scenario_names

    found = dict.fromkeys(
        "/".join(parts[:level]) + ("/" if len(parts) > level else "")
        for parts in (each.split("/") for each in scenario_names())
    )
    return [
        *(CompletionItem(each) for each in found if each.startswith(incomplete)),
        CompletionItem(incomplete, type="file"),
    ]


def cells(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The next part of ``LEFT/RIGHT/CASE/IMPAIRMENT``."""
    before, slash, begun = incomplete.rpartition("/")
    place = incomplete.count("/")
    kind = ("implementation", "implementation", "case", "impairment")[min(place, 3)]
    end = "/" if place < 3 else ""
    return [CompletionItem(f"{before}{slash}{each}{end}") for each in catalogued(kind)() if each.startswith(begun)]


# Shells


def _open_quote(line: str) -> int | None:
    """The place of an unclosed quote in the line; None if there is none."""
    place: int | None = None
    escaped = False
    for at, each in enumerate(line):
        if escaped:
            escaped = False
        # Within single quotes, a backslash is an ordinary character.
        elif each == "\\" and (place is None or line[place] == '"'):
            escaped = True
        elif place is None and each in "'\"":
            place = at
        elif place is not None and each == line[place]:
            place = None
    return place


class Bash(BashComplete):
    """click's script, with whole words although bash breaks them at colons and equals signs, and files beside words."""

    _begun = _broken = ""

    def source(self) -> str:
        """The script for bash, whose version is checked by starting it."""
        self._check_version()
        return self.script()

    def script(self) -> str:
        """The script for bash of any version."""
        return file_text(__file__, "completion.bash") % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one being typed, and that word."""
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)
        quoted = _open_quote(line)
        self._begun = "" if not words or (line[-1:].isspace() and quoted is None) else words.pop()
        # bash does not break words inside quotes.
        self._broken = self._begun if quoted is None else self._begun[: len(self._begun) - len(line) + quoted + 1]
        return words[1:], self._begun

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Remove the part of the value that bash does not replace."""
        value = str(item.value)
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        for begun in (self._broken, self._broken.partition("=")[2]):
            kept = max((begun.rfind(each) + 1 for each in ":=" if each in breaks), default=0)
            if kept and value.startswith(begun[:kept]):
                value = value[kept:]
                break
        return f"{item.type},{value}"


class _WholeWords(ShellComplete):
    """A shell for which ``--type=PULL`` is one word, so that a completed value must replace the whole word."""

    kinds: tuple[str, ...] = ("plain",)
    """Types of completions that include the option."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The completions, with the option in front."""
        option, equals, _ = incomplete.partition("=")
        found = super().get_completions(args, incomplete)
        if equals and option.startswith("--"):
            for each in found:
                if each.type in self.kinds:
                    each.value = f"{option}={each.value}"
        return found


class Zsh(_WholeWords, ZshComplete):
    """click's script, with values and files after an equals sign."""

    source_template = ZshComplete.source_template.replace("_path_files", "compset -P '--*='; _path_files")


class Fish(_WholeWords, FishComplete):
    """click's script, with values after an equals sign, and commas in the help."""

    source_template = FishComplete.source_template.replace('split ","', 'split -m 1 ","')
    kinds = ("plain", "dir")


def register() -> None:
    """Register these scripts with click."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
