"""Messages between two live hosts: every kind of send and receive, in every size class."""

from __future__ import annotations

import array

import pytest

from mxwire.host import HostError, HostTimeoutError
from mxwire.protocol import LocalProtocolError, Status

from .conftest import PATIENCE
from .exchanges import SIZES, content, every_kind, exchange


@every_kind
def test_every_kind_of_message_arrives(pair, synchronous, expected):
    exchange([(pair.one, pair.partner, pair.two)], synchronous, expected, PATIENCE, (*SIZES, 1_000_003))


def test_an_answer_goes_to_the_source_of_a_message(pair):
    pair.one.send(pair.partner, b"question")
    asked = pair.two.receive(timeout=PATIENCE)
    assert asked.partner is not None
    pair.two.send(asked.partner, b"answer", timeout=PATIENCE)
    assert bytes(pair.one.receive(timeout=PATIENCE)) == b"answer"


def test_match_info_and_mask_choose_the_message(pair):
    for value in (0x11, 0x22, 0x23):
        pair.one.send(pair.partner, bytes([value]), value)
    assert bytes(pair.two.receive(0x20, 0xF0, timeout=PATIENCE)) == b"\x22"
    assert bytes(pair.two.receive(0x23, timeout=PATIENCE)) == b"\x23"
    assert bytes(pair.two.receive(timeout=PATIENCE)) == b"\x11"


def test_a_message_that_does_not_fit_is_reported_as_truncated(pair):
    pair.one.send(pair.partner, content(100))
    message = pair.two.receive(maximum=10, timeout=PATIENCE)
    assert message.truncated and bytes(message) == content(100)[:10] and message.length == 100


def test_any_buffer_is_sent_and_received_into(pair):
    numbers = array.array("d", [1.5, 2.5, 3.5])
    there = array.array("d", [0.0] * 3)
    pair.one.send(pair.partner, numbers)
    message = pair.two.receive(buffer=there, timeout=PATIENCE)
    assert there == numbers and bytes(message) == numbers.tobytes()


def test_several_buffers_make_one_message(pair):
    parts = [bytearray(2), bytearray(4)]
    pair.one.send(pair.partner, [b"abc", b"de", b"f"])
    assert pair.two.receive(buffer=parts, timeout=PATIENCE).length == 6
    assert parts == [b"ab", b"cdef"]


def test_both_directions_at_once(pair):
    pair.one.send(pair.partner, b"")
    back = pair.two.receive(timeout=PATIENCE).partner
    here, there = content(300_000), content(300_001)
    requests = [pair.one.isend(pair.partner, here), pair.one.ireceive(maximum=400_000)]
    others = [pair.two.isend(back, there), pair.two.ireceive(maximum=400_000)]
    assert bytes(pair.one.wait_all(requests, PATIENCE)[1]) == there
    assert bytes(pair.two.wait_all(others, PATIENCE)[1]) == here


def test_wait_any_gives_the_first_that_has_ended(pair):
    requests = [pair.two.ireceive(each, maximum=8) for each in range(4)]
    pair.one.send(pair.partner, b"two", 2)
    found = pair.two.wait_any(requests, PATIENCE)
    assert found is requests[2] and bytes(found.result()) == b"two"
    with pytest.raises(HostTimeoutError, match="none of 2 requests"):
        pair.two.wait_any(requests[:2], 0.01)
    with pytest.raises(HostTimeoutError, match="3 of 4 requests have not ended"):
        pair.two.wait_all(requests, 0.01)
    with pytest.raises(HostError, match="no request"):
        pair.two.wait_any([])


def test_iprobe_and_test_look_without_waiting(pair):
    assert pair.two.iprobe() is None
    request = pair.two.ireceive(1, maximum=8)
    assert not pair.two.test(request)
    pair.one.send(pair.partner, b"x", 1)
    pair.one.send(pair.partner, b"yy", 2)
    pair.two.wait(request, PATIENCE)
    assert pair.two.test(request)
    waiting = pair.two.probe(2, timeout=PATIENCE)
    assert pair.two.iprobe(2) == waiting and waiting.length == 2


def test_a_cancelled_receive_takes_nothing(pair):
    request = pair.two.ireceive(1, maximum=8)
    assert pair.two.cancel(request) and request.status is Status.CANCELLED
    assert pair.two.wait(request).status is Status.CANCELLED
    assert not pair.two.cancel(request)
    pair.one.send(pair.partner, b"x", 1)
    assert bytes(pair.two.receive(1, timeout=PATIENCE)) == b"x"
    with pytest.raises(LocalProtocolError, match="cannot be cancelled"):
        pair.one.cancel(pair.one.isend(pair.partner, b"x"))


def test_a_receive_that_has_timed_out_takes_nothing(pair):
    with pytest.raises(HostTimeoutError, match="within"):
        pair.two.receive(1, maximum=8, timeout=0.01)
    with pytest.raises(HostTimeoutError, match="no message with match info 0x1 under mask 0xf arrived within"):
        pair.two.receive(1, 0xF, timeout=0.01)
    with pytest.raises(TimeoutError, match="no message arrived within"):
        pair.two.probe(timeout=0.01)
    pair.one.send(pair.partner, b"x", 1)
    assert bytes(pair.two.receive(1, timeout=PATIENCE)) == b"x"


def test_a_request_continues_after_a_timeout(pair):
    request = pair.one.issend(pair.partner, b"later", 5)
    with pytest.raises(HostTimeoutError, match=r"send .*0x5.* has not ended within") as error:
        pair.one.wait(request, 0.01)
    assert error.value.request is request
    pair.two.receive(5, timeout=PATIENCE)
    assert pair.one.wait(request, PATIENCE) is Status.SUCCESS


def test_wrong_arguments_are_refused_and_change_nothing(pair):
    with pytest.raises(LocalProtocolError, match="expected a bytes-like object"):
        pair.one.send(pair.partner, 5)
    with pytest.raises(LocalProtocolError, match="read-only"):
        pair.one.ireceive(buffer=b"fixed")
    with pytest.raises(LocalProtocolError, match="needs a buffer, or maximum="):
        pair.one.ireceive()
    with pytest.raises(LocalProtocolError, match="match info"):
        pair.one.send(pair.partner, b"", 1 << 64)
    with pytest.raises(LocalProtocolError, match="partner of another endpoint"):
        pair.two.send(pair.partner, b"")
    with pytest.raises(HostError, match="has not ended yet"):
        pair.two.ireceive(maximum=1).result()


def test_flush_waits_until_all_is_acknowledged(pair):
    for number in range(20):
        pair.one.isend(pair.partner, content(number))
    pair.one.flush(PATIENCE)
    assert not pair.partner.deliveries
    assert [len(pair.two.receive(timeout=PATIENCE)) for _ in range(20)] == list(range(20))


def test_endpoints_of_one_host_talk_without_the_wire(pair):
    near, far = pair.alpha.open_endpoint(5), pair.alpha.open_endpoint(6)
    partner = near.connect("alpha", 6, timeout=PATIENCE)
    sent = pair.alpha.core.links[0].statistics().sent
    request = near.isend(partner, content(50_000))
    assert bytes(far.receive(timeout=PATIENCE)) == content(50_000)
    near.wait(request, PATIENCE)
    assert pair.alpha.core.links[0].statistics().sent == sent


def test_all_endpoints_of_a_host_serve(pair):
    served = [pair.two, *(pair.beta.open_endpoint() for _ in range(31))]
    assert sorted(each.number for each in served) == list(range(32))
    with pytest.raises(HostError, match=r"all 32 endpoints of b\S* are open"):
        pair.beta.open_endpoint()
    for each in served:
        pair.one.send(pair.one.connect("beta:0", each.number, timeout=PATIENCE), bytes([each.number]))
    for each in served:
        assert bytes(each.receive(timeout=PATIENCE)) == bytes([each.number])


def test_an_unexpected_handler_sees_messages_first(pair):
    seen = []
    pair.two.handle_unexpected(lambda message: message.match_info == 1 and (seen.append(message.data) or True))
    pair.one.send(pair.partner, b"consumed", 1)
    pair.one.send(pair.partner, b"kept", 2)
    # A receive that is posted before the message arrives would take it, without asking the handler.
    pair.one.flush(timeout=PATIENCE)
    assert bytes(pair.two.receive(timeout=PATIENCE)) == b"kept"
    assert seen == [b"consumed"]


def test_an_unexpected_handler_that_fails_leaves_the_message(pair, caplog):
    pair.two.handle_unexpected(lambda message: 1 / 0)
    pair.one.send(pair.partner, b"kept")
    pair.one.flush(timeout=PATIENCE)
    assert bytes(pair.two.receive(timeout=PATIENCE)) == b"kept"
    assert "an unexpected handler has failed" in caplog.text
    pair.two.handle_unexpected(None)


def test_a_disconnected_partner_must_be_connected_again(pair):
    pair.one.disconnect(pair.partner)
    with pytest.raises(HostError, match="unreachable"):
        pair.one.send(pair.partner, b"x", timeout=PATIENCE)
    partner = pair.one.connect("beta", 3, timeout=PATIENCE)
    pair.one.send(partner, b"x", timeout=PATIENCE)
    assert bytes(pair.two.receive(timeout=PATIENCE)) == b"x"
