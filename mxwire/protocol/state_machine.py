"""State machines as tables: each row is a transition from one state to another, with its action and its rules.

The same table drives the engine, is drawn as a diagram in the documentation, and is checked by a test that requires
every row to be exercised. No transition exists outside of a table. ``Queue`` holds machines that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, TypeVar

from mxwire.protocol.status import ImpossibleEventError

_ABSENT: Final = object()
"""Default of a detail that was not passed; None is a valid detail."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A row of a table."""

    state: StrEnum
    event: StrEnum
    next: StrEnum
    action: Callable[..., Any] | None
    """Function called with the machine and the details of the event, after the state has changed."""
    rules: tuple[str, ...]
    """The rules of the behaviour specification that require the transition."""
    after: dict[StrEnum, Transition] = field(default_factory=dict, repr=False, compare=False)
    """The rows of the next state by event, so that a machine need not look up its state."""


class TransitionTable:
    """All transitions of one kind of state machine; each row is a :class:`Transition`."""

    def __init__(
        self,
        name: str,
        initial: StrEnum,
        rows: Iterable[tuple[StrEnum, StrEnum, StrEnum, Callable[..., Any] | None, tuple[str, ...]]],
    ) -> None:
        self.name = name
        self.initial = initial
        given = list(rows)
        named = [initial, *(each for row in given for each in (row[0], row[2]))]
        self.transitions: dict[StrEnum, dict[StrEnum, Transition]] = {state: {} for state in named}
        """The rows by state and event; contains every state, in the order of first mention in the table."""
        self.rows = tuple(Transition(*row, after=self.transitions[row[2]]) for row in given)
        self.first = self.transitions[initial]
        """The rows of the initial state."""
        for row in self.rows:
            if row.event in self.transitions[row.state]:
                raise ValueError(f"the table {name!r} has two rows for one state and event")
            self.transitions[row.state][row.event] = row

    def row(self, state: StrEnum, event: StrEnum) -> Transition:
        """Return the row of a state and an event, for :meth:`StateMachine.follow`."""
        return self.transitions[state][event]

    @property
    def states(self) -> tuple[StrEnum, ...]:
        """Every state, in the order of first mention in the table."""
        return tuple(self.transitions)

    @property
    def final(self) -> tuple[StrEnum, ...]:
        """The states without a transition to another state."""
        left = {row.state for row in self.rows if row.next != row.state}
        return tuple(each for each in self.states if each not in left)

    def diagram(self) -> str:
        """The table as a state diagram in the language of Graphviz; events with the same two states share an arrow."""
        arrows: dict[tuple[StrEnum, StrEnum], list[str]] = {}
        for row in self.rows:
            note = f" ({', '.join(row.rules)})" if row.rules else ""
            arrows.setdefault((row.state, row.next), []).append(f"  {row.event}{note}\\l")
        lines = [f'digraph "{self.name}" {{', "  start [shape=point]", f'  start -> "{self.initial}"']
        lines += [f'  "{each}" [peripheries={2 if each in self.final else 1}]' for each in self.states]
        lines += [f'  "{state}" -> "{after}" [label="{"".join(labels)}"]' for (state, after), labels in arrows.items()]
        return "\n".join([*lines, "}"])


class StateMachine:
    """An object with a state; each subclass has a table."""

    __slots__ = ("rows", "state")

    table: ClassVar[TransitionTable]

    def __init__(self) -> None:
        table = self.table
        self.state: StrEnum = table.initial
        self.rows = table.first
        """The rows of the table for this state, by event."""

    def fire(self, event: StrEnum, one: Any = _ABSENT, other: Any = _ABSENT) -> None:
        """Take the row for ``event``: change the state, then call the action with the details (at most two).

        Raises :class:`~mxwire.protocol.status.ImpossibleEventError` if the table has no such row.
        """
        row = self.rows.get(event)
        if row is None:
            raise ImpossibleEventError(f"{self.table.name}: {event!s} cannot happen in state {self.state!s}")
        self.state, self.rows = row.next, row.after
        act = row.action
        if act is None:
            return
        # Spelled out by the number of details: a call with *details is slower, and this runs for every message.
        if one is _ABSENT:
            act(self)
        elif other is _ABSENT:
            act(self, one)
        else:
            act(self, one, other)

    def follow(self, row: Transition) -> None:
        """Take a row that the caller has looked up, without its action, which the caller then calls; for events that
        every message causes.

        Raises :class:`~mxwire.protocol.status.ImpossibleEventError` in another state than that of the row.
        """
        if self.state is not row.state:
            raise ImpossibleEventError(f"{self.table.name}: {row.event!s} cannot happen in state {self.state!s}")
        self.state, self.rows = row.next, row.after

    def can(self, event: StrEnum) -> bool:
        """Return whether the table has a row for ``event`` in the current state."""
        return event in self.rows


Queued = TypeVar("Queued")


class Queue(Generic[Queued]):
    """Items in the order in which they were appended.

    It works like a deque, but compiled code calls it directly, in a fraction of the time. It is used for queues that
    every message passes.
    """

    __slots__ = ("_first", "_items", "_mask", "count")

    def __init__(self) -> None:
        self._items: list[Queued | None] = [None] * 8
        """A ring, whose size is a power of two."""
        self._mask = 7
        self._first = 0
        self.count = 0
        """Number of items."""

    def append(self, item: Queued) -> None:
        """Append an item."""
        if self.count > self._mask:
            self._items = [*self._items[self._first :], *self._items[: self._first], *([None] * self.count)]
            self._first, self._mask = 0, 2 * self._mask + 1
        self._items[(self._first + self.count) & self._mask] = item
        self.count += 1

    def popleft(self) -> Queued:
        """Take the oldest item."""
        first = self._first
        item = self._items[first]
        if item is None:
            raise IndexError("the queue is empty")
        self._items[first] = None
        self._first = (first + 1) & self._mask
        self.count -= 1
        return item

    def clear(self) -> None:
        """Remove all items."""
        self._items = [None] * 8
        self._mask, self._first, self.count = 7, 0, 0

    def __len__(self) -> int:
        """Return the number of items."""
        return self.count

    def __iter__(self) -> Iterator[Queued]:
        """Iterate over the items, the oldest first."""
        return iter([self[place] for place in range(self.count)])

    def __getitem__(self, place: int) -> Queued:
        """Return the item at a place from 0, the oldest."""
        item = self._items[(self._first + place) & self._mask] if 0 <= place < self.count else None
        if item is None:
            raise IndexError(f"there is no item at place {place} of {self.count}")
        return item
