"""Active Messages II: tags, handlers by index, returned messages, discovery."""

from __future__ import annotations

import pytest

from mxwire.bench.models.active_messages import NO_HANDLER, TOKENS
from mxwire.bench.models.am2 import Am2Layer
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


def joined(**options) -> tuple[Am2Layer, Am2Layer, ModelWire]:
    """Two endpoints that know each other."""
    here, there = Am2Layer(0), Am2Layer(1, **options)
    wire = ModelWire([here, there])
    wire.run()
    return here, there, wire


def quiet(*layers: Am2Layer):
    """A program that only polls."""
    return lambda: sum(each.poll() for each in layers) > 0


@pytest.mark.parametrize(("tag", "handler"), [(8, 0), (7, 5)])
def test_a_forged_tag_and_a_forged_handler_are_refused_and_the_message_returns(tag, handler):
    here, there, wire = joined(tag=7)
    ran, returned = [], []
    there.register(lambda message: ran.append(message))
    here.error_handler = lambda partner, frame: returned.append(partner)
    here.map(THERE, tag)
    assert here.request(THERE, handler)
    wire.run(quiet(here, there))
    assert (ran, returned) == ([], [THERE])
    assert there.counts["refused"] == 1
    assert here.tokens[THERE] == TOKENS
    here.map(THERE, 7)
    assert here.request(THERE, 0)
    wire.run(quiet(here, there))
    assert len(ran) == 1


def test_forged_replies_return_no_tokens():
    here, there, wire = joined()
    for _ in range(3):
        there.order.send((0, 0), ModelFrame(FrameKind.REPLY, ONLY, place=NO_HANDLER))
        there.order.send((0, 0), ModelFrame(FrameKind.NACK, ONLY))
    wire.run(quiet(here))
    assert here.tokens.get(THERE, TOKENS) == TOKENS
    assert here.counts["refused"] == 6
    assert not here.catastrophe


def test_messages_to_a_partner_that_has_gone_run_the_error_handler():
    here, there, wire = joined()
    returned = []
    here.error_handler = lambda partner, frame: returned.append(frame.place)
    there.fail("gone")
    here.request(THERE, 11)
    here.request(THERE, 12)
    wire.run(quiet(here))
    assert returned == [11, 12]
    with pytest.raises(CallError, match="node 1 has not been found"):
        here.request(THERE, 13)


def test_two_endpoints_of_a_node_receive_their_own_messages():
    here, there, wire = joined()
    second = Am2Layer(1, port=1, tag=9)
    wire.attach(second)
    wire.run()
    ran = []
    there.register(lambda message: ran.append("first"))
    second.register(lambda message: ran.append("second"))
    here.map((1, 1), 9)
    here.request((1, 1), 0)
    here.request(THERE, 0)
    wire.run(quiet(here, there, second))
    assert sorted(ran) == ["first", "second"]


def test_nodes_that_appear_later_are_found_even_if_frames_are_lost():
    layers = [Am2Layer(0)]
    wire = ModelWire(layers, seed=5, loss=0.3)
    wire.run()
    for node in (3, 4):
        wire.attach(Am2Layer(node))
    wire.run()
    assert [each.nodes - {each.node} for each in wire.layers] == [{3, 4}, {0, 4}, {0, 3}]
