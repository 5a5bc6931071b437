"""Sockets and files that stay with the process that opened them, although the child of a fork inherits all descriptors.

A child that does not call exec would otherwise keep its parent's connections and locks after the end of the parent:
other processes would wait for it.
"""

from __future__ import annotations

import os
from typing import Final, Protocol, TypeVar
from weakref import WeakSet


class Closable(Protocol):
    """A socket or file."""

    def close(self) -> None:
        """Close it."""


Kept = TypeVar("Kept", bound=Closable)

_kept: Final[WeakSet[Closable]] = WeakSet()


def keep_from_children(opened: Kept) -> Kept:
    """Close a socket or file in children of forks from now on, and return it."""
    _kept.add(opened)
    return opened


def _close() -> None:
    for each in list(_kept):
        each.close()


os.register_at_fork(after_in_child=_close)
