"""The threads that drive a host: waiting callers, one at a time, and the background thread if there are none."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from mxwire.host import Host, HostClosedError, HostError
from mxwire.link import MemoryNetwork
from mxwire.protocol import Request, Status
from tests.waiting import until

from .conftest import PATIENCE, Pair, without_agent


def test_many_threads_wait_at_one_endpoint(pair):
    with ThreadPoolExecutor(16) as pool:
        waits = [pool.submit(pair.two.receive, each, maximum=8, timeout=PATIENCE) for each in range(16)]
        for each in reversed(range(16)):
            pair.one.send(pair.partner, bytes([each]), each)
        assert [bytes(each.result()) for each in waits] == [bytes([each]) for each in range(16)]
    assert pair.beta.core.waiters == []


def test_a_thread_and_an_endpoint_each(pair):
    """32 endpoints echo, each in a thread, to 32 threads of the other host."""
    content = Random(1).randbytes(70_000)
    rounds = 5

    def echo(endpoint):
        for _ in range(rounds):
            message = endpoint.receive(timeout=PATIENCE)
            endpoint.send(message.partner, message.data, timeout=PATIENCE)
            message.data.release()

    def ask(number):
        with pair.alpha.open_endpoint() as endpoint:
            partner = endpoint.connect("beta", number, timeout=PATIENCE)
            for size in [number, 100, 5000, 70_000, 0][:rounds]:
                request = endpoint.isend(partner, content[:size])
                assert bytes(endpoint.receive(timeout=PATIENCE)) == content[:size]
                endpoint.wait(request, PATIENCE)
            return number

    endpoints = [pair.beta.open_endpoint(each) for each in range(32) if each != 3]
    with ThreadPoolExecutor(64) as pool:
        echoes = [pool.submit(echo, each) for each in endpoints]
        asked = [pool.submit(ask, each.number) for each in endpoints]
        assert [each.result() for each in asked] == [each.number for each in endpoints]
        for each in echoes:
            each.result()


def test_the_background_serves_while_the_application_computes(pair):
    content = Random(2).randbytes(3_000_000)
    sent = pair.one.isend(pair.partner, content)
    received = pair.two.ireceive(maximum=len(content))
    until(lambda: sent.done and received.done)
    assert bytes(received.result()) == content


def test_without_a_background_thread_nothing_runs_until_a_caller_waits():
    with ExitStack() as stack:
        pair = Pair(stack, background=False)
        sent = pair.one.isend(pair.partner, bytes(100_000))
        received = pair.two.ireceive(maximum=100_000)
        time.sleep(0.05)
        assert not sent.done
        assert pair.one.wait(sent, PATIENCE) is Status.SUCCESS
        assert len(pair.two.wait(received, PATIENCE)) == 100_000


def test_testing_alone_makes_progress():
    with ExitStack() as stack:
        pair = Pair(stack, background=False)
        received = pair.two.ireceive(maximum=100_000)
        sent = pair.one.isend(pair.partner, bytes(100_000))
        until(lambda: pair.one.test(sent))
        assert len(pair.two.wait(received, PATIENCE)) == 100_000


@pytest.mark.parametrize("spin", [True, 0.001])
def test_spinning_gives_the_same(spin):
    with ExitStack() as stack:
        pair = Pair(stack, spin=spin)
        with ThreadPoolExecutor(1) as pool:
            received = pool.submit(pair.two.receive, timeout=PATIENCE)
            pair.one.send(pair.partner, b"spin")
            assert bytes(received.result()) == b"spin"


def test_a_wait_for_a_receive_that_another_thread_cancels_returns_it(pair):
    """The engine has ended it before the request is marked, and the wait must not come between."""
    request = pair.two.ireceive(maximum=8)
    with ThreadPoolExecutor(1) as pool:
        with pair.beta.core.section:
            assert pair.two.engine.cancel(request.inner)
            waiting = pool.submit(pair.two.wait, request, PATIENCE)
            time.sleep(0.1)
            request.cancelled()
        assert waiting.result().status is Status.CANCELLED


@pytest.mark.interpreted("compiled code refuses an object of another class")
def test_a_request_has_its_result_before_its_status():
    """A thread that polls a request takes the result as soon as it sees the status."""

    class Polled:
        endpoint = SimpleNamespace(requests={}, report_completed=False, completions=None)
        transferred = 0

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "status":
                seen.append(self.transferred)

    seen = []
    Request.finish(Polled(), Status.SUCCESS, 5)
    assert seen == [5]


def test_closing_the_host_ends_waits_in_other_threads(pair):
    with ThreadPoolExecutor(4) as pool:
        waits = [
            pool.submit(pair.two.receive),
            pool.submit(pair.two.receive, maximum=8),
            pool.submit(pair.two.probe, 5),
            pool.submit(pair.beta.wait_for_peer, "nobody"),
        ]
        until(lambda: len(pair.beta.core.waiters) == 4)
        pair.beta.close()
        for each in waits:
            with pytest.raises(HostError, match="closed"):
                each.result(PATIENCE)
    with pytest.raises(HostClosedError, match="the host was closed"):
        pair.two.isend(pair.partner, b"")
    pair.beta.close()


def test_closing_an_endpoint_ends_its_waits_and_no_others(pair):
    other = pair.beta.open_endpoint()
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(pair.two.receive), pool.submit(pair.two.receive, maximum=8)]
        stays = pool.submit(other.receive, timeout=PATIENCE)
        until(lambda: len(pair.beta.core.waiters) == 3)
        pair.two.close()
        for each in waits:
            with pytest.raises(HostError, match=r"endpoint 3 was closed|its endpoint was closed"):
                each.result(PATIENCE)
        pair.one.send(pair.one.connect("beta", other.number, timeout=PATIENCE), b"still here")
        assert bytes(stays.result()) == b"still here"


def test_closing_in_the_middle_of_transfers_ends_them_all(pair):
    memory = bytes(30_000_000)
    requests = [pair.one.isend(pair.partner, memory) for _ in range(3)]
    with ThreadPoolExecutor(2) as pool:
        receiving = pool.submit(pair.two.receive)
        sending = pool.submit(pair.one.wait_all, requests)
        until(lambda: pair.links[1].statistics().received > 100)
        pair.alpha.close()
        with pytest.raises(HostError, match="closed"):
            sending.result(PATIENCE)
        pair.beta.close()
        with pytest.raises(HostError, match="closed"):
            receiving.result(PATIENCE)
    assert all(each.done for each in requests)


@without_agent
def test_a_removed_interface_ends_every_wait_and_call(pair):
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(pair.two.receive), pool.submit(pair.two.receive, maximum=1)]
        until(lambda: len(pair.beta.core.waiters) == 2)
        pair.network.remove(pair.beta.core.links[0])
        for each in waits:
            with pytest.raises(HostClosedError, match=r"b\S*: the interface is gone") as error:
                each.result(PATIENCE)
            assert error.value.status is Status.NO_DEVICE
    with pytest.raises(HostClosedError, match="the interface is gone"):
        pair.beta.open_endpoint()
    assert pair.beta.closed and pair.two.closed


def test_no_thread_or_descriptor_is_left_behind():
    def once() -> None:
        with ExitStack() as stack:
            pair = Pair(stack)
            pair.one.send(pair.partner, b"x")
            pair.two.receive(timeout=PATIENCE)

    once()
    # Descriptors that earlier tests have left to the garbage collector would be closed in between.
    gc.collect()
    threads, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        once()
    assert (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))) == (threads, descriptors)


def test_a_callback_may_send_and_one_that_fails_harms_nothing():
    network = MemoryNetwork()
    links = network.attach(), network.attach()
    seen = []

    def reported(event):
        seen.append(event)
        raise RuntimeError("the callback's own fault")

    with Host(links[0], name="alpha", on_event=reported) as alpha, Host(links[1], name="beta") as beta:
        beta.open_endpoint(3)
        one = alpha.open_endpoint()
        assert one.connect("beta", 3, timeout=PATIENCE).number == 3
        assert {"peer found", "peer named"} <= {str(each.kind) for each in seen}
