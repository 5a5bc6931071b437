"""Definition of a case: its description, its messages, its needs, and the function that performs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from mxwire.interop.result import Case
from mxwire.interop.roles import Introduction, Role
from mxwire.interop.stage import Stage
from mxwire.simulation.randomness import payload
from mxwire.wire.dialect import Dialect

Play = Callable[[Stage], None]
Lengths = Callable[[Dialect], Sequence[int]]
"""Function from the dialect of the sender to the message lengths of a case in bytes."""


@dataclass(frozen=True, slots=True)
class CaseDefinition:
    """A case with everything needed to play it."""

    case: Case
    play: Play
    lengths: Lengths
    """Lengths of ordinary sends."""
    synchronous: Lengths
    """Lengths of synchronous sends, which always use a rendezvous."""
    answered: bool
    """True if the right side sends the same messages as the left one; otherwise it sends none."""
    role: Role | None
    """Program needed on an external right host, mostly an echo; None if both hosts must be mxwire's own."""
    introduction: Introduction
    impaired: bool
    """True if the case is played under impairments by default."""
    whole: bool
    """True if messages must be intact; otherwise the case may succeed although messages are corrupted."""
    unseen: frozenset[str]
    """Rules that the frames of this case seem to break, because the wire does not show the applications."""
    keeps_partner: bool
    """True if both sides must handle a disconnect in the same way."""


def nothing(_dialect: Dialect) -> Sequence[int]:
    """Return no lengths."""
    return ()


def of(*lengths: int) -> Lengths:
    """Return a function that gives the same lengths in each dialect."""
    return lambda _dialect: lengths


@dataclass(slots=True)
class CaseGroup:
    """Collects the cases of a file."""

    name: str
    definitions: list[CaseDefinition] = field(default_factory=list)

    def case(
        self,
        name: str,
        title: str,
        rules: str,
        *,
        lengths: Lengths = nothing,
        synchronous: Lengths = nothing,
        answered: bool = False,
        role: Role | None = "echo",
        introduction: Introduction = "names",
        impaired: bool = False,
        whole: bool = True,
        unseen: str = "",
        keeps_partner: bool = False,
    ) -> Callable[[Play], Play]:
        """Register a function as a case; its docstring is the description; ``rules`` are separated by spaces."""

        def enter(play: Play) -> Play:
            description = " ".join((play.__doc__ or "").split())
            case = Case(name, title, self.name, description, tuple(rules.split()))
            hidden = frozenset(unseen.split())
            needs = lengths, synchronous, answered, role, introduction, impaired, whole, hidden, keeps_partner
            self.definitions.append(CaseDefinition(case, play, *needs))
            return play

        return enter


_CONTENT: Final = 1


@lru_cache(maxsize=256)
def data(number: int, length: int) -> bytes:
    """Return the bytes of a case's message, always the same."""
    return payload(_CONTENT, number, length)
