"""Live hosts that share a network in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from mxwire.host import Endpoint, Host
from mxwire.link import Link, MemoryNetwork

from .agents import attached, interface_name

PATIENCE = 60.0
"""Seconds after which a wait that should end at once fails: a slow machine must not fail a test."""


class Pair:
    """Two hosts with an endpoint each, alpha connected to beta's endpoint 3; ``options`` are alpha's. With ``agent``,
    the host of that name is attached to an agent, with ``match`` or ``card`` progress: "card of alpha"."""

    def __init__(self, stack: ExitStack, agent: str = "", **options: Any) -> None:
        self.network = MemoryNetwork()
        self.links = links = self.network.attach(interface_name("a")), self.network.attach(interface_name("b"))
        known = {"peers": {links[1].address: "beta:0"}}
        progress, _, name = agent.partition(" of ")
        mine, other = (progress if name == each else "" for each in ("alpha", "beta"))
        self.alpha = stack.enter_context(_open(links[0], mine, name="alpha", **known | options))
        # Long messages of beta pass through the channel, those of alpha are copied once.
        copies = {"single_copy": False} if other else {}
        self.beta = stack.enter_context(_open(links[1], other, name="beta", **copies))
        self.one: Endpoint = self.alpha.open_endpoint(0)
        self.two: Endpoint = self.beta.open_endpoint(3)
        self.partner = self.one.connect("beta", 3, timeout=PATIENCE)


without_agent = pytest.mark.parametrize("pair", [""], indirect=True, ids=["plain"])
"""For a test of something that an agent does for its applications, or of the engine inside a host."""


def _open(link: Link, agent: str, **options: Any) -> AbstractContextManager[Host]:
    return attached(link, agent=agent, **options) if agent else Host(link, **options)


@pytest.fixture
def network() -> MemoryNetwork:
    """A hub."""
    return MemoryNetwork()


@pytest.fixture(params=["", *(f"{each} of {name}" for each in ("match", "card") for name in ("alpha", "beta"))])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two connected hosts, of which one may be attached to an agent."""
    with ExitStack() as stack:
        yield Pair(stack, request.param)
