"""The queue of completed requests, wake-ups, timeouts, suspension and error handlers of live hosts."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from mxwire.host import AsyncHost, Host, HostClosedError, HostError, HostTimeoutError, HostWakeupError
from mxwire.host.waits import PendingNext
from mxwire.link import MemoryNetwork
from mxwire.protocol import LocalProtocolError, Status
from mxwire.units import MILLISECOND
from tests.waiting import until

from .conftest import PATIENCE, Pair, without_agent
from .test_async import connected


class QueuePair(Pair):
    """Two hosts; beta's endpoint keeps completed requests, and is connected to alpha's."""

    def __init__(self, stack: ExitStack, agent: str = "", **options) -> None:
        super().__init__(stack, agent, **options)
        self.two.close()
        self.two = self.beta.open_endpoint(3, completions=True)
        self.partner = self.one.connect("beta", 3, timeout=PATIENCE)
        self.back = self.two.connect("alpha", 0, timeout=PATIENCE)


@pytest.fixture(params=["", "match of beta", "card of beta"])
def pair(request: pytest.FixtureRequest) -> Iterator[QueuePair]:
    with ExitStack() as stack:
        yield QueuePair(stack, request.param)


def test_requests_are_shown_in_the_order_of_their_end(pair):
    context = object()
    second = pair.two.ireceive(2, maximum=8)
    first = pair.two.ireceive(1, maximum=8, context=context)
    assert pair.two.ipeek() is None and pair.two.test_next() is None
    pair.one.send(pair.partner, b"one", 1)
    assert pair.two.peek(PATIENCE) is pair.two.ipeek() is first
    pair.one.send(pair.partner, b"two", 2)
    send = pair.two.isend(pair.back, b"x", 7, context="sent")
    pair.two.wait(second, PATIENCE)
    assert pair.two.test(first) and first.context is context
    assert pair.two.wait_next(timeout=PATIENCE) is send
    assert (send.context, send.match_info, send.status) == ("sent", 7, Status.SUCCESS)
    assert pair.two.ipeek() is None


def test_taking_by_match_info(pair):
    requests = {each: pair.two.ireceive(each, maximum=8) for each in range(8)}
    for each in reversed(range(8)):
        pair.one.send(pair.partner, b"x", each)
    assert pair.two.wait_next(2, timeout=PATIENCE) is requests[2]
    assert [pair.two.wait_next(0, 1, PATIENCE).match_info for _ in range(3)] == [6, 4, 0]
    assert pair.two.test_next(0, 1) is None
    with pytest.raises(HostTimeoutError, match="no request with match info 0x0 under mask 0x1"):
        pair.two.wait_next(0, 1, 0.01)
    with pytest.raises(LocalProtocolError, match="outside of the mask"):
        pair.two.test_next(2, 1)
    assert pair.two.wait_any([requests[7]], PATIENCE) is requests[7]
    assert len(pair.two.wait_all([requests[5], requests[3]], PATIENCE)) == 2
    assert pair.two.peek(PATIENCE) is requests[1]


def test_calls_that_block_never_appear(pair):
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pair.two.receive, timeout=PATIENCE)
        pair.one.send(pair.partner, b"x")
        received.result()
    pair.two.send(pair.back, b"x")
    take = pair.one.ireceive(2, maximum=50000)
    pair.two.ssend(pair.back, bytes(50000), 2, timeout=PATIENCE)
    pair.one.wait(take, PATIENCE)
    pair.two.connect("alpha", 0, timeout=PATIENCE)
    assert pair.two.ipeek() is None


def test_connects_are_found_by_their_match_info(pair):
    good = pair.two.iconnect("alpha", 0, match_info=0x77, context=1)
    bad = pair.two.iconnect(pair.alpha.addresses[0], 9, match_info=0x78)
    assert pair.two.wait_next(0x77, timeout=PATIENCE) is good
    assert good.partner is pair.back and good.result() is pair.back
    assert pair.two.wait_next(0x78, timeout=PATIENCE) is bad
    assert bad.status is Status.REMOTE_ENDPOINT_CLOSED
    with pytest.raises(LocalProtocolError, match="no host 'gamma'") as failure:
        pair.two.iconnect("gamma")
    assert failure.value.status is Status.PEER_NOT_FOUND


def test_a_failed_wait_takes_the_request_and_a_late_one_does_not(pair):
    late = pair.two.ireceive(1, maximum=8)
    with pytest.raises(HostTimeoutError):
        pair.two.wait(late, 0.01)
    pair.one.send(pair.partner, b"x", 1)
    assert pair.two.peek(PATIENCE) is late
    pair.two.forget(late)
    failed = pair.two.iconnect("alpha", 9)
    with pytest.raises(HostError, match="closed"):
        pair.two.wait(failed, PATIENCE)
    assert pair.two.ipeek() is None


def test_forgotten_requests(pair):
    pair.two.forget(pair.two.isend(pair.back, b"x"))
    pair.two.isend(pair.back, b"x", forget=True)
    pair.two.iconnect("alpha", 9, forget=True)
    early = pair.two.ireceive(4, maximum=8, forget=True)
    pair.one.send(pair.partner, b"x", 4)
    until(lambda: early.done)
    receive = pair.two.ireceive(5, maximum=8)
    pair.two.forget(receive)
    pair.one.send(pair.partner, b"y", 5)
    until(lambda: receive.done)
    cancelled = pair.two.ireceive(6, maximum=8)
    assert pair.two.cancel(cancelled)
    assert pair.two.ipeek() is None
    assert bytes(receive.result()) == b"y"


def test_the_count_of_completions_is_a_number_in_memory(pair):
    count = pair.two.completion_count
    before = count[0]
    receive = pair.two.ireceive(1, maximum=8)
    pair.one.send(pair.partner, b"x", 1)
    until(lambda: count[0] == before + 1)
    assert receive.done and (count.format, len(count)) == ("Q", 1)


def test_an_endpoint_without_the_queue(pair):
    calls = (pair.one.ipeek, pair.one.test_next, pair.one.peek, pair.one.wait_next, lambda: pair.one.completion_count)
    for call in calls:
        with pytest.raises(LocalProtocolError, match="completions=True"):
            call()
    pair.one.forget(pair.one.isend(pair.partner, b"x"))


def test_several_threads_take_each_request_once(pair):
    count = 200
    with ThreadPoolExecutor(4) as pool:
        takers = [
            pool.submit(lambda: [pair.two.wait_next(timeout=PATIENCE) for _ in range(count // 4)]) for _ in range(4)
        ]
        requests = [pair.two.ireceive(each, maximum=8) for each in range(count)]
        for each in range(count):
            pair.one.send(pair.partner, b"x", each)
        taken = [request for each in takers for request in each.result()]
    assert sorted(map(id, taken)) == sorted(map(id, requests))


def test_an_interrupted_wait_loses_nothing(pair):
    receive = pair.two.ireceive(1, maximum=8)
    pair.one.send(pair.partner, b"x", 1)
    pair.two.peek(PATIENCE)
    pending = PendingNext(pair.two, 0, 0, take=True)
    with pair.beta.core.section:
        assert pending.ready() and pair.two.engine.completed() is None
        pending.abandon()
    assert pair.two.wait_next(timeout=PATIENCE) is receive


# Wake-ups.


def test_a_wake_up_ends_all_waits_of_an_endpoint(pair):
    """Of every kind, in many threads; other endpoints and later calls are not concerned."""
    two, other = pair.two, pair.beta.open_endpoint()
    pending = two.ireceive(99, maximum=8)
    large = two.issend(pair.back, b"not matched", 50)
    calls = [
        lambda: two.wait(pending),
        lambda: two.wait(large),
        lambda: two.wait_any([pending]),
        lambda: two.wait_all([pending]),
        lambda: two.receive(98),
        lambda: two.probe(97),
        lambda: two.peek(),
        lambda: two.wait_next(96),
        lambda: two.connect("nobody", timeout=None),
        lambda: two.connect("02:00:00:00:00:77", timeout=None),
        lambda: two.ssend(pair.back, b"x", 51),
        lambda: two.send(pair.back, bytes(100_000), 52),
    ]
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        foreign = pool.submit(other.receive, timeout=PATIENCE)
        for _ in range(3):
            waits = [pool.submit(each) for each in calls]
            until(lambda: len(pair.beta.core.waiters) == len(calls) + 1)
            two.wake_up()
            for each in waits:
                with pytest.raises(HostWakeupError) as failure:
                    each.result(PATIENCE)
                assert failure.value.status is Status.TIMEOUT
        assert not foreign.done()
        two.wake_up()
        pair.one.send(pair.one.connect("beta", other.number, timeout=PATIENCE), b"x")
        foreign.result(PATIENCE)
    pair.one.send(pair.partner, b"y", 98)
    pair.one.flush(PATIENCE)
    assert bytes(two.receive(98, timeout=PATIENCE)) == b"y", "a receive that was woken has taken a message"
    pair.one.send(pair.partner, b"z", 99)
    assert bytes(two.wait(pending, PATIENCE)) == b"z"


def test_a_message_after_a_wake_up_is_not_lost(pair):
    """The message arrives before the woken thread runs."""
    with ThreadPoolExecutor(1) as pool:
        woken = pool.submit(pair.two.receive, 98)
        until(lambda: pair.beta.core.waiters)
        with pair.beta.core.section:
            pair.two.wake_up()
            pair.one.send(pair.partner, b"y", 98)
            until(lambda: pair.beta.core.step() or pair.two.engine.matching.unexpected == 1)
        with pytest.raises(HostWakeupError):
            woken.result(PATIENCE)
    assert bytes(pair.two.receive(98, timeout=PATIENCE)) == b"y"


# Progression.


def test_suspension(pair):
    """No thread makes progress with the endpoint, not even that of the background."""
    two = pair.two
    two.suspend()
    receive = two.ireceive(1, maximum=8)
    pair.one.send(pair.partner, b"x", 1)
    with pytest.raises(HostTimeoutError):
        two.wait(receive, 0.1)
    assert two.iprobe() is None and not receive.done
    two.suspend()
    two.resume()
    assert bytes(two.wait(receive, PATIENCE)) == b"x"
    two.resume()


def test_suspension_waits_for_the_handler(pair):
    running, release = threading.Event(), threading.Event()

    def handler(_message):
        running.set()
        assert release.wait(PATIENCE)

    pair.two.handle_unexpected(handler)
    pair.one.send(pair.partner, b"x")
    assert running.wait(PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        suspended = pool.submit(pair.two.suspend)
        time.sleep(0.05)
        assert not suspended.done()
        release.set()
        suspended.result(PATIENCE)
    pair.two.resume()


def test_requests_of_another_endpoint_are_refused_at_once(pair):
    """Before the wait: they could not be taken from the queue after it."""
    third = pair.beta.open_endpoint(9)
    foreign, own = third.ireceive(1, maximum=8), pair.two.ireceive(1, maximum=8)
    for call in (
        lambda: pair.two.wait_any([own, foreign], PATIENCE),
        lambda: pair.two.wait_all([own, foreign], PATIENCE),
        lambda: pair.two.wait(foreign, PATIENCE),
    ):
        with pytest.raises(LocalProtocolError, match="of another endpoint"):
            call()
    assert third.cancel(foreign) and third.wait_any([foreign, own], PATIENCE) is foreign


# Receives whose message is not returned.


@pytest.mark.parametrize("length", [0, 100, 20_000, 100_000])
@pytest.mark.parametrize("buffered", [False, True])
def test_a_task_cancelled_after_its_receive_has_ended_gives_the_message_back(length, buffered):
    """As asyncio.Queue.get: the message is the next one again, before those that have arrived since (R-MAT-02)."""

    async def run():
        async with connected() as (one, two, partner):
            await one.send(partner, b"earlier", 1)
            await two.probe(1)
            buffer = bytearray(length) if buffered else None
            task = asyncio.create_task(two.receive(2, buffer=buffer))
            await asyncio.sleep(0)
            send = one.isend(partner, bytes([7]) * length, 2)
            while not two.host.core.waiters[0].done:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await one.send(partner, b"later", 2)
            await one.wait(send)
            await two.probe(2)
            while two.engine.matching.unexpected < 3:
                await asyncio.sleep(0.001)
            return [bytes((await two.receive()).data) for _ in range(3)]

    assert asyncio.run(run()) == [b"earlier", bytes([7]) * length, b"later"]


@pytest.mark.parametrize("length", [100, 20_000, 100_000])
@pytest.mark.parametrize("waiting", [False, True])
def test_a_truncated_message_that_is_given_back_stays_truncated(length, waiting):
    """R-MSC-01: the rest is gone, and the sender of a long one knows."""

    async def run():
        async with connected() as (one, two, partner):
            tasks = [asyncio.create_task(two.receive(2, maximum=10)), asyncio.create_task(two.receive(2, maximum=50))]
            await asyncio.sleep(0)
            if not waiting:
                tasks.pop().cancel()
            send = one.isend(partner, bytes([7]) * length, 2)
            while not two.host.core.waiters[0].done:
                await asyncio.sleep(0)
            tasks[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]
            await one.wait(send)
            if not waiting:
                found = await two.probe(2)
                assert found.length == length and two.engine.matching.unexpected_bytes == 10
            message = await (tasks[1] if waiting else two.receive(2))
            assert two.engine.matching.unexpected_bytes == 0
            return message

    message = asyncio.run(run())
    assert message.truncated and message.length == length and bytes(message.data) == bytes([7]) * 10


def test_a_message_given_back_goes_to_a_task_that_waits_for_it():
    async def run():
        async with connected() as (one, two, partner):
            tasks = [asyncio.create_task(two.receive(2, maximum=8)) for _ in range(2)]
            await asyncio.sleep(0)
            await one.send(partner, b"x", 2)
            while not two.host.core.waiters[0].done:
                await asyncio.sleep(0)
            tasks[0].cancel()
            return bytes((await asyncio.wait_for(tasks[1], PATIENCE)).data)

    assert asyncio.run(run()) == b"x"


@pytest.mark.interpreted
def test_a_message_without_memory_is_an_error(pair, monkeypatch):
    """It has no bytes to return; the sender chooses its length."""

    def scarce(*given):
        if given and isinstance(given[0], int) and given[0] > 1000:
            raise MemoryError
        return bytearray(*given)

    monkeypatch.setattr("mxwire.protocol.library.receive.bytearray", scarce, raising=False)
    send = pair.one.isend(pair.partner, bytes(100_000), 1)
    with pytest.raises(HostError, match="no memory for a message of 100000 bytes") as failure:
        pair.two.receive(1, maximum=200_000, timeout=PATIENCE)
    assert failure.value.status is Status.NO_RESOURCES
    pair.one.wait(send, PATIENCE)


# The unexpected handler.


@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "background"])
def test_receives_posted_in_the_handler(pair, waiting):
    """Whatever thread runs it; the requests are as others."""
    for length in (0, 20, 100, 3000, 20_000, 100_000):
        posted = []

        def handler(message, posted=posted, length=length):
            posted.append(pair.two.ireceive(message.match_info, maximum=length, context=message.partner))

        pair.two.handle_unexpected(handler)
        sends = [pair.one.isend(pair.partner, bytes([each]) * length, each) for each in range(5)]
        if not waiting:
            until(lambda posted=posted: len(posted) == 5 and all(each.done for each in posted))
        taken = [pair.two.wait_next(timeout=PATIENCE) for _ in sends]
        pair.one.wait_all(sends, PATIENCE)
        assert sorted(map(id, taken)) == sorted(map(id, posted)), length
        assert [bytes(each.result()) for each in posted] == [bytes([each]) * length for each in range(5)]
        assert {each.context for each in posted} == {pair.back}


def test_the_handler_may_call_all_that_does_not_wait(pair):
    two, seen = pair.two, {}
    pending = two.ireceive(77, maximum=8)

    def handler(message):
        seen["connect"] = two.iconnect("alpha", 0, match_info=message.match_info)
        seen["test"] = two.test(seen["connect"])
        seen["send"] = two.isend(message.partner, b"from the handler", 5)
        seen["probe"] = two.iprobe()
        seen["cancel"] = two.cancel(pending)
        two.set_timeout(10)
        two.wake_up()
        for name, call in {
            "wait": lambda: two.wait(seen["send"], PATIENCE),
            "close": two.close,
            "host": pair.beta.close,
        }.items():
            with pytest.raises(LocalProtocolError) as failure:
                call()
            seen[name] = failure.value.status
        return True

    two.handle_unexpected(handler)
    receive = pair.one.ireceive(5, maximum=20)
    pair.one.send(pair.partner, b"x", 9)
    assert bytes(pair.one.wait(receive, PATIENCE)) == b"from the handler"
    assert two.wait(seen["connect"], PATIENCE) is pair.back
    assert {seen[each] for each in ("wait", "close", "host")} == {Status.NOT_SUPPORTED_IN_HANDLER}
    assert (seen["test"], seen["probe"], seen["cancel"]) == (False, None, True)


def test_other_threads_may_call_while_the_handler_waits_for_them(pair):
    """It runs without the lock of the host; a program may take a lock of its own in both."""
    go, posted = threading.Event(), threading.Event()
    receives = []

    def handler(message):
        go.set()
        assert posted.wait(PATIENCE), "a thread could not call the host"
        return False

    def help_it():
        assert go.wait(PATIENCE)
        receives.append(pair.two.ireceive(1, maximum=8))
        pair.two.isend(pair.back, b"x", 6)
        pair.two.test(receives[0])
        posted.set()

    helper = threading.Thread(target=help_it)
    helper.start()
    pair.two.handle_unexpected(handler)
    pair.one.send(pair.partner, b"x", 1)
    helper.join(PATIENCE)
    assert bytes(pair.two.wait(receives[0], PATIENCE)) == b"x"


@without_agent
def test_a_deadline_set_after_the_handler_is_known(pair):
    """A thread that is about to sleep while the handler runs asks for the deadline before the ack is owed."""
    core = pair.beta.core
    with core.section:
        pair.two.handle_unexpected(lambda message: core.pause() is None)
        pair.one.send(pair.partner, b"x", 1)
        core.step()
        assert pair.two.engine.matching.unexpected == 1
        due = core.node.deadline()
        assert due is not None and core.pause() <= max(0, due - core.clock() + MILLISECOND)


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("driving", [True, False], ids=["a waiter runs it", "a call runs it"])
def test_other_endpoints_progress_while_a_handler_runs(driving, background):
    """Only its own endpoint stops, as in MX; the messages for it wait, in their order."""
    network = MemoryNetwork()
    links = network.attach("a"), network.attach("b")
    running, release = threading.Event(), threading.Event()
    with (
        Host(links[0], name="alpha", peers={links[1].address: "beta:0"}) as alpha,
        Host(links[1], name="beta", background=background) as beta,
        ThreadPoolExecutor(4) as pool,
    ):
        one, slow, quick = alpha.open_endpoint(0), beta.open_endpoint(1), beta.open_endpoint(2)
        connected = threading.Event()
        answering = pool.submit(until_set, beta, connected)
        to_slow, to_quick = one.connect("beta", 1, timeout=PATIENCE), one.connect("beta", 2, timeout=PATIENCE)
        connected.set()
        answering.result(PATIENCE)
        seen = []

        def handler(message):
            seen.append(message.match_info)
            running.set()
            assert release.wait(PATIENCE)

        slow.handle_unexpected(handler)
        waits = []
        if driving:
            runner = pool.submit(slow.receive, 2, timeout=PATIENCE)
            until(lambda: beta.driver.driven)
            # This thread sleeps until the one that runs the handler hands over to it.
            waits.append(pool.submit(quick.receive, 1, timeout=PATIENCE))
            until(lambda: len(beta.core.waiters) == 2)
        else:
            runner = pool.submit(until_set, beta, running)
        for number in range(3):
            one.send(to_slow, b"x", number)
        assert running.wait(PATIENCE)
        waits.append(pool.submit(quick.receive, 2, timeout=PATIENCE))
        for number in (1, 2):
            one.send(to_quick, b"quick", number)
        assert [bytes(each.result(PATIENCE)) for each in waits] == [b"quick"] * len(waits)
        assert seen == [0] and slow.iprobe() is None
        release.set()
        runner.result(PATIENCE)
        if driving:
            assert seen == [0, 1]


def until_set(host, event):
    while not event.is_set():
        host.poll()


def test_closing_from_another_thread_waits_for_the_handler(pair):
    running, release = threading.Event(), threading.Event()

    def handler(_message):
        running.set()
        release.wait(PATIENCE)

    pair.two.handle_unexpected(handler)
    pair.one.send(pair.partner, b"x", 1)
    assert running.wait(PATIENCE)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(pair.two.receive, 5)
        closing = pool.submit(pair.beta.close)
        time.sleep(0.05)
        assert not closing.done() and not waiting.done()
        release.set()
        closing.result(PATIENCE)
        with pytest.raises(HostClosedError):
            waiting.result(PATIENCE)


# Contexts, timeouts, sends that end when they are acked.


def test_context_ids(pair):
    endpoint = pair.beta.open_endpoint(completions=True, context_bits=8, context_shift=8)
    partner = pair.one.connect("beta", endpoint.number, timeout=PATIENCE)
    with pytest.raises(LocalProtocolError) as failure:
        endpoint.ireceive(0x0500, 0x0F00, maximum=8)
    assert failure.value.status is Status.BAD_MATCHING_FOR_CONTEXT_ID_MASK
    receive = endpoint.ireceive(0x0500, 0xFF00, maximum=8)
    pair.one.send(partner, b"x", 0x0501)
    pair.one.send(partner, b"y", 0x0601)
    assert endpoint.wait_next(0x01, 0xFF, PATIENCE) is receive
    assert endpoint.probe(0x01, 0xFF, timeout=PATIENCE).match_info == 0x0601
    with pytest.raises(LocalProtocolError) as failure:
        pair.beta.open_endpoint(context_bits=17)
    assert failure.value.status is Status.BAD_PARAMETER_VALUE


def test_acked_sends_wait_for_the_receiver():
    with ExitStack() as stack:
        pair = Pair(stack)
        endpoint = pair.alpha.open_endpoint(acked_sends=True)
        partner = endpoint.connect("beta", 3, timeout=PATIENCE)
        pair.two.suspend()
        send = endpoint.isend(partner, b"x")
        assert endpoint.is_buffered(send)
        with pytest.raises(HostTimeoutError):
            endpoint.wait(send, 0.05)
        pair.two.resume()
        assert endpoint.wait(send, PATIENCE) is Status.SUCCESS


def test_a_timeout_abandons_a_partner_soon():
    with ExitStack() as stack:
        network = MemoryNetwork()
        alpha = stack.enter_context(Host(network.attach("a"), name="alpha"))
        beta = stack.enter_context(Host(network.attach("b"), name="beta"))
        one = alpha.open_endpoint(0, acked_sends=True)
        beta.open_endpoint(3)
        partner = one.connect("beta", 3, timeout=PATIENCE)
        beta.close()
        one.set_timeout(0)
        with pytest.raises(HostError, match="unreachable"):
            one.send(partner, b"x", timeout=PATIENCE)


# Errors.


def test_an_error_handler_sees_and_replaces_errors(pair):
    errors = []

    def handler(error):
        errors.append((error.request, error.status))
        return Status.SUCCESS if error.status is Status.MESSAGE_TRUNCATED else None

    pair.two.handle_errors(handler)
    short = pair.two.ireceive(1, maximum=1)
    bad = pair.two.iconnect("alpha", 9, match_info=2)
    pair.one.send(pair.partner, b"long", 1)
    assert pair.two.wait_next(1, timeout=PATIENCE).status is Status.SUCCESS
    assert pair.two.wait_next(2, timeout=PATIENCE).status is Status.REMOTE_ENDPOINT_CLOSED
    cancelled = pair.two.ireceive(3, maximum=1)
    pair.two.cancel(cancelled)
    assert set(errors) == {(short, Status.MESSAGE_TRUNCATED), (bad, Status.REMOTE_ENDPOINT_CLOSED)}
    pair.two.handle_errors(None)
    pair.two.wait_any([pair.two.iconnect("alpha", 9)], PATIENCE)
    assert len(errors) == 2


def test_the_error_handler_of_a_host_is_for_all_its_endpoints(pair, caplog):
    errors = []
    pair.beta.handle_errors(lambda error: errors.append(str(error)))
    later = pair.beta.open_endpoint()
    for endpoint in (pair.two, later):
        with pytest.raises(HostError):
            endpoint.connect("alpha", 9, timeout=PATIENCE)
    assert errors == ["connect alpha:0 endpoint 9 failed: remote endpoint closed"] * 2
    later.handle_errors(lambda error: 1 / 0)
    with pytest.raises(HostError):
        later.connect("alpha", 9, timeout=PATIENCE)
    assert "an error handler has failed" in caplog.text and len(errors) == 2


# asyncio.


def test_the_same_with_asyncio():
    async def main():
        network = MemoryNetwork()
        async with (
            AsyncHost(network.attach("a"), name="alpha") as alpha,
            AsyncHost(network.attach("b"), name="beta") as beta,
        ):
            one, two = alpha.open_endpoint(0), beta.open_endpoint(3, completions=True)
            partner = await one.connect("beta", 3, timeout=PATIENCE)
            receive = two.ireceive(1, maximum=8, context=5)
            one.isend(partner, b"x", 1)
            assert await two.peek(PATIENCE) is receive
            assert await two.wait_next(1, timeout=PATIENCE) is receive
            assert two.ipeek() is None and receive.context == 5
            posted = []
            two.handle_unexpected(lambda message: posted.append(two.ireceive(message.match_info, maximum=50000)))
            large = one.isend(partner, bytes(50000), 2)
            assert (await two.wait_next(timeout=PATIENCE)).match_info == 2
            await one.wait(large, PATIENCE)
            pending = two.ireceive(9, maximum=8)
            waits = [asyncio.ensure_future(each) for each in (two.wait(pending), two.receive(8), two.peek())]
            while len(beta.core.waiters) < 3:
                await asyncio.sleep(0)
            two.wake_up()
            for each in waits:
                with pytest.raises(HostWakeupError):
                    await each
            two.suspend()
            one.isend(partner, b"x", 9)
            with pytest.raises(HostTimeoutError):
                await two.wait(pending, 0.05)
            two.resume()
            assert bytes(await two.wait(pending, PATIENCE)) == b"x"
            assert two.ipeek() is None

    asyncio.run(main())


def readable(descriptor: int, seconds: float = PATIENCE) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


@pytest.mark.parametrize("background", [True, False])
def test_a_descriptor_is_readable_while_there_is_something_to_take(background):
    network = MemoryNetwork()
    links = network.attach("a"), network.attach("b")
    with (
        Host(links[0], name="alpha", peers={links[1].address: "beta:0"}) as alpha,
        Host(links[1], name="beta", background=background) as beta,
    ):
        one, two = alpha.open_endpoint(), beta.open_endpoint(3, completions=True)
        descriptor = two.fileno()
        assert two.fileno() == descriptor
        connect = one.iconnect("beta", 3)
        while not one.test(connect):
            two.test_next()
        for number in range(300):
            receive = two.ireceive(number, maximum=8) if number % 2 else None
            one.isend(connect.result(), b"x", number, forget=True)
            while receive is not None and (taken := two.test_next()) is not receive:
                assert taken is None and readable(descriptor)
            while receive is None and two.iprobe(number) is None:
                assert readable(descriptor)
            if receive is None:
                assert readable(descriptor, 0)
                two.receive(number, maximum=8, timeout=PATIENCE)
        beta.close()
        with pytest.raises(HostClosedError):
            two.fileno()


def test_the_end_of_a_host_makes_the_descriptor_of_an_endpoint_readable(pair):
    descriptor = pair.two.fileno()
    pair.two.test_next()
    with pair.beta.core.section:
        pair.beta.core.end(HostClosedError(Status.NO_DEVICE, "gone"))
    assert readable(descriptor)


def test_an_event_loop_watches_the_descriptor_of_an_endpoint():
    async def run() -> None:
        async with connected() as (one, two, partner):
            loop = asyncio.get_running_loop()
            arrived: asyncio.Future[int] = loop.create_future()

            def take() -> None:
                message = two.iprobe()
                if message is not None and not arrived.done():
                    arrived.set_result(message.match_info)
                    loop.remove_reader(two.fileno())

            loop.add_reader(two.fileno(), take)
            one.isend(partner, b"x", 5)
            assert await asyncio.wait_for(arrived, PATIENCE) == 5

    asyncio.run(run())
