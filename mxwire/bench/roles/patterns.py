"""Roles for the comparison of libraries: requests, three bandwidths, and two patterns with data that are used.

The paper of Araki and others (1998) asks for benchmarks whose data are produced and consumed: in place, or in memory of
the program's own. The channel decides which of both, since its port makes the copies.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.channels.model_queue import QueueChannel
from mxwire.bench.channels.models import ModelChannel
from mxwire.bench.processors import read_use
from mxwire.bench.roles.common import WARM
from mxwire.bench.roles.exchanges import flood, loaded_flood, ping_pong, simultaneous, summary, use_since
from mxwire.errors import MxwireError

QUEUED: Final = 16
"""Messages of a producer between two answers of its consumer."""
_ANSWER: Final = 4


def requests(
    channel: Channel, sizes: list[int], number: int, repetitions: int, window: int, count: int, multiples: list[int]
) -> dict[str, Any]:
    """The two measurements that the paper has for Active Messages only, for each size, in ns.

    ``burst`` is the time per send of bursts of ``number`` messages, each followed by an answer. ``interval`` is that of
    a flood of ``count`` messages, and ``loaded`` has that of floods with work of ``multiples`` hundredths of it.
    """
    points: dict[str, Any] = {}
    for size in sizes:
        burst = _bursts(channel, size, number, repetitions).get("median", 0.0)
        points[str(size)] = {"burst": burst} | loaded_flood(channel, size, count, window, multiples)
    return {"points": points}


def _bursts(channel: Channel, size: int, number: int, repetitions: int) -> dict[str, Any]:
    channel.barrier()
    clock, times = channel.clock, []
    for _ in range(repetitions):
        if channel.active:
            begun = clock()
            for _ in range(number):
                channel.send(size)
            times.append(clock() - begun)
            channel.receive(_ANSWER)
        else:
            for _ in range(number):
                channel.receive(size)
            channel.send(_ANSWER)
    channel.barrier()
    return summary(times, number) if channel.active else {}


def bandwidths(channel: Channel, sizes: list[int], counts: list[int], windows: list[int]) -> dict[str, Any]:
    """Times per message in ns: ``trip`` of half a round trip, ``gap`` of a flood, and ``both`` of an exchange."""
    points: dict[str, Any] = {}
    before, frames = read_use(), channel.frames()
    for size, count, window in zip(sizes, counts, windows, strict=True):
        channel.barrier()
        times = ping_pong(channel, size, count)
        gap = flood(channel, size, max(count, 2 * window) + window, window)
        both = simultaneous(channel, size, count)["interval"]
        if channel.active:
            points[str(size)] = {"trip": summary(times, 2)["median"], "gap": gap["interval"], "both": both}
    return {"points": points} | use_since(channel, before, frames)


def used_data(channel: Channel, sizes: list[int], counts: list[int], numbers: list[int]) -> dict[str, Any]:
    """Both patterns with data that are produced and consumed, for each size; time in ns per message.

    ``producer-consumer``: the active side changes numbers and sends them, the passive one adds them up, and answers
    each of ``numbers``. ``central queue``: the passive side serves the active one, and answers each request.
    """
    if not isinstance(channel, ModelChannel):
        raise MxwireError(f"{channel.setup.carrier} is not a model: mxwire bench imb has patterns for mx and tcp")
    points: dict[str, Any] = {}
    before, frames = read_use(), channel.frames()
    memory = channel.allocate(max(size * number for size, number in zip(sizes, numbers, strict=True)))
    for size, count, number in zip(sizes, counts, numbers, strict=True):
        points[str(size)] = {
            "producer-consumer": _timed(channel, memory, size, max(count // number, 1), number),
            "central queue": _timed(channel, memory, size, count, 1),
        }
    return {"points": points} | use_since(channel, before, frames)


def _timed(channel: ModelChannel, memory: memoryview, size: int, count: int, number: int) -> float:
    """Send ``number`` messages before each of ``count`` answers, after a warm-up; return the time per message in ns.

    Each of these messages has memory of its own, since some libraries read it until the partner has the message. The
    sum of all received numbers must be that of the numbers which were sent: whole messages of 0, 1, 2 and so on.
    """
    words = size // np.uint32().itemsize
    messages = [memory[each * size : (each + 1) * size] for each in range(number)]
    numbers = [np.frombuffer(each, np.uint32) for each in messages]
    for place, each in enumerate(numbers):
        each[:] = place
    channel.barrier()
    warm = max(int(count * WARM), 1)
    begun, total = channel.clock(), 0
    for step in range(count + warm):
        if step == warm:
            begun = channel.clock()
        if channel.active:
            # The library may still read messages of the step before, whose numbers change now.
            channel.settle()
            for each, data in zip(numbers, messages, strict=True):
                np.add(each, number, out=each)
                channel.send(size, data)
            channel.receive(_ANSWER)
        else:
            for _ in range(number):
                channel.receive(size)
                for piece in channel.port.pieces:
                    total += int(np.frombuffer(piece, np.uint32).sum())
            channel.send(_ANSWER)
    interval = (channel.clock() - begun) / (count * number)
    channel.barrier()
    sent = number * (count + warm)
    if not channel.active and total != words * (sent * (sent - 1) // 2 + number * sent):
        raise AssertionError(f"{channel.setup.carrier}: data of {size} bytes were changed before they were sent")
    return interval


def central_queue(channel: Channel, size: int, count: int) -> dict[str, Any]:
    """Requests of all clients, ``count`` of each, to one server, which adds the numbers of each up and answers it.

    ``request`` is the time per request in ns, and ``looks`` the number of places at which the server has looked per
    request that it found.
    """
    if not isinstance(channel, QueueChannel):
        raise MxwireError(f"{channel.setup.carrier} has no queue of several clients")
    before, frames = read_use(), channel.frames()
    warm = max(int(count * WARM), 1)
    found: dict[str, Any] = {}
    if channel.active:
        channel.start()
        _ask(channel, _ANSWER, 1, 0)
        _ask(channel, size, warm, 0)
        begun = channel.clock()
        _ask(channel, size, count, warm)
        found["request"] = (channel.clock() - begun) / (count * len(channel.clients))
    else:
        # A library may announce its receives: to clients that are there, as their first messages show.
        silent = list(channel.ports)
        for _ in channel.clients:
            port = channel.next_request(_ANSWER, silent)
            channel.answer(port, memoryview(bytes(_ANSWER)))
            if not port.common:
                silent.remove(port)
        found["looks"] = _serve(channel, size, warm + count)
    return found | use_since(channel, before, frames)


def _ask(channel: QueueChannel, size: int, count: int, first: int) -> None:
    """Let each client send ``count`` requests of numbers from ``first``, each after the answer to the one before."""
    ports = channel.ports
    memory = [memoryview(bytearray(size)) for _ in ports]
    asked, answered, sending = [0] * len(ports), [0] * len(ports), [False] * len(ports)

    def step() -> bool:
        for place, port in enumerate(ports):
            if asked[place] == answered[place] < count and not sending[place] and not port.unsettled():
                np.frombuffer(memory[place], np.uint32)[:] = first + asked[place]
                port.expect(_ANSWER)
                port.send(memory[place])
                sending[place] = True
            if sending[place] and port.sent():
                asked[place] += 1
                sending[place] = False
            if asked[place] > answered[place] and port.received(_ANSWER):
                answered[place] += 1
        return min(answered) == count

    channel.until(step)


def _serve(channel: QueueChannel, size: int, count: int) -> float:
    """Serve ``count`` requests of each client, and return the mean number of places of a search with success."""
    answer, total, channel.looks = memoryview(bytes(_ANSWER)), 0, 0
    requests = count * len(channel.clients)
    for _ in range(requests):
        port = channel.next_request(size, channel.ports)
        for piece in port.pieces:
            total += int(np.frombuffer(piece, np.uint32).sum())
        channel.answer(port, answer)
    words = size // np.uint32().itemsize
    if total != len(channel.clients) * words * (count * (count - 1) // 2):
        raise AssertionError(f"{channel.setup.carrier}: the server has received other numbers than its clients sent")
    return channel.looks / requests
