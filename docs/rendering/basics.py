"""Where things are, how wide output is, and what is raised where a page cannot be made."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "captures"
OUTPUT_WIDTH = 100
"""Columns of the terminal that commands are shown in."""


class PageError(Exception):
    """A page that cannot be made: a command or a block of it fails, or a marker is not understood."""
