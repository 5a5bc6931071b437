"""Streams of messages: long ones, both directions at once, several endpoints."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.testbed import JoinedEndpoints, Testbed

CASES = CaseGroup("streams")
_MIXED = (1, 33, 200, 10, 7000, 128, 40_000, 0, 32)


@CASES.case(
    "a hundred messages in a row",
    "R-SEQ-01 R-SEQ-05 R-ACK-01 R-ACK-02 R-ORD-05",
    lengths=of(0, 1, 32, 128),
    impaired=True,
)
def stream(testbed: Testbed) -> None:
    """All messages are sent before the first is received, and delivered in order."""
    joined = testbed.join()
    lengths = [(0, 1, 32, 128)[number % 4] for number in range(100)]
    posted = [joined.two.receive(128) for _ in lengths]
    for number, length in enumerate(lengths):
        joined.one.send(joined.to_two, data(number, length))
    for number, length in enumerate(lengths):
        testbed.until(lambda number=number: posted[number].request.done)  # type: ignore[misc]
        if posted[number].data != data(number, length) or number == len(lengths) - 1:
            joined.two.took(posted[number], data(number, length))
    testbed.settle()


@CASES.case("MEDIUM messages back to back", "R-MED-05 R-ACK-01 R-SEQ-04", lengths=of(*range(9000, 9012)), impaired=True)
def mediums(testbed: Testbed) -> None:
    """Twelve messages of several fragments, all at once."""
    joined = testbed.join()
    posted = [joined.two.receive(9100, number) for number in range(12)]
    for number in range(12):
        joined.one.send(joined.to_two, data(number, 9000 + number), number)
    for number in range(12):
        joined.two.took(posted[number], data(number, 9000 + number))


@CASES.case(
    "both hosts send at the same time",
    "R-ACK-03 R-SEQ-04 R-ORD-05 R-PUL-02",
    lengths=of(*_MIXED),
    answered=True,
    impaired=True,
)
def bidirectional(testbed: Testbed) -> None:
    """Messages of all kinds in both directions at the same time."""
    _all_ways([testbed.join()])


@CASES.case("four endpoints on each host", "R-EP-01 R-EP-05 R-SEQ-04", lengths=of(*_MIXED), answered=True)
def endpoints(testbed: Testbed) -> None:
    """Four pairs of endpoints communicate at the same time; no message reaches another pair."""
    _all_ways([testbed.join(10 + number, 20 + number) for number in range(4)])


def _all_ways(pairs: list[JoinedEndpoints]) -> None:
    posted = []
    for place, joined in enumerate(pairs):
        for way, (_, _, receiver) in enumerate(joined.ways()):
            for number, length in enumerate(_MIXED):
                content = data(100 * place + 50 * way + number, length)
                posted.append((receiver, receiver.receive(length, number), content))
    for place, joined in enumerate(pairs):
        for way, (sender, partner, _) in enumerate(joined.ways()):
            for number, length in enumerate(_MIXED):
                sender.send(partner, data(100 * place + 50 * way + number, length), number)
    for receiver, taken, content in posted:
        receiver.took(taken, content)
