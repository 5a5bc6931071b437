"""Queries that were repeated and never answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Evidence, evidence, seconds
from mxwire.analysis.diagnosis.traffic import HostDirection
from mxwire.ethernet import mac_text
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import ABANDONED_DONE, FIRST_NUMBER, NUMBER_MASK
from mxwire.words import count_of

LEAST: Final = 3
"""Minimum number of unanswered queries."""
SPAN_NS: Final = 1_000_000_000
"""Minimum time from the first query to the last."""
SHOWN: Final = 64
"""Maximum number of pairs that are examined, because a hostile capture may contain very many."""

QUESTIONS: Final = {
    PacketType.CONNECT: "CONNECT",
    PacketType.HOST_QUERY: "HOST_QUERY",
    PacketType.TINY: "TINY",
    PacketType.SMALL: "SMALL",
    PacketType.MEDIUM: "MEDIUM",
    PacketType.RNDV: "RNDV",
}
"""Packet types that every host answers or acknowledges, if it knows their sender."""
_ANSWERS: Final = (
    PacketType.TRUC,
    PacketType.NOTIFY,
    PacketType.PULL,
    PacketType.PULL_REPLY,
    PacketType.NACK_LIB,
    PacketType.NACK_MCP,
)
"""Packet types that a host sends only in response to another packet."""
_NUMBERED: Final = (PacketType.TINY, PacketType.SMALL, PacketType.MEDIUM, PacketType.RNDV)
_NOTHING_YET: Final = (FIRST_NUMBER, ABANDONED_DONE)
"""Acknowledgements of a host that has received nothing."""


@dataclass(frozen=True, slots=True)
class UnansweredQueries:
    """Unanswered queries from one host to another."""

    direction: HostDirection
    questions: int
    seen: bool
    """True if any frame from the queried host was seen: to other hosts, or an announcement."""

    @property
    def only_names(self) -> bool:
        """True if all queries are HOST_QUERYs."""
        return self.questions == self.direction.count(PacketType.HOST_QUERY)

    def evidence(self) -> Evidence:
        """The queries as evidence."""
        direction = self.direction
        counts = {name: direction.count(kind) for kind, name in QUESTIONS.items()}
        kinds = ", ".join(count_of(number, name) for name, number in counts.items() if number)
        numbers, first_ns = direction.first(*QUESTIONS)
        text = (
            f"{mac_text(direction.source)} sent {kinds} to {mac_text(direction.destination)} within "
            f"{seconds(direction.last_ns - direction.first_ns)}, without an answer"
        )
        return evidence(text, numbers, first_ns, "sign", self.questions // LEAST)


def unanswered(facts: Facts) -> Iterator[UnansweredQueries]:
    """Yield the queries to hosts that were queried several times over a period and never sent anything back."""
    sending = facts.traffic.hosts()
    count = 0
    heard = ReceptionEvidence(facts)
    for direction in facts.traffic.one_way():
        questions = direction.count(*QUESTIONS)
        # A sender whose frames prove that it gets answers does get them: only the capture lacks them.
        if questions < LEAST or direction.last_ns - direction.first_ns < SPAN_NS or heard.by_sender(direction):
            continue
        count += 1
        if count > SHOWN:
            return
        yield UnansweredQueries(direction, questions, direction.destination in sending)


class ReceptionEvidence:
    """Detector of hosts whose frames prove that they receive frames missing from the capture."""

    def __init__(self, facts: Facts) -> None:
        self._acknowledged = {
            (flow.back.address, flow.address)
            for each in facts.follower.conversations
            for flow in each.flows
            if flow.unseen or (flow.acked_unseen is not None and flow.acked_unseen & NUMBER_MASK not in _NOTHING_YET)
        }
        self._without_session = {(direction.source, direction.destination) for direction in facts.unknown_sessions}

    def by_sender(self, direction: HostDirection) -> bool:
        """Return whether a host acknowledges, pulls, or uses a value that only an answer of the other host contains."""
        pair = direction.source, direction.destination
        return bool(direction.count(*_ANSWERS)) or pair in self._acknowledged or self._knows_session(direction)

    def _knows_session(self, direction: HostDirection) -> bool:
        """Return whether a host first sent a connect request and then used the session of the other host."""
        numbered = [direction.samples[kind][0][1] for kind in _NUMBERED if kind in direction.samples]
        connects = direction.samples.get(PacketType.CONNECT, ())
        # A message before the first connect uses a session that is not from an answer to it.
        if not numbered or not connects or connects[0][1] > min(numbered):
            return False
        return (direction.source, direction.destination) not in self._without_session
