"""Generic Active Messages: tokens, the rules of handlers, and trust."""

from __future__ import annotations

import pytest

from mxwire.bench.models.active_messages import TOKENS, ActiveMessage
from mxwire.bench.models.gam import GamLayer
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError, CatastropheError
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)


@pytest.fixture
def pair() -> tuple[GamLayer, GamLayer, ModelWire]:
    layers = GamLayer(0), GamLayer(1)
    return *layers, ModelWire(layers)


def quiet(*layers: GamLayer):
    """A program that only polls."""
    return lambda: sum(each.poll() for each in layers) > 0


def test_a_request_runs_its_handler_and_the_reply_runs_another(pair):
    here, there, wire = pair
    words = []
    answered = here.register(lambda message: words.append(message.words))
    doubled = there.register(lambda message: message.reply(answered, message.words[0] * 2))
    assert here.request(THERE, doubled, 21)
    wire.run(quiet(here, there))
    assert words == [(42,)]
    assert here.tokens[THERE] == TOKENS


def test_no_more_requests_than_tokens_are_in_flight(pair):
    here, there, wire = pair
    ran = there.register(lambda message: None)
    assert [here.request(THERE, ran) for _ in range(TOKENS + 3)] == [True] * TOKENS + [False] * 3
    wire.run(until=lambda: there.counts["frames received"] == TOKENS)
    assert not here.request(THERE, ran)
    assert here.counts["blocked"] == 4
    wire.run(quiet(there, here), lambda: here.tokens[THERE] == TOKENS)
    assert here.request(THERE, ran)


def test_the_library_replies_if_the_handler_does_not(pair):
    here, there, wire = pair
    here.request(THERE, there.register(lambda message: None))
    wire.run(quiet(here, there))
    assert [kind for _, _, kind in wire.log] == [FrameKind.REQUEST, FrameKind.REPLY]


def refused(call) -> str:
    """The error of a call within a handler."""
    with pytest.raises(CallError) as error:
        call()
    return str(error.value)


def test_handlers_may_only_reply_and_once(pair):
    here, there, wire = pair
    errors = []

    def answered(message: ActiveMessage) -> None:
        errors.append(refused(lambda: here.request(THERE, 0)))
        errors.append(refused(lambda: message.reply(0)))

    def asked(message: ActiveMessage) -> None:
        errors.append(refused(lambda: there.request((0, 0), 0)))
        message.reply(here.register(answered))
        errors.append(refused(lambda: message.reply(0)))

    here.request(THERE, there.register(asked))
    wire.run(quiet(here, there))
    assert errors == [
        "gam: a handler may only reply",
        "gam: a request has one reply",
        "gam: a handler may only reply",
        "gam: a reply handler may not communicate",
    ]


def test_a_store_is_accepted_as_far_as_tokens_reach_and_lands_in_the_segment(pair):
    here, there, wire = pair
    data = memoryview(bytes(range(256)) * 200)
    assert here.store(THERE, 16, data) == TOKENS * here.payload
    wire.run(quiet(here, there))
    done = TOKENS * here.payload
    assert here.store(THERE, 16 + done, data[done:]) == len(data) - done
    wire.run(quiet(here, there))
    assert there.segment[16 : 16 + len(data)] == data
    assert here.get(THERE, 20, 100, 5)
    wire.run(quiet(here, there))
    assert here.segment[5:105] == data[4:104]


def test_a_request_names_any_handler_and_one_that_does_not_exist_ends_the_receiver(pair):
    here, there, wire = pair
    ran = []
    there.register(lambda message: ran.append(message.source))
    here.emit(THERE, ModelFrame(FrameKind.REQUEST, ONLY, place=0, key=99))
    here.emit(THERE, ModelFrame(FrameKind.REQUEST, ONLY, place=7, sequence=1))
    with pytest.raises(CatastropheError, match="gam of node 1: forged frame of node 0: handler 7 does not exist"):
        wire.run(quiet(there))
    assert ran == [(0, 0)]


def test_a_lost_reply_is_reported_although_no_event_is_due(pair):
    here, there, wire = pair
    here.request(THERE, there.register(lambda message: None))
    wire.run(until=lambda: there.counts["frames received"] == 1)
    there.poll()
    there.outgoing.clear()
    wire.run(quiet(here, there))
    assert here.catastrophe == "stalled: 1 request without reply, and no event is due"


def test_a_node_has_one_process_and_knows_its_partners(pair):
    here, _, wire = pair
    with pytest.raises(CallError, match="one process per node"):
        wire.attach(GamLayer(1, port=1))
    with pytest.raises(CallError, match="node 5 is not in the table of nodes"):
        here.request((5, 0), 0)
