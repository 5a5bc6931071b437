"""Collectives give the right values for any number of ranks, over the engine and over TCP in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import CLOVERTOWN
from mxwire.bench.imb.collectives import ALGORITHMS, usual_algorithm
from mxwire.bench.imb.communicator import Communicator, Program
from mxwire.errors import MxwireError
from mxwire.units import SECOND
from mxwire.wire.dialect import omx

CARRIERS: dict[str, Callable[..., ModelFabric]] = {
    "mx": lambda ranks, blocks: EndpointFabric([ModelHostOptions(CLOVERTOWN, omx(1500))] * 2, ranks, blocks=blocks),
    "tcp": lambda ranks, blocks: StreamFabric(CLOVERTOWN, ranks, blocks=blocks),
}
RANKS = st.integers(2, 8)
LENGTHS = st.sampled_from([0, 1, 3, 8, 33, 1000, 9001])
"""Numbers of four bytes: up to 36,004 bytes, which is a large message."""


def every(operation: str) -> Any:
    return st.sampled_from(sorted(ALGORITHMS[operation]))


def numbers(rank: int, length: int) -> Any:
    return np.arange(length, dtype=np.int32) * 7 + rank * 1000


def results(carrier: str, ranks: int, run: Callable[[Communicator], Program[Any]], blocks: bool = False) -> list[Any]:
    return CARRIERS[carrier](ranks, blocks).run(run)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, LENGTHS, every("bcast"), st.integers(0, 7), st.booleans())
def test_bcast_copies_the_root_to_all(carrier, ranks, length, algorithm, root, blocks):
    root %= ranks

    def program(comm: Communicator) -> Program[Any]:
        data = numbers(comm.rank, length)
        yield from ALGORITHMS["bcast"][algorithm](comm, data, root)
        return data

    for each in results(carrier, ranks, program, blocks):
        assert (each == numbers(root, length)).all()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, LENGTHS, every("allreduce"))
def test_allreduce_adds_all_ranks_everywhere(carrier, ranks, length, algorithm):
    def program(comm: Communicator) -> Program[Any]:
        result = np.zeros(length, np.int32)
        yield from ALGORITHMS["allreduce"][algorithm](comm, numbers(comm.rank, length), result)
        return result

    expected = sum(numbers(rank, length) for rank in range(ranks))
    for each in results(carrier, ranks, program):
        assert (each == expected).all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, LENGTHS, st.integers(0, 7))
def test_reduce_adds_all_ranks_at_the_root(carrier, ranks, length, root):
    root %= ranks

    def program(comm: Communicator) -> Program[Any]:
        result = np.zeros(length, np.int32)
        yield from ALGORITHMS["reduce"]["binomial"](comm, numbers(comm.rank, length), result, root)
        return result

    assert (results(carrier, ranks, program)[root] == sum(numbers(rank, length) for rank in range(ranks))).all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, LENGTHS, st.integers(0, 7))
def test_gather_and_scatter_keep_the_order_of_the_ranks(carrier, ranks, length, root):
    root %= ranks

    def program(comm: Communicator) -> Program[Any]:
        every = np.zeros(length * ranks, np.int32)
        own = np.zeros(length, np.int32)
        yield from ALGORITHMS["gather"]["binomial"](comm, numbers(comm.rank, length), every, root)
        gathered = every.copy()
        yield from ALGORITHMS["scatter"]["binomial"](comm, every, own, root)
        return gathered, own

    found = results(carrier, ranks, program)
    assert (found[root][0] == np.concatenate([numbers(rank, length) for rank in range(ranks)])).all()
    for rank, (_, own) in enumerate(found):
        assert (own == numbers(rank, length)).all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, LENGTHS)
def test_allgather_and_alltoall_reach_all(carrier, ranks, length):
    def program(comm: Communicator) -> Program[Any]:
        every = np.zeros(length * ranks, np.int32)
        yield from ALGORITHMS["allgather"]["ring"](comm, numbers(comm.rank, length), every)
        gathered = every.copy()
        blocks = np.concatenate([numbers(10 * comm.rank + target, length) for target in range(ranks)])
        yield from ALGORITHMS["alltoall"]["pairwise"](comm, blocks, every)
        return gathered, every

    found = results(carrier, ranks, program)
    for rank, (gathered, exchanged) in enumerate(found):
        assert (gathered == np.concatenate([numbers(each, length) for each in range(ranks)])).all()
        expected = [numbers(10 * source + rank, length) for source in range(ranks)]
        assert (exchanged == np.concatenate(expected)).all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(CARRIERS)), RANKS, st.integers(0, 7), st.integers(1, 500))
def test_no_rank_leaves_a_barrier_before_the_last_has_entered(carrier, ranks, late, microseconds):
    def program(comm: Communicator) -> Program[tuple[int, int]]:
        if comm.rank == late % ranks:
            comm.compute(microseconds * 1500)
        entered = comm.now()
        yield from ALGORITHMS["barrier"]["dissemination"](comm)
        return entered, comm.now()

    found = results(carrier, ranks, program)
    assert min(left for _, left in found) >= max(entered for entered, _ in found)


def test_messages_of_one_pair_and_tag_keep_their_order():
    def program(comm: Communicator) -> Program[list[int]]:
        boxes = [np.zeros(length, np.int32) for length in (20_000, 1, 300)]
        if comm.rank:
            yield [comm.isend(0, np.full(len(box), place + 1, np.int32)) for place, box in enumerate(boxes)]
        else:
            yield [comm.irecv(1, box) for box in boxes]
        return [int(box[-1]) for box in boxes]

    for carrier in CARRIERS:
        assert results(carrier, 2, program)[0] == [1, 2, 3]


def test_the_long_algorithms_are_for_long_messages():
    assert usual_algorithm("bcast", 100) == "binomial"
    assert usual_algorithm("bcast", 1 << 20) == "scatter+ring"
    assert usual_algorithm("allreduce", 16) == "recursive-doubling"
    assert usual_algorithm("allreduce", 1 << 20) == "rabenseifner"
    assert usual_algorithm("barrier", 0) == "dissemination"


def test_ranks_that_wait_for_each_other_are_reported(monkeypatch):
    monkeypatch.setattr("mxwire.bench.cost.ranks._LONGEST", 60 * SECOND)

    def program(comm: Communicator) -> Program[None]:
        yield [comm.irecv(1 - comm.rank, np.zeros(4, np.int32))]

    for carrier in CARRIERS:
        with pytest.raises(MxwireError, match="ranks 0, 1 wait"):
            results(carrier, 2, program)
