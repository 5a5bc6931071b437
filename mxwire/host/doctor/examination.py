"""The doctor's examination: first checks without privileges, then those of a live host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.ethernet import ETHERTYPE_MXOE as ETHERTYPE
from mxwire.host.doctor import interface as checks
from mxwire.host.doctor import trial
from mxwire.host.doctor.finding import DoctorFinding, ok, problem, warning
from mxwire.host.host import Host
from mxwire.link import LinkError, Tap
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import NetworkInterface, read_settled
from mxwire.link.listeners import kernel_handlers, master_of, packet_sockets
from mxwire.wire.dialect import Dialect

_SETTLING: Final = 3.0
"""Seconds to wait for a link to come up."""


def examine(interface: str, dialect: Dialect, seconds: float, **options: Any) -> Iterator[DoctorFinding]:
    """Examine an interface for a host of a dialect; ``options`` are those of :class:`~mxwire.host.host.Host`.

    Yields findings as they are made, the last ones after running a host for ``seconds``. Raises
    :class:`~mxwire.link.errors.LinkError` if there is no such interface, or it is not Ethernet.
    """
    found = read_settled(interface, _SETTLING)
    yield from checks.state(found)
    yield from checks.mtu(found, dialect)
    yield from checks.hardware(interface, read_hardware(interface))
    yield from checks.master(interface, master_of(interface))
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
                yield from trial.run_host(host, tap, dialect, seconds)


def _listeners(found: NetworkInterface) -> Iterator[DoctorFinding]:
    try:
        sockets = packet_sockets(found.index, ETHERTYPE)
        handlers = kernel_handlers(found.name, ETHERTYPE)
    except (OSError, ValueError, IndexError):
        yield warning("ethertype", "the kernel does not report other receivers of MXoE frames (/proc/net)", None)
        return
    yield from checks.listeners(found.name, sockets, handlers)
