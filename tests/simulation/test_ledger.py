"""The books find everything that is not as it must be, and nothing else."""

from __future__ import annotations

import pytest

from mxwire.protocol import Status
from mxwire.simulation.ledger import Ledger, MatchedReceive
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.workload import EXACT, PlannedMessage
from mxwire.units import SECOND

OLD, NEW = 0x1111, 0x2222
"""Sessions of the receiver."""
LATE = SECOND


class Books:
    """Two applications, 0 and 1, and three messages from the one to the other, posted in order."""

    def __init__(self, length: int = 100, *, large: bool = False) -> None:
        self.schedule = Schedule()
        self.messages = [PlannedMessage(number, 0, 1, length, EXACT, large=large) for number in range(3)]
        self.ledger = Ledger(1, self.messages, self.schedule, {}, LATE)
        self.schedule.now = 10 * SECOND
        self.ledger.opened(0, 0x9999)
        self.ledger.opened(1, OLD)
        for message in self.messages:
            self.ledger.posted(message, 0x9999, OLD)

    def receive(self, number: int, order: int, *, session: int = OLD, application: int = 1, size: int = 100) -> None:
        message = self.messages[number]
        status = Status.SUCCESS if size == message.length else Status.MESSAGE_TRUNCATED
        self.ledger.received(message, application, session, MatchedReceive(order, 0, 0, message), status, size)

    def send(self, number: int, status: Status = Status.SUCCESS, size: int = 100) -> None:
        self.ledger.sent(self.messages[number], status, size)

    @property
    def found(self) -> list[tuple[str, str]]:
        self.ledger.judge_orders()
        return [(each.invariant, each.text) for each in self.ledger.breaches]


@pytest.fixture
def books() -> Books:
    return Books()


def test_a_good_run_has_no_breach_and_is_finished(books: Books) -> None:
    for number in range(3):
        assert not books.ledger.finished
        books.send(number)
        books.receive(number, number)
    assert books.ledger.finished and books.found == []
    assert books.ledger.counts["delivered"] == 3


def test_ends_come_once(books: Books) -> None:
    books.send(0)
    books.send(0)
    books.receive(0, 0)
    books.receive(0, 1)
    assert books.found == [("once", "the send of message 0 ended twice"), ("once", "message 0 was delivered again")]


def test_a_message_reaches_whom_it_was_sent_to(books: Books) -> None:
    books.receive(0, 0, application=0)
    books.receive(1, 1, session=NEW)
    unsent = PlannedMessage(0, 0, 1, 5, EXACT)
    books.ledger.consumed(unsent, 1, OLD)
    assert books.found == [
        ("address", "message 0 for application 1 reached application 0"),
        ("address", "message 1 reached another session than it was sent to"),
        ("address", "message 0 arrived before it was sent"),
    ]


def test_a_later_message_does_not_overtake(books: Books) -> None:
    books.receive(1, 0)
    books.receive(0, 1)
    ((invariant, text),) = books.found
    assert invariant == "order" and text.startswith("message 1 overtook message 0: ")


def test_a_receive_that_would_not_have_taken_it_is_not_overtaken(books: Books) -> None:
    books.messages[0].kind = EXACT + 1
    other = MatchedReceive(0, books.messages[1].match_info, (1 << 64) - 1, books.messages[1])
    books.ledger.received(books.messages[1], 1, OLD, other, Status.SUCCESS, 100)
    books.receive(0, 1)
    assert books.found == []


@pytest.mark.parametrize(("large", "reported", "took", "good"), [
    (False, 100, 60, True),
    (False, 60, 60, False),
    (True, 60, 60, True),
    (True, 100, 60, False),
    (True, 100, 100, True),
])  # fmt: skip
def test_sender_and_receiver_agree_on_the_length(large: bool, reported: int, took: int, good: bool) -> None:
    """The sender of a short message does not learn the received length (R-MSC-01)."""
    books = Books(large=large)
    books.receive(0, 0, size=took)
    books.send(0, Status.SUCCESS if reported == 100 else Status.MESSAGE_TRUNCATED, reported)
    assert [name for name, _ in books.found] == ([] if good else ["status"])


def test_a_consumed_large_message_is_reported_as_truncated_to_0_bytes() -> None:
    books = Books(large=True)
    books.ledger.consumed(books.messages[0], 1, OLD)
    books.send(0, Status.MESSAGE_TRUNCATED, 0)
    assert books.found == []


def test_truncation_is_reported(books: Books) -> None:
    message = books.messages[0]
    books.ledger.received(message, 1, OLD, MatchedReceive(0, 0, 0, message), Status.SUCCESS, 60)
    assert books.found == [("status", "message 0 of 100 bytes: 'success' with 60 received")]


def test_nothing_fails_without_trouble(books: Books) -> None:
    books.send(0, Status.REMOTE_ENDPOINT_CLOSED)
    books.send(1, Status.CANCELLED)
    books.ledger.aborted(books.messages[2], 1, Status.REMOTE_ENDPOINT_UNREACHABLE)
    assert [(name, text.partition(":")[0]) for name, text in books.found] == [
        ("status", "message 0 failed without cause"),
        ("status", "the send of message 1 ended with 'cancelled'"),
        ("status", "the receive of message 2 failed without cause"),
    ]


def test_a_receive_fails_only_with_the_statuses_of_the_rules(books: Books) -> None:
    books.ledger.closed(1, "it was killed", 2)
    books.ledger.aborted(books.messages[0], 1, Status.REMOTE_ENDPOINT_UNREACHABLE)
    books.ledger.aborted(books.messages[1], 1, Status.BAD_REQUEST)
    assert [name for name, _ in books.found] == ["status"]


def test_trouble_excuses_messages_in_flight_and_no_later_ones(books: Books) -> None:
    books.send(0)
    books.receive(0, 0)
    books.ledger.closed(1, "it was killed", 2)
    assert books.ledger.finished and books.ledger.counts["excused"] == 2
    assert books.messages[0].excuse == "" and books.messages[1].excuse == "it was killed"
    books.schedule.now += 10 * LATE
    books.ledger.opened(1, NEW)
    later = PlannedMessage(3, 0, 1, 100, EXACT)
    books.schedule.now += 10 * LATE
    books.ledger.posted(later, 0x9999, NEW)
    books.ledger.sent(later, Status.REMOTE_ENDPOINT_UNREACHABLE, 0)
    assert [text.partition(":")[0] for _, text in books.found] == ["message 3 failed without cause"]


@pytest.mark.parametrize(("after", "good"), [(LATE // 2, True), (2 * LATE, False)])
def test_a_late_nack_may_follow_a_restart(after: int, good: bool) -> None:
    """It is for the same number of the former session (R-NAK-05); but only for a limited time."""
    books = Books()
    books.ledger.closed(1, "it was killed", 2)
    books.schedule.now += 10 * LATE
    books.ledger.opened(1, NEW)
    books.schedule.now += after
    later = PlannedMessage(3, 0, 1, 100, EXACT)
    books.ledger.posted(later, 0x9999, NEW)
    books.ledger.sent(later, Status.REMOTE_ENDPOINT_BAD_SESSION, 0)
    assert (books.found == []) is good


def test_a_first_opening_is_not_a_restart(books: Books) -> None:
    books.send(0, Status.REMOTE_ENDPOINT_BAD_SESSION)
    assert [name for name, _ in books.found] == ["status"]


def test_messages_to_a_former_session_are_excused(books: Books) -> None:
    message = PlannedMessage(3, 0, 1, 100, EXACT)
    books.ledger.posted(message, 0x9999, NEW)
    assert message.excuse == "sent to a session that is gone"


def test_only_a_complete_send_can_be_lost_late(books: Books) -> None:
    books.ledger.trouble(0, 1, "partner lost")
    books.send(0)
    books.ledger.undelivered(books.messages[0], Status.REMOTE_ENDPOINT_UNREACHABLE)
    assert books.found == []
    books.ledger.undelivered(books.messages[1], Status.REMOTE_ENDPOINT_UNREACHABLE)
    assert books.found == [("status", "message 1 was lost late, but had not been complete")]


def test_a_restart_keeps_messages_between_the_new_sessions(books: Books) -> None:
    books.ledger.opened(1, NEW)
    new = PlannedMessage(3, 0, 1, 100, EXACT)
    books.ledger.posted(new, 0x9999, NEW)
    books.ledger.restarted(0, 1, "partner restarted")
    assert [each.excuse for each in (*books.messages, new)] == ["partner restarted"] * 3 + [""]


def test_missing_messages_are_named(books: Books) -> None:
    books.messages[0].posted_at = None
    books.receive(1, 0)
    books.ledger.judge_missing()
    assert books.found == [
        ("liveness", "message 0 could not be sent at all"),
        ("liveness", "the send of message 1 of 100 bytes never ended"),
        ("delivery", "message 2 of 100 bytes was never delivered"),
    ]
