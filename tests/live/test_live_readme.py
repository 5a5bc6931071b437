"""The session that the README offers to copy works as shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .namespaces import Namespace

ROOT = Path(__file__).parents[2]
LONGEST = 400
PATIENT = {
    "discover -i veth1": "discover -i veth1 -c 1 --duration 60",
    "-c 5": "-c 5 --answer-timeout 60 --timeout 60",
    "-N 20 -E 100000": "-N 1 -E 5000",
}
"""Replacements in the session, so that a slow machine fails no test and no time is lost."""


@pytest.fixture
def session(tmp_path: Path) -> str:
    """The block, for root, with namespaces that no other test has."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- try: one machine -->\n+```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    session = block[1].replace("sudo ", "").replace(".venv/bin/mxwire", f"{sys.executable} {ROOT / 'cli.py'}")
    for short, patient in PATIENT.items():
        assert session.count(short) >= 1, short
        session = session.replace(short, patient)
    for place, name in enumerate(("left", "right")):
        session = re.sub(rf"(netns (?:add|del|exec|pids)|ip -n|netns) {name}\b", rf"\1 {name_of(place)}", session)
    return session


def name_of(place: int) -> str:
    return f"mxwire-test-{os.getpid()}-0-{'ab'[place]}"


def test_the_session_of_the_readme_works(_namespaces_work: None, session: str, tmp_path: Path) -> None:
    assert session.count(name_of(0)) == 6 and session.count(name_of(1)) == 6, session
    # Into a file: what the session leaves running in the background would hold a pipe open.
    output = tmp_path / "output"
    try:
        command = ["bash", "-e", "-o", "pipefail", "-c", session]
        with output.open("w") as file:
            code = subprocess.run(command, cwd=tmp_path, stdout=file, stderr=file, timeout=LONGEST).returncode
    finally:
        for place in range(2):
            Namespace(name_of(place)).remove()
    said = output.read_text()
    assert code == 0, said
    assert re.search(r"^[0-9a-f:]{17}  alpha:0 +\d+  mxoe ", said, re.MULTILINE)
    assert said.count("5 transmitted, 5 received, 0% loss") == 2
    assert "veth1: no problems, " in said
    assert re.search(r"^length +4096:", said, re.MULTILINE)
    # The recording continues until the measurement has ended: its longest messages are there, in both directions.
    assert re.search(r"^MEDIUM +129\.\.4096 +\d+", said, re.MULTILINE), said
    assert len(re.findall(r"^length +\d+:", said, re.MULTILINE)) == 14
