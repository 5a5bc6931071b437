"""Paths, the width of outputs, and the error for pages that cannot be rendered."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "captures"
SHOWN = (CAPTURES, ROOT / "docs")
"""Folders that commands on a page see, under their names in a checkout."""
OUTPUT_WIDTH = 100
"""Width of the terminal for command outputs, in columns."""


class PageError(Exception):
    """A page that cannot be rendered: a command or a Python block fails, or a marker is unknown."""
