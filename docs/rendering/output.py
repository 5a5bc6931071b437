"""What commands print."""

from __future__ import annotations

import os
import subprocess
import sys

from rendering.basics import OUTPUT_WIDTH, PageError

ANSWERS = {"diagnose": (0, 1), "compat": (0, 1)}
"""Exit codes of commands that say something by them, without having failed."""


def command_output(command: str, lines: int = 0, page: str = "") -> str:
    """A block with a command and what it prints; the first ``lines`` lines, if that is not 0."""
    program, *arguments = command.split()
    if program != "mxwire":
        raise PageError(f"{page}: only mxwire commands are run, not {command!r}")
    environment = os.environ | {"COLUMNS": str(OUTPUT_WIDTH), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "mxwire", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )
    if done.returncode not in ANSWERS.get(arguments[0] if arguments else "", (0,)):
        raise PageError(f"{page}: {command!r} ends with exit code {done.returncode}: {done.stdout.strip()}")
    output = done.stdout.rstrip("\n").split("\n")
    if 0 < lines < len(output):
        output = [*output[:lines], "…"]
    return "\n".join(["```console", f"$ {command}", *output, "```"])
