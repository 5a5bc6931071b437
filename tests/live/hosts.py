"""Live hosts in the namespaces of a laboratory: of this process, and pairs with another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from mxwire.host import Endpoint, Host, Message
from mxwire.link import FaultyLink, PacketLink
from mxwire.link.faults import Faults
from mxwire.protocol import Partner
from tests.host.agents import running_agent
from tests.host.exchanges import content as content

from .namespaces import Port

if TYPE_CHECKING:
    from .far import FarProcess

PATIENCE = 60.0
DIALECTS = {"mxoe": 9000, "omx:1500": 1500, "omx:9000": 9000}
"""The dialects, each with its MTU."""


def open_host(port: Port, name: str, **options: Any) -> Host:
    """A host on a port."""
    with port.namespace.inside():
        return host_on(port.interface, name, **options)


def host_on(interface: str, name: str, *, faults: Faults | None = None, **options: Any) -> Host:
    """A host on an interface of the namespace that we are in; if there are faults, what it sends suffers from them."""
    if faults is None:
        return Host.open(interface, name=name, **options)
    link = FaultyLink(PacketLink.open(interface), seed=crc32(name.encode()), sending=faults)
    return Host(link, name=name, **options)


def suffer(host: Host, faults: Faults, seed: int) -> None:
    """Have what a host sends suffer from other faults; it has been opened with some."""
    with host.core.section:
        _bad_link(host).change(sending=faults, seed=seed)


def suffered(host: Host) -> int:
    """Number of frames of a host that were impaired."""
    counts = _bad_link(host).faults_sending
    return counts.lost + counts.duplicated + counts.reordered


def _bad_link(host: Host) -> FaultyLink:
    [link] = host.core.links
    assert isinstance(link, FaultyLink)
    return link


def open_endpoint(port: Port, host: Host, number: int) -> Endpoint:
    """An endpoint of a host on a port; the processes of one namespace share the numbers."""
    with port.namespace.inside():
        return host.open_endpoint(number)


def sender_of(message: Any) -> str:
    """The name of the host that a message is from."""
    return str(message.partner.peer.name) if isinstance(message, Message) else str(message.partner)


@dataclass
class Joined:
    """A host of this process, near, and one of another process, far, which is used as if it were here."""

    port: Port
    near: Host
    far: Any

    def open_near(self, number: int) -> Endpoint:
        """An endpoint of our host."""
        return open_endpoint(self.port, self.near, number)

    def open_far(self, number: int) -> Any:
        """An endpoint of the other."""
        return self.far.open_endpoint(number)


class LivePair:
    """An endpoint of each of two hosts, and each the other's partner; ``two`` and ``to_one`` are in the other process,
    and are used as if they were here."""

    def __init__(self, joined: Joined, numbers: tuple[int, int] = (1, 2)) -> None:
        self.one: Endpoint = joined.open_near(numbers[0])
        self.two: Any = joined.open_far(numbers[1])
        self.to_two: Partner = self.one.connect("far", numbers[1], timeout=PATIENCE)
        self.to_one: Any = self.two.connect("near", numbers[0], timeout=PATIENCE)

    def ways(self) -> Iterator[tuple[Any, Any, Any]]:
        """Sender, receiver as a partner, and receiver, in both directions."""
        yield self.one, self.to_two, self.two
        yield self.two, self.to_one, self.one

    def close(self) -> None:
        """Close both."""
        self.one.close()
        self.two.close()


@contextmanager
def near_and_far(ports: tuple[Port, Port], process: FarProcess, dialect: str, **options: Any) -> Iterator[Joined]:
    """A host of this process, and one of another process, on ports with the MTU that the dialect is spoken at; after
    "match " or "card " in ``dialect``, the near one is attached to an agent, with this progress."""
    attached, _, dialect = dialect.rpartition(" ")
    for port in ports:
        port.link("mtu", str(DIALECTS[dialect]))
    with ExitStack() as stack:
        if attached:
            options_of_agent = options | {"background": False}
            stack.enter_context(
                running_agent(stack.enter_context(open_host(ports[0], "near", dialect=dialect, **options_of_agent)))
            )
            options = {"agent": attached}
        near = stack.enter_context(open_host(ports[0], "near", dialect=dialect, **options))
        far = process.open_host("far", dialect=dialect, **({} if attached else options))
        stack.callback(far.close)
        yield Joined(ports[0], near, far)
