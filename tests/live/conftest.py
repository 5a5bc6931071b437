"""Real interfaces for tests: network namespaces, joined by virtual Ethernet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import bpf
from .namespaces import Laboratory, Port


@pytest.fixture(scope="session")
def _programs_work() -> None:
    """Skips tests where the kernel permits no BPF programs."""
    why_not = bpf.missing()
    if why_not:
        pytest.skip(why_not)


@pytest.fixture
def laboratory(_namespaces_work: None) -> Iterator[Laboratory]:
    """Makes machines and cables, which are gone after the test."""
    with Laboratory() as made:
        yield made


@pytest.fixture
def cable(laboratory: Laboratory) -> tuple[Port, Port]:
    """Two machines joined by a cable of MTU 1500: veth0 in the one, veth1 in the other."""
    return laboratory.pair()


@pytest.fixture
def jumbo_cable(laboratory: Laboratory) -> tuple[Port, Port]:
    """The same with MTU 9000."""
    return laboratory.pair(9000)


@pytest.fixture(scope="module")
def shared_laboratory(_namespaces_work: None) -> Iterator[Laboratory]:
    """The same for all tests of a module."""
    with Laboratory() as made:
        yield made


@pytest.fixture(scope="module")
def ports(shared_laboratory: Laboratory) -> tuple[Port, Port]:
    """One cable of MTU 9000 for all tests of a module, which leave it as it is."""
    return shared_laboratory.pair(9000)
