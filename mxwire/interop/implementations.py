"""Implementations of the matrix: profiles of the engine in the dialects of their releases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, get_args

from mxwire.errors import MxwireError
from mxwire.interop.result import Implementation, named
from mxwire.protocol import Profile, profile_by_name
from mxwire.wire.dialect import DEFAULT_FRAME_LIMIT, Dialect, Generation, dialect_by_name, omx


def _of(name: str, profile: str, dialect: str, title: str) -> Implementation:
    return Implementation(name, title, dialect, profile, "simulated", profile_by_name(profile).about)


IMPLEMENTATIONS: Final = {
    each.name: each
    for each in (
        _of("open-mx-1.5", "open-mx-1.5", "mxoe", "Open-MX 1.5"),
        _of("open-mx-1.5-as-found", "open-mx-1.5-as-found", "mxoe", "Open-MX 1.5 as found"),
        _of("open-mx-1.1", "open-mx-1.1", "mxoe", "Open-MX 1.1"),
        _of("open-mx-1.0", "open-mx-1.0", "mxoe", "Open-MX 1.0"),
        _of("open-mx-0.6", "open-mx-0.6", "mxoe", "Open-MX 0.6"),
        _of("open-mx-0.5", "open-mx-0.5", "mxoe", "Open-MX 0.5"),
        _of("native-mx", "native-mx", "mxoe", "native MX"),
        _of("open-mx-1.5-omx-1500", "open-mx-1.5", "omx:1500", "Open-MX 1.5, own format, M = 1500"),
        _of("open-mx-1.5-omx-9000", "open-mx-1.5", "omx:9000", "Open-MX 1.5, own format, M = 9000"),
        _of("open-mx-1.1-omx-9000", "open-mx-1.1", "omx:9000/N3", "Open-MX 1.1, own format, M = 9000"),
        _of("open-mx-1.0-omx-9000", "open-mx-1.0", "omx:9000/N2", "Open-MX 1.0, own format, M = 9000"),
        _of("open-mx-0.5-omx", "open-mx-0.5", "omx:9000/N1", "Open-MX 0.5, own format"),
    )
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
