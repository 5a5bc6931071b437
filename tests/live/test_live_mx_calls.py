"""Calls that programs for MX need, between two processes in namespaces: handler, queue, wake-ups, suspension."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mxwire.host import Endpoint, HostTimeoutError, HostWakeupError
from mxwire.protocol import Status

from .far import FarProcess
from .hosts import PATIENCE, Joined, content, near_and_far
from .namespaces import Laboratory

SIZES = [0, 32, 128, 1452, 4096, 32768, 300_001]


@pytest.fixture(scope="module", params=["mxoe", "omx:1500", "match mxoe", "card mxoe"])
def joined(shared_laboratory: Laboratory, request: pytest.FixtureRequest) -> Iterator[Joined]:
    with ExitStack() as stack:
        ports = shared_laboratory.pair(9000)
        process = FarProcess(ports[1])
        stack.callback(process.close)
        yield stack.enter_context(near_and_far(ports, process, str(request.param)))


@pytest.fixture
def near(joined: Joined) -> Iterator[Endpoint]:
    """An endpoint that keeps completed requests."""
    with joined.port.namespace.inside():
        endpoint = joined.near.open_endpoint(4, completions=True)
    yield endpoint
    endpoint.close()


@pytest.fixture
def far(joined: Joined) -> Iterator[Any]:
    endpoint = joined.open_far(5)
    yield endpoint
    endpoint.close()


def test_receives_in_the_handler_answers_and_the_queue(near, far):
    """Each message is received by the handler's own receive, in segments, and answered from it."""
    to_near, posted = far.connect("near", 4, timeout=PATIENCE), []

    def handler(message):
        buffers = [bytearray(message.length // 256 + (place < message.length % 256)) for place in range(256)]
        posted.append(near.ireceive(message.match_info, buffer=buffers, context=buffers))
        near.isend(message.partner, bytes([message.match_info]), message.match_info, forget=True)
        return False

    near.handle_unexpected(handler)
    sends = [far.isend(to_near, content(size), match) for match, size in enumerate(SIZES)]
    taken = {near.wait_next(timeout=PATIENCE).match_info for _ in SIZES}
    assert taken == set(range(len(SIZES)))
    assert [each.status for each in posted] == [Status.SUCCESS] * len(SIZES)
    assert [b"".join(each.context) for each in posted] == [content(size) for size in SIZES]
    for match, sent in enumerate(sends):
        assert far.wait(sent, PATIENCE) == Status.SUCCESS
        assert bytes(far.receive(match, timeout=PATIENCE)) == bytes([match])
    assert near.ipeek() is None


def test_wake_up_and_suspension(near, far):
    to_near = far.connect("near", 4, timeout=PATIENCE)
    receive = near.ireceive(1, maximum=10)
    woken = []

    def wait():
        try:
            near.wait(receive, PATIENCE)
        except HostWakeupError as error:
            woken.append(error.request)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not near.host.core.waiters:
        time.sleep(0.001)
    near.wake_up()
    waiting.join(PATIENCE)
    assert woken == [receive]
    near.suspend()
    far.isend(to_near, b"x", 1)
    with pytest.raises(HostTimeoutError):
        near.wait_next(timeout=0.2)
    near.resume()
    assert near.wait_next(timeout=PATIENCE) is receive
