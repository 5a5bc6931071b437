"""TCP and UDP over a network that loses and duplicates frames: the rows of the models' tables that the kernel has."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

from mxwire.bench.models.catalogue import OTHERS
from mxwire.link import ethtool
from mxwire.link.faults import Faults

from .faulty_cable import FaultyCable
from .namespaces import Laboratory

MESSAGES = 10_000
ALL_FRAMES = 3  # ETH_P_ALL
_NO_CHECKSUMS = 0x17  # ETHTOOL_STXCSUM: the cable would pass on frames whose checksum the adapter is to compute
_ADDRESSES = ("10.99.0.1", "10.99.0.2")
_PATIENCE = 60


@pytest.fixture
def faulty(laboratory: Laboratory) -> Iterator[FaultyCable]:
    """Two machines with IPv4 addresses, whose cable loses 1 % of the frames and duplicates 1 %."""
    cable = FaultyCable(laboratory, 1500, seed=1, ethertype=ALL_FRAMES)
    for port, address in zip(cable.ports, _ADDRESSES, strict=True):
        port.namespace.ip("addr", "add", f"{address}/24", "dev", port.interface)
        with port.namespace.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            ethtool._EthtoolQuery(asking.fileno(), port.interface)(_NO_CHECKSUMS, 8, 0)
    yield cable
    cable.close()


def opened(cable: FaultyCable, place: int, kind: socket.SocketKind) -> socket.socket:
    """A socket of one of the machines."""
    with cable.ports[place].namespace.inside():
        found = socket.socket(socket.AF_INET, kind)
    found.settimeout(_PATIENCE)
    return found


def test_tcp_delivers_each_message_once_and_in_order(faulty):
    listener, sender = opened(faulty, 1, socket.SOCK_STREAM), opened(faulty, 0, socket.SOCK_STREAM)
    with listener, sender:
        listener.bind((_ADDRESSES[1], 7000))
        listener.listen()
        sender.connect((_ADDRESSES[1], 7000))
        receiver, _ = listener.accept()
        receiver.settimeout(_PATIENCE)
        faulty.change(Faults(loss=0.01, duplicate=0.01))
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with receiver:
            received = b""
            for number in range(MESSAGES):
                sender.sendall(struct.pack("!Q", number))
            while len(received) < 8 * MESSAGES:
                received += receiver.recv(65536)
    assert [each[0] for each in struct.iter_unpack("!Q", received)] == list(range(MESSAGES))
    assert OTHERS["tcp"].errors == "tolerated"


def test_udp_loses_and_duplicates_and_its_receiver_can_count_that(faulty):
    receiver, sender = opened(faulty, 1, socket.SOCK_DGRAM), opened(faulty, 0, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((_ADDRESSES[1], 7001))
        sender.connect((_ADDRESSES[1], 7001))
        received = []
        sender.send(struct.pack("!Q", 0))
        received.append(receiver.recv(8))
        faulty.change(Faults(loss=0.01, duplicate=0.01))
        for start in range(1, MESSAGES, 100):
            # Fewer at a time than the buffers hold: only the cable loses frames.
            for number in range(start, min(start + 100, MESSAGES)):
                sender.send(struct.pack("!Q", number))
            receiver.settimeout(0.05)
            with suppress(TimeoutError):
                while True:
                    received.append(receiver.recv(8))
    numbers = [struct.unpack("!Q", each)[0] for each in received]
    counts = faulty.counts()
    assert all(one <= other for one, other in pairwise(numbers))
    assert 0 < MESSAGES - len(set(numbers)) <= counts["lost"]
    assert 0 < len(numbers) - len(set(numbers)) <= counts["duplicated"]
    assert OTHERS["udp"].errors == "data loss"
