"""Lookup of names given by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from mxwire.errors import MxwireError
from mxwire.words import suggestion

_Kind = TypeVar("_Kind")


def named(name: str, known: Mapping[str, _Kind], what: str, also: Sequence[str] = ()) -> _Kind:
    """Return the value of ``known`` for a name in upper or lower case; ``also`` are further names to suggest.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    found = known.get(name.strip().lower())
    if found is None:
        near = suggestion(name, [*known, *also], lister="mxwire interop --list")
        raise MxwireError(f"unknown {what} {name!r}{near}")
    return found
