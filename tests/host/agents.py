"""Agents on links in memory: in a thread of the test, and in a process of their own."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mxwire.host import Host
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing
from mxwire.link import Link
from tests.forked import ROOT, program


def interface_name(prefix: str) -> str:
    """A name that no other process uses; more names would fill the peer table of all processes."""
    return f"{prefix}{os.getpid()}"


AGENT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from mxwire.host import Host
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
link, sharing = MemoryNetwork().attach(sys.argv[1]), MachineSharing([sys.argv[1]])
with Host(link, name=sys.argv[2], sharing=sharing, background=False, announce=False) as host, Agent(host) as agent:
    print("ready", flush=True)
    agent.run()
"""


ECHO = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from mxwire.host import Host
from tests.host.local_ranks import opened
interface, number, copies, name, agent = sys.argv[1:]
with opened(Host, interface, int(copies), name, agent) as host:
    endpoint = host.open_endpoint(int(number))
    print("ready", flush=True)
    while True:
        message = endpoint.receive()
        endpoint.send(message.partner, message.data, message.match_info)
"""


def echo(
    interface: str,
    number: int = 2,
    copies: int = 1,
    *,
    name: str = "ranks",
    agent: str = "",
    namespace: str | None = None,
) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process with an endpoint that sends all messages back; the options are those of :func:`local_ranks.opened`."""
    return program(ECHO, interface, number, copies, name, agent, namespace=namespace)


def agent_program(interface: str, name: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """An agent whose host has a name, on an interface without a wire."""
    return program(AGENT, interface, name)


@contextmanager
def running_agent(host: Host, *, single_copy: bool = True) -> Iterator[Agent]:
    """An agent on a host, in a thread of this process."""
    over = threading.Event()
    with Agent(host, single_copy=single_copy) as agent:
        thread = threading.Thread(target=lambda: agent.run(over=over.is_set))
        thread.start()
        try:
            yield agent
        finally:
            over.set()
            thread.join()


@contextmanager
def agent_on(link: Link, *, single_copy: bool = True, **options: Any) -> Iterator[Agent]:
    """An agent whose host runs on a link; the link's name is that of its interface."""
    sharing = MachineSharing([link.name])
    with (
        Host(link, sharing=sharing, background=False, **options) as host,
        running_agent(host, single_copy=single_copy) as agent,
    ):
        yield agent


@contextmanager
def attached(link: Link, **options: Any) -> Iterator[Host]:
    """A host that is attached to an agent on a link; ``options`` are those of the agent's host, except ``spin``,
    ``background`` and ``agent`` (the progress), which are the attached host's."""
    own = {each: options.pop(each) for each in ("spin", "background", "agent") if each in options}
    with agent_on(link, **options), Host.open(link.name, **{"agent": True} | own) as host:
        yield host
