"""Adapter copy: an agent copies between two programs that are attached to it, as a card does by its loopback.

Neither program's processor copies, and neither needs a permission for the other; the agent's does both.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import ClassVar

from mxwire.bench.intranode.local_path import MxMechanism
from mxwire.bench.intranode.mechanism import MechanismError, MechanismFacts
from mxwire.host import Host
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing
from mxwire.lab.child import end_with_parent
from mxwire.link import MemoryNetwork


class AdapterCopy(MxMechanism):
    """Two hosts that are attached to an agent in a process of its own, on an interface without a wire."""

    facts: ClassVar[MechanismFacts] = MechanismFacts(
        copies=2, actor="agent", permission="ptrace attach", yama=False, containers=False
    )

    def open(self) -> None:
        """Start the agent, and wait until programs can attach."""
        super().open()
        reading, writing = os.pipe()
        self._agent = os.fork()
        if not self._agent:
            # The process ends here whatever happens, since the caller has only one.
            with suppress(BaseException):
                os.close(reading)
                end_with_parent()
                self._serve(writing)
            os._exit(1)
        os.close(writing)
        self._owner = os.getpid()
        with os.fdopen(reading, "rb") as ready:
            if not ready.read(1):
                raise MechanismError("the agent cannot start")

    def _serve(self, ready: int) -> None:
        sharing = MachineSharing([self.interface])
        link = MemoryNetwork().attach(self.interface)
        with Host(link, sharing=sharing, name="local", announce=False, background=False) as host, Agent(host) as agent:
            os.write(ready, b"\0")
            os.close(ready)
            agent.run()

    def open_host(self) -> Host:
        """Attach to the agent."""
        return Host.open(self.interface, agent=True, spin=True, background=False)

    def close(self) -> None:
        """Detach, and end the agent in the process that has started it."""
        super().close()
        if os.getpid() == self._owner:
            os.kill(self._agent, signal.SIGKILL)
            os.waitpid(self._agent, 0)
