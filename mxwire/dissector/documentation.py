"""The tables of ``docs/wireshark.md``: all names for display filters, made from the plugin's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from mxwire.dissector.location import documentation_path
from mxwire.dissector.names import expert_rows, filter_rows


def filter_table() -> str:
    """All fields, as a Markdown table."""
    rows = ((f"`{each.name}`", each.kind, each.where, each.meaning) for each in filter_rows())
    return _table(("filter", "is", "in", "meaning"), rows)


def expert_table() -> str:
    """All expert infos, as a Markdown table."""
    rows = ((f"`{each.name}`", each.severity, each.group, each.meaning) for each in expert_rows())
    return _table(("filter", "severity", "group", "says"), rows)


TABLES: Final[dict[str, Callable[[], str]]] = {"filters": filter_table, "experts": expert_table}
"""By the name that the page's markers have: ``<!-- BEGIN filters -->`` and ``<!-- END filters -->``."""


def page() -> str:
    """The page as it ought to be: its text as it stands, its tables anew."""
    text = documentation_path().read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- BEGIN {name} -->\n", f"<!-- END {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if found and closed:
            text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def is_current() -> bool:
    """Whether the page has the tables that the plugin gives."""
    return page() == documentation_path().read_text(encoding="utf-8")


def write() -> bool:
    """Bring the page up to date; True if it was not."""
    if is_current():
        return False
    documentation_path().write_text(page(), encoding="utf-8")
    return True


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
