"""Messages in the order in which they appear, although they are done in another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from mxwire.analysis.conversations.message import Message

WAITING: Final = 1 << 16
"""Messages that wait for one before them; beyond that they are handed out although it is not done."""


class InOrder:
    """Takes messages as they are done and gives them back by number, as far as a bounded memory allows."""

    def __init__(self, waiting: int = WAITING) -> None:
        self._limit = waiting
        self._heap: list[tuple[int, Message]] = []
        self._next = 1

    def put(self, messages: Iterable[Message]) -> Iterator[Message]:
        """More messages; returns those that are next."""
        heap = self._heap
        for message in messages:
            heappush(heap, (message.number, message))
            while heap and (heap[0][0] <= self._next or len(heap) > self._limit):
                yield self._pop()

    def rest(self) -> Iterator[Message]:
        """There are no more: returns those that still waited."""
        while self._heap:
            yield self._pop()

    def _pop(self) -> Message:
        number, message = heappop(self._heap)
        self._next = max(self._next, number + 1)
        return message
