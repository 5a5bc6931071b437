"""The asyncio face: the same calls, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from random import Random
from typing import Any

import pytest

from mxwire.host import AsyncEndpoint, AsyncHost, HostClosedError, HostError, HostTimeoutError
from mxwire.link import MemoryNetwork
from mxwire.protocol import Partner, Status

from .conftest import PATIENCE


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*given, **named), 2 * PATIENCE))

    return run


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[AsyncEndpoint, AsyncEndpoint, Partner]]:
    """Two endpoints of two hosts, and the second as partner of the first."""
    network = MemoryNetwork()
    links = network.attach("a"), network.attach("b")
    async with AsyncHost(links[0], name="alpha") as alpha, AsyncHost(links[1], name="beta") as beta:
        one, two = alpha.open_endpoint(), beta.open_endpoint(3)
        yield one, two, await one.connect("beta", 3, timeout=PATIENCE)


@pytest.mark.parametrize("size", [0, 20, 100, 5000, 500_000])
@in_a_loop
async def test_messages_of_all_sizes_arrive(size):
    content = Random(size).randbytes(size)
    async with connected() as (one, two, partner):
        sent = one.isend(partner, content, 5)
        assert (await two.probe(5, timeout=PATIENCE)).length == size
        assert bytes(await two.receive(timeout=PATIENCE)) == content
        assert await one.wait(sent, PATIENCE) is Status.SUCCESS
        posted = two.ireceive(6, maximum=size)
        await one.ssend(partner, content, 6, timeout=PATIENCE)
        assert bytes(await two.wait(posted, PATIENCE)) == content


@in_a_loop
async def test_tasks_wait_side_by_side():
    async with connected() as (one, two, partner):
        async with asyncio.TaskGroup() as group:
            receives = [group.create_task(two.receive(each, maximum=9, timeout=PATIENCE)) for each in range(20)]
            for each in reversed(range(20)):
                await one.send(partner, bytes([each]), each)
        assert [bytes(each.result()) for each in receives] == [bytes([each]) for each in range(20)]
        await one.flush(PATIENCE)
        assert not partner.deliveries


@in_a_loop
async def test_wait_any_and_wait_all():
    async with connected() as (one, two, partner):
        requests = [two.ireceive(each, maximum=8) for each in range(3)]
        await one.send(partner, b"b", 1)
        assert await two.wait_any(requests, PATIENCE) is requests[1]
        await one.send(partner, b"a", 0)
        await one.send(partner, b"c", 2)
        assert [bytes(each) for each in await two.wait_all(requests, PATIENCE)] == [b"a", b"b", b"c"]
        with pytest.raises(HostError, match="no request"):
            await two.wait_any([])


@in_a_loop
async def test_timeouts_leave_nothing_behind():
    async with connected() as (one, two, partner):
        with pytest.raises(HostTimeoutError, match="within"):
            await two.receive(1, maximum=8, timeout=0.01)
        with pytest.raises(HostTimeoutError, match="nobody:0 was not found within"):
            await one.connect("nobody", timeout=0.01)
        await one.send(partner, b"x", 1)
        assert bytes(await two.receive(1, timeout=PATIENCE)) == b"x"
        assert two.host.core.waiters == one.host.core.waiters == []


@in_a_loop
async def test_a_cancelled_task_takes_its_receive_back():
    async with connected() as (one, two, partner):
        task = asyncio.create_task(two.receive(1, maximum=8))
        await asyncio.sleep(0)
        assert two.host.core.waiters
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await one.send(partner, b"x", 1)
        assert bytes(await two.receive(1, timeout=PATIENCE)) == b"x"


@in_a_loop
async def test_closing_ends_the_waits_of_other_tasks():
    async with connected() as (_one, two, _partner):
        waits = [asyncio.create_task(each) for each in (two.receive(), two.receive(maximum=1), two.probe(7))]
        await asyncio.sleep(0)
        two.host.close()
        for each in waits:
            with pytest.raises(HostError, match="closed"):
                await each
        with pytest.raises(HostClosedError, match="the host was closed"):
            await two.receive()


@in_a_loop
async def test_hosts_find_each_other():
    network = MemoryNetwork()
    async with AsyncHost(network.attach(), name="early") as early:
        await asyncio.sleep(0.01)
        async with AsyncHost(network.attach(), name="late") as late:
            assert (await early.wait_for_peer("late", PATIENCE)).name == "late:0"
            assert (await late.wait_for_peer(early.addresses[0], PATIENCE)).name == "early:0"
            assert [each.name for each in late.peers()] == ["late:0", "early:0"]


@in_a_loop
async def test_a_removed_interface_ends_the_waits():
    async with connected() as (_one, two, _partner):
        wait = asyncio.create_task(two.receive())
        await asyncio.sleep(0)
        network = two.host.core.links[0]._network
        network.remove(two.host.core.links[0])
        with pytest.raises(HostClosedError, match="the interface is gone"):
            await wait
