"""The ledger: every message, what became of it, and which promises have fallen because of which incidents.

It knows of all hosts at once what no host knows, and finds what is not as it must be.
"""

from __future__ import annotations

from collections import Counter

from mxwire.protocol import Status
from mxwire.simulation.invariants import Breach
from mxwire.simulation.randomness import payload
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.workload import Message

BREACHES_MAXIMUM = 50
NACKED = (Status.REMOTE_ENDPOINT_BAD_ID, Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_BAD_SESSION)
REFUSALS = (*NACKED, Status.REMOTE_ENDPOINT_UNREACHABLE, Status.REMOTE_RDMA_WINDOW_BAD_ID)
"""How a request may end when the other side has gone."""


class Taken:
    """A receive that has taken a message, for the comparison of orders."""

    __slots__ = ("mask", "message", "order", "value")

    def __init__(self, order: int, value: int, mask: int, message: Message) -> None:
        self.order = order
        """Its place among all receives of its endpoint."""
        self.value = value
        self.mask = mask
        self.message = message


class Ledger:
    """What was sent, received, promised and excused in one run."""

    def __init__(
        self, seed: int, messages: list[Message], schedule: Schedule, fallen: dict[str, str], late: int
    ) -> None:
        self.seed = seed
        self.late = late
        """How long an answer to something may be under way, in ns."""
        self.fallen = fallen
        """Invariants that need not hold in this run, and why."""
        self.messages = messages
        self.breaches: list[Breach] = []
        self.counts: Counter[str] = Counter()
        self._schedule = schedule
        self._sessions: dict[int, int | None] = {}
        self._opened: dict[int, int] = {}
        self._reopened: dict[int, int] = {}
        self._troubles: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self._by_pair: dict[tuple[int, int], list[Message]] = {}
        self._orders: Counter[tuple[int, int]] = Counter()
        self._taken: dict[tuple[int, int], list[Taken]] = {}
        self._unsettled = {each.number: each for each in messages}

    # Findings.

    def breach(self, invariant: str, text: str, rule: str = "") -> None:
        """Something does not hold; what need not hold is only counted. ``rule`` is the one that a frame breaks."""
        if invariant in self.fallen:
            self.counts["fallen"] += 1
        elif len(self.breaches) < BREACHES_MAXIMUM:
            self.breaches.append(Breach(invariant, self._schedule.now, text, rule))

    # Sessions and troubles.

    def opened(self, application: int, session: int) -> None:
        """An application has opened its endpoint."""
        if application in self._sessions:
            self._reopened[application] = self._schedule.now
        self._sessions[application] = session
        self._opened[application] = self._schedule.now

    def opened_at(self, application: int) -> int:
        """When an application's endpoint was last opened, in ns; -1 if it never was."""
        return self._opened.get(application, -1)

    def closed(self, application: int, why: str, others: int) -> None:
        """An application has died: promises between it and all others fall."""
        self._sessions[application] = None
        for other in range(others):
            self.trouble(application, other, why)

    def session_of(self, application: int) -> int | None:
        """The session of an application's endpoint; None while it is dead."""
        return self._sessions.get(application)

    def trouble(self, one: int, other: int, why: str) -> None:
        """What is under way between two applications need not arrive any more."""
        pair = _pair(one, other)
        self._troubles.setdefault(pair, []).append((self._schedule.now, why))
        for message in self._by_pair.get(pair, ()):
            self.excuse(message, why)
        self._by_pair[pair] = []

    def restarted(self, one: int, other: int, why: str) -> None:
        """An application has heard that another one was restarted; what was sent between the new ones still counts.

        If one of them had given the other one up, all that is under way is lost.
        """
        since = max(self.opened_at(one), self.opened_at(other))
        if self.troubled(one, other, since + 1):
            self.trouble(one, other, why)
            return
        pair = _pair(one, other)
        kept: list[Message] = []
        for message in self._by_pair.get(pair, ()):
            current = self._sessions.get(message.source), self._sessions.get(message.target)
            if message.sessions == current:
                kept.append(message)
            else:
                self.excuse(message, why)
        self._by_pair[pair] = kept

    def troubled(self, one: int, other: int, since: int = 0) -> bool:
        """Whether there was trouble between two applications since a time."""
        return any(time >= since for time, _ in self._troubles.get(_pair(one, other), ()))

    def excuse(self, message: Message, why: str) -> None:
        """The promise to deliver a message falls, unless it was kept already."""
        if not message.excuse and not (message.delivered and message.status is not None):
            message.excuse = why
            self.counts["excused"] += 1
            self._settle(message)

    # Sending.

    def unsettled(self) -> list[Message]:
        """The messages that still have to be sent or delivered."""
        return list(self._unsettled.values())

    @property
    def finished(self) -> bool:
        """Whether nothing is to be waited for."""
        return not self._unsettled

    def resolved(self, number: int) -> bool:
        """Whether a message was delivered, or will not be."""
        message = self.messages[number]
        return bool(message.delivered or message.excuse or message.failed)

    def data_of(self, message: Message) -> bytes:
        """The bytes of a message."""
        if len(message.data) != message.length:
            message.data = payload(self.seed, message.number, message.length)
        return message.data

    def posted(self, message: Message, session: int, remote: int | None) -> None:
        """A message is being given to the engine."""
        pair = message.source, message.target
        message.posted_at = self._schedule.now
        message.sessions = (session, remote)
        message.order = self._orders[pair]
        self._orders[pair] += 1
        self.counts["posted"] += 1
        self._by_pair.setdefault(_pair(*pair), []).append(message)
        if remote is None or remote != self._sessions.get(message.target):
            self.excuse(message, "sent to a session that is gone")

    def sent(self, message: Message, status: Status, transferred: int) -> None:
        """A send has ended."""
        if message.status is not None:
            self.breach("once", f"the send of message {message.number} ended twice")
        message.status = int(status)
        message.transferred = transferred
        if status in REFUSALS:
            self._lost(message, status, f"the send ended with {status.text!r}")
        elif status not in (Status.SUCCESS, Status.MESSAGE_TRUNCATED):
            self.breach("status", f"the send of message {message.number} ended with {status.text!r}")
        self._settle(message)
        self._agree(message)

    def undelivered(self, message: Message, status: Status) -> None:
        """A send that was complete has failed after all."""
        if message.status != Status.SUCCESS:
            self.breach("status", f"message {message.number} was lost late, but had not been complete")
        self._lost(message, status, f"undelivered: {status.text!r}")

    def _lost(self, message: Message, status: Status, how: str) -> None:
        """A send says that its message did not arrive: was there a reason?"""
        since = message.posted_at or 0
        reopened = False
        if status in NACKED:
            # A late nack for a number of the session before hits the same number of this one (R-NAK-05).
            since -= self.late
            reopened = any(
                each in self._reopened and self._reopened[each] >= since for each in (message.source, message.target)
            )
        if not message.excuse and not reopened and not self.troubled(message.source, message.target, since):
            self.breach("status", f"message {message.number} without any trouble: {how}")
        self.excuse(message, how)

    # Receiving.

    def received(
        self,
        message: Message,
        application: int,
        session: int,
        receive: Taken,
        status: Status,
        size: int,
        *,
        late_report: bool = False,
    ) -> None:
        """A receive has taken a message and ended well; ``late_report``: a truncation may be reported as success, as
        it is before the NOTIFY is acked (R-MEA-18)."""
        self._arrived(message, application, session)
        message.taken = int(status), size
        room_short = size < message.length
        if (status == Status.MESSAGE_TRUNCATED) != room_short and not (room_short and late_report):
            self.breach(
                "status", f"message {message.number} of {message.length} bytes: {status.text!r} with {size} received"
            )
        self._taken.setdefault((message.sessions[0], session), []).append(receive)
        self._agree(message)

    def consumed(self, message: Message, application: int, session: int) -> None:
        """An unexpected handler has taken a message."""
        message.consumed = True
        self._arrived(message, application, session)
        self._agree(message)

    def aborted(self, message: Message, application: int, status: Status) -> None:
        """A receive has taken a message and then failed."""
        message.failed = True
        if status not in REFUSALS:
            self.breach("status", f"the receive of message {message.number} ended with {status.text!r}")
        elif not message.excuse and not self.troubled(message.source, application, message.posted_at or 0):
            self.breach("status", f"the receive of message {message.number} failed without any trouble: {status.text}")
        self.excuse(message, "its receive failed")

    def _arrived(self, message: Message, application: int, session: int) -> None:
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
        message.delivered_at = self._schedule.now
        self.counts["delivered"] += message.delivered == 1
        self._settle(message)

    def _settle(self, message: Message) -> None:
        if message.settled:
            self._unsettled.pop(message.number, None)

    def _agree(self, message: Message) -> None:
        """When both sides have ended: they must say the same (R-MSC-01, R-NOT-02)."""
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
                f"message {message.number} of {message.length} bytes: its sender was told "
                f"{Status(message.status).text!r} with {message.transferred}, its receiver took {took}",
            )

    # Judgement.

    def judge_orders(self) -> None:
        """Messages of one sender must have been matched in order (R-MAT-02)."""
        for takes in self._taken.values():
            takes.sort(key=lambda each: (each.message.order, each.order))
            newest = -1
            for place, take in enumerate(takes):
                if take.order > newest:
                    newest = take.order
                    continue
                # An earlier message that this receive would have taken too must have gone to an earlier receive.
                for before in takes[:place]:
                    if before.order > take.order and before.message.match_info & take.mask == take.value:
                        self.breach(
                            "order",
                            f"message {take.message.number} overtook message {before.message.number}: the receive "
                            f"that took it ({take.order}) was posted before that of the other one ({before.order})",
                        )

    def judge_missing(self) -> None:
        """What has not been delivered, and has no excuse."""
        for message in self._unsettled.values():
            if message.posted_at is None:
                self.breach("liveness", f"message {message.number} could not be sent at all")
            elif not message.delivered:
                self.breach("delivery", f"message {message.number} of {message.length} bytes was never delivered")
            else:
                self.breach("liveness", f"the send of message {message.number} of {message.length} bytes never ended")


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one <= other else (other, one)
