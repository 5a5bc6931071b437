"""Copies that an agent makes of a message that a program sends to itself, counted by tracing the agent.

The memory of the message is shared (``endpoint.allocate()``), so that the agent reads and writes it as a network
processor does that sees the memory of applications; or it is reached through the kernel, which copies then; or neither
is permitted, and the message passes through the rings of the channel.
"""

from __future__ import annotations

import os
import select
from functools import partial
from typing import Any, Final, cast

import numpy as np

from mxwire.bench.intranode.local_path import interface_name
from mxwire.bench.roles.copies import RECEIVED, SENT
from mxwire.bench.roles.tracing import mark_message, trace
from mxwire.errors import MxwireError
from mxwire.host import Host
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing
from mxwire.lab.child import forked
from mxwire.link import MemoryNetwork
from mxwire.protocol.agent.records import PLACE

WAYS: Final = ("shared", "through the kernel", "through the rings")
"""Ways to the memory of a program."""
_RINGS: Final = ("mxwire-local",)
"""Part of the name of the mapped rings."""
_PATIENCE: Final = 60.0


def agent_copies(way: str, size: int, messages: int) -> dict[str, float]:
    """Bytes copied per byte of a message: by the agent itself, and in its calls of the kernel.

    Messages should be longer than a record. Raises :class:`~mxwire.errors.MxwireError` if this system does not permit
    tracing.
    """
    found = trace(lambda: _serve(way, size, messages), messages, rings=_RINGS if way == WAYS[2] else ())
    counts = {"by the kernel": float(found.sent + found.received)}
    if found.copied is not None:
        counts["by the agent"] = float(found.copied[SENT] + found.copied[RECEIVED])
    return {name: count / messages / size for name, count in counts.items()}


def _serve(way: str, size: int, messages: int) -> None:
    """Run an agent with a program that sends messages, each after a mark; the first one is not counted."""
    interface = interface_name()
    told, telling = os.pipe()
    asked, asking = os.pipe()
    link, sharing = MemoryNetwork().attach(interface), MachineSharing([interface])
    with (
        Host(link, sharing=sharing, name="local", announce=False, background=False) as host,
        Agent(host, single_copy=way != WAYS[2]) as agent,
    ):
        # A child is not traced, unlike a thread.
        forked(partial(_send, interface, way == WAYS[0], size, asked, telling))
        # The end of the program is that of the pipe.
        os.close(telling)
        os.close(asked)

        def wait() -> bytes:
            agent.run(_PATIENCE, over=lambda: bool(select.select([told], [], [], 0)[0]))
            answer = os.read(told, PLACE.size) if select.select([told], [], [], 0)[0] else b""
            if not answer:
                raise MxwireError("the program of the agent has ended, or does not answer")
            return answer

        place, _ = PLACE.unpack(wait())
        os.write(asking, b"\0")
        wait()
        start = 0
        if way == WAYS[0]:
            [client] = agent.clients
            seen = client.served.segments_at(PLACE.pack(place, size)).view(0, size)
            start = cast("np.ndarray[Any, Any]", seen).ctypes.data
        for _ in range(messages):
            mark_message(start, size if start else 0)
            os.write(asking, b"\0")
            wait()
        os.getppid()


def _send(interface: str, shared: bool, size: int, asked: int, telling: int) -> None:
    """Send a message per byte that arrives, and confirm each."""
    with Host.open(interface, agent=True, background=False) as host, host.open_endpoint() as endpoint:
        source, target = (endpoint.allocate(size) if shared else memoryview(bytearray(size)) for _ in range(2))
        os.write(telling, PLACE.pack(np.frombuffer(source, np.uint8).ctypes.data, size))
        while os.read(asked, 1):
            posted, send = endpoint.ireceive(1, buffer=target), endpoint.isend(endpoint.own_partner, source, 1)
            endpoint.wait_all([posted, send], _PATIENCE)
            os.write(telling, b"\0")
