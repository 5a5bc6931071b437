"""Live hosts: the engine on a link, with a clock and a driver, for blocking callers and for asyncio.

``host.py`` and ``endpoint.py`` are the calls of an application. ``core.py`` connects links, engine and clock; the loops
that run it, poll and sleep are in ``driver.py``. ``survey.py``, ``ping.py``, ``doctor.py`` and ``perf/`` are behind the
commands ``discover``, ``ping``, ``doctor`` and ``perf``.
"""

from mxwire.host.endpoint import AsyncEndpoint, Endpoint
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError, HostWakeupError
from mxwire.host.host import AsyncHost, Host, KnownPeer
from mxwire.host.requests import HostRequest, Message, WaitingMessage
from mxwire.wire.numbers import DEFAULT_KEY

__all__ = [
    "DEFAULT_KEY",
    "AsyncEndpoint",
    "AsyncHost",
    "Endpoint",
    "Host",
    "HostClosedError",
    "HostError",
    "HostRequest",
    "HostTimeoutError",
    "HostWakeupError",
    "KnownPeer",
    "Message",
    "WaitingMessage",
]
