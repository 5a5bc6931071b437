"""The state of the remote endpoint, and of the messages to and from it (chapter 1 of the behaviour)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .frames import Frame
from .neighbours import Neighbour

NONE = 0xFFFFFFFF
"""No session."""


@dataclass
class Message:
    """A message that was received, or is to be sent."""

    match: int
    data: bytes
    synchronous: bool = False
    """Sent as RNDV although it is short enough for another packet."""
    taken: int | None = None
    """Number of bytes that a receiver takes that has posted fewer; None for all."""
    unacked: int = 0
    """Number of sent messages that were still unacked when it arrived."""


@dataclass
class Partner:
    """The other endpoint."""

    host: Neighbour
    endpoint: int
    fwd: int = NONE
    rev: int = NONE
    tx_next: int = 0xFFFF
    tx_una: int = 0xFFFF
    rx_next: int = 1
    rx_done: int = 1
    rx_acked: int = 1
    connects: int = 0
    liback_out: int = 0
    liback_in: int = 0
    connect_seqnum_in: int | None = None
    session_told: int = NONE
    """The fields of its last CONNECT packet, whether the connect succeeded or not."""
    connected: bool = False
    """True if it has answered the local request: before, nothing numbered is sent to it (R-CON-12)."""

    def forget(self) -> None:
        """Note its restart (R-CLS-05)."""
        session_number = self.rx_next & 0xC000
        self.__dict__.update(Partner(self.host, self.endpoint).__dict__)
        self.rx_next = self.rx_done = self.rx_acked = session_number | 1


@dataclass
class Request:
    """A connect request until it is answered, and its answer."""

    key: int
    connect_seqnum: int
    to_endpoint: int
    sent_at: float = 0.0
    times: int = 0
    answer: str | None = None
    """``status N`` or ``nack N``."""


@dataclass
class Outstanding:
    """A numbered packet, or all fragments of a medium message, until it is acked."""

    number: int
    packets: list[tuple[str, dict[str, Any], bytes]]
    sent_at: float = 0.0
    times: int = 0


@dataclass
class Reassembly:
    """A MEDIUM message with missing fragments."""

    number: int
    match: int
    length: int
    next_fragment: int = 0
    found: dict[int, bytes] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return sum(map(len, self.found.values())) >= self.length

    @property
    def data(self) -> bytes:
        return b"".join(self.found[each] for each in sorted(self.found))


def match_fields(value: int) -> dict[str, int]:
    """The two halves of a match information."""
    return {"match_a": value >> 32, "match_b": value & NONE}


def match_of(frame: Frame) -> int:
    """The match information of a frame."""
    return int(frame["match_a"] << 32 | frame["match_b"])
