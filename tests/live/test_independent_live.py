"""The independent peer on real interfaces: two of them, judged by the rules of mxwire."""

from __future__ import annotations

import pytest

from .commands import mxwire, start_peer
from .hosts import PATIENCE, open_endpoint, open_host
from .independent.peer import REFUSED, STALE, messages
from .independent_results import assert_clean, assert_judged, deviations
from .recorder import Recorder

DIALECTS = ("mxoe", "omx:1500", "omx:9000")
KINDS = tuple(messages())
ALPHA = ("--name", "alpha:0", "--endpoint", "9")
BETA = ("--name", "beta:0", "--endpoint", "5")
TO_ALPHA = ("--to-endpoint", "9")
SERVER = (*ALPHA, "--role", "server")
AT_ONCE = (*BETA, "--role", "client", "--to", "alpha:0", *TO_ALPHA, "--first-place", "259")
CLIENT = (*AT_ONCE, "--listen-first")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("offset", ["0", "291"])
def test_two_independent_peers_agree_and_follow_the_rules(jumbo_cable, dialect, offset):
    one, other = jumbo_cable
    common = ["--dialect", dialect, "--region-offset", offset]
    with Recorder(one) as recorder:
        server = start_peer(one, *SERVER, "--messages", str(len(KINDS)), *common)
        server.until("ready")
        client = start_peer(other, *CLIENT, "--steps", ",".join(KINDS), *common)
        assert len(assert_clean(client, "echoed")) == len(KINDS)
        assert_clean(server)
    assert_judged(recorder, dialect)


def test_two_independent_peers_refuse_alike(jumbo_cable):
    """Section 9 of the examples, in both roles; the client announces itself before it has heard any host."""
    one, other = jumbo_cable
    server = start_peer(one, *SERVER, "--messages", "1", "--provoked")
    server.until("ready")
    assert_clean(start_peer(other, *AT_ONCE, "--steps", ",".join([*REFUSED, *STALE, "tiny"])))
    assert [(each["kind"], each["why"]) for each in assert_clean(server, "refused")] == [
        ("CONNECT_REQUEST", 2),
        ("CONNECT_REQUEST", 1),
        ("TINY", 3),
        ("PULL", 4),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_peer_serves_a_live_host(jumbo_cable, dialect):
    one, other = jumbo_cable
    with Recorder(one) as recorder:
        server = start_peer(one, *SERVER, "--dialect", dialect, "--messages", str(len(KINDS)))
        server.until("ready")
        with open_host(other, "beta", dialect=dialect) as host, open_endpoint(other, host, 5) as endpoint:
            partner = endpoint.connect("alpha:0", 9, timeout=PATIENCE)
            for each in messages().values():
                send = endpoint.ssend if each.synchronous else endpoint.send
                send(partner, each.data, each.match, timeout=PATIENCE)
                assert bytes(endpoint.receive(each.match, timeout=PATIENCE)) == each.data
            endpoint.flush(PATIENCE)
        assert_clean(server)
    assert_judged(recorder, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_peer_is_found_and_pinged(jumbo_cable, dialect):
    """By ``mxwire discover`` and ``mxwire ping``, which no application answers."""
    one, other = jumbo_cable
    listener = start_peer(one, *ALPHA, "--role", "listener", "--provoked", "--dialect", dialect)
    listener.until("ready")
    common = ["--dialect", dialect, "--json"]
    [found] = mxwire(other, "discover", "--duration", "30", "-c", "1", *common).objects
    assert (found["address"], found["name"]) == (one.address.hex(":"), "alpha:0")
    assert found["dialect"] == dialect.partition(":")[0]
    for target in ("alpha:0", "alpha:0:9"):
        *answers, summary = mxwire(other, "ping", target, "-c", "3", "--interval", "0", "-W", "20", *common).objects
        assert (len(answers), summary["loss"]) == (3, 0)
    listener.process.terminate()
    assert_clean(listener)


def test_a_peer_that_hears_no_host_reports_it(jumbo_cable):
    client = start_peer(jumbo_cable[0], *AT_ONCE, "--patience", "1")
    assert client.end(None) == 1
    assert deviations(client) == ["waiting"]
