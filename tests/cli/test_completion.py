"""Completion in shells: file names stay, values are offered, and nothing slow is imported."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete

from mxwire.cli import names
from mxwire.cli.main import cli
from mxwire.rules.catalogue import CATALOGUE
from tests.cli.support import ROOT
from tests.examples import examples


def offered(line: str) -> list[CompletionItem]:
    """The completions of click for the last word of a line."""
    *words, begun = line.split(" ")
    return ShellComplete(cli, {}, "mxwire", "_MXWIRE_COMPLETE").get_completions(words[1:], begun)


def values(line: str) -> list[str]:
    return [each.value for each in offered(line) if each.type == "plain"]


@pytest.mark.parametrize(("line", "some"), examples(__file__, "completed-values.txt"))
def test_values_are_offered(line, some):
    begun = line.split(" ")[-1]
    found = values(line)
    assert set(some.split()) <= set(found)
    assert all(each.lower().startswith(begun.lower()) for each in found)


def test_the_last_word_of_an_expression_is_completed():
    def complete(begun: str) -> list[str]:
        return [
            each.value for each in ShellComplete(cli, {}, "mxwire", "_").get_completions(["decode", "--where"], begun)
        ]

    assert {"type", "total_length"} <= set(complete("t")) and complete("role != nac") == ["role != nack"]
    assert "not flags.probe" in complete("not flags.p")
    assert complete("type in (PULL, NACK_") == ["type in (PULL, NACK_LIB", "type in (PULL, NACK_MCP"]
    assert complete("length > 5 a") == ["length > 5 acknowledges", "length > 5 app_key", "length > 5 and"]


@pytest.mark.parametrize("command", ["capture", "messages", "doctor", "ping", "replay"])
def test_interfaces_are_offered(command):
    assert "lo" in values(f"mxwire {command} -i l")


def _parameters() -> Iterator[tuple[str, click.Parameter, click.Context]]:
    def walk(group: click.Group, path: str) -> Iterator[tuple[str, click.Parameter, click.Context]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            for parameter in command.params:
                yield f"{path} {name}", parameter, click.Context(command)
            if isinstance(command, click.Group):
                yield from walk(command, f"{path} {name}")

    yield from walk(cli, "mxwire")


def test_every_file_argument_completes_files():
    tried = 0
    for where, parameter, context in _parameters():
        if not re.search(r"\bFILE|^A$|^B$|OLD|NEW\b|toml", str(parameter.metavar)) or "=" in str(parameter.metavar):
            continue
        tried += 1
        kinds = {each.type for each in parameter.shell_complete(context, "x")}
        assert "file" in kinds, (where, parameter.name)
    assert tried > 20


LINES = (
    "mxwire ",
    "mxwire decode x",
    "mxwire decode --fields x,",
    "mxwire decode --type ",
    "mxwire decode --where ",
    "mxwire decode --ty",
    "mxwire diagnose --only ",
    "mxwire interop --case ",
    "mxwire rules R-",
    "mxwire scenario show ",
    "mxwire simulate --profile ",
    "mxwire perf -i ",
    "mxwire help plugin ",
)
SLOW = """
import os, sys
from mxwire.cli import main
for line in sys.argv[1:]:
    os.environ["COMP_LINE"] = line
    try:
        main()
    except SystemExit:
        pass
    print("offered:", line, sorted({"numpy", "polars", "rich", "numba"} & set(sys.modules)))
"""


def test_completion_imports_nothing_slow():
    """In one process, since only the first offender matters."""
    environment = {"_MXWIRE_COMPLETE": "bash_complete", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", SLOW, *LINES]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.stderr == ""
    *parts, rest = re.split(r"^offered: (.*) (\[.*\])\n", done.stdout, flags=re.MULTILINE)
    assert rest == ""
    assert [(line, slow) for line, slow in zip(parts[1::3], parts[2::3], strict=True)] == [
        (line, "[]") for line in LINES
    ]
    assert all(parts[0::3])


def test_names_are_those_of_the_catalogues():
    """``python -m mxwire.cli.names`` brings them up to date."""
    assert names.TARGET.read_text() == names.text()
    assert set(values("mxwire rules ")) >= set(CATALOGUE)


# Real shells


class Terminal:
    """A shell on a terminal, with completion as the documentation has it."""

    def __init__(self, command: list[str], setup: str, folder: Path) -> None:
        scripts = str(Path(sys.executable).parent)
        self.process, self.master = pty.fork()
        if not self.process:
            os.chdir(folder)
            path = f"{scripts}:/usr/bin:/bin"
            environment = {"PATH": path, "TERM": "xterm", "HOME": str(folder), "PS1": "", "LC_ALL": "C.UTF-8"}
            os.execvpe(command[0], command, environment)
        self.send(f"{setup}; echo re''ady\n")
        self.until("ready")

    def send(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, wanted: str, seconds: float = 30) -> str:
        """The output up to ``wanted``; fails if that is missing."""
        end, seen = time.monotonic() + seconds, ""
        while wanted not in seen:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], f"no {wanted!r} in {seen!r}"
            seen += os.read(self.master, 65536).decode(errors="replace")
        return seen

    def close(self) -> None:
        os.close(self.master)
        os.waitpid(self.process, 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "captures").mkdir()
    for name in ("mxoe-every-type.pcap", "mxoe-other.pcap", "a name.pcap"):
        (folder / "captures" / name).touch()
    return folder


@pytest.fixture(scope="module")
def bash(files: Path) -> Iterator[Terminal]:
    shell = Terminal(["bash", "--norc", "--noprofile", "-i"], 'eval "$(_MXWIRE_COMPLETE=bash_source mxwire)"', files)
    yield shell
    shell.close()


@pytest.fixture(scope="module")
def zsh(files: Path) -> Iterator[Terminal]:
    setup = 'autoload -Uz compinit; compinit -u; eval "$(_MXWIRE_COMPLETE=zsh_source mxwire)"'
    shell = Terminal(["zsh", "-f", "-i"], setup, files)
    yield shell
    shell.close()


def completes(shell: Terminal, typed: str, completed: str) -> None:
    try:
        shell.send(f"{typed}\t")
        shell.until(completed)
    finally:
        shell.send("\x15")
        shell.send("echo re''ady\n")
        shell.until("ready")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("typed", "completed"), examples(__file__, "completed-by-bash.txt"))
def test_bash_completes(bash, typed, completed):
    completes(bash, typed, completed)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(("typed", "completed"), examples(__file__, "completed-by-zsh.txt"))
def test_zsh_completes(zsh, typed, completed):
    completes(zsh, typed, completed)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("typed", "completed"), examples(__file__, "completed-by-fish.txt"))
def test_fish_completes(files, typed, completed):
    script = f"_MXWIRE_COMPLETE=fish_source mxwire | source; complete -C '{typed}'"
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(files), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment, cwd=files
    )
    assert completed in done.stdout.splitlines()
