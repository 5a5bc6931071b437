"""Definition of a case: its description, its messages, its needs, and the function that performs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from mxwire.interop.result import Case
from mxwire.interop.roles import Introduction, Role
from mxwire.interop.testbed import Testbed
from mxwire.simulation.randomness import payload
from mxwire.wire.dialect import Dialect

Play = Callable[[Testbed], None]
Lengths = Callable[[Dialect], Sequence[int]]
"""Function from the dialect of the sender to the message lengths of a case in bytes."""


def nothing(_dialect: Dialect) -> Sequence[int]:
    """Return no lengths."""
    return ()


@dataclass(frozen=True, slots=True)
class CaseDefinition:
    """A case with everything needed to play it."""

    case: Case
    play: Play
    lengths: Lengths = nothing
    """Lengths of ordinary sends."""
    synchronous: Lengths = nothing
    """Lengths of synchronous sends, which always use a rendezvous."""
    answered: bool = False
    """True if the right side sends the same messages as the left one; otherwise it sends none."""
    role: Role | None = "echo"
    """Program needed on an external right host, mostly an echo; None if both hosts must be mxwire's own."""
    introduction: Introduction = "names"
    impaired: bool = False
    """True if the case is played under impairments by default."""
    whole: bool = True
    """True if messages must be intact; otherwise the case may succeed although messages are corrupted."""
    unseen: str = ""
    """Rules that the frames of this case seem to break, as the wire does not show applications; separated by spaces."""
    keeps_partner: bool = False
    """True if both sides must handle a disconnect in the same way."""


def of(*lengths: int) -> Lengths:
    """Return a function that gives the same lengths in each dialect."""
    return lambda _dialect: lengths


@dataclass(slots=True)
class CaseGroup:
    """Collects the cases of a file."""

    name: str
    definitions: list[CaseDefinition] = field(default_factory=list)

    def case(self, title: str, rules: str, *, name: str = "", **needs: Any) -> Callable[[Play], Play]:
        """Register a function as a case, with its name and its docstring; ``rules`` are separated by spaces.

        ``needs`` are fields of :class:`CaseDefinition`.
        """

        def register(play: Play) -> Play:
            described = name or play.__name__.replace("_", "-")
            self.enter(described, title, rules, " ".join((play.__doc__ or "").split()), play, **needs)
            return play

        return register

    def enter(self, name: str, title: str, rules: str, description: str, play: Play, **needs: Any) -> None:
        """Enter a case."""
        case = Case(name, title, self.name, description, tuple(rules.split()))
        self.definitions.append(CaseDefinition(case, play, **needs))


_CONTENT: Final = 1


@lru_cache(maxsize=256)
def data(number: int, length: int) -> bytes:
    """Return the bytes of a case's message, always the same."""
    return payload(_CONTENT, number, length)
