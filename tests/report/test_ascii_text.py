"""Output in locales without UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.streams import Stream
from tests.cli.support import EVERY_TYPE, ROOT
from tests.forked import CLI, fork_server

OF_PYTHON = ("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE")
OF_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


def shown(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a new process, in which Python chooses the encoding."""
    rest = {name: value for name, value in os.environ.items() if name not in OF_PYTHON + OF_LOCALE}
    command = [sys.executable, CLI, *map(str, words)]
    return subprocess.run(command, env=rest | environment, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("environment", "is_ascii"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX", "LC_ALL": ""}, True),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, True),
        ({"LC_ALL": "de_DE.ISO-8859-1"}, True),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, True),
        ({"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, True),
        ({"PYTHONIOENCODING": "latin-1"}, True),
        ({"LC_ALL": "C.UTF-8"}, False),
        ({"LC_CTYPE": "C.utf8"}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, False),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, False),
        ({}, False),
    ],
)
def test_the_locale_decides(environment: dict[str, str], is_ascii: bool) -> None:
    ran = shown("decode", "--frames", "41", EVERY_TYPE, **environment)
    assert ran.returncode == 0 and not ran.stderr
    assert ran.stdout.isascii() == is_ascii
    words = ran.stdout.decode().split()
    assert words[2:6] == (["vm1:0", ">", "vm2:0", "5>3"] if is_ascii else ["vm1:0", "→", "vm2:0", "5→3"])


def test_names_outside_of_ascii_do_not_break_an_error() -> None:
    ran = shown("info", "größe-\N{MULTIPLICATION SIGN}-日.pcap", LC_ALL="C")
    assert ran.returncode == 2 and ran.stderr == b"mxwire: gro?e-x-?.pcap: no such file; check the path\n"


def test_cut_lines_fit_a_terminal_without_utf_8() -> None:
    """An ellipsis consists of three characters there."""
    for words in (["decode", str(EVERY_TYPE)], ["follow", "1", str(EVERY_TYPE)], ["stats", str(EVERY_TYPE)]):
        out, err = Stream(terminal=True), Stream(terminal=False)
        environment = os.environ | {"LC_ALL": "C", "COLUMNS": "80", "NO_COLOR": "1"}
        nothing = os.open(os.devnull, os.O_RDONLY)
        code = fork_server().run(words, ROOT, [nothing, out.theirs, err.theirs], environment)
        os.close(nothing)
        text, said = out.end().decode("ascii"), err.end()
        assert code == 0, said
        assert max(map(len, text.splitlines())) <= 80
    assert "..." not in said.decode()


@pytest.mark.parametrize(
    "words", [["--help"], ["help", "perf"], ["bench", "logp", "--help"], ["rules", "-v"], ["--bad"]]
)
def test_help_and_errors_are_ascii(words: list[str]) -> None:
    ran = shown(*words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert ran.stdout.isascii() and ran.stderr.isascii() and (ran.stdout or ran.stderr)
