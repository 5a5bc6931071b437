"""Roles for models of libraries: bursts below the room of a library, and two patterns with data that are used.

The paper of Araki and others (1998) asks for benchmarks whose data are produced and consumed: in place, or in memory of
the program's own. The channel decides which of both, since its port makes the copies.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mxwire.bench.channels.channel import Channel
from mxwire.bench.channels.models import ModelChannel
from mxwire.bench.roles.common import WARM
from mxwire.bench.roles.exchanges import summary
from mxwire.errors import MxwireError

QUEUED: Final = 16
"""Messages of a producer between two answers of its consumer."""
_ANSWER: Final = 4


def bursts(channel: Channel, size: int, number: int, repetitions: int) -> dict[str, Any]:
    """Time in ns per send of bursts of ``number`` messages, each burst followed by an answer."""
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


def producer_consumer(channel: Channel, size: int, count: int) -> dict[str, Any]:
    """The active side changes numbers and sends them, the passive one adds them up; time in ns per message."""
    model = _model(channel)
    return _timed(model, size, max(count // QUEUED, 1), QUEUED)


def central_queue(channel: Channel, size: int, count: int) -> dict[str, Any]:
    """The passive side serves the active one: it adds up the numbers of each request, and answers it."""
    return _timed(_model(channel), size, count, 1)


def _model(channel: Channel) -> ModelChannel:
    if not isinstance(channel, ModelChannel):
        raise MxwireError(f"{channel.setup.carrier} is not a model: mxwire bench imb has patterns for mx and tcp")
    return channel


def _timed(channel: ModelChannel, size: int, count: int, number: int) -> dict[str, Any]:
    """Send ``number`` messages before each of ``count`` answers, after a warm-up."""
    channel.barrier()
    warm = max(int(count * WARM), 1)
    numbers = np.frombuffer(channel.data, np.uint32, size // np.uint32().itemsize)
    begun = channel.clock()
    for step in range(count + warm):
        if step == warm:
            begun = channel.clock()
        if channel.active:
            for _ in range(number):
                np.add(numbers, 1, out=numbers)
                channel.send(size)
            channel.receive(_ANSWER)
        else:
            for _ in range(number):
                channel.receive(size)
                for piece in channel.port.pieces:
                    np.frombuffer(piece, np.uint32).sum()
            channel.send(_ANSWER)
    interval = (channel.clock() - begun) / (count * number)
    channel.barrier()
    return {"interval": interval, "frames": channel.frames()} if channel.active else {}
