"""Host names that a capture announces, and hosts by their name or address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import hostname_text
from mxwire.wire.packets import HostReply
from mxwire.words import printable, suggestion

_MOST: Final = 1 << 16
"""Hosts whose names are kept: a capture with more has forged addresses."""
_LISTED: Final = 5
"""Names in the error about an unknown one."""


def announced_names(batches: Iterable[DecodedBatch]) -> dict[int, str]:
    """Return the latest name of each host in HOST_REPLYs, by address."""
    names: dict[int, str] = {}
    for decoded in batches:
        for block in decoded.columns.of("host_reply"):
            for place in block.place.tolist():
                frame, source = decoded.frame(place), int(decoded.located.source[place])
                if isinstance(frame, HostReply) and (source in names or len(names) < _MOST):
                    names[source] = hostname_text(frame.hostname)
    return names


def address_of(host: str) -> int | None:
    """Return an Ethernet address as an integer, None for other texts, such as names."""
    try:
        return int.from_bytes(mac_bytes(host), "big")
    except MxwireError:
        return None


def addresses_of(host: str, names: Mapping[int, str]) -> frozenset[int]:
    """Return the addresses of a host given by its address or name; two hosts may have the same name.

    Raises :class:`~mxwire.errors.MxwireError` for a name that ``names`` does not contain.
    """
    address = address_of(host)
    found = (
        frozenset([address]) if address is not None else frozenset(key for key, name in names.items() if name == host)
    )
    if found:
        return found
    known = sorted({printable(each) for each in names.values() if each})
    if not known:
        raise MxwireError(
            f"no host {host!r}: no HOST_REPLY here names one; give an Ethernet address, like 52:54:00:0a:00:01"
        )
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    raise MxwireError(f"no host {host!r}{suggestion(host, known) or f': the hosts here are {listed}'}")
