"""Snapshots of traffic that is observed: values that do not change, for other threads and for presentation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from mxwire.analysis.diagnosis import Finding

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage, Conversation


@dataclass(frozen=True, slots=True)
class DirectionRates:
    """Traffic in one direction: totals, and rates over the last seconds."""

    frames: int = 0
    bytes: int = 0
    frame_rate: float = 0.0
    """Frames per second."""
    byte_rate: float = 0.0
    """Bytes per second on the wire."""

    def __add__(self, other: DirectionRates) -> DirectionRates:
        """Return the sum."""
        return DirectionRates(
            self.frames + other.frames,
            self.bytes + other.bytes,
            self.frame_rate + other.frame_rate,
            self.byte_rate + other.byte_rate,
        )


@dataclass(frozen=True, slots=True)
class PairRates:
    """Two hosts, the one with the lower address first."""

    hosts: tuple[int, int]
    forward: DirectionRates
    """From the first host to the second."""
    back: DirectionRates
    dialect: str | None
    last_ns: int
    """Time of the latest frame."""
    followed: int
    """Number of frames whose messages were followed; the totals of the following attributes cover only these frames."""
    messages: int
    message_bytes: int
    failed: int
    """Messages that were truncated, nacked or abandoned, or failed."""
    retransmissions: int
    re_requests: int
    duplicates: int
    message_rate: float | None
    """Finished messages per second, estimated from the followed frames; None if none were followed."""
    retransmit_rate: float | None
    """Retransmissions and re-requests per second, estimated in the same way."""
    in_flight: int | None
    """Number of unfinished messages; None if the pair is not followed now."""
    oldest_ns: int | None
    """Age of the oldest unfinished message; None if there is none."""

    @property
    def both(self) -> DirectionRates:
        """Traffic in both directions."""
        return self.forward + self.back


@dataclass(slots=True)
class HostRates:
    """One host, by its Ethernet address."""

    address: int
    sent: DirectionRates = DirectionRates()
    received: DirectionRates = DirectionRates()
    peers: int = 0
    """Number of hosts with which it exchanged frames."""
    in_flight: int = 0
    """Number of unfinished messages from and to it."""
    dialects: frozenset[str] = frozenset()
    last_ns: int = 0


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """A recent finding of ``diagnose``."""

    finding: Finding
    first_ns: int
    """Time of the first report of the finding."""
    last_ns: int


@dataclass(slots=True)
class MessageHistogram:
    """Counter of values by size."""

    bounds: tuple[int, ...]
    """Upper bounds of the steps, inclusive; there is one more step without a bound."""
    counts: list[int] = field(default_factory=list)
    sum: int = 0

    def __post_init__(self) -> None:
        """Begin with zeros."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def copied(self) -> MessageHistogram:
        """Return an immutable copy."""
        return MessageHistogram(self.bounds, [*self.counts], self.sum)


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One message between the hosts of a conversation."""

    number: int
    first_ns: int
    source: int
    endpoints: tuple[int | None, int | None]
    kind: str
    length: int | None
    transmissions: int
    outcome: str
    """As known to the sender; ``in flight`` if it is not finished."""
    duration_ns: int | None

    @classmethod
    def of(cls, message: CapturedMessage, *, finished: bool) -> Self:
        """Return the line of a message."""
        flow = message.flow
        return cls(
            message.number,
            message.first_ns,
            flow.address,
            (flow.endpoint, flow.back.endpoint),
            message.kind,
            message.length,
            message.transmissions,
            message.sender if finished else "in flight",
            message.end_ns - message.first_ns if finished else None,
        )


@dataclass(frozen=True, slots=True)
class EndpointsLine:
    """Two endpoints in conversation."""

    ends: tuple[tuple[int, int | None], tuple[int, int | None]]
    """Address and endpoint of each."""
    frames: tuple[int, int]
    messages: tuple[int, int]
    retransmits: tuple[int, int]
    """Retransmissions and re-requests per direction."""
    last_ns: int


@dataclass(frozen=True, slots=True)
class ConversationSnapshot:
    """The endpoints and the latest messages of a pair of hosts."""

    hosts: tuple[int, int]
    endpoints: tuple[EndpointsLine, ...]
    messages: tuple[MessageLine, ...]
    """In order of their first frames."""

    @classmethod
    def of(cls, hosts: tuple[int, int], conversations: Iterable[Conversation], messages: Sequence[MessageLine]) -> Self:
        """Return the snapshot of a pair of hosts."""
        lines = []
        for each in conversations:
            one, other = each.flows
            lines.append(
                EndpointsLine(
                    ((one.address, one.endpoint), (other.address, other.endpoint)),
                    (one.frames, other.frames),
                    (one.messages.total(), other.messages.total()),
                    (one.retransmissions + one.re_requests, other.retransmissions + other.re_requests),
                    each.last_ns,
                )
            )
        return cls(hosts, tuple(lines), tuple(messages))


@dataclass(frozen=True, slots=True)
class TrafficSnapshot:
    """All traffic up to a point in time."""

    first_ns: int
    time_ns: int
    window_s: float
    """Seconds over which rates are averaged; 0 if there was no time yet."""
    frames: int
    bytes: int
    skipped: int
    """Frames that are not MXoE."""
    dropped: int
    """Number of frames lost because the memory of the tap was full."""
    starved_ns: int
    """Time in which frames waited because this process lacked the processor, in nanoseconds."""
    followed: int
    followed_share: float
    """Share of the recent frames whose messages were followed, 0 to 1."""
    pairs: tuple[PairRates, ...]
    hosts: tuple[HostRates, ...]
    others: int
    """Frames of pairs beyond the limit."""
    types: dict[str, tuple[int, int]]
    """Frames and bytes by packet type."""
    faults: dict[str, int]
    """Malformed frames by reason."""
    nacks: dict[tuple[str, str], int]
    """Nacks by packet type and reason."""
    outcomes: dict[tuple[str, str], int]
    """Finished messages by kind and outcome."""
    durations: dict[str, MessageHistogram]
    """Nanoseconds from the first frame of a message until its sender knew the outcome, by kind."""
    lengths: dict[str, MessageHistogram]
    """Bytes of messages, by kind."""
    names: dict[int, str]
    """Host names by address."""
    findings: tuple[OpenFinding, ...]
    conversation: ConversationSnapshot | None
    """The conversation of the watched pair."""

    @property
    def is_sampled(self) -> bool:
        """True if not all frames were followed."""
        return self.followed_share < 0.999
