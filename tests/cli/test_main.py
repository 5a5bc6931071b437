"""The command as a whole: greeting, help, completion, version, speed of start."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest

import mxwire as package
from mxwire.cli.main import COMMANDS, cli
from tests.cli.support import ROOT, mxwire


def test_plain_command_greets_and_shows_the_way():
    run = mxwire()
    assert run.code == 0
    assert all(f"mxwire {command}" in run.out for command in COMMANDS)


def test_version():
    assert mxwire("--version").out == f"mxwire, version {package.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_needs_no_heavy_import(command):
    run = mxwire(command, "--help")
    assert run.code == 0 and "Examples:" in run.out and "--json" in run.out
    script = f"import sys; sys.argv = ['mxwire', '{command}', '--help']\nfrom mxwire.cli import main\ntry: main()\n"
    script += (
        "except SystemExit: pass\nprint(sorted({'numpy', 'polars', 'construct', 'rich', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command):
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    for parameter in found.params:
        assert isinstance(parameter, click.Argument) or parameter.help, parameter.name


def test_module_and_script_are_the_same_command():
    for start in (["-m", "mxwire"], ["cli.py"]):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, cwd=ROOT)
        assert done.stdout.startswith("mxwire, version")


def test_shell_completion():
    environment = {
        "_MXWIRE_COMPLETE": "bash_complete",
        "COMP_WORDS": "mxwire dec",
        "COMP_CWORD": "1",
        "PATH": "/usr/bin:/bin",
    }
    script = "from mxwire.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert re.search(r"\bdecode\b", done.stdout)
