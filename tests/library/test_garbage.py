"""Random calls with wrong arguments, from several threads: each returns, and none crashes."""

from __future__ import annotations

import pytest

from .conftest import SOURCES, Compile
from .programs import run


@pytest.mark.parametrize(("seed", "threads", "words"), [(1, 1, ()), (2, 5, ()), (200, 6, ("restart",))])
def test_wrong_calls_return_codes(
    compile_program: Compile, alone: dict[str, str], seed: int, threads: int, words: tuple[str, ...]
):
    """With ``restart``, threads also end and start the library while others wait in it."""
    command = [compile_program(SOURCES / "garbage.c"), str(seed), str(threads), "2000", *words]
    variables = alone | {"MXWIRE_DISCOVERY": "0.05", "MXWIRE_LINGER": "0.1"}
    done = run(command, env=variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
