"""Chosen frames are lost, whatever the impairment is: everything must arrive all the same."""

from __future__ import annotations

from mxwire.interop.cases.part import Group, data, of
from mxwire.interop.stage import Stage
from mxwire.wire.enums import PacketType

CASES = Group("losses")
_LARGE = 100_000


def _large_without(stage: Stage, packet_type: PacketType, *places: int) -> None:
    """A large message while some frames are lost."""
    joined = stage.join()
    stage.cut_each_way(packet_type, *places)
    taken = joined.two.receive(_LARGE)
    sent = joined.one.send(joined.to_two, data(0, _LARGE))
    joined.two.took(taken, data(0, _LARGE))
    joined.one.wait(sent)


def _replies(stage: Stage) -> int:
    return -(-_LARGE // stage.left.dialect.reply_payload)


@CASES.case("lost-first-reply", "the first reply is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE), role="echo")
def first_reply(stage: Stage) -> None:
    """The first PULL_REPLY of a large message does not arrive."""
    _large_without(stage, PacketType.PULL_REPLY, 0)


@CASES.case("lost-middle-reply", "a reply in the middle is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE), role="echo")
def middle_reply(stage: Stage) -> None:
    """A PULL_REPLY in the middle of a large message does not arrive."""
    _large_without(stage, PacketType.PULL_REPLY, _replies(stage) // 2)


@CASES.case("lost-last-reply", "the last reply is lost", "R-PUL-08", lengths=of(_LARGE), role="echo")
def last_reply(stage: Stage) -> None:
    """The last PULL_REPLY of a large message does not arrive: only the timer finds out."""
    _large_without(stage, PacketType.PULL_REPLY, _replies(stage) - 1)


@CASES.case("lost-pull", "the first PULL is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE), role="echo")
def pull(stage: Stage) -> None:
    """Nobody hears the first PULL."""
    _large_without(stage, PacketType.PULL, 0)


@CASES.case("lost-rendezvous", "the RNDV is lost", "R-RTX-01 R-RTX-02", lengths=of(_LARGE), role="echo")
def rendezvous(stage: Stage) -> None:
    """The announcement of a large message is lost, and sent again after half a second."""
    _large_without(stage, PacketType.RNDV, 0)


@CASES.case("lost-notify", "the NOTIFY is lost", "R-NOT-01 R-RTX-02", lengths=of(_LARGE), role="echo")
def notify(stage: Stage) -> None:
    """The sender learns of the end only when the NOTIFY is sent again."""
    _large_without(stage, PacketType.NOTIFY, 0)


@CASES.case("lost-fragment", "a fragment is lost", "R-RTX-02 R-MED-03 R-ACK-01", lengths=of(20_000), role="echo")
def fragment(stage: Stage) -> None:
    """A fragment of a MEDIUM is lost; all of them are sent again."""
    joined = stage.join()
    stage.cut_each_way(PacketType.MEDIUM, 1)
    taken = joined.two.receive(20_000)
    joined.one.send(joined.to_two, data(0, 20_000))
    joined.two.took(taken, data(0, 20_000))
    stage.settle()


@CASES.case("lost-message", "a message among others is lost", "R-ORD-03 R-ORD-04 R-ORD-05", lengths=of(8), role="echo")
def message(stage: Stage) -> None:
    """The third of ten TINYs is lost; those after it wait until it was sent again, and all come in order."""
    joined = stage.join()
    stage.cut_each_way(PacketType.TINY, 2)
    taken = [joined.two.receive(8) for _ in range(10)]
    for number in range(10):
        joined.one.send(joined.to_two, b"%08d" % number)
    for number in range(10):
        joined.two.took(taken[number], b"%08d" % number)
    stage.settle(10)


@CASES.case("lost-acks", "acknowledgements are lost", "R-ACK-06 R-ACK-10 R-ORD-03", lengths=of(8), role="echo")
def acks(stage: Stage) -> None:
    """The first two explicit acks are lost: the messages are sent again, and delivered once."""
    joined = stage.join()
    stage.cut_each_way(PacketType.TRUC, 0, 1)
    taken = [joined.two.receive(8) for _ in range(2)]
    joined.one.send(joined.to_two, b"once and")
    joined.two.took(taken[0], b"once and")
    stage.settle(10)
    joined.one.send(joined.to_two, b"for all.")
    joined.two.took(taken[1], b"for all.")
    stage.settle(10)


@CASES.case("lost-connect", "request and reply of a connect are lost", "R-CON-02 R-CON-08", lengths=of(8), role="echo")
def connect(stage: Stage) -> None:
    """The first two frames of connecting are lost in each direction; the request is repeated."""
    for side in stage.sides:
        stage.cut(PacketType.CONNECT, 0, 1, source=side.address)
    joined = stage.join()
    taken = joined.two.receive(8)
    joined.one.send(joined.to_two, b"at last!")
    joined.two.took(taken, b"at last!")
