"""The head of a scenario: lines of ``key: value``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import Any, Final

from mxwire.protocol import PROFILES, Defect, Profile
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.rules.catalogue import CATALOGUE
from mxwire.scenarios.errors import ScriptError, ScriptPlace, suggestion
from mxwire.scenarios.script import DIALECTS, TesterDeclaration
from mxwire.scenarios.tokens import nanoseconds, tokens_of
from mxwire.scenarios.vocabulary import packet_named, unknown_packet

_LINE: Final = re.compile(r"([a-z][a-z-]*)\s*:(?:\s+(.*))?$")
_SETTINGS: Final = {each.name: each for each in dataclasses.fields(Profile) if each.name not in ("name", "about")}


class Head:
    """The settings collected from the head, line by line."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.actors: list[TesterDeclaration] = []

    def take(self, line: str, place: ScriptPlace) -> bool:
        """Parse a line; return False if it does not belong to the head."""
        match = _LINE.match(line)
        if match is None:
            return False
        key, text = match[1], (match[2] or "").strip()
        if key not in KEYS:
            raise ScriptError(f"the head has no key {key!r}{suggestion(key, KEYS)}", place)
        at = dataclasses.replace(place, column=place.column + (match.start(2) if match[2] else len(key)))
        if key != "tester" and _NAMES.get(key, key) in self.values:
            raise ScriptError(f"{key!r} is given twice", place)
        if not text:
            raise ScriptError(f"{key!r} has no value", place)
        KEYS[key](self, text, at)
        return True


def _text(key: str) -> Callable[[Head, str, ScriptPlace], None]:
    def take(head: Head, text: str, place: ScriptPlace) -> None:
        head.values[key] = text

    return take


def _words(text: str, place: ScriptPlace) -> list[tuple[str, ScriptPlace]]:
    """Split a list into words, each with its position."""
    return [
        (each[0], dataclasses.replace(place, column=place.column + each.start()))
        for each in re.finditer(r"[^\s,]+", text)
    ]


def _list(key: str, known: Collection[str], error: str) -> Callable[[Head, str, ScriptPlace], None]:
    """Return the parser of a list of ``known`` words; ``error`` has places for an unknown word and its suggestion."""

    def take(head: Head, text: str, place: ScriptPlace) -> None:
        found = _words(text, place)
        for word, at in found:
            if word not in known:
                raise ScriptError(error.format(word, suggestion(word, known)), at)
        head.values[key] = tuple(word for word, _ in found)

    return take


def _choice(key: str, choices: dict[str, Any]) -> Callable[[Head, str, ScriptPlace], None]:
    def take(head: Head, text: str, place: ScriptPlace) -> None:
        if text not in choices:
            raise ScriptError(f"{text!r} is not one of {', '.join(choices)}", place)
        head.values[key] = choices[text]

    return take


def _ignored(head: Head, text: str, place: ScriptPlace) -> None:
    ignored = set()
    for word, at in _words(text, place):
        packet = packet_named(word)
        if packet is None:
            raise ScriptError(unknown_packet(word), at)
        ignored.add(packet)
    head.values["ignored"] = frozenset(ignored)


def _within(head: Head, text: str, place: ScriptPlace) -> None:
    tokens = tokens_of(text, place.file, place.line)
    if len(tokens) != 2 or tokens[0].kind != "duration":
        raise ScriptError(f"{text!r} is not a time: write it like 100ms", place)
    head.values["within"] = nanoseconds(tokens[0])


def _host(head: Head, text: str, place: ScriptPlace) -> None:
    """Parse ``name=value`` of profile fields; ``defects=D-5,D-6``."""
    settings: dict[str, Any] = {}
    for each in re.finditer(r"\S+", text):
        at = dataclasses.replace(place, column=place.column + each.start())
        name, equals, value = each[0].partition("=")
        if name not in _SETTINGS or not equals:
            raise ScriptError(f"hosts have no setting {name}{suggestion(name, _SETTINGS)}", at)
        settings[name] = _setting(name, value, at)
    head.values["host"] = settings


def _setting(name: str, value: str, place: ScriptPlace) -> Any:
    if name == "defects":
        for each in value.split(","):
            if each not in [defect.value for defect in Defect]:
                raise ScriptError(
                    f"hosts have no defect {each}{suggestion(each, [one.value for one in Defect])}", place
                )
        return frozenset(Defect(each) for each in value.split(","))
    if value == "default":
        return getattr(OPEN_MX_1_5, name)
    if value in ("yes", "no"):
        return value == "yes"
    if re.fullmatch(r"\d{1,20}", value):
        return int(value)
    raise ScriptError(f"{name} needs a number, yes, no or default, not {value!r}", place)


def _tester(head: Head, text: str, place: ScriptPlace) -> None:
    """Parse ``NAME endpoint=7 host=2 unknown``."""
    words = _words(text, place)
    name, at = words[0]
    if not re.fullmatch(r"[a-z]\w*", name):
        raise ScriptError(f"{name!r} is not a valid name for a tester: use a word like second", at)
    if name in [each.name for each in head.actors]:
        raise ScriptError(f"there are two testers called {name}", at)
    values: dict[str, Any] = {"endpoint": 5, "host": 1}
    for word, at in words[1:]:
        key, _equals, value = word.partition("=")
        if word in ("unknown", "nameless"):
            values["known" if word == "unknown" else "named"] = False
        elif key in ("endpoint", "host", "interface") and re.fullmatch(r"\d{1,3}", value) and int(value) < 256:
            values[key] = int(value)
        else:
            raise ScriptError(
                f"{word!r} is not a property of a tester: use endpoint=N, host=N, interface=N, unknown, nameless", at
            )
    head.actors.append(TesterDeclaration(name, **values))


_NAMES: Final = {"ignore": "ignored", "verdict": "info", "only-simulated": "only_simulated"}
KEYS: Final[dict[str, Callable[[Head, str, ScriptPlace], None]]] = {
    "title": _text("title"),
    "about": _text("about"),
    "history": _text("history"),
    "rules": _list("rules", CATALOGUE, "unknown rule {}{} (mxwire rules lists them)"),
    "dialects": _list("dialects", DIALECTS, "unknown dialect {!r}{}"),
    "connected": _choice("connected", {each: each for each in ("no", "once", "both")}),
    "profile": _choice("profile", {each: each for each in PROFILES}),
    "host": _host,
    "endpoint": _choice("endpoint", {"open": True, "none": False}),
    "discovery": _choice("discovery", {each: each for each in ("no", "listen", "announce")}),
    "only-simulated": _text("only_simulated"),
    "harmful": _text("harmful"),
    "within": _within,
    "ignore": _ignored,
    "tester": _tester,
    "verdict": _choice("info", {"info": True}),
}
"""Keys of the head, with their parsers."""
