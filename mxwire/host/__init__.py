"""Live hosts: the engine on a link, with a clock and a driver, for blocking callers and for asyncio."""

from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.async_host import AsyncHost
from mxwire.host.base_host import KnownPeer
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError
from mxwire.host.host import Host
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
    "KnownPeer",
    "Message",
    "WaitingMessage",
]
