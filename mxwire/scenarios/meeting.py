"""Meeting: a tester makes itself known to a live host, and finds it by its name."""

from __future__ import annotations

from random import SystemRandom
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.link import Link
from mxwire.link.conversing import converse
from mxwire.protocol.introduction import Introduction
from mxwire.scenarios.live import LiveTarget
from mxwire.units import SECOND
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.numbers import DEFAULT_KEY

NAME: Final = "tester:0"
PLACE: Final = 0x0101
TIMEOUT: Final = 15.0
"""Seconds: a host that has never heard of us asks for our name at once, or 5 s later."""


def meet(
    link: Link,
    host: str | bytes,
    dialect: Dialect = MXOE,
    *,
    endpoint: int = 1,
    key: int = DEFAULT_KEY,
    timeout: float = TIMEOUT,
) -> LiveTarget:
    """Announce ourselves, answer who asks for our name, and wait until a host, by name or address, answers us.

    Raises :class:`~mxwire.errors.MxwireError` with the hosts that were heard where it does not within ``timeout``
    seconds.
    """
    known = () if isinstance(host, str) else (host,)
    serial = SystemRandom().getrandbits(32)
    ours = Introduction(link.address, NAME, index=PLACE, serial=serial, every=SECOND, known=known)
    mac = converse(link, ours, lambda: ours.found(host), timeout)
    if mac is not None:
        return LiveTarget(mac, dialect, endpoint, key, name=ours.names[mac])
    wanted = host if isinstance(host, str) else mac_text(host)
    heard = [f"{name} ({mac_text(mac)})" for mac, name in ours.names.items()]
    heard += [mac_text(mac) for mac in ours.heard if mac not in ours.names]
    found = f"heard {', '.join(heard)}" if heard else "nobody was heard"
    raise MxwireError(
        f"{link.name}: {wanted} has not answered within {timeout:g} s; {found} (try: mxwire discover -i {link.name})"
    )
