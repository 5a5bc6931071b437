"""Completed requests in the order of their completion, until the application takes them, by request or by match
information.

An application takes each request once. The queue has the same tables as unexpected messages (``matching.py``), so that
taking needs no search, however many requests wait to be taken.
"""

from __future__ import annotations

from array import array
from typing import Generic, Protocol, TypeVar

from mxwire.protocol.library.matching import Selectable, SelectableQueue


class EndedRequest(Protocol):
    """A request that has ended."""

    match_info: int


Ended = TypeVar("Ended", bound=EndedRequest)


class Completion(Selectable, Generic[Ended]):
    """One request in the queue."""

    __slots__ = ("request",)

    def __init__(self, request: Ended) -> None:
        super().__init__(request.match_info)
        self.request = request


class CompletionQueue(Generic[Ended]):
    """Completed requests of every kind, sends and connects included."""

    def __init__(self) -> None:
        self._queue: SelectableQueue[Completion[Ended]] = SelectableQueue()
        self._places: dict[Ended, Completion[Ended]] = {}
        self.count = array("Q", [0])
        """Number of requests added so far, in an array whose address does not change, so that a program in C can read
        it."""

    def __len__(self) -> int:
        """Number of requests in the queue."""
        return len(self._places)

    def add(self, request: Ended) -> None:
        """Append a request that has just ended."""
        completion = Completion(request)
        self._places[request] = completion
        self._queue.add(completion)
        self.count[0] += 1

    def first(self, match_info: int = 0, mask: int = 0) -> Ended | None:
        """The oldest request whose masked match information equals ``match_info``; it is not removed."""
        if not self._places:
            return None
        self._queue.index(mask)
        found = self._queue.first(mask, match_info)
        return None if found is None else found.request

    def remove(self, request: Ended) -> bool:
        """Remove a request; return False if it is not in the queue."""
        completion = self._places.pop(request, None)
        if completion is None:
            return False
        self._queue.remove(completion)
        return True
