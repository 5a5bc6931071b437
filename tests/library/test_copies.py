"""Copies of the messages of a program in C, counted in a traced process with several threads."""

from __future__ import annotations

import os
import platform

import pytest

from mxwire.bench.roles.tracing import PROGRAM_MARK, TracedCalls, trace
from mxwire.errors import MxwireError

from .conftest import SOURCES, Compile


@pytest.fixture
def copied(compile_program: Compile, alone: dict[str, str]):
    program = str(compile_program(SOURCES / "copies.c"))

    def run(size: int, count: int) -> dict[str, int]:
        words = [program, str(size), str(count), f"{PROGRAM_MARK:x}"]
        try:
            found: TracedCalls = trace(lambda: os.execve(program, words, alone), count)
        except MxwireError as error:
            pytest.skip(str(error))
        if found.copied is None:
            pytest.skip(f"copies are not counted on {platform.machine()}")
        return found.copied

    return run


@pytest.mark.parametrize(("size", "least", "most"), [(1000, 2, 3), (100_000, 1, 2)])
def test_copies_between_endpoints_of_a_program(copied, size, least, most):
    """Buffered messages are copied into the ring and out of it; large ones at least from one buffer to the other."""
    found = copied(size, 3)
    assert least <= found["sent"] / (3 * size) <= most
    assert found["received"] == 0
