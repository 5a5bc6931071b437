"""A node whose endpoints are in an agent, ``match`` progress: card and library run there.

It has neither frames nor timers, and its endpoints (``attached_endpoint.py``) have the calls, requests and partners of
every endpoint, so that all kinds of hosts use it like another node. ``served.py`` is the other side.
"""

from __future__ import annotations

from typing import Final, SupportsIndex

from mxwire.frames import FrameBatch
from mxwire.protocol.agent.attached_endpoint import AttachedEndpoint
from mxwire.protocol.agent.node import AgentNode
from mxwire.protocol.agent.records import ANY_ENDPOINT, NO_PARTNER, OPEN_OPTIONS, AgentRecord
from mxwire.protocol.arguments import checked_integer
from mxwire.protocol.card.interface import HostInterface
from mxwire.protocol.card.outgoing import FEW
from mxwire.protocol.library.endpoint import EndpointSetup, EngineEndpoint
from mxwire.protocol.status import LocalProtocolError, Status
from mxwire.wire.numbers import NO_SESSION

_NO_FRAMES: Final[list[bytes]] = []


class AttachedNode(AgentNode):
    """A node whose endpoints are at an agent; parameters are those of :class:`AgentNode`."""

    def abandon(self) -> None:
        """End all requests, since the agent has ended, or is left."""
        for endpoint in list(self.endpoints.values()):
            if isinstance(endpoint, AttachedEndpoint):
                endpoint.abandon(Status.REMOTE_ENDPOINT_CLOSED)

    def _unused_number(self, board: HostInterface, number: SupportsIndex) -> int:
        return ANY_ENDPOINT if number == ANY_ENDPOINT else super()._unused_number(board, number)

    def make_endpoint(
        self, board: HostInterface, number: int, session: int | None, setup: EndpointSetup
    ) -> EngineEndpoint:
        """Open an endpoint at the agent, which chooses the number if it is ``ANY_ENDPOINT``."""
        own = NO_PARTNER if session is None else session
        bits, shift, acked = setup.context_bits, setup.context_shift, int(setup.acked_sends)
        options = OPEN_OPTIONS.pack(setup.key, board.number, own, bits, shift, acked, 0)
        answer, _ = self.ask(AgentRecord.OPEN, extra=number, data=options)
        try:
            opened = (
                super()._unused_number(board, answer.extra),
                checked_integer("session", answer.length, NO_SESSION - 1),
            )
        except LocalProtocolError:
            # The agent has opened it, whatever its answer is worth.
            self.close_side(answer.handle)
            raise
        made = AttachedEndpoint(self, board.open(*opened), setup, answer.handle)
        self.enter_side(answer.handle, made)
        return made

    # Frames and time: the node has neither.

    def transmit_few(
        self, now: int, interface: int = 0, timely: bool = True, limit: int = FEW
    ) -> list[bytes] | FrameBatch:
        """Return no frames."""
        self._news = False
        return _NO_FRAMES

    def eager(self) -> bool:
        """Return whether a handler waits for its call, or the caller has not seen all that has changed."""
        return self._news or len(self.offering) > 0

    def busy(self) -> bool:
        """Return whether the caller has not seen all that has changed."""
        return self._news

    def deadline(self) -> int | None:
        """0 if the caller has not seen all that has changed; None otherwise."""
        return 0 if self._news or self.offering else None
