"""The display-filter names of the plugin, read from its tables, for the documentation and tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mxwire.analysis.marks import FLAGS
from mxwire.dissector.location import plugin_path
from mxwire.dissector.tables import filter_fields
from mxwire.texts import meanings

EXPERT_PREFIX: Final = "mxoe."

_EXPERT: Final = re.compile(r'^  \{ "([\w.]+)", "(\w+)", "(\w+)", "((?:[^"\\]|\\.)*)" \},$', re.MULTILINE)
_EXTRA: Final = re.compile(r'^  \{ "([\w.]+)", "(\w+)", "((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)" \},$', re.MULTILINE)
_TYPES: Final = meanings(__file__, "words.md", "Types")


@dataclass(frozen=True, slots=True)
class FilterRow:
    """One display-filter field."""

    name: str
    kind: str
    meaning: str
    where: str
    """Packet types that contain the field; ``generated`` for fields that the plugin adds."""


@dataclass(frozen=True, slots=True)
class ExpertRow:
    """One expert information."""

    name: str
    group: str
    severity: str
    meaning: str


def filter_rows() -> list[FilterRow]:
    """Return every field of the formats, then those that the plugin adds."""
    rows = [
        FilterRow(f"mxoe.{each.name}", _TYPES[each.type], each.meaning, ", ".join(each.layouts))
        for each in filter_fields()
    ]
    extra = _section("EXTRA")
    rows += [
        FilterRow(f"mxoe.{name}", _TYPES.get(kind, kind), meaning, "generated")
        for name, kind, _, meaning in _EXTRA.findall(extra)
    ]
    return rows


def expert_rows() -> list[ExpertRow]:
    """Return every expert information of the plugin."""
    found = _EXPERT.findall(_section("EXPERT"))
    found += ((f"analysis.{name}", "sequence", each.severity, each.meaning) for name, each in FLAGS.items())
    return [ExpertRow(EXPERT_PREFIX + name, group, severity, text) for name, group, severity, text in found]


def _section(name: str) -> str:
    """Return the table ``name`` of the hand-written part."""
    text = plugin_path().read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\nlocal {name} = {{\n")
    return rest.partition("\n}\n")[0] + "\n"
