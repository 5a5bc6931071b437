"""Matching of receives: synchronous sends, unexpected messages, wildcards, truncation."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.roles import require
from mxwire.interop.testbed import Testbed
from mxwire.protocol import Defect, Status
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

CASES = CaseGroup("matching")
_KINDS = (20, 100, 5000, 40_000)
"""One length of each kind of message."""


@CASES.case(
    "a synchronous send waits for its receive", "R-SND-01 R-RDV-04 R-MAT-05 R-NOT-01", synchronous=of(0, 44, 5000)
)
def synchronous(testbed: Testbed) -> None:
    """0, 44 and 5000 bytes; each send completes when a receive has matched, and not before."""
    joined = testbed.join()
    for number, length in enumerate((0, 44, 5000)):
        sent = joined.one.send(joined.to_two, data(number, length), number, synchronous=True)
        if testbed.right_is_controlled:
            testbed.sleep(0.05)
            require(not sent.done, f"a synchronous send of {length} bytes completed before it was received")
        posted = joined.two.receive(length, number)
        joined.two.took(posted, data(number, length))
        joined.one.wait(sent)


@CASES.case("messages wait for their receives", "R-MAT-02 R-MAT-05", lengths=of(*_KINDS), answered=True)
def unexpected(testbed: Testbed) -> None:
    """One message of each kind is sent before a receive is posted, and received in another order, by match info."""
    for sender, partner, receiver in testbed.join().ways():
        for number, length in enumerate(_KINDS):
            sender.send(partner, data(number, length), number)
        testbed.sleep(0.1)
        for number, length in reversed(list(enumerate(_KINDS))):
            receiver.took(receiver.receive(length, number), data(number, length))
        testbed.settle()


@CASES.case(
    "receives match in the order of posting",
    "R-MAT-01 R-MAT-02 R-MAT-03 R-ORD-05",
    lengths=of(8),
    answered=True,
    impaired=True,
)
def wildcards(testbed: Testbed) -> None:
    """Exact, masked and open receives are posted; messages go to the first that matches, in the order of sending."""
    for sender, partner, receiver in testbed.join().ways():
        masked = receiver.receive(8, 0x100, 0xF00)
        exact = receiver.receive(8, 0x101)
        first, second = (receiver.receive(8, 0, 0) for _ in range(2))
        for match_info in (0x101, 0x101, 0x7, 0x8):
            sender.send(partner, match_info.to_bytes(8, "big"), match_info)
        for taken, match_info in ((masked, 0x101), (exact, 0x101), (first, 0x7), (second, 0x8)):
            receiver.took(taken, match_info.to_bytes(8, "big"), match_info=match_info)


@CASES.case("a short buffer truncates the message", "R-MSC-01 R-RDV-04 R-NOT-02", lengths=of(*_KINDS), whole=False)
def truncated(testbed: Testbed) -> None:
    """One message of each kind into a buffer of ten bytes: the receive ends as truncated, and so does a large send."""
    joined = testbed.join()
    for number, length in enumerate(_KINDS):
        posted = joined.two.receive(10, number)
        sent = joined.one.send(joined.to_two, data(number, length), number)
        large = length > RENDEZVOUS_THRESHOLD
        # The receiver of a large message polls before its NOTIFY is acked.
        late = large and joined.two.engine.profile.has(Defect.TRUNCATION_REPORTED_LATE)
        joined.two.took(posted, data(number, length)[:10], Status.SUCCESS if late else Status.MESSAGE_TRUNCATED)
        reported = large and testbed.right_is_controlled
        joined.one.wait(sent, Status.MESSAGE_TRUNCATED if reported else Status.SUCCESS)


@CASES.case("a receive is cancelled", "R-MSC-02 R-MAT-02", lengths=of(8))
def cancelled(testbed: Testbed) -> None:
    """The first of two receives is cancelled; the message goes to the second."""
    joined = testbed.join()
    first, second = joined.two.receive(8, 1), joined.two.receive(8, 1)
    require(joined.two.engine.cancel(first.request), "an unmatched receive cannot be cancelled")
    joined.one.send(joined.to_two, b"for both", 1)
    joined.two.took(second, b"for both")
    require(first.request.status is Status.CANCELLED, "the first receive did not end as cancelled")
