"""Copies of the messages of a program in C, counted in a traced process with several threads."""

from __future__ import annotations

import os
import platform

import pytest

from mxwire.bench.roles import program
from mxwire.bench.roles.tracing import PROGRAM_MARK, TracedCalls, trace
from mxwire.bench.testbed import NamespaceTestbed, TestbedOptions
from mxwire.errors import MxwireError
from mxwire.myriexpress.build import Installation

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


def test_the_calls_of_a_program_are_counted_beside_a_host(installation: Installation, monkeypatch: pytest.MonkeyPatch):
    """Both sides of ``bench path`` make the same number of trips, so that neither waits for another one."""
    monkeypatch.setattr(program, "last_prefix", lambda: installation.prefix)
    size, count = 4096, 3
    with NamespaceTestbed(TestbedOptions()) as testbed:
        partner, port = testbed.sides[1], testbed.ports[0]
        partner.start(
            "traced trips", {"carrier": "mxoe", "spin": False, "traced_active": True, "size": size, "count": count}
        )
        partner.ready()
        try:
            with port.namespace.inside():
                found = program.traced_library(port.interface, testbed.addresses[1], size, count)
        except MxwireError as error:
            pytest.skip(str(error))
        assert partner.result() == {}
    assert found["system calls"] > 0 and size < found["bytes to the kernel"] < 2 * size
