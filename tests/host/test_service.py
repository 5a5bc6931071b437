"""Endpoints that serve: echo and sink, many clients, and clients that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from mxwire.host import Host, HostTimeoutError
from mxwire.host.service import PENDING_MESSAGES, Service
from mxwire.link import MemoryNetwork
from mxwire.protocol import Status

from .conftest import PATIENCE
from .exchanges import content

SIZES = [0, 1, 32, 33, 128, 129, 4096, 4097, 32768, 32769, 200_001]


@contextmanager
def serving(host: Host, service: Service) -> Iterator[None]:
    """Serve in a thread."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            with suppress(HostTimeoutError):
                host.driver.wait(service, 0.05)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(PATIENCE)


def test_echo_sends_every_message_back_with_its_match_info_and_in_order(pair):
    service = Service([pair.two], echo=True)
    with serving(pair.beta, service):
        answers = [pair.one.ireceive(0x10, 0xFF, maximum=size) for size in SIZES]
        sent = [pair.one.isend(pair.partner, content(size)[:size], size << 8 | 0x10) for size in SIZES]
        pair.one.wait_all(sent, PATIENCE)
        for size, message in zip(SIZES, pair.one.wait_all(answers, PATIENCE), strict=True):
            assert (message.length, message.match_info) == (size, size << 8 | 0x10)
            assert bytes(message) == content(size)[:size]
    counts = service.counts
    assert (counts.messages, counts.bytes, counts.answers) == (len(SIZES), sum(SIZES), len(SIZES))
    assert [each.counts for each in service.clients.values()] == [counts]


def test_sink_takes_everything_and_answers_nothing(pair):
    service = Service([pair.two], echo=False)
    with serving(pair.beta, service):
        pair.one.wait_all([pair.one.issend(pair.partner, content(size)[:size]) for size in SIZES], PATIENCE)
        pair.one.flush(PATIENCE)
        assert pair.one.iprobe() is None
    assert (service.counts.messages, service.counts.bytes, service.counts.answers) == (len(SIZES), sum(SIZES), 0)


def test_several_endpoints_serve_many_clients():
    network = MemoryNetwork()
    with ExitStack() as stack:
        server = stack.enter_context(Host(network.attach("server"), name="server"))
        service = Service([server.open_endpoint(each) for each in range(4)], echo=True)
        hosts = [stack.enter_context(Host(network.attach(f"c{each}"), name=f"c{each}")) for each in range(3)]
        stack.enter_context(serving(server, service))
        clients = [(host.open_endpoint(), number) for host in hosts for number in range(8)]
        partners = [each.connect("server", number % 4, timeout=PATIENCE) for each, number in clients]
        for size in (5, 50_000):
            for seed, ((endpoint, _), partner) in enumerate(zip(clients, partners, strict=True)):
                endpoint.isend(partner, content(size, seed)[:size], seed)
            for seed, (endpoint, _) in enumerate(clients):
                assert bytes(endpoint.receive(seed, timeout=PATIENCE)) == content(size, seed)[:size]
        assert len(service.clients) == 24 and service.counts.messages == 48


def test_a_message_that_is_too_long_is_reported_as_cut(pair):
    service = Service([pair.two], echo=True, longest=40_000)
    with serving(pair.beta, service):
        request = pair.one.isend(pair.partner, bytes(100_000))
        assert pair.one.receive(timeout=PATIENCE).length == 40_000
        assert pair.one.wait(request, PATIENCE) is Status.MESSAGE_TRUNCATED
    assert service.counts.truncated == 1


def test_a_client_that_takes_no_answers_is_not_given_all_memory(pair):
    service = Service([pair.two], echo=True)
    other = pair.alpha.open_endpoint()
    many = PENDING_MESSAGES + 50
    with serving(pair.beta, service):
        # Large answers stay with the server until they are taken, which never happens.
        for _ in range(many):
            pair.one.issend(pair.partner, bytes(40_000))
        pair.one.flush(PATIENCE)
        partner = other.connect("beta", 3, timeout=PATIENCE)
        other.isend(partner, b"I am still served")
        assert bytes(other.receive(timeout=PATIENCE)) == b"I am still served"
    first, second = service.clients.values()
    assert first.counts.messages + first.counts.failed == many and first.counts.refused > 0
    assert len(first.outgoing) <= PENDING_MESSAGES
    assert (second.counts.answers, second.counts.refused) == (1, 0)


@pytest.mark.parametrize("echo", [True, False])
def test_all_clients_together_have_a_limit_too(pair, echo):
    """Announcements of large messages alone must not take the memory: the number of clients is that of partners."""
    service = Service([pair.two], echo=echo, held=1_000_000)
    clients = [pair.alpha.open_endpoint() for _ in range(6)]
    with serving(pair.beta, service):
        for each in clients:
            partner = each.connect("beta", 3, timeout=PATIENCE)
            # The answer stays with the server, since no receive is posted for it.
            each.wait(each.isend(partner, bytes(300_000)), PATIENCE)
    with pair.beta.core.section:
        held = sum(each.pending()[1] for each in service.clients.values())
    assert held <= 1_000_000
    assert service.counts.refused == (3 if echo else 0)


def test_a_client_that_goes_in_the_middle_is_counted_and_others_are_served(pair):
    service = Service([pair.two], echo=True)
    with serving(pair.beta, service):
        pair.one.isend(pair.partner, bytes(10_000_000))
        pair.one.close()
        again = pair.alpha.open_endpoint(0)
        partner = again.connect("beta", 3, timeout=PATIENCE)
        again.isend(partner, b"new")
        assert bytes(again.receive(timeout=PATIENCE)) == b"new"


@pytest.mark.parametrize("echo", [True, False])
def test_an_unused_service_waits(pair, echo):
    service = Service([pair.two], echo=echo)
    with pytest.raises(HostTimeoutError):
        pair.beta.driver.wait(service, 0.05)
    assert not service.clients and service.counts.messages == 0
