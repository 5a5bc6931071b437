"""The workload: messages between applications, drawn from the seed before the run begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from mxwire.simulation.randomness import stream
from mxwire.simulation.scenario import SAME_HOST, SMALL_WORKLOADS, Scenario
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

CLASS_SHIFT: Final = 60
SOURCE_SHIFT: Final = 48
ALL_BITS: Final = (1 << 64) - 1
CLASS_BITS: Final = 0xF << CLASS_SHIFT
SOURCE_BITS: Final = CLASS_BITS | 0xFFF << SOURCE_SHIFT
EXACT, BY_SOURCE, BY_CLASS, HANDLED, ANY, NOBODY = 1, 2, 3, 4, 5, 15
"""Classes of messages by the kind of receive that takes them, in the upper bits of the match information."""
MASKS: Final = {EXACT: ALL_BITS, BY_SOURCE: SOURCE_BITS, BY_CLASS: CLASS_BITS, ANY: 0}


@dataclass(slots=True, eq=False)
class PlannedMessage:
    """A message: its plan, and its fate."""

    number: int
    source: int
    """Number of the sending application."""
    target: int
    """Number of the receiving application."""
    length: int
    kind: int
    """The class: the kind of receive that takes it."""
    synchronous: bool = False
    pieces: int = 1
    """Number of buffers that it is sent from."""
    after: int | None = None
    """Number of a message that the sender waits for before it sends this one."""
    order: int = -1
    """Its position among the messages of its sender to its receiver, set when it is posted."""
    posted_at: int | None = None
    sessions: tuple[int, int | None] = (0, 0)
    """Session of the sender, and of the receiver as known to the sender when it was posted."""
    status: int | None = None
    """Status of the send, None before it has ended."""
    transferred: int = 0
    delivered: int = 0
    """Number of times that it was received or consumed."""
    taken: tuple[int, int] | None = None
    """Status and length of the receive that took it."""
    consumed: bool = False
    """True if the unexpected handler took it."""
    failed: bool = False
    """True if a receive took it and ended with an error."""
    excuse: str = ""
    """Reason why it need not be delivered; empty if it must be."""
    data: bytes = field(default=b"", repr=False)
    large: bool = False
    """True if it was sent as RNDV or locally, so that its sender learns the received length."""

    @property
    def match_info(self) -> int:
        """Return the match information: class, source and number."""
        return self.kind << CLASS_SHIFT | self.source << SOURCE_SHIFT | self.number

    @property
    def settled(self) -> bool:
        """Return whether its fate is final."""
        if self.posted_at is None:
            return False
        return (bool(self.delivered) and self.status is not None) or bool(self.excuse)


def message_number(match_info: int) -> int:
    """Return the number of the message with a match information."""
    return match_info & 0xFFFF_FFFF


def plan(scenario: Scenario, applications: int) -> list[PlannedMessage]:
    """Return all messages of a run, those of each sender in the order of sending."""
    if scenario.workload in SMALL_WORKLOADS:
        return _small(scenario)
    rng = stream(scenario.seed, "workload")
    disciplines = [rng.random() < 0.25 for _ in range(applications)]
    messages: list[PlannedMessage] = []
    pairs = _PATTERNS[scenario.workload](scenario, applications, rng)
    for number, (source, target, after) in enumerate(pairs):
        kind = ANY if disciplines[target] else rng.choices((EXACT, BY_SOURCE, BY_CLASS, HANDLED), (50, 20, 20, 10))[0]
        length = draw_length(scenario.dialect, scenario.largest, rng)
        synchronous = rng.random() < 0.1
        pieces = rng.choice((1, 1, 1, 2, 3, 7)) if length else 1
        messages.append(PlannedMessage(number, source, target, length, kind, synchronous, pieces, after))
    return messages


def _small(scenario: Scenario) -> list[PlannedMessage]:
    """Return the messages of a small workload: a medium one has three fragments, a large one two blocks, and a
    synchronous one no data."""
    dialect = scenario.dialect
    medium = min(2 * dialect.fragment_payload + 1, RENDEZVOUS_THRESHOLD)
    large = max(dialect.block_length, RENDEZVOUS_THRESHOLD) + 1
    lengths = {"tiny": 20, "any": 20, "small": 100, "medium": medium, "large": large, "synchronous": 0}
    kinds = {"handled": HANDLED, "any": ANY}
    return [
        PlannedMessage(
            number,
            source,
            1 - source,
            lengths[name.split()[-1]],
            kind=kinds.get(name.split()[0], EXACT),
            synchronous=name == "synchronous",
        )
        for number, (source, name) in enumerate(SMALL_WORKLOADS[scenario.workload])
    ]


Pairs = list[tuple[int, int, int | None]]


def _ping_pong(scenario: Scenario, applications: int, rng: Random) -> Pairs:
    """Return pairs of applications that answer each other in turn."""
    order = list(range(applications))
    rng.shuffle(order)
    couples = list(zip(order[::2], order[1::2], strict=False))
    last: dict[tuple[int, int], int] = {}
    pairs: Pairs = []
    for number in range(scenario.messages):
        couple = couples[number % len(couples)]
        turn = number // len(couples) % 2
        pairs.append((couple[turn], couple[1 - turn], last.get(couple)))
        last[couple] = number
    return pairs


def _stream(scenario: Scenario, applications: int, rng: Random) -> Pairs:
    """Return messages from one application to one other."""
    source, target = rng.sample(range(applications), 2)
    return [(source, target, None)] * scenario.messages


def _many_to_one(scenario: Scenario, applications: int, rng: Random) -> Pairs:
    """Return messages from all applications to one."""
    target = rng.randrange(applications)
    sources = [each for each in range(applications) if each != target]
    return [(rng.choice(sources), target, None) for _ in range(scenario.messages)]


def _all_to_all(scenario: Scenario, applications: int, rng: Random) -> Pairs:
    """Return messages between random applications, sometimes from one to itself."""
    pairs: Pairs = []
    for _ in range(scenario.messages):
        source, target = rng.randrange(applications), rng.randrange(applications)
        if source == target and rng.random() < 0.8:
            target = (source + 1) % applications
        pairs.append((source, target, None))
    return pairs


def _same_host(scenario: Scenario, applications: int, rng: Random) -> Pairs:
    """Return messages between different applications of the same host."""
    pairs: Pairs = []
    for _ in range(scenario.messages):
        source = rng.randrange(applications)
        others = [each for each in range(source % scenario.hosts, applications, scenario.hosts) if each != source]
        pairs.append((source, rng.choice(others), None))
    return pairs


_PATTERNS: Final[dict[str, Callable[[Scenario, int, Random], Pairs]]] = {
    "ping-pong": _ping_pong,
    "stream": _stream,
    "many-to-one": _many_to_one,
    "all-to-all": _all_to_all,
    SAME_HOST: _same_host,
}


def draw_length(dialect: Dialect, largest: int, rng: Random) -> int:
    """Return a length in bytes, mostly at a boundary of the dialect."""
    fragment, reply, block = dialect.fragment_payload, dialect.reply_payload, dialect.block_length
    group = rng.choices(range(5), (45, 28, 17, 8, 2))[0]
    if group == 0:
        edges: tuple[int, ...] = (0, 0, 1, 31, 32, 33, 127, 128, 129, rng.randrange(130))
    elif group == 1:
        edges = (
            fragment - 1,
            fragment,
            fragment + 1,
            2 * fragment,
            3 * fragment + 1,
            32767,
            RENDEZVOUS_THRESHOLD,
            rng.randrange(32769),
        )
    elif group == 2:
        edges = (
            RENDEZVOUS_THRESHOLD + 1,
            8 * reply,
            9 * reply - 1,
            11 * reply + 1,
            rng.randrange(RENDEZVOUS_THRESHOLD, 100_000),
        )
    elif group == 3:
        edges = (block - 1, block, block + 1, 2 * block, 2 * block + 1, rng.randrange(2 * block))
    else:
        edges = (4 * block, 4 * block + 1, 5 * block + 7, 1 << 20, rng.randrange(1 << 21))
    length = rng.choice(edges)
    return length if length <= largest else rng.randrange(largest + 1)
