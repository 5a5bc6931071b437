"""Collective operations by the textbook algorithms, each under its name.

The result of a collective depends on the algorithm as much as on the network, so every measurement names it. All
functions are programs (see ``communicator.py``) that every rank runs with arrays of equal lengths. Sizes below are in
bytes per rank.

========== ============================ ==================================================================
operation  algorithm                    messages
========== ============================ ==================================================================
barrier    dissemination                log2 p rounds; in round k to the rank 2^k further
bcast      binomial                     a tree of log2 p levels with the whole message on each edge
bcast      scatter + ring allgather     a block of 1/p per rank by the tree, then p - 1 steps of the ring
reduce     binomial                     the tree of bcast upwards, combined at each node
gather     binomial                     subtrees upwards, each with all its blocks in one message
scatter    binomial                     the same downwards
allgather  ring                         p - 1 steps, one block to the right neighbour in each
allreduce  recursive doubling           log2 p exchanges of the whole vector
allreduce  Rabenseifner                 recursive halving (reduce-scatter), then recursive doubling (allgather)
alltoall   pairwise                     p - 1 steps; in step s to the rank s further, from the rank s before
========== ============================ ==================================================================

With a number of ranks that is not a power of two, both algorithms of allreduce first fold the surplus ranks into their
neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mxwire.bench.imb.communicator import Buffer, Communicator, Program

_BARRIER, _BCAST, _REDUCE, _GATHER, _SCATTER, _ALLGATHER, _ALLREDUCE, _ALLTOALL = range(101, 109)
"""Tags, one per operation, so that operations that follow each other cannot mix."""
_EMPTY: Final = np.zeros(0, np.uint8)

LONG_BCAST: Final = 64 << 10
"""Length in bytes from which a bcast scatters, because this algorithm moves less data over each edge."""
LONG_ALLREDUCE: Final = 2048
"""Length in bytes from which an allreduce uses Rabenseifner's algorithm."""


def barrier_dissemination(comm: Communicator) -> Program[None]:
    """Return when all ranks have entered."""
    distance = 1
    while distance < comm.size:
        yield [
            comm.isend((comm.rank + distance) % comm.size, _EMPTY, _BARRIER),
            comm.irecv((comm.rank - distance) % comm.size, np.zeros(0, np.uint8), _BARRIER),
        ]
        distance *= 2


def bcast_binomial(comm: Communicator, data: Buffer, root: int = 0) -> Program[None]:
    """Copy ``data`` of the root to all ranks."""
    place = (comm.rank - root) % comm.size
    distance = _span(place, comm.size)
    if place:
        yield [comm.irecv((comm.rank - distance) % comm.size, data, _BCAST)]
    sends = []
    while distance > 1:
        distance //= 2
        if place + distance < comm.size:
            sends.append(comm.isend((comm.rank + distance) % comm.size, data, _BCAST))
    yield sends


def bcast_scatter_allgather(comm: Communicator, data: Buffer, root: int = 0) -> Program[None]:
    """Copy ``data`` of the root to all ranks: a block to each by the tree, then around the ring."""
    cuts = _cuts(len(data), comm.size)
    place = (comm.rank - root) % comm.size
    distance = _span(place, comm.size)
    held = min(distance, comm.size - place)
    if place:
        yield [comm.irecv((comm.rank - distance) % comm.size, data[cuts[place] : cuts[place + held]], _BCAST)]
    sends = []
    while distance > 1:
        distance //= 2
        if distance < held:
            span = data[cuts[place + distance] : cuts[place + held]]
            sends.append(comm.isend((comm.rank + distance) % comm.size, span, _BCAST))
            held = distance
    yield sends
    yield from _ring(comm, [data[cuts[each] : cuts[each + 1]] for each in range(comm.size)], place)


def reduce_binomial(comm: Communicator, data: Buffer, result: Buffer, root: int = 0) -> Program[None]:
    """Add the arrays of all ranks into ``result`` of the root; other ranks use remote as memory."""
    result[:] = data
    place = (comm.rank - root) % comm.size
    partial = np.empty_like(data)
    distance = 1
    while distance < comm.size:
        if place & distance:
            yield [comm.isend((comm.rank - distance) % comm.size, result, _REDUCE)]
            return
        if place + distance < comm.size:
            yield [comm.irecv((comm.rank + distance) % comm.size, partial, _REDUCE)]
            _add(comm, result, partial)
        distance *= 2


def gather_binomial(comm: Communicator, data: Buffer, result: Buffer, root: int = 0) -> Program[None]:
    """Collect the arrays of all ranks in ``result`` of the root, in the order of the ranks."""
    length, place = len(data), (comm.rank - root) % comm.size
    rows = np.empty(length * min(_span(place, comm.size), comm.size - place), data.dtype)
    rows[:length] = data
    distance = 1
    while distance < comm.size:
        if place & distance:
            yield [comm.isend((comm.rank - distance) % comm.size, rows, _GATHER)]
            return
        if place + distance < comm.size:
            end = min(2 * distance, comm.size - place)
            below = rows[length * distance : length * end]
            yield [comm.irecv((comm.rank + distance) % comm.size, below, _GATHER)]
        distance *= 2
    # The root has the blocks in the order of places, which begin with itself.
    result[:] = np.roll(rows.reshape(comm.size, length), root, axis=0).reshape(-1)


def scatter_binomial(comm: Communicator, data: Buffer, result: Buffer, root: int = 0) -> Program[None]:
    """Distribute the blocks of ``data`` of the root to ``result`` of each rank, in the order of the ranks."""
    length, place = len(result), (comm.rank - root) % comm.size
    distance = _span(place, comm.size)
    held = min(distance, comm.size - place)
    if place:
        rows = np.empty(length * held, result.dtype)
        yield [comm.irecv((comm.rank - distance) % comm.size, rows, _SCATTER)]
    else:
        rows = np.roll(data.reshape(comm.size, length), -root, axis=0).reshape(-1)
    sends = []
    while distance > 1:
        distance //= 2
        if distance < held:
            below = rows[length * distance : length * held]
            sends.append(comm.isend((comm.rank + distance) % comm.size, below, _SCATTER))
            held = distance
    result[:] = rows[:length]
    yield sends


def allgather_ring(comm: Communicator, data: Buffer, result: Buffer) -> Program[None]:
    """Collect the arrays of all ranks in ``result`` of each rank."""
    blocks = list(result.reshape(comm.size, len(data)))
    blocks[comm.rank][:] = data
    yield from _ring(comm, blocks, comm.rank)


def allreduce_recursive_doubling(comm: Communicator, data: Buffer, result: Buffer) -> Program[None]:
    """Add the arrays of all ranks into ``result`` of each rank: the whole vector in each exchange."""
    result[:] = data
    place, ranks = yield from _fold(comm, result)
    partial = np.empty_like(data)
    distance = 1
    while place is not None and distance < len(ranks):
        other = ranks[place ^ distance]
        yield [comm.isend(other, result, _ALLREDUCE), comm.irecv(other, partial, _ALLREDUCE)]
        _add(comm, result, partial)
        distance *= 2
    yield from _unfold(comm, result)


def allreduce_rabenseifner(comm: Communicator, data: Buffer, result: Buffer) -> Program[None]:
    """Add the arrays of all ranks into ``result`` of each rank: halves of halves, and back."""
    result[:] = data
    place, ranks = yield from _fold(comm, result)
    if place is not None:
        cuts = _cuts(len(data), len(ranks))
        partial = np.empty_like(data)
        first, last = 0, len(ranks)
        distance = len(ranks) // 2
        while distance:
            other, middle = ranks[place ^ distance], first + distance
            own, sent = ((middle, last), (first, middle)) if place & distance else ((first, middle), (middle, last))
            remote = slice(cuts[sent[0]], cuts[sent[1]])
            local = slice(cuts[own[0]], cuts[own[1]])
            yield [comm.isend(other, result[remote], _ALLREDUCE), comm.irecv(other, partial[local], _ALLREDUCE)]
            _add(comm, result[local], partial[local])
            first, last = own
            distance //= 2
        distance = 1
        while distance < len(ranks):
            other = ranks[place ^ distance]
            start = place & ~(distance - 1)
            away = start ^ distance
            local = slice(cuts[start], cuts[start + distance])
            remote = slice(cuts[away], cuts[away + distance])
            yield [comm.isend(other, result[local], _ALLREDUCE), comm.irecv(other, result[remote], _ALLREDUCE)]
            distance *= 2
    yield from _unfold(comm, result)


def alltoall_pairwise(comm: Communicator, data: Buffer, result: Buffer) -> Program[None]:
    """Send block i of ``data`` to rank i, whose ``result`` has it in the place of this rank."""
    length = len(data) // comm.size
    sent, received = data.reshape(comm.size, length), result.reshape(comm.size, length)
    received[comm.rank] = sent[comm.rank]
    for step in range(1, comm.size):
        target, source = (comm.rank + step) % comm.size, (comm.rank - step) % comm.size
        yield [comm.isend(target, sent[target], _ALLTOALL), comm.irecv(source, received[source], _ALLTOALL)]


ALGORITHMS: Final[dict[str, dict[str, Callable[..., Program[None]]]]] = {
    "barrier": {"dissemination": barrier_dissemination},
    "bcast": {"binomial": bcast_binomial, "scatter+ring": bcast_scatter_allgather},
    "reduce": {"binomial": reduce_binomial},
    "gather": {"binomial": gather_binomial},
    "scatter": {"binomial": scatter_binomial},
    "allgather": {"ring": allgather_ring},
    "allreduce": {"recursive-doubling": allreduce_recursive_doubling, "rabenseifner": allreduce_rabenseifner},
    "alltoall": {"pairwise": alltoall_pairwise},
}
"""Algorithms by operation and name."""


def usual_algorithm(operation: str, length: int) -> str:
    """The algorithm for an operation on ``length`` bytes, as MPI libraries choose it by length."""
    names = list(ALGORITHMS[operation])
    long = {"bcast": LONG_BCAST, "allreduce": LONG_ALLREDUCE}.get(operation)
    return names[-1] if long is not None and length >= long else names[0]


def _add(comm: Communicator, result: Buffer, partial: Buffer) -> None:
    np.add(result, partial, out=result)
    comm.compute(result.nbytes)


def _cuts(length: int, count: int) -> list[int]:
    """The borders of ``count`` blocks of nearly equal length."""
    return [length * each // count for each in range(count + 1)]


def _span(place: int, size: int) -> int:
    """Width of the subtree of a binomial tree at a place: its lowest bit, or for the root the whole tree."""
    if place:
        return place & -place
    return 1 << (size - 1).bit_length()


def _ring(comm: Communicator, blocks: list[Any], place: int) -> Program[None]:
    """Pass blocks to the right until each rank has all; this rank begins with block ``place``."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for step in range(comm.size - 1):
        sent = blocks[(place - step) % comm.size]
        received = blocks[(place - step - 1) % comm.size]
        yield [comm.isend(right, sent, _ALLGATHER), comm.irecv(left, received, _ALLGATHER)]


def _fold(comm: Communicator, result: Buffer) -> Program[tuple[int | None, list[int]]]:
    """Add the arrays of surplus ranks to those of their neighbours, so that a power of two remains.

    Return the place of this rank among those that remain, or None if it does not, and their ranks.
    """
    remaining = 1 << (comm.size.bit_length() - 1)
    surplus = comm.size - remaining
    ranks = [2 * each for each in range(surplus)] + list(range(2 * surplus, comm.size))
    if comm.rank < 2 * surplus:
        if comm.rank % 2:
            yield [comm.isend(comm.rank - 1, result, _ALLREDUCE)]
        else:
            partial = np.empty_like(result)
            yield [comm.irecv(comm.rank + 1, partial, _ALLREDUCE)]
            _add(comm, result, partial)
    return (ranks.index(comm.rank) if comm.rank in ranks else None), ranks


def _unfold(comm: Communicator, result: Buffer) -> Program[None]:
    """Send the result to the surplus ranks."""
    surplus = comm.size - (1 << (comm.size.bit_length() - 1))
    if comm.rank < 2 * surplus:
        if comm.rank % 2:
            yield [comm.irecv(comm.rank - 1, result, _ALLREDUCE)]
        else:
            yield [comm.isend(comm.rank + 1, result, _ALLREDUCE)]
