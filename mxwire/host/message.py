"""Messages as applications get them."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.protocol import Partner, Status


@dataclass(slots=True, eq=False)
class Message:
    """A message that has been received."""

    data: memoryview
    """What has arrived; of a truncated message as much as fitted."""
    match_info: int
    """Its 64 bits of match information."""
    source: Partner | None
    """Who sent it; an answer may be sent there. None where the receive was cancelled."""
    length: int
    """Length of the whole message in bytes."""
    status: Status
    """SUCCESS, or MESSAGE_TRUNCATED where it did not fit, or CANCELLED."""

    @property
    def truncated(self) -> bool:
        """Whether something is missing at the end."""
        return self.status == Status.MESSAGE_TRUNCATED

    def __len__(self) -> int:
        """Bytes that have arrived."""
        return len(self.data)

    def __bytes__(self) -> bytes:
        """The data as a copy."""
        return bytes(self.data)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits for a receive, as ``probe`` sees it."""

    match_info: int
    source: Partner
    length: int
    """Length of the whole message in bytes."""
