"""Live hosts of this process in the namespaces of a laboratory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from mxwire.host import Endpoint, Host
from mxwire.link import FaultyLink, PacketLink
from mxwire.link.faults import Faults
from mxwire.protocol import Partner

from .namespaces import Port

PATIENCE = 60.0


def open_host(port: Port, name: str, **options: Any) -> Host:
    """A host on a port."""
    with port.namespace.inside():
        return Host.open(port.interface, name=name, **options)


def open_faulty_host(port: Port, name: str, faults: Faults, **options: Any) -> Host:
    """The same, but what it sends suffers."""
    with port.namespace.inside():
        link = PacketLink.open(port.interface)
    return Host(FaultyLink(link, seed=len(name), sending=faults), name=name, **options)


def open_endpoint(port: Port, host: Host, number: int) -> Endpoint:
    """An endpoint of a host on a port; who has which endpoint, the processes of one namespace agree in."""
    with port.namespace.inside():
        return host.open_endpoint(number)


class LivePair:
    """Two hosts, alpha and beta, with an endpoint each, and each the other's partner."""

    def __init__(self, stack: ExitStack, ports: tuple[Port, Port], alpha: Host, beta: Host) -> None:
        self.ports = ports
        self.alpha, self.beta = stack.enter_context(alpha), stack.enter_context(beta)
        self.one: Endpoint = open_endpoint(ports[0], alpha, 1)
        self.two: Endpoint = open_endpoint(ports[1], beta, 2)
        self.to_two: Partner = self.one.connect("beta", 2, timeout=PATIENCE)
        self.to_one: Partner = self.two.connect("alpha", 1, timeout=PATIENCE)

    def ways(self) -> Iterator[tuple[Endpoint, Partner, Endpoint]]:
        """Sender, receiver as a partner, and receiver, in both directions."""
        yield self.one, self.to_two, self.two
        yield self.two, self.to_one, self.one


@contextmanager
def live_pair(ports: tuple[Port, Port], faults: Faults | None = None, **options: Any) -> Iterator[LivePair]:
    """Two hosts on the ends of a cable."""
    with ExitStack() as stack:
        hosts = [
            open_host(port, name, **options) if faults is None else open_faulty_host(port, name, faults, **options)
            for port, name in zip(ports, ("alpha", "beta"), strict=True)
        ]
        yield LivePair(stack, ports, *hosts)
