"""Names of the mechanisms, in the order of the reports, and where their classes are.

A pair imports the file of its own mechanism only: that of mxwire's path needs hosts and the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from mxwire.errors import MxwireError
from mxwire.texts import table_rows
from mxwire.words import suggestion

if TYPE_CHECKING:
    from mxwire.bench.intranode.mechanism import Mechanism

_ROWS: Final = [row for _, row in table_rows(__file__, "mechanisms.md")]
_CLASSES: Final = {name: place for name, _, place, *_ in _ROWS}
MECHANISMS: Final = tuple(_CLASSES)
KINDS: Final = {kind: tuple(name for name, own, *_ in _ROWS if own == kind) for _, kind, *_ in _ROWS}
"""Mechanisms that share a panel of a figure."""
WITHOUT_TWIN: Final = tuple(name for name, _, _, twin, *_ in _ROWS if twin == "no")
"""Mechanisms that have no twin in C."""


PTRACE: Final = "ptrace attach"
"""The permission to use the memory of the other process."""


class MechanismFacts(NamedTuple):
    """The properties of a mechanism that need no measurement; see ``mechanisms.md``."""

    copies: str
    actor: str
    permission: str
    largest: int | None
    freezes: bool
    bound: bool


FACTS: Final = {
    name: MechanismFacts(copies, actor, permission, int(largest or 0) or None, more == "freezes", more == "bound")
    for name, _, _, _, copies, actor, permission, largest, more in _ROWS
}


def mechanism_named(name: str) -> type[Mechanism]:
    """The mechanism of a name. Raises :class:`~mxwire.errors.MxwireError` for an unknown one."""
    if name not in _CLASSES:
        raise MxwireError(f"no mechanism {name!r}{suggestion(name, MECHANISMS)}: use {', '.join(MECHANISMS)}")
    module, _, own = _CLASSES[name].partition(".")
    found: type[Mechanism] = getattr(import_module(f"mxwire.bench.intranode.{module}"), own)
    return found
