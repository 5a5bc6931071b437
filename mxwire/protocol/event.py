"""What a node tells its user: requests that completed, and what happened to peers and partners."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxwire.protocol.library.partner import Partner
    from mxwire.protocol.library.request import Request
    from mxwire.protocol.peers import Peer


class EventKind(StrEnum):
    """What happened."""

    COMPLETED = "completed"
    """A request is done; its ``status`` says how."""
    UNDELIVERED = "undelivered"
    """A send that had been reported complete when it was posted was lost after all (R-SND-06, R-CLS-02)."""
    PEER_FOUND = "peer found"
    """A host was entered into the peer table by discovery (R-DISC-03)."""
    PEER_NAMED = "peer named"
    """A host told its name (R-HOST-07)."""
    PARTNER_CONNECTED = "partner connected"
    """A remote endpoint has connected to one of ours (R-CON-10)."""
    PARTNER_RESTARTED = "partner restarted"
    """A remote endpoint came back with another session: everything unfinished with it has ended (R-CLS-05)."""
    PARTNER_LOST = "partner lost"
    """A remote endpoint did not answer until the resend limit, and was given up (R-RTX-05)."""


class Event:
    """One thing that happened."""

    __slots__ = ("kind", "partner", "peer", "request")

    def __init__(
        self, kind: EventKind, request: Request | None = None, partner: Partner | None = None, peer: Peer | None = None
    ) -> None:
        self.kind = kind
        self.request = request
        self.partner = partner
        self.peer = peer

    def __repr__(self) -> str:
        """For people who debug."""
        concerned = next((each for each in (self.request, self.partner, self.peer) if each is not None), "")
        return f"<Event {self.kind} {concerned}>"
