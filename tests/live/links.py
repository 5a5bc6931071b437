"""Links on the ports of a laboratory, and what arrives at them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from mxwire.link import PacketLink, Tap, XdpLink
from tests.link.link_frames import contents

from .namespaces import Laboratory, Port

LONG = 30.0
AnyLink = PacketLink | XdpLink | Tap


def opened(port: Port, kind: Any = PacketLink, **options: object) -> Any:
    """A link of a kind on a port."""
    with port.namespace.inside():
        return kind.open(port.interface, **options)


def receive(link: AnyLink, count: int, wait: float = LONG) -> list[bytes]:
    """Receive ``count`` frames, or as many as arrive."""
    received: list[bytes] = []
    while len(received) < count:
        more = contents(link.receive(wait))
        if not more:
            break
        received += more
    return received


def raw_socket(port: Port) -> socket.socket:
    """Sends whatever it is given."""
    with port.namespace.inside():
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        made.bind((port.interface, 0))
        return made


@pytest.fixture(scope="module")
def shared_cable(shared_laboratory: Laboratory) -> tuple[Port, Port]:
    """A cable of MTU 1500 for the tests of a module that leave it as it is: making one takes longer than most tests."""
    return shared_laboratory.pair()


@pytest.fixture(scope="module")
def shared_jumbo_cable(shared_laboratory: Laboratory) -> tuple[Port, Port]:
    """The same with MTU 9000."""
    return shared_laboratory.pair(9000)


@pytest.fixture
def own_cable(laboratory: Laboratory) -> tuple[Port, Port]:
    """A cable of MTU 1500 for a test that changes it."""
    return laboratory.pair()
