"""The dialect of a packet: given with the packet, or set for the session in scapy's ``conf``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from scapy.config import conf

from mxwire.errors import MxwireError
from mxwire.wire.dialect import MXOE, Dialect, dialect_by_name

DialectLike = Dialect | str | None
"""A dialect, its name (``mxoe``, ``omx``, ``omx:M``), or None for the one set in ``conf``."""

CONF_KEY: Final = "mxoe"
"""Location of the settings: ``conf.contribs["mxoe"]["dialect"]``."""

conf.contribs.setdefault(CONF_KEY, {}).setdefault("dialect", MXOE.name)

_reading: ContextVar[Dialect | None] = ContextVar("_reading", default=None)


def dialect_of(chosen: DialectLike = None) -> Dialect:
    """Return the dialect. Raises :class:`~mxwire.errors.MxwireError` for an unknown name."""
    if chosen is None:
        chosen = _reading.get() or conf.contribs.get(CONF_KEY, {}).get("dialect", MXOE)
    if isinstance(chosen, Dialect):
        return chosen
    if not isinstance(chosen, str):
        raise MxwireError(f"no dialect {chosen!r}: use mxoe, omx (frame limit 9000) or omx:M, for example omx:1500")
    return dialect_by_name(chosen)


@contextmanager
def reading(dialect: Dialect) -> Iterator[None]:
    """Set the default dialect of packets built inside, for this thread or task only."""
    token = _reading.set(dialect)
    try:
        yield
    finally:
        _reading.reset(token)
