"""Texts of the package that are data: plain ones, Markdown with tables, and TOML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def file_text(module: str, name: str) -> str:
    """Return the text of a file beside ``module`` (its ``__file__``)."""
    return Path(module).parent.joinpath(name).read_text(encoding="utf-8")


def table_rows(module: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of all tables of a Markdown file beside ``module``, each with the heading above its table."""
    heading, below_head = "", False
    for line in file_text(module, name).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|-"):
            below_head = True
        elif not line.startswith("|"):
            below_head = False
        elif below_head:
            yield heading, [cell.strip() for cell in line.split("|")[1:-1]]


def meanings(module: str, name: str, heading: str) -> dict[str, str]:
    """Return the tables of two columns below a heading of a Markdown file beside ``module``."""
    return {word: meaning for found, (word, meaning) in table_rows(module, name) if found == heading}


def entries(module: str, name: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file beside ``module`` by name; line breaks in their texts are spaces."""
    import tomllib  # only if a text is shown

    tables = tomllib.loads(file_text(module, name))
    return {name: {key: _fold(value) for key, value in table.items()} for name, table in tables.items()}


def _fold(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    return tuple(map(_fold, value)) if isinstance(value, list) else value
