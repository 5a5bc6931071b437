"""State machines as tables: a row says what leads from one state to another, and what is done on the way.

A table is read by people (its diagram is drawn from the rows), by the engine, and by a test that wants every row
taken. Nothing else decides what may follow what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

from mxwire.protocol.errors import ImpossibleEventError

_ABSENT: Final = object()
"""Stands for a detail that an event has not."""


@dataclass(frozen=True, slots=True)
class Row:
    """One transition."""

    state: StrEnum
    event: StrEnum
    next: StrEnum
    action: str = ""
    """Name of the method that is called, after the state has changed; empty where nothing is done."""
    rules: tuple[str, ...] = ()
    """The rules of the behaviour specification that say so."""


class _Step:
    """A row as the engine takes it: its action is found once, not each time."""

    __slots__ = ("act", "next", "row")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.next = row.next
        self.act: Callable[..., Any] | None = None

    def found(self, machine: type) -> Callable[..., Any]:
        """The function behind the action, in the one class that has this table."""
        act: Callable[..., Any] = getattr(machine, self.row.action)
        self.act = act
        return act


class Table:
    """All transitions of one kind of state machine."""

    def __init__(self, name: str, initial: StrEnum, rows: tuple[Row, ...]) -> None:
        self.name = name
        self.initial = initial
        self.rows = rows
        named = [initial, *(each for row in rows for each in (row.state, row.next))]
        self.leaving: dict[StrEnum, dict[StrEnum, _Step]] = {state: {} for state in named}
        """The rows by state and event; every state is there, in the order in which the table first names it."""
        for row in rows:
            if row.event in self.leaving[row.state]:
                raise ValueError(f"the table {name!r} has two rows for one state and event")
            self.leaving[row.state][row.event] = _Step(row)

    @property
    def states(self) -> tuple[StrEnum, ...]:
        """Every state, in the order in which the table first names it."""
        return tuple(self.leaving)

    @property
    def final(self) -> tuple[StrEnum, ...]:
        """The states that nothing leads out of."""
        left = {row.state for row in self.rows if row.next != row.state}
        return tuple(each for each in self.states if each not in left)

    def diagram(self) -> str:
        """The table as a state diagram in the language of Graphviz; events in one direction share an arrow."""
        arrows: dict[tuple[StrEnum, StrEnum], list[str]] = {}
        for row in self.rows:
            note = f" ({', '.join(row.rules)})" if row.rules else ""
            arrows.setdefault((row.state, row.next), []).append(f"  {row.event}{note}\\l")
        lines = [f'digraph "{self.name}" {{', "  start [shape=point]", f'  start -> "{self.initial}"']
        lines += [f'  "{each}" [peripheries={2 if each in self.final else 1}]' for each in self.states]
        lines += [f'  "{state}" -> "{after}" [label="{"".join(labels)}"]' for (state, after), labels in arrows.items()]
        return "\n".join([*lines, "}"])


class Machine:
    """Something with a state; subclasses name their table."""

    __slots__ = ("state",)

    table: ClassVar[Table]

    def __init__(self) -> None:
        self.state: StrEnum = self.table.initial

    def fire(self, event: StrEnum, one: Any = _ABSENT, other: Any = _ABSENT) -> None:
        """Take the row for ``event``: change the state, then call the row's action with the details, two at most.

        Raises :class:`~mxwire.protocol.errors.ImpossibleEventError` where the table has no such row.
        """
        step = self.table.leaving[self.state].get(event)
        if step is None:
            raise ImpossibleEventError(f"{self.table.name}: {event!s} cannot happen in state {self.state!s}")
        self.state = step.next
        if one is _ABSENT and not step.row.action:
            return
        act = step.act or step.found(type(self))
        if one is _ABSENT:
            act(self)
        elif other is _ABSENT:
            act(self, one)
        else:
            act(self, one, other)

    def can(self, event: StrEnum) -> bool:
        """Whether the table has a row for ``event`` in the present state."""
        return event in self.table.leaving[self.state]
