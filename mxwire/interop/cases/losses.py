"""Loss of chosen frames, in addition to the impairment: all messages must arrive."""

from __future__ import annotations

from functools import partial

from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.cases.perf import round_trips
from mxwire.interop.testbed import Testbed
from mxwire.texts import table_rows
from mxwire.wire.enums import PacketType

CASES = CaseGroup("losses")


def _without(testbed: Testbed, length: int, packet_type: PacketType, frame: str, count: int) -> None:
    """Exchange messages while a frame is lost; with an external host without an echo, use the answers of omx_perf.

    ``frame`` is the number of the frame among those of its type, from 0, or names one among the replies to a message.
    """
    replies = -(-length // testbed.left.dialect.reply_payload)
    place = {"middle": replies // 2, "last": replies - 1}.get(frame)

    def cut() -> None:
        testbed.cut_each_way(packet_type, int(frame) if place is None else place)

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


for _, (_name, _title, _rules, _length, _type, _frame, _count, _about) in table_rows(__file__, "losses.md"):
    _lost = partial(_without, length=int(_length), packet_type=PacketType[_type], frame=_frame, count=int(_count))
    CASES.enter(_name, _title, _rules, _about, _lost, lengths=of(int(_length)))


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
