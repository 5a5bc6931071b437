"""The pictures of the documentation show what the commands show today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "pictures.py"


def test_no_picture_is_stale() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("the pictures are current\n", 0), done.stdout + done.stderr


def test_each_picture_is_made_by_the_tool() -> None:
    """And no picture is left over."""
    known = set(re.findall(r'^    "([\w-]+\.(?:png|svg))": ', TOOL.read_text(), re.MULTILINE))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"!\[[^]]*\]\((?:docs/)?images/([^)]+)\)", page.read_text())}
    present = {each.name for each in (ROOT / "docs" / "images").iterdir()} - {"sources.json"}
    assert shown == known == present
