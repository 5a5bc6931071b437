"""The generator of the documentation, imported as mkdocs imports it: with its folder on the path during the import."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

sys.path.insert(0, str(DOCS))
try:
    from generated import PARTS
    from rendering import output
    from rendering.basics import OUTPUT_WIDTH, PageError
    from rendering.packages import declared
    from rendering.packet_pages import packet_pages
    from rendering.page import refreshed, render
finally:
    sys.path.remove(str(DOCS))

__all__ = ["DOCS", "OUTPUT_WIDTH", "PARTS", "PageError", "declared", "output", "packet_pages", "refreshed", "render"]
