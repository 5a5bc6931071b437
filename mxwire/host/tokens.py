"""Memory that programs of one agent register for each other, each region named by a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mxwire.errors import MxwireError
from mxwire.protocol.agent.node import AgentNode
from mxwire.protocol.arguments import Segments, checked_integer

if TYPE_CHECKING:
    from mxwire.host.core import Core

_LARGEST = (1 << 64) - 1


class MemoryTokens:
    """Registered memory at the agent of a host (``host.tokens``).

    A program registers memory and passes the token to another program of the agent, which can then put data into this
    memory and get data out of it, while the first one computes: the agent copies. Calls return when the data has been
    copied, and raise :class:`~mxwire.protocol.status.LocalProtocolError` if the agent refuses: an access outside of the
    region, a token that was released, memory that does not exist any more. The regions of a host end with it.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @contextmanager
    def _agent(self) -> Iterator[AgentNode]:
        """The node at the agent, within the section. Raises :class:`~mxwire.errors.MxwireError` without an agent."""
        core = self._core
        with core.section:
            core.must_be_open()
            if not isinstance(core.node, AgentNode):
                raise MxwireError("only a program at an agent registers memory: open the host with agent=True")
            yield core.node

    def register(self, memory: Any) -> int:
        """Register a writable buffer, which must exist until :meth:`deregister`, and return its token."""
        with self._agent() as node:
            return node.register_memory(Segments(memory, writable=True))

    def deregister(self, *tokens: int) -> None:
        """Release registered memory of this host: up to 4,096 regions by one request to the agent."""
        with self._agent() as node:
            node.deregister_memory([checked_integer("token", each, _LARGEST) for each in tokens])

    def put(self, token: int, data: Any, offset: int = 0) -> None:
        """Copy data to an offset in registered memory."""
        with self._agent() as node:
            node.put_memory(checked_integer("token", token, _LARGEST), _offset(offset), Segments(data))

    def get(self, token: int, memory: Any, offset: int = 0) -> None:
        """Fill a writable buffer from an offset in registered memory."""
        with self._agent() as node:
            place = Segments(memory, writable=True)
            node.get_memory(checked_integer("token", token, _LARGEST), _offset(offset), place)


def _offset(offset: int) -> int:
    # Leaves room for the sum of offset and length.
    return checked_integer("offset", offset, _LARGEST >> 1)
