"""Ends of communication: applications that sleep, die, or never connect back."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.roles import require
from mxwire.interop.testbed import JoinedEndpoints, Testbed
from mxwire.protocol import Status
from mxwire.wire.enums import PacketType

CASES = CaseGroup("ends")
_LARGE = 200_000
_AS_EVER = b"as ever.", 8
"""A message to check that two hosts still communicate, and its length in bytes."""


@CASES.case(
    "the receiver is busy elsewhere", "R-GEN-01 R-RTX-01 R-RTX-02 R-ORD-03", lengths=of(8, 100, 5000), impaired=True
)
def receiver_paused(testbed: Testbed) -> None:
    """The application on the right sleeps for longer than a resend delay while messages arrive; then it receives each
    once. If the right host is external, the local one sleeps while the answers arrive."""
    joined = testbed.join()
    lengths = (8, 100, 5000, 8, 8)
    posted = [joined.two.receive(6000) for _ in range(len(lengths) + 1)]
    if testbed.right_is_controlled:
        joined.two.pause()
    for number, length in enumerate(lengths):
        joined.one.send(joined.to_two, data(number, length))
    joined.two.pause()
    testbed.sleep(1.2)
    joined.two.pause(False)
    for number, length in enumerate(lengths):
        joined.two.took(posted[number], data(number, length))
    testbed.settle()
    require(not posted[-1].request.done, "a message was delivered twice")


@CASES.case("the card answers while the application sleeps", "R-GEN-01 R-PUL-12", lengths=of(_LARGE))
def answers_while_paused(testbed: Testbed) -> None:
    """The sender of a large message sleeps once it is announced; its card serves the PULLs."""
    joined = testbed.join()
    posted = joined.two.receive(_LARGE)
    before = len(testbed.frames)
    sent = joined.one.send(joined.to_two, data(0, _LARGE))
    joined.one.pause()
    if testbed.right_is_controlled:
        joined.two.took(posted, data(0, _LARGE))
    else:
        pulled = testbed.until(lambda: testbed.was_sent(PacketType.NOTIFY, before))
        require(pulled, "no NOTIFY arrived for the pulled message")
    joined.one.pause(False)
    joined.one.wait(sent)
    joined.two.took(posted, data(0, _LARGE))


@CASES.case(
    "the sender of a large message dies",
    "R-CLS-02 R-NAK-09 R-NOT-01",
    lengths=of(8, _LARGE),
    answered=True,
    whole=False,
)
def sender_killed(testbed: Testbed) -> None:
    """Its receiver, while pulling, gets a nack because the endpoint is closed; a new sender works."""
    joined = testbed.join()
    if not testbed.right_is_controlled:
        _die_while_pulled(testbed, joined)
        return
    posted = joined.two.receive(_LARGE)
    testbed.cut(PacketType.PULL_REPLY, *range(64))
    joined.one.send(joined.to_two, data(0, _LARGE))
    testbed.until(lambda: bool(joined.two.engine.pulling), 1.0)
    require(bool(joined.two.engine.pulling), "the receiver has not begun to pull")
    joined.one.close()
    joined.two.wait(posted, Status.REMOTE_ENDPOINT_CLOSED, f"receive of {_LARGE} bytes")
    again = testbed.left.open(joined.one.number)
    to_two = again.connect(joined.two.where)
    to_one = joined.two.connect(again.where)
    JoinedEndpoints(again, joined.two, to_two, to_one).exchange(*_AS_EVER)


def _die_while_pulled(testbed: Testbed, joined: JoinedEndpoints) -> None:
    """The same with an external receiver: the nack is visible only on the wire."""
    before = len(testbed.frames)
    testbed.cut(PacketType.PULL_REPLY, *range(64))
    joined.one.send(joined.to_two, data(0, _LARGE))
    require(testbed.until(lambda: testbed.was_sent(PacketType.PULL, before)), "the receiver has not begun to pull")
    joined.one.close()
    # The receiver's timer has to expire first (R-PUL-08).
    refused = testbed.until(lambda: testbed.was_sent(PacketType.NACK_MCP, before))
    require(refused, "the receiver did not re-request the missing frames")
    testbed.join().exchange(*_AS_EVER)


@CASES.case("the receiver dies", "R-CLS-02 R-EP-01 R-NAK-05 R-NAK-10", lengths=of(8))
def receiver_killed(testbed: Testbed) -> None:
    """Later messages to its endpoint are refused with the status of a closed one. If the right host is external, the
    local one closes before the echo arrives, and a new endpoint is answered as before."""
    joined = testbed.join()
    if not testbed.right_is_controlled:
        _die_before_the_answer(testbed, joined)
        return
    posted = joined.two.receive(8)
    joined.one.send(joined.to_two, b"the last")
    joined.two.took(posted, b"the last")
    testbed.settle()
    joined.two.close()
    sent = joined.one.send(joined.to_two, b"too late", synchronous=True)
    joined.one.wait(sent, Status.REMOTE_ENDPOINT_CLOSED, "send to a closed endpoint")


def _die_before_the_answer(testbed: Testbed, joined: JoinedEndpoints) -> None:
    """Close the endpoint before the echo's answer arrives; the echo must work for a new endpoint."""
    before = len(testbed.frames)
    joined.one.send(joined.to_two, b"the last")
    joined.one.close()
    refused = testbed.until(lambda: testbed.was_sent(PacketType.NACK_LIB, before))
    require(refused, "the echo did not answer, so nothing was refused")
    testbed.join().exchange(*_AS_EVER)


@CASES.case("only one side connects", "R-CON-12 R-CON-13", lengths=of(8, 100, 5000), role="sink", impaired=True)
def one_way(testbed: Testbed) -> None:
    """The right side never connects back, and only receives; short and medium messages need no more."""
    if not testbed.right_is_controlled:
        _send_to_a_sink(testbed)
        return
    one, two = testbed.left.open(1), testbed.right.open(2)
    to_two = one.connect(two.where)
    for number, length in enumerate((8, 100, 5000)):
        posted = two.receive(length)
        one.send(to_two, data(number, length))
        two.took(posted, data(number, length))
    testbed.settle()


def _send_to_a_sink(testbed: Testbed) -> None:
    """Send to a sink: only acknowledgements show that messages arrived."""
    where = testbed.program("sink")
    one = testbed.left.open(1)
    partner = one.connect(where)
    for number, length in enumerate((8, 100, 5000)):
        one.send(partner, data(number, length))
    require(testbed.until(lambda: partner.tx_una == partner.tx_next), "not all messages were acknowledged")


@CASES.case(
    "a partner is disconnected and reconnected",
    "R-CLS-03 R-CON-10",
    lengths=of(8),
    answered=True,
    keeps_partner=True,
    unseen="R-RTX-01",
    role=None,
)
def disconnected(testbed: Testbed) -> None:
    """Both applications disconnect, connect again, and exchange messages as before."""
    joined = testbed.join()
    joined.exchange(*_AS_EVER)
    testbed.settle()
    joined.one.engine.disconnect(joined.to_two)
    joined.two.engine.disconnect(joined.to_one)
    there, back = joined.one.ask(joined.two.where), joined.two.ask(joined.one.where)
    joined.one.wait(there)
    joined.two.wait(back)
    assert there.partner is not None and back.partner is not None
    JoinedEndpoints(joined.one, joined.two, there.partner, back.partner).exchange(*_AS_EVER)


@CASES.case("a silent host is abandoned", "R-RTX-03 R-RTX-05")
def given_up(testbed: Testbed) -> None:
    """The other host does not receive anything; after the allowed number of retransmissions the connect ends."""
    where = testbed.any_program()
    one = testbed.left.open(5)
    testbed.cut(PacketType.CONNECT, *range(100))
    request = one.ask(where, resends=2)
    one.wait(request, None, "connect to a silent host")
    require(
        request.status in (Status.TIMEOUT, Status.REMOTE_ENDPOINT_UNREACHABLE),
        f"the connect ended as {request.status.text if request.status is not None else 'nothing'}",
    )
