"""Live hosts: the engine on a link, with a clock and a loop, in a blocking and an asyncio face."""

from mxwire.host.async_endpoint import AsyncEndpoint
from mxwire.host.async_host import AsyncHost
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError
from mxwire.host.host import Host
from mxwire.host.message import Message, Waiting
from mxwire.host.opening import KnownPeer
from mxwire.host.request import Request
from mxwire.wire.numbers import DEFAULT_KEY

__all__ = [
    "DEFAULT_KEY",
    "AsyncEndpoint",
    "AsyncHost",
    "Endpoint",
    "Host",
    "HostClosedError",
    "HostError",
    "HostTimeoutError",
    "KnownPeer",
    "Message",
    "Request",
    "Waiting",
]
