"""Messages between hosts of mxwire."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, Final

from mxwire.bench.channels.channel import Channel, ChannelSetup, link_counts
from mxwire.bench.errors import SilenceError
from mxwire.bench.roles.common import CONTENT, PATIENCE
from mxwire.host import Endpoint, Host, HostError
from mxwire.linerate.message_tester import MESSAGE_COUNTERS, frames_needed
from mxwire.link import LinkKind
from mxwire.protocol import Partner
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

OVER_XDP: Final = " over xdp"
"""Appended to a dialect: both hosts use AF_XDP. In the same way `` over xdp-send`` chooses that kind of link."""
LOCAL: Final = "mxoe over local"
"""Two processes of one host: both sides are on one interface, and messages take the local path."""
ONE_COPY: Final = f"{LOCAL} (1 copy)"
"""The same with receives that are posted late: a long message is copied once, out of the sender's memory."""
COPIED: Final = f"{LOCAL} (copied)"
"""The local path with one copy more: the receiver copies each message out of the memory of the receive."""


def host_options(carrier: str, other: bytes, *, active: bool) -> dict[str, Any]:
    """The options of one of two hosts with different names, which run only within the calls of their side.

    ``other`` is the Ethernet address of the other side.
    """
    return {
        "name": "alpha" if active else "beta",
        "dialect": dialect_of(carrier),
        "peers": {other: "beta:0" if active else "alpha:0"},
        "announce": False,
        "background": False,
    }


def dialect_of(carrier: str) -> str:
    """The dialect of a carrier, without its kind of link."""
    return carrier.partition(" over ")[0]


class HostChannel(Channel):
    """mxwire: an endpoint of a host on each side, driven by the calls of this thread."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        self._local = setup.carrier.startswith(LOCAL)
        options = host_options(setup.carrier, setup.other, active=setup.active or self._local)
        if self._local:
            options["peers"] = None
        if setup.network is not None:
            self._host = Host(setup.network.attach(setup.interface, setup.own), **options)
        else:
            link = "" if self._local else setup.carrier.partition(" over ")[2]
            kind = LinkKind(link or LinkKind.PACKET)
            self._host = Host.open(setup.interface, spin=setup.spin, link=kind, **options)
        self._endpoint: Endpoint = self._host.open_endpoint(int(self._local and not setup.active))
        self._partner: Partner | None = None
        self._posted: deque[tuple[Any, bytearray]] = deque()
        self._late = setup.carrier == ONE_COPY
        self._copy = bytearray(len(self.buffer)) if setup.carrier == COPIED else None
        for _ in range(0 if self._late else setup.depth):
            self._post(bytearray(len(self.buffer)))
        self._sends: deque[Any] = deque()
        self._dialect = as_dialect(options["dialect"])
        self._needed = 0
        if setup.active:
            self._partner = self._connected()

    def _connected(self) -> Partner:
        try:
            place = (self._host.name, 1) if self._local else ("beta", 0)
            return self._endpoint.connect(*place, timeout=PATIENCE)
        except HostError as error:
            raise SilenceError(f"no connection: {error}") from None

    def _post(self, memory: bytearray) -> None:
        self._posted.append((self._endpoint.ireceive(buffer=memory), memory))

    def send(self, size: int) -> None:
        """Post a send; if the window of large messages is full, wait for the oldest."""
        if self._partner is None:
            # The passive side has no partner before the first message.
            raise AssertionError("the passive side has received nothing yet")
        request = self._endpoint.isend(self._partner, memoryview(CONTENT)[:size])
        self._needed += frames_needed(size, self._dialect)
        if size > RENDEZVOUS_THRESHOLD:
            self._sends.append(request)
            if len(self._sends) > self.setup.depth:
                self._wait(self._sends.popleft())

    def receive(self, size: int) -> None:
        """Wait for the oldest posted receive, and post its buffer again; with ``1 copy``, receive what has arrived."""
        if self._late:
            self._endpoint.probe(timeout=PATIENCE)
            self._post(self.buffer)
        request, memory = self._posted.popleft()
        message = self._wait(request)
        if message.length != size:
            raise AssertionError(f"{self.setup.carrier}: received {message.length} bytes instead of {size}")
        if self._partner is None:
            self._partner = message.partner
        if self._copy is not None:
            memoryview(self._copy)[:size] = memoryview(memory)[:size]
        self.buffer = memory
        if not self._late:
            self._post(memory)

    def _wait(self, request: Any) -> Any:
        try:
            return self._endpoint.wait(request, PATIENCE)
        except HostError as error:
            raise SilenceError(str(error)) from None

    def frames(self) -> dict[str, int]:
        """The counters of the link, and the frames transmitted beyond those that the messages need."""
        transmitted = sum(self._host.core.node.counters[each] for each in MESSAGE_COUNTERS)
        return link_counts(self._host.core.links[0]) | {"retransmitted": max(transmitted - self._needed, 0)}

    def close(self) -> None:
        """Close endpoint and host, after the acks of the other side."""
        with suppress(HostError):
            self._endpoint.close(0.2)
        self._host.close()
