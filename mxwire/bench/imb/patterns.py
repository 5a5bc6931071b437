"""The benchmarks of IMB-MPI1 and of OSU, and two patterns with queues, as programs over a communicator.

A benchmark has a step that is repeated. Its time, times a factor, is the time that IMB prints; its bandwidth is bytes
times another factor over that time. Collectives of IMB rotate their root, and are timed one after another; those of OSU
have root 0, and a barrier outside of the timer before each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.imb.collectives import ALGORITHMS, barrier_dissemination, usual_algorithm
from mxwire.bench.imb.communicator import Communicator, FirstOf, Operation, Program
from mxwire.errors import MxwireError
from mxwire.words import suggestion

Step = Callable[[int], Program[None]]
"""One repetition, by its number."""

_TAG: Final = 1
REDUCED: Final = np.float32
"""Type of the numbers that reductions add, as in IMB."""
SIZES: Final = (0, *(1 << each for each in range(23)))
"""Lengths of IMB: 0, 1, 2, 4 … 4 MiB."""
REPETITIONS: Final = 1000
"""Maximum number of repetitions per size."""
VOLUME: Final = 40 << 20
"""Maximum number of bytes that the repetitions of a size transfer."""
WINDOW: Final = 64
"""Messages in flight in benchmarks of bandwidth, as in OSU."""
QUEUED: Final = 16
"""Messages per step of a producer, and of each client of a queue."""


@dataclass(frozen=True, slots=True)
class ImbBenchmark:
    """A benchmark and the arithmetic of its columns."""

    name: str
    make: Callable[[Communicator, int, str], Step]
    """Make the step of a rank from its communicator, the length in bytes, and the name of the algorithm."""
    operation: str | None = None
    """Collective operation; None for a pattern between neighbours."""
    ranks: int | None = None
    """Number of ranks that take part; None: all."""
    time_factor: float = 1.0
    bandwidth_factor: float | None = None
    """Messages that a rank sends and receives per step; None: no bandwidth is printed."""
    sized: bool = True
    """False for Barrier."""
    smallest: int = 0
    """Smallest length above 0: a number of :data:`REDUCED`, or 1."""
    apart: bool = False
    """True if each repetition is that of root 0 and follows a barrier that is not timed, as in OSU."""

    def sizes(self, largest: int) -> tuple[int, ...]:
        """The lengths of this benchmark up to ``largest``."""
        if not self.sized:
            return (0,)
        return tuple(each for each in SIZES if each <= largest and (each == 0 or each >= self.smallest))

    def program(self, comm: Communicator, length: int, algorithm: str, warmup: int, count: int) -> Program[list[int]]:
        """The program of a rank that measures repetitions; see :func:`measured`."""
        return measured(comm, lambda rank: self.make(rank, length, algorithm), warmup, count, apart=self.apart)

    def algorithm(self, length: int, wanted: str | None = None) -> str:
        """The name of the algorithm: ``wanted``, or the usual one; empty for a pattern between neighbours."""
        if self.operation is None:
            return ""
        known = ALGORITHMS[self.operation]
        if wanted is None:
            return usual_algorithm(self.operation, length)
        if wanted not in known:
            raise MxwireError(f"{self.name} has no algorithm {wanted!r}: use {', '.join(known)}")
        return wanted


def repetitions_of(length: int, most: int = REPETITIONS) -> int:
    """Repetitions of a length: those of IMB, at most ``most``."""
    return max(1, min(most, VOLUME // max(length, 1)))


def measured(
    comm: Communicator, make: Callable[[Communicator], Step], warmup: int, count: int, *, apart: bool = False
) -> Program[list[int]]:
    """Repeat a step, and return the time of each repetition in ns; a barrier comes first.

    If ``apart``, each repetition is number 0, and a barrier that is not timed comes before it.
    """
    step = make(comm)
    for number in range(warmup):
        yield from step(0 if apart else number)
    yield from barrier_dissemination(comm)
    times, before = [], comm.now()
    for number in range(count):
        if apart:
            yield from barrier_dissemination(comm)
            before = comm.now()
        yield from step(0 if apart else number)
        now = comm.now()
        times.append(now - before)
        before = now
    # A rank that is idle in this pattern still answers the others.
    yield from barrier_dissemination(comm)
    return times


def _idle(_: int) -> Program[None]:
    yield from ()


def _ping_pong(comm: Communicator, length: int, _: str) -> Step:
    data, back = _bytes(length), _bytes(length)

    def step(_: int) -> Program[None]:
        if comm.rank == 0:
            answer = comm.irecv(1, back, _TAG)
            yield [comm.isend(1, data, _TAG)]
            yield [answer]
        else:
            yield [comm.irecv(0, back, _TAG)]
            yield [comm.isend(0, data, _TAG)]

    return step if comm.rank < 2 else _idle


def _ping_ping(comm: Communicator, length: int, _: str) -> Step:
    data, back = _bytes(length), _bytes(length)

    def step(_: int) -> Program[None]:
        yield [comm.isend(1 - comm.rank, data, _TAG), comm.irecv(1 - comm.rank, back, _TAG)]

    return step if comm.rank < 2 else _idle


def _sendrecv(comm: Communicator, length: int, _: str) -> Step:
    data, back = _bytes(length), _bytes(length)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def step(_: int) -> Program[None]:
        yield [comm.isend(right, data, _TAG), comm.irecv(left, back, _TAG)]

    return step


def _exchange(comm: Communicator, length: int, _: str) -> Step:
    data, backs = _bytes(length), (_bytes(length), _bytes(length))
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def step(_: int) -> Program[None]:
        # With two ranks both neighbours are the same rank: tags keep the directions apart.
        yield [
            comm.isend(right, data, _TAG),
            comm.isend(left, data, _TAG + 1),
            comm.irecv(left, backs[0], _TAG),
            comm.irecv(right, backs[1], _TAG + 1),
        ]

    return step


def _window(comm: Communicator, length: int, _: str, *, both: bool) -> Step:
    data, backs = _bytes(length), [_bytes(length) for _ in range(WINDOW)]
    answer = _bytes(4)

    def step(_: int) -> Program[None]:
        other = 1 - comm.rank
        # Receives are posted before the sends, so that few messages are unexpected.
        if both or comm.rank:
            receives = [comm.irecv(other, each, _TAG) for each in backs]
        if both or not comm.rank:
            sends = [comm.isend(other, data, _TAG) for _ in range(WINDOW)]
        if both or comm.rank:
            yield receives
        if both or not comm.rank:
            yield sends
        if comm.rank:
            yield [comm.isend(0, answer, _TAG + 1)]
        else:
            yield [comm.irecv(1, answer, _TAG + 1)]

    return step if comm.rank < 2 else _idle


def _produced(comm: Communicator, length: int, _: str, *, copied: bool) -> Step:
    """A producer changes numbers and sends them; a consumer adds them up. Each has two buffers in turn.

    In place both work in the buffers of the messages; if ``copied``, in memory of their own.
    """
    buffers = [_numbers(length), _numbers(length)]
    own = _numbers(length)
    answer = _bytes(4)

    def produce(number: int) -> Program[None]:
        under_way: list[Operation] = []
        for place in range(QUEUED):
            buffer = buffers[place % 2]
            if len(under_way) == 2:
                yield [under_way.pop(0)]
            target = own if copied else buffer
            np.add(target, number + place, out=target)
            comm.compute(length)
            if copied:
                comm.copy(buffer, own)
            under_way.append(comm.isend(1, buffer, _TAG))
        done = comm.irecv(1, answer, _TAG + 1)
        yield [*under_way, done]

    def consume(_: int) -> Program[None]:
        receives = [comm.irecv(0, each, _TAG) for each in buffers]
        for place in range(QUEUED):
            yield [receives[place % 2]]
            _consume(comm, buffers[place % 2], own, copied)
            if place + 2 < QUEUED:
                receives[place % 2] = comm.irecv(0, buffers[place % 2], _TAG)
        yield [comm.isend(0, answer, _TAG + 1)]

    return _idle if comm.rank > 1 else consume if comm.rank else produce


def _queue(comm: Communicator, length: int, _: str, *, copied: bool) -> Step:
    """Rank 0 is the server of a queue: it takes requests of all others as they arrive, and answers each.

    It posts one receive per client, and serves the one that has completed.
    """
    requests, own = [_numbers(length) for _ in range(comm.size)], _numbers(length)
    answer = _bytes(4)

    def serve(_: int) -> Program[None]:
        receives = {client: comm.irecv(client, requests[client], _TAG) for client in range(1, comm.size)}
        left = dict.fromkeys(receives, QUEUED)
        answers: list[Operation] = []
        while receives:
            yield [FirstOf(tuple(receives.values()))]
            for client in [each for each, receive in receives.items() if receive.done]:
                _consume(comm, requests[client], own, copied)
                answers.append(comm.isend(client, answer, _TAG + 1))
                left[client] -= 1
                if left[client]:
                    receives[client] = comm.irecv(client, requests[client], _TAG)
                else:
                    del receives[client]
        yield answers

    def ask(_: int) -> Program[None]:
        for _ in range(QUEUED):
            reply = comm.irecv(0, answer, _TAG + 1)
            if copied:
                comm.copy(requests[0], own)
            yield [comm.isend(0, requests[0], _TAG), reply]

    return ask if comm.rank else serve


def _consume(comm: Communicator, buffer: NDArray[np.float32], own: NDArray[np.float32], copied: bool) -> None:
    """Add the numbers of a message up: in place, or in memory of its own if ``copied``."""
    if copied:
        comm.copy(own, buffer)
        buffer = own
    buffer.sum()
    comm.compute(buffer.nbytes)


def _collective(operation: str) -> Callable[[Communicator, int, str], Step]:
    def make(comm: Communicator, length: int, algorithm: str) -> Step:
        run = ALGORITHMS[operation][algorithm]
        if operation == "barrier":
            return lambda _: run(comm)
        if operation in _REDUCTIONS:
            numbers = np.ones(length // REDUCED().itemsize, REDUCED)
            sums = np.zeros_like(numbers)
            if operation == "allreduce":
                return lambda _: run(comm, numbers, sums)
            return lambda number: run(comm, numbers, sums, number % comm.size)
        own, every = _bytes(length), _shared_bytes("received", length * comm.size)
        if operation == "bcast":
            return lambda number: run(comm, own, number % comm.size)
        if operation == "gather":
            return lambda number: run(comm, own, every, number % comm.size)
        if operation == "scatter":
            return lambda number: run(comm, every, own, number % comm.size)
        if operation == "allgather":
            return lambda _: run(comm, own, every)
        blocks = _shared_bytes("sent", length * comm.size)
        return lambda _: run(comm, blocks, every)

    return make


def _bytes(length: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Memory whose pages exist: a measurement does not include the first touch of a page."""
    data = np.empty(length, np.uint8)
    data.fill(1)
    return data


def _shared_bytes(use: str, length: int) -> NDArray[np.uint8]:
    """Memory of that use which all ranks of this process share: 16 ranks in virtual time would need gigabytes."""
    data = _SHARED.get((use, length))
    if data is None:
        data = _SHARED[use, length] = _bytes(length)
    return data


def _numbers(length: int) -> NDArray[np.float32]:
    """Memory of numbers whose pages exist."""
    return np.ones(length // _NUMBER, REDUCED)


_SHARED: Final[WeakValueDictionary[tuple[str, int], NDArray[np.uint8]]] = WeakValueDictionary()
_NUMBER: Final = REDUCED().itemsize
_REDUCTIONS: Final = ("allreduce", "reduce")
_MOVES: Final = ("allgather", "gather", "scatter", "alltoall", "bcast")
BENCHMARKS: Final = {
    each.name.lower(): each
    for each in (
        ImbBenchmark("PingPong", _ping_pong, ranks=2, time_factor=0.5, bandwidth_factor=1),
        ImbBenchmark("PingPing", _ping_ping, ranks=2, bandwidth_factor=1),
        ImbBenchmark("Sendrecv", _sendrecv, bandwidth_factor=2),
        ImbBenchmark("Exchange", _exchange, bandwidth_factor=4),
        *(ImbBenchmark(each.capitalize(), _collective(each), each, smallest=_NUMBER) for each in _REDUCTIONS),
        *(ImbBenchmark(each.capitalize(), _collective(each), each) for each in _MOVES),
        ImbBenchmark("Barrier", _collective("barrier"), "barrier", sized=False),
        ImbBenchmark("Uniband", partial(_window, both=False), ranks=2, bandwidth_factor=WINDOW),
        ImbBenchmark("Biband", partial(_window, both=True), ranks=2, bandwidth_factor=2 * WINDOW),
    )
}
"""Benchmarks by name in lower case, in the order of IMB."""


_QUEUE_KINDS: Final[tuple[tuple[str, Any, dict[str, Any]], ...]] = (
    ("ProducerConsumer", _produced, {"ranks": 2, "bandwidth_factor": QUEUED}),
    ("CentralQueue", _queue, {"time_factor": 1 / QUEUED}),
)
QUEUES: Final = {
    (name + suffix).lower(): ImbBenchmark(name + suffix, partial(make, copied=copied), smallest=_NUMBER, **more)
    for name, make, more in _QUEUE_KINDS
    for suffix, copied in (("", False), ("Copied", True))
}
"""Patterns that are not in IMB, but that the paper on user-space communication asks such benchmarks to include."""


_OSU_PATTERNS: Final = {
    "osu_latency": "pingpong",
    "osu_bw": "uniband",
    "osu_bibw": "biband",
    "osu_mbw_mr": "uniband",
    **{f"osu_{each.operation}": name for name, each in BENCHMARKS.items() if each.operation is not None},
}
OSU: Final = {
    name: replace(BENCHMARKS[pattern], name=name, apart=BENCHMARKS[pattern].operation is not None)
    for name, pattern in _OSU_PATTERNS.items()
}
"""The tests of OSU by the names of their programs."""


def as_osu(benchmark: ImbBenchmark) -> ImbBenchmark:
    """The test of OSU with the same pattern, or the benchmark itself if there is none."""
    return next((each for each in OSU.values() if each.make is benchmark.make), benchmark)


def benchmark_by_name(name: str) -> ImbBenchmark:
    """Return the benchmark of a name; raise :class:`~mxwire.errors.MxwireError` if there is none."""
    every = BENCHMARKS | QUEUES | OSU
    benchmark = every.get(name.strip().lower())
    if benchmark is None:
        known = [each.name for each in every.values()]
        raise MxwireError(f"no benchmark {name!r}{suggestion(name, known)}: use one of {', '.join(known)}")
    return benchmark
