"""The doctor's examination, from what needs nothing to what needs a live host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from mxwire.ethernet import ETHERTYPE_MXOE as ETHERTYPE
from mxwire.host.doctor import standing, trying
from mxwire.host.doctor.finding import Finding, ok, problem, warning
from mxwire.host.host import Host
from mxwire.link import LinkError, Tap
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import Interface, read_interface
from mxwire.link.listeners import kernel_handlers, master_of, packet_sockets
from mxwire.wire.dialect import Dialect

_SETTLING: Final = 3.0
"""Seconds that a link is given to come up."""
_LOOK_EVERY: Final = 0.1


def examine(interface: str, dialect: Dialect, seconds: float, **options: Any) -> Iterator[Finding]:
    """Examine an interface, for a host of a dialect; ``options`` are those of :class:`~mxwire.host.host.Host`.

    Findings are given as they are made; the last ones after ``seconds`` of being a host. Raises
    :class:`~mxwire.link.errors.LinkError` where there is no such interface, or it is not Ethernet.
    """
    found = _settled(interface)
    yield from standing.state(found)
    yield from standing.mtu(found, dialect)
    yield from standing.hardware(interface, read_hardware(interface))
    yield from standing.master(interface, master_of(interface))
    yield from _listeners(found)
    try:
        tap = Tap.open(interface, promiscuous=False)
    except LinkError as error:
        yield problem("permission", str(error), "get the capability and try again")
        return
    with tap:
        yield ok("permission", "raw Ethernet frames are permitted")
        if found.up and found.carrier:
            with Host.open(interface, dialect=dialect, small_mtu=True, background=False, **options) as host:
                yield from trying.attempts(host, tap, dialect, seconds)


def _settled(name: str) -> Interface:
    """An interface, when it has its carrier; one that was just set up, or plugged in, has none for a moment."""
    end = time.monotonic() + _SETTLING
    found = read_interface(name)
    while found.up and not found.carrier and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
        found = read_interface(name)
    return found


def _listeners(found: Interface) -> Iterator[Finding]:
    try:
        sockets = packet_sockets(found.index, ETHERTYPE)
        handlers = kernel_handlers(found.name, ETHERTYPE)
    except (OSError, ValueError, IndexError):
        yield warning("ethertype", "the kernel does not tell who else takes frames (/proc/net/packet)", None)
        return
    yield from standing.listeners(found.name, sockets, handlers)
