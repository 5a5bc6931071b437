"""Implementations of the matrix: profiles of the engine in the dialects of their releases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, get_args

from mxwire.errors import MxwireError
from mxwire.interop.result import Implementation, named
from mxwire.protocol import Profile, profile_by_name
from mxwire.texts import table_rows
from mxwire.wire.dialect import DEFAULT_FRAME_LIMIT, Dialect, Generation, dialect_by_name, omx

IMPLEMENTATIONS: Final = {
    name: Implementation(name, title, dialect, profile, description=profile_by_name(profile).about)
    for _, (name, profile, dialect, title) in table_rows(__file__, "implementations.md")
}
"""Implementations by name, all simulated; :func:`live` returns the live host of one."""


def implementation_by_name(name: str) -> Implementation:
    """Return an implementation by its name.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    return named(name, IMPLEMENTATIONS, "implementation")


def live(implementation: Implementation, name: str) -> Implementation:
    """Return the same implementation as a live host with a name of its own."""
    return replace(implementation, name=name, kind="live")


def dialect_of(name: str) -> Dialect:
    """Return a dialect of any generation by its name: ``mxoe``, ``omx``, ``omx:M`` or ``omx:M/N3``.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    plain, slash, generation = name.strip().partition("/")
    dialect = dialect_by_name(plain)
    if not slash:
        return dialect
    known: Iterable[Generation] = get_args(Generation)
    found = next((each for each in known if each == generation.upper()), None)
    if found is None or dialect.family != "omx":
        raise MxwireError(f"unknown dialect {name!r}: only omx has generations, {', '.join(get_args(Generation))}")
    return omx(dialect.frame_limit if ":" in plain else DEFAULT_FRAME_LIMIT, found)


def profile_of(implementation: Implementation) -> Profile:
    """Return the profile of an implementation of mxwire."""
    assert implementation.profile is not None
    return profile_by_name(implementation.profile)
