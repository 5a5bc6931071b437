"""The tables of ``docs/wireshark.md``: all display-filter names, generated from the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from mxwire.dissector.location import documentation_path
from mxwire.dissector.names import expert_rows, filter_rows


def filter_table() -> str:
    """Return all fields, as a Markdown table."""
    rows = ((f"`{each.name}`", each.kind, each.where, each.meaning) for each in filter_rows())
    return _table(("filter", "type", "packets", "meaning"), rows)


def expert_table() -> str:
    """Return all expert infos, as a Markdown table."""
    rows = ((f"`{each.name}`", each.severity, each.group, each.meaning) for each in expert_rows())
    return _table(("filter", "severity", "group", "meaning"), rows)


TABLES: Final[dict[str, Callable[[], str]]] = {"filters": filter_table, "experts": expert_table}
"""The tables by the name in the page's markers, ``<!-- BEGIN filters -->`` and ``<!-- END filters -->``."""


def page() -> str:
    """Return the page with current tables and its text unchanged."""
    text = documentation_path().read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- BEGIN {name} -->\n", f"<!-- END {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if found and closed:
            text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def is_current() -> bool:
    """Return whether the tables of the page are current."""
    return page() == documentation_path().read_text(encoding="utf-8")


def write() -> bool:
    """Update the page; return True if it was stale."""
    if is_current():
        return False
    documentation_path().write_text(page(), encoding="utf-8")
    return True


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
