"""Outputs of commands."""

from __future__ import annotations

import os
import subprocess
import sys

from rendering.basics import OUTPUT_WIDTH, PageError

ANSWERS = {"diagnose": (0, 1), "compat": (0, 1)}
"""Accepted exit codes of commands whose exit code is a result."""

ENVIRONMENT = {"COLUMNS": str(OUTPUT_WIDTH), "PYTHONIOENCODING": "utf-8"}
"""Environment variables of the commands, in addition to those of this process."""


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run mxwire; both of its output streams are the result's standard output."""
    return subprocess.run(
        [sys.executable, "-m", "mxwire", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=os.environ | ENVIRONMENT,
        timeout=120,
        check=False,
    )


def command_output(command: str, first: int = 1, last: int = 0, page: str = "") -> str:
    """Return a block with a command and its output, from line ``first`` to line ``last`` (0: to the end)."""
    program, *arguments = command.split()
    if program != "mxwire":
        raise PageError(f"{page}: only mxwire commands are run, not {command!r}")
    done = run(arguments)
    if done.returncode not in ANSWERS.get(arguments[0] if arguments else "", (0,)):
        raise PageError(f"{page}: {command!r} ends with exit code {done.returncode}: {done.stdout.strip()}")
    output = done.stdout.rstrip("\n").split("\n")
    if first > len(output):
        raise PageError(f"{page}: {command!r} prints {len(output)} lines, so there is no line {first}")
    shown = output[first - 1 : last or None]
    output = [*["…"][: first - 1], *shown, *["…"][: len(output) - (first - 1 + len(shown))]]
    return "\n".join(["```console", f"$ {command}", *output, "```"])
