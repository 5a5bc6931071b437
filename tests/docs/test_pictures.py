"""The pictures of the documentation show what the commands show today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
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


def test_the_recording_of_a_terminal_repeats_and_is_readable_on_a_phone() -> None:
    text = (ROOT / "docs" / "images" / "terminal.svg").read_text(encoding="utf-8")
    picture = ElementTree.fromstring(text)
    width = float(picture.attrib["viewBox"].split()[2])
    assert all(f"mxwire {command}" in text for command in ("decode", "diagnose", "perf"))
    assert "20s step-end infinite" in text and "prefers-color-scheme: dark" in text
    assert "prefers-reduced-motion" in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    font = re.search(r"font: (\d+)px", text)
    assert font is not None and float(font[1]) * 358 / width >= 8, "pixels, on a page of 390"
    ends = [float(each.attrib["x"]) + float(each.attrib["textLength"]) for each in picture.iter(f"{SVG}text")]
    assert 0.9 * width < max(ends) < width


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 170
