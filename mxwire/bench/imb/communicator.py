"""The communicator: ranks that exchange buffers, over any carrier.

A *program* is a generator that runs in each rank. It posts operations, yields those that it waits for, and is resumed
when all of them are done. A carrier that blocks (:func:`run_blocking`) and one in virtual time run the same programs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

Buffer = NDArray[Any]
"""A contiguous array of any type; a message is its bytes."""


class Operation(Protocol):
    """A posted send or receive."""

    @property
    def done(self) -> bool:
        """True if its buffer may be used again."""


Program = Generator[Sequence[Operation], None, Result]
"""Yields the operations that it waits for; returns a result."""
RankFunction = Callable[["Communicator"], Program[Result]]


class Communicator(ABC):
    """One rank among ``size``. Messages from one rank with one tag arrive in the order in which they were sent."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size

    @abstractmethod
    def isend(self, target: int, data: Buffer, tag: int = 0) -> Operation:
        """Post a send to another rank. The buffer must not change until the operation is done."""

    @abstractmethod
    def irecv(self, source: int, data: Buffer, tag: int = 0) -> Operation:
        """Post a receive of a message that has exactly the length of ``data`` from another rank."""

    def now(self) -> int:
        """The time in ns."""
        return time.perf_counter_ns()

    @abstractmethod
    def work_for(self, duration: int) -> None:
        """Work for ``duration`` ns without a call of the library."""

    @abstractmethod
    def look(self) -> object:
        """Call the library between pieces of work, without waiting."""

    def compute(self, length: int) -> None:
        """Note that the rank has combined ``length`` bytes; a carrier in virtual time charges the processor for it."""
        del length

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy an array of the rank to another one; a carrier in virtual time charges the processor for it."""
        target[:] = source


@dataclass(frozen=True, slots=True)
class FirstOf:
    """An operation that is done as soon as any one of several is; a rank yields it to wait for any of them."""

    operations: Sequence[Any]

    @property
    def done(self) -> bool:
        """True if one is done."""
        return any(each.done for each in self.operations)


def flat(data: Buffer) -> memoryview:
    """The bytes of an array, also of an empty one, which a memoryview cannot cast."""
    found: NDArray[np.uint8] = data.view(np.uint8) if data.size else np.zeros(0, np.uint8)
    return found.data


def run_blocking(program: Program[Result], wait: Callable[[Sequence[Operation]], object]) -> Result:
    """Run a program to its end; ``wait`` blocks until all operations passed to it are done."""
    try:
        operations = next(program)
        while True:
            pending = [each for each in operations if not each.done]
            if pending:
                wait(pending)
            operations = program.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
