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
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.outgoing import FEW
from mxwire.protocol.library.endpoint import KEY_MAXIMUM, EngineEndpoint
from mxwire.protocol.status import LocalProtocolError, Status

_NO_FRAMES: Final[list[bytes]] = []


class AttachedNode(AgentNode):
    """A node whose endpoints are at an agent; parameters are those of :class:`AgentNode`."""

    _opened = 0
    """Handle of the endpoint that is being opened."""

    def abandon(self) -> None:
        """End all requests, since the agent has ended, or is left."""
        for endpoint in list(self.endpoints.values()):
            if isinstance(endpoint, AttachedEndpoint):
                endpoint.abandon(Status.REMOTE_ENDPOINT_CLOSED)

    def open_endpoint(
        self,
        number: SupportsIndex,
        key: SupportsIndex = 0,
        *,
        interface: int = 0,
        session: SupportsIndex | None = None,
        context_bits: SupportsIndex = 0,
        context_shift: SupportsIndex = 0,
        completions: bool = False,
        acked_sends: bool = False,
    ) -> EngineEndpoint:
        """Open an endpoint at the agent; see :meth:`Node.open_endpoint`. With the number ``ANY_ENDPOINT`` the agent
        chooses a free one."""
        board = self._board(interface)
        number = checked_integer("endpoint number", number, ANY_ENDPOINT, Status.BAD_ENDPOINT)
        if number in board.endpoints:
            raise LocalProtocolError(Status.BUSY, f"endpoint {number} of {board.name} is open already")
        key = checked_integer("key", key, KEY_MAXIMUM)
        bits = checked_integer("context bits", context_bits, 64, Status.BAD_PARAMETER_VALUE)
        shift = checked_integer("context shift", context_shift, 64, Status.BAD_PARAMETER_VALUE)
        own = NO_PARTNER if session is None else checked_integer("session", session, NO_PARTNER - 1)
        answer, _ = self.ask(
            AgentRecord.OPEN,
            extra=number,
            data=OPEN_OPTIONS.pack(key, interface, own, bits, shift, int(acked_sends), 0),
        )
        self._opened = answer.handle
        return super().open_endpoint(
            answer.extra,
            key,
            interface=interface,
            session=answer.length,
            context_bits=bits,
            context_shift=shift,
            completions=completions,
            acked_sends=acked_sends,
        )

    def make_endpoint(
        self, card: CardEndpoint, key: int, context_bits: int, context_shift: int, completions: bool, acked_sends: bool
    ) -> EngineEndpoint:
        """The endpoint with the card's side ``card``, whose handle the agent has just answered."""
        made = AttachedEndpoint(
            self,
            card,
            key,
            self._opened,
            context_bits=context_bits,
            context_shift=context_shift,
            completions=completions,
            acked_sends=acked_sends,
        )
        self.enter_side(self._opened, made)
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
