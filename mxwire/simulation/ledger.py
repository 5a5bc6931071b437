"""The ledger: the fate of every message, and the promises that incidents have voided.

It has a view of all hosts at once, unlike any single host, and records breaches of invariants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mxwire.protocol import Status
from mxwire.protocol.status import SUCCEEDED
from mxwire.simulation.invariants import InvariantBreach
from mxwire.simulation.randomness import payload
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.workload import PlannedMessage

BREACHES_MAXIMUM = 50
NACKED = (Status.REMOTE_ENDPOINT_BAD_ID, Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_BAD_SESSION)
REFUSALS = (*NACKED, Status.REMOTE_ENDPOINT_UNREACHABLE, Status.REMOTE_RDMA_WINDOW_BAD_ID)
"""Statuses of requests whose remote endpoint is gone."""


@dataclass(slots=True, eq=False)
class MatchedReceive:
    """A receive that has taken a message, for the comparison of orders."""

    order: int
    """Its position among all receives of its endpoint."""
    value: int
    mask: int
    message: PlannedMessage


class Ledger:
    """Messages sent, received, promised and excused in one run."""

    def __init__(
        self, seed: int, messages: list[PlannedMessage], schedule: Schedule, unchecked: dict[str, str], late: int
    ) -> None:
        self.seed = seed
        self.late = late
        """The longest delay of an answer, in ns."""
        self.unchecked = unchecked
        """Invariants that need not hold in this run, with the reasons."""
        self.messages = messages
        self.breaches: list[InvariantBreach] = []
        self.counts: Counter[str] = Counter()
        self._schedule = schedule
        self._sessions: dict[int, int | None] = {}
        self._opened: dict[int, int] = {}
        self._reopened: dict[int, int] = {}
        self._troubles: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self._by_pair: dict[tuple[int, int], list[PlannedMessage]] = {}
        self._orders: Counter[tuple[int, int]] = Counter()
        self._taken: dict[tuple[int, int], list[MatchedReceive]] = {}
        self._unsettled = {each.number: each for each in messages}

    # Findings.

    def breach(self, invariant: str, text: str, rule: str = "") -> None:
        """Record a breach; one of an invariant in ``unchecked`` is only counted. ``rule`` is the rule that a frame
        breaks."""
        if invariant in self.unchecked:
            self.counts["unchecked"] += 1
        elif len(self.breaches) < BREACHES_MAXIMUM:
            self.breaches.append(InvariantBreach(invariant, self._schedule.now, text, rule))

    # Sessions and troubles.

    def opened(self, application: int, session: int) -> None:
        """Record that an application has opened its endpoint."""
        if application in self._sessions:
            self._reopened[application] = self._schedule.now
        self._sessions[application] = session
        self._opened[application] = self._schedule.now

    def opened_at(self, application: int) -> int:
        """Return the time at which an application's endpoint was last opened, in ns; -1 if it never was."""
        return self._opened.get(application, -1)

    def closed(self, application: int, why: str, others: int) -> None:
        """Record that an application has died, which voids the promises between it and all others."""
        self._sessions[application] = None
        for other in range(others):
            self.trouble(application, other, why)

    def session_of(self, application: int) -> int | None:
        """Return the session of an application's endpoint; None while it is dead."""
        return self._sessions.get(application)

    def trouble(self, one: int, other: int, why: str) -> None:
        """Excuse all undelivered messages between two applications."""
        pair = _pair(one, other)
        self._troubles.setdefault(pair, []).append((self._schedule.now, why))
        for message in self._by_pair.get(pair, ()):
            self.excuse(message, why)
        self._by_pair[pair] = []

    def restarted(self, one: int, other: int, why: str) -> None:
        """Excuse undelivered messages of earlier sessions after one application has detected the other's restart.

        If either had already abandoned the other, all undelivered messages between them are lost.
        """
        since = max(self.opened_at(one), self.opened_at(other))
        if self.troubled(one, other, since + 1):
            self.trouble(one, other, why)
            return
        pair = _pair(one, other)
        remaining: list[PlannedMessage] = []
        for message in self._by_pair.get(pair, ()):
            current = self._sessions.get(message.source), self._sessions.get(message.target)
            if message.sessions == current:
                remaining.append(message)
            else:
                self.excuse(message, why)
        self._by_pair[pair] = remaining

    def troubled(self, one: int, other: int, since: int = 0) -> bool:
        """Return whether an incident has affected two applications since a time."""
        return any(time >= since for time, _ in self._troubles.get(_pair(one, other), ()))

    def excuse(self, message: PlannedMessage, why: str) -> None:
        """Void the promise to deliver a message, unless it has been delivered and its send has ended."""
        if not message.excuse and not (message.delivered and message.status is not None):
            message.excuse = why
            self.counts["excused"] += 1
            self._settle(message)

    # Sending.

    def unsettled(self) -> list[PlannedMessage]:
        """Return the messages that still have to be sent or delivered."""
        return list(self._unsettled.values())

    @property
    def finished(self) -> bool:
        """Return whether every message is settled."""
        return not self._unsettled

    def resolved(self, number: int) -> bool:
        """Return whether a message was delivered or can no longer be."""
        message = self.messages[number]
        return bool(message.delivered or message.excuse or message.failed)

    def data_of(self, message: PlannedMessage) -> bytes:
        """Return the bytes of a message."""
        if len(message.data) != message.length:
            message.data = payload(self.seed, message.number, message.length)
        return message.data

    def posted(self, message: PlannedMessage, session: int, remote: int | None) -> None:
        """Record a message that is being posted to the engine."""
        pair = message.source, message.target
        message.posted_at = self._schedule.now
        message.sessions = (session, remote)
        message.order = self._orders[pair]
        self._orders[pair] += 1
        self.counts["posted"] += 1
        self._by_pair.setdefault(_pair(*pair), []).append(message)
        if remote is None or remote != self._sessions.get(message.target):
            self.excuse(message, "sent to a session that is gone")

    def sent(self, message: PlannedMessage, status: Status, transferred: int) -> None:
        """Record the end of a send."""
        if message.status is not None:
            self.breach("once", f"the send of message {message.number} ended twice")
        message.status = int(status)
        message.transferred = transferred
        if status in REFUSALS:
            self._lost(message, status, f"the send ended with {status.text!r}")
        elif status not in SUCCEEDED:
            self.breach("status", f"the send of message {message.number} ended with {status.text!r}")
        self._settle(message)
        self._agree(message)

    def undelivered(self, message: PlannedMessage, status: Status) -> None:
        """Record the late failure of a send that was complete."""
        if message.status != Status.SUCCESS:
            self.breach("status", f"message {message.number} was lost late, but had not been complete")
        self._lost(message, status, f"undelivered: {status.text!r}")

    def _lost(self, message: PlannedMessage, status: Status, how: str) -> None:
        """Record that a send reports its message as undelivered, which needs a cause."""
        since = message.posted_at or 0
        reopened = False
        if status in NACKED:
            # A late nack for a number of the former session is taken for the same number of this session (R-NAK-05).
            since -= self.late
            reopened = any(
                each in self._reopened and self._reopened[each] >= since for each in (message.source, message.target)
            )
        if not message.excuse and not reopened and not self.troubled(message.source, message.target, since):
            self.breach("status", f"message {message.number} failed without cause: {how}")
        self.excuse(message, how)

    # Receiving.

    def received(
        self,
        message: PlannedMessage,
        application: int,
        session: int,
        receive: MatchedReceive,
        status: Status,
        size: int,
        *,
        late_report: bool = False,
    ) -> None:
        """Record the successful end of a receive. ``late_report`` permits success as the status of a truncated message,
        as it is before the NOTIFY is acked (R-MEA-18)."""
        self._arrived(message, application, session)
        message.taken = int(status), size
        room_short = size < message.length
        if (status == Status.MESSAGE_TRUNCATED) != room_short and not (room_short and late_report):
            self.breach(
                "status", f"message {message.number} of {message.length} bytes: {status.text!r} with {size} received"
            )
        self._taken.setdefault((message.sessions[0], session), []).append(receive)
        self._agree(message)

    def consumed(self, message: PlannedMessage, application: int, session: int) -> None:
        """Record that an unexpected handler has taken a message."""
        message.consumed = True
        self._arrived(message, application, session)
        self._agree(message)

    def aborted(self, message: PlannedMessage, application: int, status: Status) -> None:
        """Record that a receive has taken a message and then failed."""
        message.failed = True
        if status not in REFUSALS:
            self.breach("status", f"the receive of message {message.number} ended with {status.text!r}")
        elif not message.excuse and not self.troubled(message.source, application, message.posted_at or 0):
            self.breach("status", f"the receive of message {message.number} failed without cause: {status.text}")
        self.excuse(message, "its receive failed")

    def _arrived(self, message: PlannedMessage, application: int, session: int) -> None:
        if message.posted_at is None:
            self.breach("address", f"message {message.number} arrived before it was sent")
            return
        if application != message.target:
            self.breach(
                "address",
                f"message {message.number} for application {message.target} reached application {application}",
            )
        elif session != message.sessions[1]:
            self.breach("address", f"message {message.number} reached another session than it was sent to")
        if message.delivered:
            self.breach("once", f"message {message.number} was delivered again")
        message.delivered += 1
        self.counts["delivered"] += message.delivered == 1
        self._settle(message)

    def _settle(self, message: PlannedMessage) -> None:
        if message.settled:
            self._unsettled.pop(message.number, None)

    def _agree(self, message: PlannedMessage) -> None:
        """Check that sender and receiver report the same length once both have ended (R-MSC-01, R-NOT-02)."""
        if message.status is None or not message.delivered or message.status in REFUSALS:
            return
        took = 0 if message.consumed else (message.taken or (0, 0))[1]
        if not message.large:
            expected = Status.SUCCESS, message.length
        else:
            expected = (Status.MESSAGE_TRUNCATED if took < message.length else Status.SUCCESS), took
        if (message.status, message.transferred) != expected:
            self.breach(
                "status",
                f"message {message.number} of {message.length} bytes: its send ended with "
                f"{Status(message.status).text!r} and {message.transferred} bytes, its receiver took {took}",
            )

    # Judgement.

    def judge_orders(self) -> None:
        """Check that messages of one sender were matched in order (R-MAT-02).

        A message that is delivered twice is a breach of ``once``, and is in no order. Nor is one that its sender has
        reported as lost, where partners with defects lose each other: a receiver with D-4 keeps early packets from
        before it was abandoned, and delivers them when new ones fill the gap.
        """
        parting = "delivery" in self.unchecked
        for taken in self._taken.values():
            takes = [each for each in taken if each.message.delivered == 1 and not (parting and each.message.excuse)]
            takes.sort(key=lambda each: (each.message.order, each.order))
            newest = -1
            for place, take in enumerate(takes):
                if take.order > newest:
                    newest = take.order
                    continue
                # The receive would have matched an earlier message too, which therefore must have gone to an earlier
                # receive.
                for before in takes[:place]:
                    if before.order > take.order and before.message.match_info & take.mask == take.value:
                        self.breach(
                            "order",
                            f"message {take.message.number} overtook message {before.message.number}: its receive "
                            f"({take.order}) was posted before the other receive ({before.order})",
                        )

    def judge_missing(self) -> None:
        """Record a breach for every unsettled message."""
        for message in self._unsettled.values():
            if message.posted_at is None:
                self.breach("liveness", f"message {message.number} could not be sent at all")
            elif not message.delivered:
                self.breach("delivery", f"message {message.number} of {message.length} bytes was never delivered")
            else:
                self.breach("liveness", f"the send of message {message.number} of {message.length} bytes never ended")


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one <= other else (other, one)
