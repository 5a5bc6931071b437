"""An agent as an adapter that copies between two programs, which are attached to it.

*Adapter copy*: messages, as by the loopback of a card. *Token put* and *token get*: registered memory, as in Kaput and
LiMIC: a program registers memory once and passes its token, and the other one has the agent put or get data. Neither
program's processor copies, and neither needs a permission for the other; the agent's does both.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import ClassVar, Final

from mxwire.bench.intranode.local_path import MxMechanism, interface_name
from mxwire.bench.intranode.mechanism import GetMechanism, MechanismError, OneSided, Piece, PutMechanism
from mxwire.bench.intranode.registration import RegistrationCache
from mxwire.host import Host
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing
from mxwire.lab.child import forked
from mxwire.lab.machine import agent_processor, pin, placement
from mxwire.link import MemoryNetwork

_KEPT: Final = 64
"""Unused regions that stay registered."""


class AgentProcess:
    """An agent in a process of its own, on an interface without a wire; ended by the process that has started it.

    It runs on a processor beside those of both sides; if there is none, on ``processor``, which it shares (None: any).
    """

    def __init__(self, interface: str, processor: int | None = None) -> None:
        reading, writing = os.pipe()

        def run() -> None:
            os.close(reading)
            third = agent_processor()
            pin(processor if third is None else third)
            _serve(interface, writing)

        self._agent = forked(run)
        os.close(writing)
        self._owner = os.getpid()
        with os.fdopen(reading, "rb") as ready:
            if not ready.read(1):
                self.close()
                raise MechanismError("the agent cannot start")

    def close(self) -> None:
        """End the agent, unless another process has started it."""
        if os.getpid() == self._owner:
            os.kill(self._agent, signal.SIGKILL)
            os.waitpid(self._agent, 0)


def _serve(interface: str, ready: int) -> None:
    sharing = MachineSharing([interface])
    link = MemoryNetwork().attach(interface)
    with (
        Host(link, sharing=sharing, name="local", announce=False, background=False) as host,
        Agent(host, dedicated=True) as agent,
    ):
        os.write(ready, b"\0")
        os.close(ready)
        agent.run()


class AdapterCopy(MxMechanism):
    """Two hosts that are attached to an agent."""

    def open(self) -> None:
        """Start the agent, and wait until programs can attach."""
        super().open()
        self._agent = AgentProcess(self.interface)

    def open_host(self) -> Host:
        """Attach to the agent."""
        return Host.open(self.interface, agent=True, spin=True, background=False)

    def close(self) -> None:
        """Detach, and end the agent."""
        super().close()
        self._agent.close()


class AgentRegistrar:
    """Registers memory at an agent; the handle of a region is its token."""

    def __init__(self, host: Host) -> None:
        self._tokens = host.tokens

    def register(self, piece: Piece) -> int:
        """Register a piece."""
        return self._tokens.register(piece.view)

    def release(self, tokens: Sequence[int]) -> None:
        """Release regions by one request."""
        self._tokens.deregister(*tokens)


class _TokenAccess(OneSided):
    """Memory registered at an agent. Regions stay registered after their use, until there are many of them.

    The agent may share the processor of the initiator, which waits for it, but not that of the target.
    """

    INITIATOR: ClassVar[int]

    def open(self) -> None:
        """Start the agent."""
        super().open()
        self._interface = interface_name()
        self._agent = AgentProcess(self._interface, placement()[self.INITIATOR])

    def join(self, rank: int, partner: int) -> None:
        """Attach to the agent."""
        super().join(rank, partner)
        self._host = Host.open(self._interface, agent=True, spin=True, background=False)
        self.tokens = self._host.tokens
        registrar = self.registrar = AgentRegistrar(self._host)
        self._regions = RegistrationCache(_KEPT, registrar)
        self._offered: Piece | None = None

    def name_of(self, piece: Piece) -> int:
        """The token of a piece, which is registered unless it is already."""
        if self._offered is not None:
            self._regions.deregister(self._offered)
        self._offered = piece
        return self._regions.register(piece)

    def close(self) -> None:
        """Detach, and end the agent."""
        if hasattr(self, "_host"):
            self._host.close()
        self._agent.close()


class TokenGet(_TokenAccess, GetMechanism):
    """The destination has the agent get the data."""

    INITIATOR = 1

    def move(self, piece: Piece, address: int) -> None:
        """Get the message."""
        self.tokens.get(address, piece.view)


class TokenPut(_TokenAccess, PutMechanism):
    """The source has the agent put the data."""

    INITIATOR = 0

    def move(self, piece: Piece, address: int) -> None:
        """Put the message."""
        self.tokens.put(address, piece.view)
