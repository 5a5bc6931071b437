"""Live hosts that share a network in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mxwire.host import Endpoint, Host
from mxwire.link import MemoryNetwork

PATIENCE = 20.0
"""Seconds after which a wait that should end at once fails: a slow machine must not fail a test."""


class Pair:
    """Two hosts with an endpoint each, alpha connected to beta's endpoint 3; ``options`` are alpha's."""

    def __init__(self, stack: ExitStack, **options: Any) -> None:
        self.network = MemoryNetwork()
        links = self.network.attach("a"), self.network.attach("b")
        known = {"peers": {links[1].address: "beta:0"}}
        self.alpha = stack.enter_context(Host(links[0], name="alpha", **known | options))
        self.beta = stack.enter_context(Host(links[1], name="beta"))
        self.one: Endpoint = self.alpha.open_endpoint(0)
        self.two: Endpoint = self.beta.open_endpoint(3)
        self.partner = self.one.connect("beta", 3, timeout=PATIENCE)


@pytest.fixture
def network() -> MemoryNetwork:
    """A hub."""
    return MemoryNetwork()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two connected hosts."""
    with ExitStack() as stack:
        yield Pair(stack)
