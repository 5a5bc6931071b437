"""State machines as tables: each row is a transition from one state to another, with its action and its rules.

The same table drives the engine, is drawn as a diagram in the documentation, and is checked by a test that requires
every row to be exercised. No transition exists outside of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

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


class TransitionTable:
    """All transitions of one kind of state machine, of which each row is a :class:`Transition`."""

    def __init__(
        self,
        name: str,
        initial: StrEnum,
        rows: Iterable[tuple[StrEnum, StrEnum, StrEnum, Callable[..., Any] | None, tuple[str, ...]]],
    ) -> None:
        self.name = name
        self.initial = initial
        self.rows = tuple(Transition(*row) for row in rows)
        named = [initial, *(each for row in self.rows for each in (row.state, row.next))]
        self.leaving: dict[StrEnum, dict[StrEnum, Transition]] = {state: {} for state in named}
        """The rows by state and event; contains every state, in the order of first mention in the table."""
        for row in self.rows:
            if row.event in self.leaving[row.state]:
                raise ValueError(f"the table {name!r} has two rows for one state and event")
            self.leaving[row.state][row.event] = row

    @property
    def states(self) -> tuple[StrEnum, ...]:
        """Every state, in the order of first mention in the table."""
        return tuple(self.leaving)

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


class Machine:
    """An object with a state; each subclass has a table."""

    __slots__ = ("leaving", "state")

    table: ClassVar[TransitionTable]

    def __init__(self) -> None:
        table = self.table
        self.state: StrEnum = table.initial
        self.leaving = table.leaving
        """The rows of the table, kept here since an attribute of a class is slower."""

    def fire(self, event: StrEnum, one: Any = _ABSENT, other: Any = _ABSENT) -> None:
        """Take the row for ``event``: change the state, then call the action with the details (at most two).

        Raises :class:`~mxwire.protocol.status.ImpossibleEventError` if the table has no such row.
        """
        row = self.leaving[self.state].get(event)
        if row is None:
            raise ImpossibleEventError(f"{self.table.name}: {event!s} cannot happen in state {self.state!s}")
        self.state = row.next
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

    def can(self, event: StrEnum) -> bool:
        """Return whether the table has a row for ``event`` in the current state."""
        return event in self.leaving[self.state]
