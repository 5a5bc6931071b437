"""Ends of communication: applications that sleep, die, or never connect back."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.roles import stage_wants
from mxwire.interop.stage import JoinedEndpoints, Stage
from mxwire.protocol import Status
from mxwire.wire.enums import PacketType

CASES = CaseGroup("ends")
_LARGE = 200_000
_AS_EVER = b"as ever.", 8
"""A message to check that two hosts still communicate, and its length in bytes."""


@CASES.case(
    "the receiver is busy elsewhere", "R-GEN-01 R-RTX-01 R-RTX-02 R-ORD-03", lengths=of(8, 100, 5000), impaired=True
)
def receiver_paused(stage: Stage) -> None:
    """The application on the right sleeps for longer than a resend delay while messages arrive; then it receives each
    once. If the right host is external, the local one sleeps while the answers arrive."""
    joined = stage.join()
    lengths = (8, 100, 5000, 8, 8)
    posted = [joined.two.receive(6000) for _ in range(len(lengths) + 1)]
    if stage.right_is_controlled:
        joined.two.pause()
    for number, length in enumerate(lengths):
        joined.one.send(joined.to_two, data(number, length))
    joined.two.pause()
    stage.sleep(1.2)
    joined.two.pause(False)
    for number, length in enumerate(lengths):
        joined.two.took(posted[number], data(number, length))
    stage.settle()
    stage_wants(not posted[-1].request.done, "a message was delivered twice")


@CASES.case("the card answers while the application sleeps", "R-GEN-01 R-PUL-12", lengths=of(_LARGE))
def answers_while_paused(stage: Stage) -> None:
    """The sender of a large message sleeps once it is announced; its card serves the PULLs."""
    joined = stage.join()
    posted = joined.two.receive(_LARGE)
    before = len(stage.frames)
    sent = joined.one.send(joined.to_two, data(0, _LARGE))
    joined.one.pause()
    if stage.right_is_controlled:
        joined.two.took(posted, data(0, _LARGE))
    else:
        pulled = stage.until(lambda: stage.was_sent(PacketType.NOTIFY, before))
        stage_wants(pulled, "no NOTIFY arrived for the pulled message")
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
def sender_killed(stage: Stage) -> None:
    """Its receiver, while pulling, gets a nack because the endpoint is closed; a new sender works."""
    joined = stage.join()
    if not stage.right_is_controlled:
        _die_while_pulled(stage, joined)
        return
    posted = joined.two.receive(_LARGE)
    stage.cut(PacketType.PULL_REPLY, *range(64))
    joined.one.send(joined.to_two, data(0, _LARGE))
    stage.until(lambda: bool(joined.two.engine.pulling), 1.0)
    stage_wants(bool(joined.two.engine.pulling), "the receiver has not begun to pull")
    joined.one.close()
    joined.two.wait(posted, Status.REMOTE_ENDPOINT_CLOSED, f"receive of {_LARGE} bytes")
    again = stage.left.open(joined.one.number)
    to_two = again.connect(joined.two.where)
    to_one = joined.two.connect(again.where)
    JoinedEndpoints(again, joined.two, to_two, to_one).exchange(*_AS_EVER)


def _die_while_pulled(stage: Stage, joined: JoinedEndpoints) -> None:
    """The same with an external receiver: the nack is visible only on the wire."""
    before = len(stage.frames)
    stage.cut(PacketType.PULL_REPLY, *range(64))
    joined.one.send(joined.to_two, data(0, _LARGE))
    stage_wants(stage.until(lambda: stage.was_sent(PacketType.PULL, before)), "the receiver has not begun to pull")
    joined.one.close()
    # The receiver's timer has to expire first (R-PUL-08).
    refused = stage.until(lambda: stage.was_sent(PacketType.NACK_MCP, before))
    stage_wants(refused, "the receiver did not re-request the missing frames")
    stage.join().exchange(*_AS_EVER)


@CASES.case("the receiver dies", "R-CLS-02 R-EP-01 R-NAK-05 R-NAK-10", lengths=of(8))
def receiver_killed(stage: Stage) -> None:
    """Later messages to its endpoint are refused with the status of a closed one. If the right host is external, the
    local one closes before the echo arrives, and a new endpoint is answered as before."""
    joined = stage.join()
    if not stage.right_is_controlled:
        _die_before_the_answer(stage, joined)
        return
    posted = joined.two.receive(8)
    joined.one.send(joined.to_two, b"the last")
    joined.two.took(posted, b"the last")
    stage.settle()
    joined.two.close()
    sent = joined.one.send(joined.to_two, b"too late", synchronous=True)
    joined.one.wait(sent, Status.REMOTE_ENDPOINT_CLOSED, "send to a closed endpoint")


def _die_before_the_answer(stage: Stage, joined: JoinedEndpoints) -> None:
    """Close the endpoint before the echo's answer arrives; the echo must work for a new endpoint."""
    before = len(stage.frames)
    joined.one.send(joined.to_two, b"the last")
    joined.one.close()
    refused = stage.until(lambda: stage.was_sent(PacketType.NACK_LIB, before))
    stage_wants(refused, "the echo did not answer, so nothing was refused")
    stage.join().exchange(*_AS_EVER)


@CASES.case("only one side connects", "R-CON-12 R-CON-13", lengths=of(8, 100, 5000), role="sink", impaired=True)
def one_way(stage: Stage) -> None:
    """The right side never connects back, and only receives; short and medium messages need no more."""
    if not stage.right_is_controlled:
        _send_to_a_sink(stage)
        return
    one, two = stage.left.open(1), stage.right.open(2)
    to_two = one.connect(two.where)
    for number, length in enumerate((8, 100, 5000)):
        posted = two.receive(length)
        one.send(to_two, data(number, length))
        two.took(posted, data(number, length))
    stage.settle()


def _send_to_a_sink(stage: Stage) -> None:
    """Send to a sink: only acknowledgements show that messages arrived."""
    where = stage.program("sink")
    one = stage.left.open(1)
    partner = one.connect(where)
    for number, length in enumerate((8, 100, 5000)):
        one.send(partner, data(number, length))
    stage_wants(stage.until(lambda: partner.tx_una == partner.tx_next), "not all messages were acknowledged")


@CASES.case(
    "a partner is disconnected and reconnected",
    "R-CLS-03 R-CON-10",
    lengths=of(8),
    answered=True,
    keeps_partner=True,
    unseen="R-RTX-01",
    role=None,
)
def disconnected(stage: Stage) -> None:
    """Both applications disconnect, connect again, and exchange messages as before."""
    joined = stage.join()
    joined.exchange(*_AS_EVER)
    stage.settle()
    joined.one.engine.disconnect(joined.to_two)
    joined.two.engine.disconnect(joined.to_one)
    there, back = joined.one.ask(joined.two.where), joined.two.ask(joined.one.where)
    joined.one.wait(there)
    joined.two.wait(back)
    assert there.partner is not None and back.partner is not None
    JoinedEndpoints(joined.one, joined.two, there.partner, back.partner).exchange(*_AS_EVER)


@CASES.case("a silent host is abandoned", "R-RTX-03 R-RTX-05")
def given_up(stage: Stage) -> None:
    """The other host does not receive anything; after the allowed number of retransmissions the connect ends."""
    where = stage.any_program()
    one = stage.left.open(5)
    stage.cut(PacketType.CONNECT, *range(100))
    request = one.ask(where, resends=2)
    one.wait(request, None, "connect to a silent host")
    stage_wants(
        request.status in (Status.TIMEOUT, Status.REMOTE_ENDPOINT_UNREACHABLE),
        f"the connect ended as {request.status.text if request.status is not None else 'nothing'}",
    )
