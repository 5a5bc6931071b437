"""What a case is made of: its description, what it sends, what it needs of the other side, and the play itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from mxwire.interop.casting import Introduction, Role
from mxwire.interop.result import Case
from mxwire.interop.stage import Stage
from mxwire.simulation.randomness import payload
from mxwire.wire.dialect import Dialect

Play = Callable[[Stage], None]
Lengths = Callable[[Dialect], Sequence[int]]
"""Lengths in bytes that a case sends, by the dialect of the sender."""


@dataclass(frozen=True, slots=True)
class Part:
    """A case with all that is needed to play it."""

    case: Case
    play: Play
    lengths: Lengths
    """What is sent as it comes."""
    synchronous: Lengths
    """What is sent synchronously, so always as a rendezvous."""
    answered: bool
    """Whether the right side sends the same as the left one; if not it sends nothing."""
    role: Role | None
    """What is needed of an external host on the right; None: both hosts must be ours."""
    introduction: Introduction
    impaired: bool
    """Whether the case is played under impairments too, unless somebody chooses."""
    whole: bool
    """Whether it wants every byte of what is sent; if not, it may succeed where messages do not arrive whole."""
    unseen: frozenset[str]
    """Rules that the frames of this case seem to break, since the wire does not show what the applications do."""
    keeps_partner: bool
    """Whether it needs both sides to do the same at a disconnect."""


def nothing(_dialect: Dialect) -> Sequence[int]:
    """No message is sent."""
    return ()


def of(*lengths: int) -> Lengths:
    """The same lengths in each dialect."""
    return lambda _dialect: lengths


@dataclass(slots=True)
class Group:
    """Collects the cases of a file."""

    name: str
    parts: list[Part] = field(default_factory=list)

    def case(
        self,
        name: str,
        title: str,
        rules: str,
        *,
        lengths: Lengths = nothing,
        synchronous: Lengths = nothing,
        answered: bool = False,
        role: Role | None = None,
        introduction: Introduction = "names",
        impaired: bool = False,
        whole: bool = True,
        unseen: str = "",
        keeps_partner: bool = False,
    ) -> Callable[[Play], Play]:
        """Make a play a case; its docstring is the description. ``rules`` are numbers, divided by spaces."""

        def enter(play: Play) -> Play:
            description = " ".join((play.__doc__ or "").split())
            case = Case(name, title, self.name, description, tuple(rules.split()))
            self.parts.append(
                Part(
                    case,
                    play,
                    lengths=lengths,
                    synchronous=synchronous,
                    answered=answered,
                    role=role,
                    introduction=introduction,
                    impaired=impaired,
                    whole=whole,
                    unseen=frozenset(unseen.split()),
                    keeps_partner=keeps_partner,
                )
            )
            return play

        return enter


_CONTENT: Final = 1


def data(number: int, length: int) -> bytes:
    """The bytes of a case's message; the same each time."""
    return payload(_CONTENT, number, length)
