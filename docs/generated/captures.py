"""The index of the included captures."""

from __future__ import annotations

from rendering.basics import CAPTURES


def made() -> str:
    """Return the index of the captures, without its title."""
    return (CAPTURES / "INDEX.md").read_text(encoding="utf-8").partition("\n")[2]
