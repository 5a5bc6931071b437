"""The experiments of ``bench overlap``: programs of two ranks over a communicator, live or in virtual time.

Each is made from numbers, so that ranks in other processes can make it too (:data:`OVERLAP_PROGRAMS`), and returns
numbers: times in ns, and *phases*, ``[kind, begin, end]`` on the clock of the communicator. ``work_for`` of the
communicator decides what work is: time of a modelled core, sleep, or burnt loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.imb.collectives import barrier_dissemination
from mxwire.bench.imb.communicator import Communicator, Operation, Program, RankFunction

Answer = dict[str, Any]
"""The result of a rank."""
BUFFERS: Final = 24
"""Buffers of a run of double buffering, filled in turn into two."""
_READY, _CREDIT = 10, 20
"""Tags of the announcement of a receive, and of the credit of a polling receiver."""
_DOUBLE: Final = 8


def double_buffering(length: int, fill: int | None = 0, add: int | None = 0) -> RankFunction[Answer]:
    """The paper's program: rank 0 fills two buffers in turn, rank 1 sums them up, and announces each receive before.

    ``fill`` and ``add`` are the times of the work per buffer; with None the producer fills a buffer with random
    numbers, and the consumer adds them up. Answers have the ``time`` of the run, that of the work of a buffer
    ``alone``, ``phases`` (``fill``, ``sum`` and ``wait``) and the ``sum``, which is equal on both sides.
    """

    def produce(comm: Communicator) -> Program[Answer]:
        buffers, ready, phases = _buffers(length), _buffers(4), list[list[Any]]()
        random, total = np.random.default_rng(0), 0.0
        fills = _fill(comm, random, buffers[0]) if fill is None else _work(comm, fill)
        alone = yield from _duration(comm, fills)
        yield [comm.isend(1, ready[0], _READY)]
        yield [comm.irecv(1, ready[0], _READY)]
        begin, sends = comm.now(), list[Operation | None]([None, None])
        for place in (number % 2 for number in range(BUFFERS)):
            before = sends[place]
            if before is not None:
                yield from _timed(comm, phases, "wait", _wait(before))
            if fill is None:
                yield from _timed(comm, phases, "fill", _fill(comm, random, buffers[place]))
                total += float(_values(buffers[place]).sum())
            else:
                yield from _timed(comm, phases, "fill", _work(comm, fill))
            yield from _timed(comm, phases, "wait", _wait(comm.irecv(1, ready[place], _READY + place)))
            sends[place] = comm.isend(1, buffers[place], place)
        yield [each for each in sends if each is not None]
        return (yield from _ended(comm, _account(comm.now() - begin, alone, phases, total)))

    def consume(comm: Communicator) -> Program[Answer]:
        buffers, ready, phases = _buffers(length), _buffers(4), list[list[Any]]()
        total = 0.0
        # The sides work alone one after the other, so that no message disturbs them.
        yield [comm.irecv(0, ready[0], _READY)]
        alone = yield from _duration(comm, _sum(comm, buffers[0]) if add is None else _work(comm, add))
        yield [comm.isend(0, ready[0], _READY)]
        begin, receives = comm.now(), list[list[Operation]]()
        for place in (0, 1):
            receives.append([comm.irecv(0, buffers[place], place), comm.isend(0, ready[place], _READY + place)])
            yield []
        for number in range(BUFFERS):
            place = number % 2
            yield from _timed(comm, phases, "wait", _wait(*receives[place]))
            if add is None:
                total += yield from _timed(comm, phases, "sum", _sum(comm, buffers[place]))
            else:
                yield from _timed(comm, phases, "sum", _work(comm, add))
            if number + 2 < BUFFERS:
                receives[place] = [comm.irecv(0, buffers[place], place), comm.isend(0, ready[place], _READY + place)]
                yield []
        return (yield from _ended(comm, _account(comm.now() - begin, alone, phases, total)))

    return lambda comm: consume(comm) if comm.rank else produce(comm)


def single_message(length: int, busy: int, work: int = 0, repetitions: int = 3) -> RankFunction[Answer]:
    """A message that rank ``busy`` posts, works for ``work`` ns, and waits for; the other rank only waits.

    Its answer has lists with a time per repetition: ``alone`` (the work without a message), ``post``, ``work`` and
    ``wait``. That of the other rank is empty.
    """

    def program(comm: Communicator) -> Program[Answer]:
        data, ready = np.zeros(length, np.uint8), np.zeros(4, np.uint8)
        phases: dict[str, list[int]] = {"alone": [], "post": [], "work": [], "wait": []}
        yield from barrier_dissemination(comm)
        for _ in range(repetitions):
            if comm.rank != busy:
                yield [comm.irecv(busy, ready, _READY)]
                yield [comm.irecv(0, data) if comm.rank else comm.isend(1, data)]
                continue
            times = [comm.now()]
            yield from _work(comm, work)
            times.append(comm.now())
            message = comm.irecv(0, data) if comm.rank else comm.isend(1, data)
            announced = comm.isend(1 - busy, ready, _READY)
            yield []
            times.append(comm.now())
            yield from _work(comm, work)
            times.append(comm.now())
            yield [message, announced]
            times.append(comm.now())
            for name, earlier, later in zip(phases, times, times[1:], strict=False):
                phases[name].append(later - earlier)
        return (yield from _ended(comm, phases if comm.rank == busy else {}))

    return program


def polling(length: int, slice_ns: int, slices: int) -> RankFunction[Answer]:
    """Rank 1 works in slices and looks for messages in between, two of which rank 0 keeps on their way.

    The answer of rank 1 has the time of the slices ``alone``, their ``time`` with messages, and the number of messages
    that have ``arrived``.
    """

    def send(comm: Communicator) -> Program[Answer]:
        data, credit = _buffers(length), np.ones(1, np.uint8)
        yield [comm.irecv(1, credit, _READY)]
        yield [comm.isend(1, each, place) for place, each in enumerate(data)]
        number = 0
        while True:
            yield [comm.irecv(1, credit, _CREDIT)]
            if not credit[0]:
                return (yield from _ended(comm, {}))
            yield [comm.isend(1, data[number % 2], number % 2)]
            number += 1

    def receive(comm: Communicator) -> Program[Answer]:
        data, (none, one) = _buffers(length), (np.zeros(1, np.uint8), np.ones(1, np.uint8))
        begin = comm.now()
        for _ in range(slices):
            yield from _work(comm, slice_ns)
        alone = comm.now() - begin
        receives = [comm.irecv(0, each, place) for place, each in enumerate(data)]
        yield [comm.isend(0, one, _READY)]
        begin, arrived = comm.now(), 0
        for _ in range(slices):
            yield from _work(comm, slice_ns)
            comm.look()
            yield []
            while receives[arrived % 2].done:
                place = arrived % 2
                receives[place] = comm.irecv(0, data[place], place)
                yield [comm.isend(0, one, _CREDIT)]
                arrived += 1
        took = comm.now() - begin
        yield receives
        yield [comm.isend(0, none, _CREDIT)]
        return (yield from _ended(comm, {"alone": alone, "time": took, "arrived": arrived}))

    return lambda comm: receive(comm) if comm.rank else send(comm)


def late_receiver(length: int, work: int) -> RankFunction[Answer]:
    """A message to rank 1, which works for ``work`` ns before it makes a call.

    The answer of rank 0 has the time in ns after which the memory of the message was free (``sent``).
    """

    def program(comm: Communicator) -> Program[Answer]:
        data, ready = np.zeros(length, np.uint8), np.zeros(4, np.uint8)
        yield from barrier_dissemination(comm)
        if comm.rank:
            yield [comm.isend(0, ready, _READY)]
            yield from _work(comm, work)
            yield [comm.irecv(0, data)]
            return (yield from _ended(comm, {}))
        yield [comm.irecv(1, ready, _READY)]
        begin = comm.now()
        yield [comm.isend(1, data)]
        return (yield from _ended(comm, {"sent": comm.now() - begin}))

    return program


OVERLAP_PROGRAMS: Final[dict[str, Callable[..., RankFunction[Answer]]]] = {
    "double buffering": double_buffering,
    "single message": single_message,
    "polling": polling,
    "late receiver": late_receiver,
}


def _buffers(length: int) -> list[NDArray[np.uint8]]:
    return [np.zeros(length, np.uint8) for _ in range(2)]


def _values(buffer: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The numbers of a buffer, without the bytes after the last whole one."""
    return buffer[: len(buffer) // _DOUBLE * _DOUBLE].view(np.float64)


def _timed(comm: Communicator, phases: list[list[Any]], kind: str, run: Program[float]) -> Program[float]:
    begin = comm.now()
    result = yield from run
    phases.append([kind, begin, comm.now()])
    return result


def _duration(comm: Communicator, run: Program[float]) -> Program[int]:
    begin = comm.now()
    yield from run
    return comm.now() - begin


def _account(time: int, alone: int, phases: list[list[Any]], total: float) -> Answer:
    return {"time": time, "alone": alone, "phases": phases, "sum": total}


def _work(comm: Communicator, duration: int) -> Program[float]:
    if duration:
        comm.work_for(duration)
    yield []
    return 0.0


def _fill(comm: Communicator, random: np.random.Generator, buffer: NDArray[np.uint8]) -> Program[float]:
    random.random(out=_values(buffer))
    comm.compute(len(buffer))
    yield []
    return 0.0


def _sum(comm: Communicator, buffer: NDArray[np.uint8]) -> Program[float]:
    found = float(_values(buffer).sum())
    comm.compute(len(buffer))
    yield []
    return found


def _ended(comm: Communicator, answer: Answer) -> Program[Answer]:
    """Answer when both ranks have ended: one that makes no calls would leave messages of the other without acks."""
    yield from barrier_dissemination(comm)
    return answer


def _wait(*operations: Operation) -> Program[float]:
    yield operations
    return 0.0
