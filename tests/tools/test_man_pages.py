"""Manual pages, as man shows them: complete, without warnings, and with every character of the help."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.cli.catalogue import ENTRIES, TOPICS
from tests.cli.support import mxwire

ROOT = Path(__file__).parents[2]
needs_man = pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")


@pytest.fixture(scope="module")
def share(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    subprocess.run([sys.executable, ROOT / "tools" / "man_pages.py", folder], check=True)
    return folder


def man(*words: object) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    return subprocess.run(["man", *map(str, words)], env=variables, capture_output=True, text=True, check=False)


def test_there_is_a_page_per_command_and_per_topic(share):
    names = {path.name for path in share.glob("man/man?/*")}
    assert names >= {"mxwire.1", "mxwire-plugin-install.1", "mxwire-interop-diff.1"}
    assert names >= {f"mxwire-{name}.1" for name in ENTRIES} | {f"mxwire-{name}.7" for name in TOPICS}
    for path in share.glob("man/man?/*"):
        for name, section in re.findall(r"^\\fB(mxwire\S*)\\fR\((\d)\)", path.read_text(), re.MULTILINE):
            assert f"{name}.{section}".replace("\\-", "-") in names, path


@needs_man
def test_man_shows_all_pages_without_a_warning(share):
    done = man("--warnings", "--local-file", *sorted(share.glob("man/man?/*")))
    assert (done.returncode, done.stderr) == (0, "")


@needs_man
@pytest.mark.parametrize("words", [("decode",), ("scenario", "run"), ("filter",), ("ping",)])
def test_a_page_has_all_words_of_the_help(share, words):
    (page,) = share.glob(f"man/man?/mxwire-{'-'.join(words)}.?")
    shown = man("--local-file", page).stdout
    headings = {
        "Usage:",
        "Options:",
        "Commands:",
        "Shared",
        "options",
        "(mxwire",
        "help",
        "TOPIC):",
        "Examples:",
        *TOPICS,
    }
    missing = set(mxwire("help", *words).out.split()) - set(shown.split()) - headings
    # The name of a page ends without a full stop.
    assert {each for each in missing if each.rstrip(".") not in shown.split()} == set()
