"""Messages as applications receive them."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.protocol import Partner, Status


class Message:
    """A message that has been received."""

    __slots__ = ("data", "length", "match_info", "partner", "status")

    def __init__(self, data: memoryview, match_info: int, partner: Partner | None, length: int, status: Status) -> None:
        self.data = data
        """The bytes that arrived; of a truncated message those that fitted."""
        self.match_info = match_info
        """Its 64 bits of match information."""
        self.partner = partner
        """The endpoint that sent it: ``endpoint.send(message.partner, …)`` replies. None for a cancelled receive."""
        self.length = length
        """Length of the whole message in bytes."""
        self.status = status
        """SUCCESS, or MESSAGE_TRUNCATED where it did not fit, or CANCELLED."""

    @property
    def truncated(self) -> bool:
        """Whether the end of the message is missing."""
        return self.status == Status.MESSAGE_TRUNCATED

    def __len__(self) -> int:
        """Bytes that have arrived."""
        return len(self.data)

    def __bytes__(self) -> bytes:
        """The data as a copy."""
        return bytes(self.data)

    def __repr__(self) -> str:
        """For people who debug."""
        return f"<Message match={self.match_info:#x} length={self.length} {self.status.text} from {self.partner!r}>"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits for a receive, as ``probe`` sees it."""

    match_info: int
    """Its 64 bits of match information."""
    partner: Partner
    """The endpoint that sent it."""
    length: int
    """Length of the whole message in bytes."""
