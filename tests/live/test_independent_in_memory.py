"""The engine against a peer that was written from the worked examples alone, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from mxwire.protocol import RequestKind, Status
from mxwire.protocol.profile import OPEN_MX_1_5, Profile
from mxwire.rules import SENDERS
from mxwire.wire.dialect import dialect_by_name

from .independent import frames
from .independent.peer import REFUSED, STEPS, Missing, Peer, Settings, messages, play_client
from .node_testbed import (
    KEY,
    NODE_ENDPOINT,
    PEER_ENDPOINT,
    PEER_MAC,
    PEER_PLACE,
    Caller,
    Echo,
    NodeTransport,
    node,
    noisy,
)
from .referee import findings

DIALECTS = ("mxoe", "omx:1500", "omx:9000")
KINDS = tuple(messages())
ACK_MS = 25
"""An ack is due after 16 ms or 4 ticks, whichever the host counts in (R-ACK-04), and the way there and back."""


class Play:
    """A node with an application, and the peer; entries of the peer's journal are kept."""

    def __init__(self, dialect: str, profile: Profile = OPEN_MX_1_5, **settings: Any) -> None:
        self.entries: list[dict[str, Any]] = []
        self.dialect = dialect_by_name(dialect)
        self.node = node(self.dialect, profile)
        self.endpoint = self.node.open_endpoint(NODE_ENDPOINT, KEY)
        self.settings = Settings(
            "beta:0", PEER_MAC, frames.dialect(dialect), endpoint=PEER_ENDPOINT, first_place=PEER_PLACE, **settings
        )

    def peer(self, application: Any, alter: Callable[[bytes], bytes] | None = None) -> Peer:
        alter = noisy(self.settings.spoken) if alter is None else alter
        self.transport = NodeTransport(self.node, application, alter)
        return Peer(self.transport, self.settings, self.entries.append)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.entries if each.get("event") == event]

    def check(self, peer: Peer) -> None:
        assert peer.journal.deviations == []
        assert findings(self.transport.watched, self.dialect, SENDERS) == []
        assert peer.endpoint.line.resent == 0
        assert [each for each in self.of("acked") if each["after_ms"] > ACK_MS] == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_serves_the_peer(kind, dialect):
    play = Play(dialect)
    echo = Echo(play.endpoint)
    peer = play.peer(echo)
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, [kind])
    play.check(peer)
    assert len(play.of("echoed")) == 1
    assert {each.status for each in echo.ended} == {Status.SUCCESS}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_peer_serves_the_engine(kind, dialect):
    play = Play(dialect)
    message = messages()[kind]
    caller = Caller(play.endpoint, "beta:0", message.data, message.match, synchronous=message.synchronous)
    peer = play.peer(caller)
    peer.serve(1, 30.0)
    play.check(peer)
    assert caller.echo == message.data
    assert {each.status for each in caller.ended} == {Status.SUCCESS}
    [received] = play.of("received")
    assert (received["bytes"], received["match"]) == (len(message.data), f"{message.match:#018x}")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("offset", [291, 5000])
@pytest.mark.parametrize("kind", ["large", "huge", "synchronous"])
def test_the_engine_pulls_from_the_middle_of_a_page(kind, offset, dialect):
    """As native MX sends; section 6.2 of the examples."""
    play = Play(dialect, region_offset=offset)
    peer = play.peer(Echo(play.endpoint))
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, [kind])
    play.check(peer)
    assert len(play.of("echoed")) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("offset", [264, 291, 5000])
@pytest.mark.parametrize("kind", ["large", "huge", "synchronous"])
def test_the_engine_serves_from_the_middle_of_a_page(kind, offset, dialect):
    """As Open-MX before 1.1 sent, and native MX; the other direction of section 6.2."""
    play = Play(dialect, replace(OPEN_MX_1_5, region_offset=offset))
    message = messages()[kind]
    caller = Caller(play.endpoint, "beta:0", message.data, message.match, synchronous=message.synchronous)
    peer = play.peer(caller)
    peer.serve(1, 30.0)
    play.check(peer)
    assert caller.echo == message.data


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_engine_pulls_only_the_posted_length(dialect):
    """The end of section 6.3: 60000 of 100000 bytes."""
    play = Play(dialect)
    application = Echo(play.endpoint, 60000)
    peer = play.peer(application)
    host = peer.discover("alpha:0")
    peer.connect(host, NODE_ENDPOINT, KEY)
    peer.send(replace(messages()["large"], taken=60000), echo=False)
    peer.finish()
    play.check(peer)
    assert [(each.status, each.transferred) for each in application.ended] == [(Status.MESSAGE_TRUNCATED, 60000)]
    assert play.of("notified")[0]["bytes"] == 60000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_engine_serves_a_receiver_that_wants_less(dialect):
    play = Play(dialect, receive_limit=60000)
    caller = Caller(play.endpoint, "beta:0", messages()["large"].data, 7, synchronous=False)
    peer = play.peer(caller)
    peer.serve(1, 30.0, echo=False)
    play.check(peer)
    [sent] = [each for each in caller.ended if each.kind is RequestKind.SEND]
    assert (sent.status, sent.transferred) == (Status.MESSAGE_TRUNCATED, 60000)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_takes_a_restarted_peer_for_a_new_one(kind, dialect):
    """Section 10, steps 3 to 6: the restarted side connects first, and numbers begin with 1 again."""
    play = Play(dialect)
    echo = Echo(play.endpoint)
    first = play.peer(echo)
    play_client(first, "alpha:0", NODE_ENDPOINT, KEY, ["tiny", "large"])
    again = Peer(play.transport, replace(play.settings, session=0x55556666, fresh=False), play.entries.append)
    again.neighbours.table.update(first.neighbours.table)  # the process was restarted, not its host
    play_client(again, "alpha:0", NODE_ENDPOINT, KEY, [kind])
    assert first.journal.deviations == []
    assert again.journal.deviations == []
    assert findings(play.transport.watched, play.dialect, SENDERS) == []
    assert len(play.of("echoed")) == 3
    assert {each.status for each in echo.ended} == {Status.SUCCESS}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_acks_messages_that_it_does_not_answer(kind, dialect):
    """No message goes back, so each number is acked by a packet of its own, or by the NOTIFY of a large message."""
    play = Play(dialect)
    received = bytearray(1 << 21)
    play.endpoint.receive(received, 0, 0)
    peer = play.peer(lambda events: None)
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, [kind], echo=False)
    play.check(peer)
    acked = play.of("acked")
    assert [each["by"] for each in acked] in (["TRUC"], ["NOTIFY"])
    sent = messages()[kind].data
    assert received[: len(sent)] == sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_whole_conversation_in_one_connection(dialect):
    play = Play(dialect)
    peer = play.peer(Echo(play.endpoint))
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, [*REFUSED, *KINDS, *KINDS])
    assert peer.journal.deviations == []
    assert peer.endpoint.line.resent == 0
    assert len(play.of("echoed")) == 2 * len(KINDS)
    assert [each["answer"] for each in play.of("connected")] == ["status 11", "nack 2", "nack 1", "status 0"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_engine_refuses_stale_frames(dialect):
    """Section 9 of the examples."""
    play = Play(dialect)
    peer = play.peer(Echo(play.endpoint))
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, ["tiny", "stale-region", "stale-session"])
    assert peer.journal.deviations == []


CONVERSATION = ("wrong-key", "closed", "tiny", "small", "medium", "large", "stale-region", "stale-session")
"""Every packet type comes from the engine in it."""
UNNOTICED = {
    "dst_mac": "the frame went to somebody else and was sent again, which is no error",
    "RAW.serial": "any number",
    "HOST_QUERY.src_mac": "a query of a host that we do not know is dropped, and comes again",
}


def altered(codec: frames.Codec, form: frames.Format, place: int) -> Callable[[bytes], bytes]:
    """Flips a bit of one field of the first packet of a type."""
    left = [True]

    def alter(raw: bytes) -> bytes:
        try:
            first = left[0] and codec.read(raw).kind == form.kind
        except frames.Unreadable:
            first = False
        if not first:
            return raw
        left[0] = False
        values = list(form.struct.unpack_from(raw))
        value = values[place]
        values[place] = bytes([value[0] ^ 4]) + value[1:] if isinstance(value, bytes) else value ^ 1
        return form.struct.pack(*values) + raw[form.struct.size :]

    return alter


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", frames.formats(frames.dialect("mxoe")))
def test_the_peer_notices_a_wrong_bit_in_any_field(kind, dialect):
    """The proof that it looks at all that the examples define."""
    spoken = frames.dialect(dialect)
    form = frames.formats(spoken)[kind]
    unnoticed = []
    for place, name in enumerate(form.names):
        play = Play(dialect)
        echo = Echo(play.endpoint)
        peer = play.peer(echo, altered(frames.Codec(spoken), form, place))
        with suppress(Missing):
            play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, CONVERSATION)
        if not peer.journal.deviations and not peer.endpoint.line.resent:
            unnoticed.append(name)
    assert [each for each in unnoticed if each not in UNNOTICED and f"{kind}.{each}" not in UNNOTICED] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_noticed_where_nothing_is_altered(dialect):
    play = Play(dialect)
    peer = play.peer(Echo(play.endpoint), lambda frame: frame)
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, CONVERSATION)
    assert (peer.journal.deviations, peer.endpoint.line.resent) == ([], 0)


def test_every_step_is_played():
    assert set(STEPS) == {*REFUSED, *KINDS, "stale-region", "stale-session"}


@pytest.mark.parametrize("ours, theirs", [("mxoe", "omx:9000"), ("omx:1500", "mxoe"), ("omx:1500", "omx:9000")])
@pytest.mark.parametrize("kind", ["medium", "large"])
def test_the_peer_notices_another_dialect(kind, ours, theirs):
    play = Play(ours)
    play.settings = replace(play.settings, spoken=frames.dialect(theirs))
    peer = play.peer(Echo(play.endpoint))
    play_client(peer, "alpha:0", NODE_ENDPOINT, KEY, [kind])
    assert peer.journal.deviations
