"""Pending: anything that may be waited for, in either face of a host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from mxwire.host.errors import HostError, HostTimeoutError

Result = TypeVar("Result")


class Pending(Generic[Result]):
    """What a wait is for. All methods are called while nobody else works with the engine."""

    __slots__ = ()

    def ready(self) -> bool:
        """Whether the wait is over; may take a step towards that."""
        raise NotImplementedError

    def result(self) -> Result:
        """What the wait gives; raises :class:`~mxwire.host.errors.HostError` where it has failed."""
        raise NotImplementedError

    def late(self, seconds: float) -> HostError:
        """What to say when it is not ready after so many seconds."""
        return HostTimeoutError(f"{self} has not ended within {seconds:g} s")

    def abandon(self) -> None:
        """Nobody waits any more: it took too long, or was interrupted."""


class Waiter:
    """Somebody who waits."""

    __slots__ = ("done", "error", "pending")

    def __init__(self, pending: Pending[Any]) -> None:
        self.pending = pending
        self.done = False
        """Whether somebody has found that the wait is over."""
        self.error: Exception | None = None
        """Why it cannot even be asked whether it is over."""

    def look(self) -> bool:
        """Find out whether the wait is over; what that raises is kept for the one who waits."""
        try:
            self.done = self.pending.ready()
        except Exception as error:
            self.error = error
            self.done = True
        return self.done

    def wake(self) -> None:
        """Called by whoever found that it is over, when the host ends, and when it is his turn to look for frames."""
        raise NotImplementedError


class AnyOf(Pending[Pending[Any]]):
    """The first of several, in their order, that is ready."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Pending[Any]]) -> None:
        self._members = members

    def __str__(self) -> str:
        """For messages."""
        return f"none of {len(self._members)} requests: it"

    def ready(self) -> bool:
        """Whether one is."""
        return any(each.ready() for each in self._members)

    def result(self) -> Pending[Any]:
        """The first that is."""
        return next(each for each in self._members if each.ready())

    def late(self, seconds: float) -> HostError:
        """None of them."""
        return HostTimeoutError(f"none of {len(self._members)} requests has ended within {seconds:g} s")


class AllOf(Pending[list[Any]]):
    """Several, all of them."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Pending[Any]]) -> None:
        self._members = members

    def ready(self) -> bool:
        """Whether all are."""
        return all(each.ready() for each in self._members)

    def result(self) -> list[Any]:
        """What each gives; raises for the first that has failed."""
        return [each.result() for each in self._members]

    def late(self, seconds: float) -> HostError:
        """Some of them."""
        missing = sum(not each.ready() for each in self._members)
        return HostTimeoutError(f"{missing} of {len(self._members)} requests have not ended within {seconds:g} s")
