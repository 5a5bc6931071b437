"""Looking up what a user names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from mxwire.errors import MxwireError

_Kind = TypeVar("_Kind")


def named(name: str, known: Mapping[str, _Kind], what: str, more: str = "") -> _Kind:
    """One of those that are known by name, in upper or lower case; ``what`` they are, and what ``more`` may be said.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none.
    """
    found = known.get(name.strip().lower())
    if found is None:
        raise MxwireError(f"no {what} {name!r}: use one of {', '.join(known)}{more}")
    return found
