"""Child processes of these tests: each wait is bounded, and one that is late ends with all that it has started."""

from __future__ import annotations

import select
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mxwire.lab.child import ProgramLateError, run_program

LONGEST: Final = 300.0
"""Seconds after which a program is late: several times what any takes beside four others."""


def run(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    timeout: float = LONGEST,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; if it is late, fail with what it has printed. ``check``: its exit code must be 0."""
    try:
        done = run_program([str(word) for word in words], env=env, timeout=timeout, **options)
    except ProgramLateError as late:
        command = shlex.join(map(str, words))
        raise AssertionError(f"{command} has not ended within {timeout:g} s\n{late.output}") from None
    assert not (check and done.returncode), f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done


@contextmanager
def ending(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill a program at the end of the ``with`` block, also after a failure; a Popen alone would wait for it."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of a program that prints one at a time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], LONGEST)
    assert ready, f"{process.args} has printed nothing within {LONGEST:g} s"
    return process.stdout.readline()
