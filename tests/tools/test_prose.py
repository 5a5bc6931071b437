"""tools/prose.py finds refused expressions in every kind of file, and accepts plain English."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PYTHON = '''"""Whether frames are sent."""
from pathlib import Path

LIMIT = 4
"""Who sends these."""

# The frames that are sent
# again, until their partner acknowledges.
def send() -> None:
    """Transmit frames. What is due leaves first."""
    raise ValueError(f"{LIMIT} captures were held against the rules")


option(help="One line a frame.")
'''
PLANTED = {
    "bad.py": (
        PYTHON,
        [
            ("1", "Whether", "Return whether"),
            ("5", "Who", "a noun phrase"),
            ("7", "sent again", "retransmit"),
            ("10", "What is due leaves first.", "a noun"),
            ("11", "held against", "check against"),
            ("14", "One line a frame", "per"),
        ],
    ),
    "test_bad.py": (
        'async def test_who_is_told():\n    """Whether."""\n    assert text == "told"  # told\n\n\ndef told(): ...\n',
        [("1", "who", "a noun"), ("1", "told", "report"), ("2", "Whether", "Return whether"), ("3", "told", "report")],
    ),
    "bad.md": (
        "# What a host is made of\n\nIt is no host,\nand goes\non in `what is sent anew`.\n\n```sh\nsent again\n```\n",
        [("1", "# What a host is made of", "a noun"), ("3", "is no host", "is not"), ("4", "goes on", "continue")],
    ),
    "bad.lua": (
        '-- The partner is\n-- given up.\nlocal text = "asked for again" -- a frame a line\n',
        [("2", "given up", "abandon"), ("3", "asked for again", "re-request"), ("3", "a frame a line", "per")],
    ),
    "bad.mxs": ("title: Whoever asks is told\n> PULL\n", [("1", "Whoever", "caller"), ("1", "told", "report")]),
    "bad.toml": ("# found out from frames\nname = 'anew'\n", [("1", "found out", "detect")]),
}
GOOD = {
    "good.py": '''"""Return the frames per second; True if ``timely``. Is there no limit? What is sent?"""

# A message a host sends has a second layout; it is no longer than 4 bytes.
TEXT = "there is no host, and there are none; 75 frames a host sends are retransmitted"
QUOTED = """Its text is "given up", and ``anew`` is code."""
''',
    "good.md": "## What is lost?\n\nEach frame that a host sends gets a second layout.\n\n3. A packet\n4. A block\n",
    "good.mxs": "title: A host retransmits\n> PULL somebody=1\n",
}


def run(*files: Path) -> tuple[int, list[str]]:
    """Return the exit code and the lines printed."""
    command = [sys.executable, str(ROOT / "tools" / "prose.py"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("name", PLANTED)
def test_planted_offences_are_found_where_they_are(tmp_path: Path, name: str) -> None:
    text, expected = PLANTED[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    code, lines = run(tmp_path / name)
    assert code == 1
    assert len(lines) == len(expected), lines
    for line, found, instead in expected:
        matching = [each for each in lines if f"{name}:{line}: '{found}': " in each]
        assert len(matching) == 1, (found, lines)
        assert instead in matching[0].partition(": write ")[2]


@pytest.mark.parametrize("name", GOOD)
def test_plain_english_is_accepted(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(GOOD[name], encoding="utf-8")
    assert run(tmp_path / name) == (0, ["1 checked, and nothing to improve"])


def test_expressions_of_the_glossary_are_refused(tmp_path: Path) -> None:
    glossary = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Glossary")[2]
    rows = [
        line.strip("| ").split("|") for line in glossary.partition("\n## ")[0].splitlines() if line.startswith("| ")
    ]
    assert len(rows) > 60
    refused = [(phrase, row[0].strip()) for row in rows for phrase in row[-1].split('"')[1::2]]
    assert len(refused) > 60
    path = tmp_path / "all.md"
    path.write_text("\n\n".join(f"It {phrase} x." for phrase, _ in refused), encoding="utf-8")
    _, lines = run(path)
    assert [each for each in refused if not any(f"{each[0]!r}: write {each[1]}" in line for line in lines)] == []
