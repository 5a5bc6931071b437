"""The counters of an interface, with the names of the real driver (behaviour, sections 21 and 25)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Counter(StrEnum):
    """A line of the driver's statistics; section 25 defines which ``Recv`` counters precede the checks."""

    SEND_RAW = "Send Raw"
    SEND_HOST_QUERY = "Send Host Query"
    SEND_HOST_REPLY = "Send Host Reply"
    SEND_CONNECT_REQUEST = "Send Connect Request"
    SEND_CONNECT_REPLY = "Send Connect Reply"
    SEND_TINY = "Send Tiny"
    SEND_SMALL = "Send Small"
    SEND_MEDIUM_SQ_FRAG = "Send MediumSQ Frag"
    """A fragment transmitted from the send queue, as all fragments of the engine are."""
    SEND_MEDIUM_VA_FRAG = "Send MediumVA Frag"
    """A fragment transmitted directly from the application's memory, which only real hosts do."""
    SEND_RNDV = "Send Rndv"
    SEND_PULL_REQUEST = "Send Pull Request"
    SEND_PULL_REPLY = "Send Pull Reply"
    SEND_NOTIFY = "Send Notify"
    SEND_LIBACK = "Send LibAck"
    SEND_NACK_LIB = "Send Nack Lib"
    SEND_NACK_MCP = "Send Nack MCP"
    RECV_RAW = "Recv Raw"
    RECV_HOST_QUERY = "Recv Host Query"
    RECV_HOST_REPLY = "Recv Host Reply"
    RECV_CONNECT_REQUEST = "Recv Connect Request"
    RECV_CONNECT_REPLY = "Recv Connect Reply"
    RECV_TINY = "Recv Tiny"
    RECV_SMALL = "Recv Small"
    RECV_MEDIUM_FRAG = "Recv Medium Frag"
    RECV_RNDV = "Recv Rndv"
    RECV_PULL_REQUEST = "Recv Pull Request"
    RECV_PULL_REPLY = "Recv Pull Reply"
    RECV_NOTIFY = "Recv Notify"
    RECV_LIBACK = "Recv LibAck"
    RECV_NACK_LIB = "Recv Nack Lib"
    RECV_NACK_MCP = "Recv Nack MCP"
    DROP_BAD_HEADER_LENGTH = "Drop Bad Data Length for Headers"
    DROP_BAD_DATA_LENGTH = "Drop Bad Data Length"
    DROP_BAD_FRAME_LENGTH = "Drop Bad Skbuff Length"
    DROP_BAD_PEER_ADDRESS = "Drop Bad Peer Addr"
    DROP_BAD_PEER_INDEX = "Drop Bad Peer Index"
    DROP_BAD_ENDPOINT = "Drop Bad Endpoint"
    DROP_BAD_SESSION = "Drop Bad Session"
    DROP_RING_FULL = "Unexpected Event Queue Full"
    DROP_RAW_QUEUE_FULL = "Drop Raw Queue Full"
    DROP_RAW_TOO_LARGE = "Drop Raw Packet Too Large"
    DROP_HOST_REPLY_BAD_MAGIC = "Drop Host Reply with Bad Magic"
    DROP_PULL_BAD_REPLIES = "Drop Pull Bad Number of Replies"
    DROP_PULL_BAD_REGION = "Drop Pull Bad Region"
    DROP_PULL_BAD_RANGE = "Drop Pull Bad Offset or Length"
    DROP_REPLY_BAD_MAGIC = "Drop Pull Reply Bad Endpoint in Magic"
    DROP_REPLY_BAD_HANDLE = "Drop Pull Reply Bad Wire Handle"
    DROP_REPLY_BAD_SEQUENCE = "Drop Pull Reply Bad Frame SeqNum"
    DROP_REPLY_WRAP_AROUND = "Drop Pull Reply Bad Frame SeqNum WrapAround"
    DROP_REPLY_DUPLICATE = "Drop Pull Reply Duplicate"
    PULL_REPLY_FILL_FAILED = "Pull Reply Recv Fill Pages Failed"
    PULL_OUT_OF_ORDER = "Pull Non-First Block Done before First One"
    PULL_TIMEOUT_FIRST_BLOCK = "Pull Timeout Handler Requests First Block"
    PULL_TIMEOUT_NON_FIRST_BLOCK = "Pull Timeout Handler Requests Non-First Block"
    PULL_TIMEOUT_ABORT = "Pull Timeout Abort"
    DROP_INVALID_TYPE = "Drop Invalid Packet Type"
    DROP_UNKNOWN_TYPE = "Drop Unknown Packet Type"
    # The limits of mxwire's own, which the driver does not have.
    DROP_PARTNERS_FULL = "Drop Connect Partner Table Full"
    DROP_EARLY_FULL = "Drop Early Packet Memory Full"
    DROP_UNEXPECTED_FULL = "Drop Unexpected Message Memory Full"
    DROP_NOTIFIES_FULL = "Drop Rndv Unacked Notifies Full"
    DROP_REPLIES_FULL = "Drop Pull Reply Queue Full"
    DROP_PEERS_FULL = "Drop Announcement Peer Table Full"
    PEER_REPLACED = "Peer Replaced in Full Peer Table"


class Tally:
    """The value of one counter."""

    count: int = 0


_ALL: Final = tuple(Counter)


PULL_TIMEOUTS: Final = (Counter.PULL_TIMEOUT_FIRST_BLOCK, Counter.PULL_TIMEOUT_NON_FIRST_BLOCK)
"""The counters of re-requested blocks."""


class Counters:
    """The counters by name. Those that are 0 are not listed."""

    def __init__(self) -> None:
        self.by_name: dict[str, Tally] = {counter: Tally() for counter in _ALL}
        """The tallies by counter. Per-frame code holds a reference to its tally, which is faster than a lookup by
        name."""

    def __getitem__(self, counter: str) -> int:
        """Return the value of a counter."""
        return self.by_name[counter].count

    def __setitem__(self, counter: str, value: int) -> None:
        """Set a counter."""
        self.by_name[counter].count = value

    def keys(self) -> list[Counter]:
        """Return the counters that are not 0."""
        return [counter for counter, _ in self.items()]

    def values(self) -> list[int]:
        """Return the values that are not 0."""
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Counter, int]]:
        """Return the counters that are not 0, with their values."""
        return [
            (counter, value)
            for counter, tally in zip(_ALL, self.by_name.values(), strict=True)
            if (value := tally.count)
        ]

    def __eq__(self, other: object) -> bool:
        """Compare with other counters, or with a dictionary of those that are not 0."""
        return dict(self.items()) == (dict(other.items()) if isinstance(other, Counters) else other)

    def __hash__(self) -> int:
        """Raise TypeError, because counters are mutable, like a dictionary."""
        raise TypeError("counters change, so they have no hash")

    def __repr__(self) -> str:
        """Show the counters that are not 0, for debugging."""
        return f"<Counters {dict(self.items())}>"
