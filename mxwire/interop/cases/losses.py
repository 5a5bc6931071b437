"""Loss of chosen frames, in addition to the impairment: all messages must arrive."""

from __future__ import annotations

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.cases.perf import round_trips
from mxwire.interop.testbed import Testbed
from mxwire.wire.enums import PacketType

CASES = CaseGroup("losses")
_LARGE = 100_000


def _without(testbed: Testbed, length: int, packet_type: PacketType, *places: int, count: int = 1) -> None:
    """Exchange messages while frames are lost; with an external host without an echo, use the answers of omx_perf."""

    def cut() -> None:
        testbed.cut_each_way(packet_type, *places)

    if not testbed.has("echo"):
        round_trips(testbed, length, count, cut)
        return
    joined = testbed.join()
    cut()
    posted = [joined.two.receive(length) for _ in range(count)]
    sent = [joined.one.send(joined.to_two, data(number, length)) for number in range(count)]
    for number, (receive, send) in enumerate(zip(posted, sent, strict=True)):
        joined.two.took(receive, data(number, length))
        joined.one.wait(send)
    testbed.settle(10)


def _replies(testbed: Testbed) -> int:
    return -(-_LARGE // testbed.left.dialect.reply_payload)


@CASES.case("the first reply is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE))
def lost_first_reply(testbed: Testbed) -> None:
    """The first PULL_REPLY of a large message does not arrive."""
    _without(testbed, _LARGE, PacketType.PULL_REPLY, 0)


@CASES.case("a reply in the middle is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE))
def lost_middle_reply(testbed: Testbed) -> None:
    """A PULL_REPLY in the middle of a large message does not arrive."""
    _without(testbed, _LARGE, PacketType.PULL_REPLY, _replies(testbed) // 2)


@CASES.case("the last reply is lost", "R-PUL-08", lengths=of(_LARGE))
def lost_last_reply(testbed: Testbed) -> None:
    """The last PULL_REPLY of a large message does not arrive: only the timer detects it."""
    _without(testbed, _LARGE, PacketType.PULL_REPLY, _replies(testbed) - 1)


@CASES.case("the first PULL is lost", "R-PUL-07 R-PUL-08", lengths=of(_LARGE))
def lost_pull(testbed: Testbed) -> None:
    """The first PULL does not arrive."""
    _without(testbed, _LARGE, PacketType.PULL, 0)


@CASES.case("the RNDV is lost", "R-RTX-01 R-RTX-02", lengths=of(_LARGE))
def lost_rendezvous(testbed: Testbed) -> None:
    """The announcement of a large message is lost, and retransmitted after half a second."""
    _without(testbed, _LARGE, PacketType.RNDV, 0)


@CASES.case("the NOTIFY is lost", "R-NOT-01 R-RTX-02", lengths=of(_LARGE))
def lost_notify(testbed: Testbed) -> None:
    """The sender's request completes only after the NOTIFY has been retransmitted."""
    _without(testbed, _LARGE, PacketType.NOTIFY, 0)


@CASES.case("a fragment is lost", "R-RTX-02 R-MED-03 R-ACK-01", lengths=of(20_000))
def lost_fragment(testbed: Testbed) -> None:
    """A fragment of a MEDIUM message is lost; all of its fragments are retransmitted."""
    _without(testbed, 20_000, PacketType.MEDIUM, 1)


@CASES.case("a message in a sequence is lost", "R-ORD-03 R-ORD-04 R-ORD-05", lengths=of(8))
def lost_message(testbed: Testbed) -> None:
    """The third of ten TINYs is lost; later ones wait until it is retransmitted, and all are delivered in order."""
    _without(testbed, 8, PacketType.TINY, 2, count=10)


@CASES.case("acknowledgements are lost", "R-ACK-06 R-ACK-10 R-ORD-03", lengths=of(8))
def lost_acks(testbed: Testbed) -> None:
    """The first two explicit acks are lost: the messages are retransmitted, and delivered once."""
    joined = testbed.join()
    testbed.cut_each_way(PacketType.TRUC, 0, 1)
    posted = [joined.two.receive(8) for _ in range(2)]
    joined.one.send(joined.to_two, b"once and")
    joined.two.took(posted[0], b"once and")
    testbed.settle(10)
    joined.one.send(joined.to_two, b"for all.")
    joined.two.took(posted[1], b"for all.")
    testbed.settle(10)


@CASES.case("request and reply of a connect are lost", "R-CON-02 R-CON-08", lengths=of(8))
def lost_connect(testbed: Testbed) -> None:
    """The first two frames of a connect are lost in each direction; the request is repeated."""
    for side in testbed.sides:
        testbed.cut(PacketType.CONNECT, 0, 1, source=side.address)
    if not testbed.has("echo"):
        round_trips(testbed, 8, 1, lambda: None)
        return
    joined = testbed.join()
    posted = joined.two.receive(8)
    joined.one.send(joined.to_two, b"at last!")
    joined.two.took(posted, b"at last!")
