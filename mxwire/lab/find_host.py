"""A live host on a link: found by its name or address, or as the first that answers."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.link import Link
from mxwire.link.dialogue import converse
from mxwire.protocol.introduction import EVERY, Introduction
from mxwire.wire.numbers import HOST_QUERY_MAGIC


@dataclass(frozen=True, slots=True)
class FoundHost:
    """A live host that has been discovered."""

    address: bytes
    name: str
    magic: int = HOST_QUERY_MAGIC
    """Magic of its host queries."""


def find_host(
    link: Link,
    own_name: str,
    wanted: str | bytes | None,
    timeout: float,
    *,
    index: int,
    serial: int,
    every: int = EVERY,
) -> FoundHost:
    """Return the host ``wanted``, a name or an address; if None, the first one that answers.

    Announces this host as ``own_name`` at the same time, and answers name queries, as an
    :class:`~mxwire.protocol.introduction.Introduction` with ``index``, ``serial`` and ``every`` does. Raises
    :class:`~mxwire.errors.MxwireError`, with the hosts that were heard, after ``timeout`` seconds.
    """
    known = (wanted,) if isinstance(wanted, bytes) else ()
    introduction = Introduction(link.address, own_name, index=index, serial=serial, every=every, known=known)
    address = converse(link, introduction, lambda: introduction.found(wanted), timeout)
    if address is not None:
        magic = introduction.magics.get(address, HOST_QUERY_MAGIC)
        return FoundHost(address, introduction.names[address], magic)
    others = ", ".join(f"{introduction.names.get(each) or '?'} ({mac_text(each)})" for each in introduction.heard)
    host = mac_text(wanted) if isinstance(wanted, bytes) else wanted
    missing = "no host was" if host is None else f"{host} was not"
    heard = f"there are {others}" if others else f"nothing was heard (mxwire doctor -i {link.name} finds the reason)"
    raise MxwireError(f"{link.name}: {missing} found within {timeout:g} s; {heard}")
