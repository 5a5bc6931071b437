"""Random calls with wrong arguments, from several threads: each returns, and none crashes."""

from __future__ import annotations

import subprocess

import pytest

from .conftest import SOURCES, Compile


@pytest.mark.parametrize(("seed", "threads", "words"), [(1, 1, ()), (2, 5, ()), (200, 6, ("restart",))])
def test_wrong_calls_return_codes(
    compile_program: Compile, alone: dict[str, str], seed: int, threads: int, words: tuple[str, ...]
):
    """With ``restart``, threads also end and start the library while others wait in it."""
    command = [compile_program(SOURCES / "garbage.c"), str(seed), str(threads), "2000", *words]
    variables = alone | {"MXWIRE_DISCOVERY": "0.05", "MXWIRE_LINGER": "0.1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
