"""Live hosts: the engine on a link, with a clock and a driver, for blocking callers and for asyncio.

``host.py`` and ``endpoint.py`` are the calls of an application, ``async_host.py`` and ``async_endpoint.py`` those for
asyncio; ``base_host.py`` and ``base_endpoint.py`` are the parts of both that never wait, and ``waits.py`` has the
conditions that they wait for. ``core.py`` connects links, engine and clock, within a section (``section.py``) that one
thread at a time enters; the loops that run it, poll and sleep are in ``driver.py``. ``collection.py`` exempts objects
from garbage collection while a host is open. ``survey.py``, ``ping.py``, ``doctor.py`` and ``perf/`` implement the
commands ``discover``, ``ping``, ``doctor`` and ``perf``; the texts of the doctor are in ``findings.toml``.
"""

from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.async_host import AsyncHost
from mxwire.host.base_host import KnownPeer
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError, HostWakeupError
from mxwire.host.host import Host
from mxwire.host.options import BlockingHostOptions, HostOptions
from mxwire.host.requests import HostRequest, Message, WaitingMessage
from mxwire.protocol.library.endpoint import EndpointOptions
from mxwire.wire.numbers import DEFAULT_KEY

__all__ = [
    "DEFAULT_KEY",
    "AsyncEndpoint",
    "AsyncHost",
    "BlockingHostOptions",
    "Endpoint",
    "EndpointOptions",
    "Host",
    "HostClosedError",
    "HostError",
    "HostOptions",
    "HostRequest",
    "HostTimeoutError",
    "HostWakeupError",
    "KnownPeer",
    "Message",
    "WaitingMessage",
]
