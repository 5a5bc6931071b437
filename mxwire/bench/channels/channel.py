"""One side of a channel, whatever carries its messages."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mxwire.bench.errors import SilenceError
from mxwire.bench.processors import SpinWork
from mxwire.bench.roles.common import CONTENT, LARGE
from mxwire.link import Link, MemoryNetwork

if TYPE_CHECKING:
    from mxwire.bench.channels.virtual import RankThread

SILENCE: Final = 3.0
"""Seconds after which a missing message counts as lost."""
LARGEST: Final = LARGE
"""Maximum size of a message: the length of the content that is sent."""
POLLS: Final = 512
"""Polls between two reads of the clock."""


@dataclass(frozen=True)
class ChannelSetup:
    """A side of a channel."""

    carrier: str
    """``mxoe``, ``omx:M``, ``tcp``, ``udp``, ``frames`` (recv), ``ring`` (mapped ring), ``xdp``, ``shared memory``; or
    a dialect followed by ``over xdp``: a host with AF_XDP."""
    interface: str
    own: bytes
    other: bytes
    active: bool
    addresses: tuple[str, str] | None = None
    """Local and remote IPv4 address, for TCP and UDP."""
    spin: bool = True
    """Poll for messages, instead of sleeping until one arrives."""
    size: int = 0
    """Size of the largest message."""
    depth: int = 2
    """Messages that may be in flight in one direction."""
    payload: int = 0
    """Maximum payload of a model's frames in bytes; 0: the model's own."""
    clients: int = 0
    """Number of clients of a server, if the sides of a model are these."""
    network: MemoryNetwork | None = None
    """The network in memory, instead of an interface."""
    thread: RankThread | None = None
    """The thread of a rank in virtual time, instead of an interface."""
    card_processor: int | None = None
    """The processor of a card that is a process of its own; None: any."""
    card_polls: bool = False
    """That processor is the card's alone, so the card polls."""


class Channel(ABC):
    """One side of a conversation. Not thread-safe."""

    def __init__(self, setup: ChannelSetup) -> None:
        self.setup = setup
        self.active = setup.active
        self._spin = SpinWork()
        self.buffer = bytearray(max(setup.size, 64))
        """The last received message."""

    def clock(self) -> int:
        """The time in ns."""
        return time.perf_counter_ns()

    def work(self, duration: int) -> None:
        """Spin for ``duration`` ns without polling the channel."""
        self._spin.work(duration)

    def spin_error(self, duration: int) -> float:
        """Relative error of :meth:`work`."""
        return self._spin.error(duration)

    @abstractmethod
    def send(self, size: int) -> None:
        """Send a message of ``size`` bytes."""

    @abstractmethod
    def receive(self, size: int) -> None:
        """Wait for the next message, which has ``size`` bytes, in :attr:`buffer`.

        Raises :class:`SilenceError` if it does not arrive.
        """

    def exchange(self, size: int) -> None:
        """Send and receive a message of ``size`` bytes while the other side does the same."""
        self.send(size)
        self.receive(size)

    def frames(self) -> dict[str, int]:
        """Numbers of frames sent, received, dropped and retransmitted so far, where they can be counted."""
        return {}

    def barrier(self) -> None:
        """Return when both sides have called it; the active side returns last."""
        if self.active:
            self.send(0)
            self.receive(0)
        else:
            self.receive(0)
            self.send(0)

    def check(self, size: int) -> None:
        """Compare the last received message with the content that was sent."""
        if memoryview(self.buffer)[:size] != memoryview(CONTENT)[:size]:
            raise AssertionError(f"{self.setup.carrier}: a message of {size} bytes is not what was sent")

    @abstractmethod
    def close(self) -> None:
        """Release everything."""


def link_counts(link: Link) -> dict[str, int]:
    """Numbers of frames that a link has sent, received and dropped."""
    counters = link.statistics()
    return {"sent": counters.sent, "received": counters.received, "dropped": counters.dropped}


def silence() -> SilenceError:
    """The error of a side for which no message has arrived in time."""
    return SilenceError(f"no message within {SILENCE:g} s")


def end_of_wait(end: float) -> float:
    """Return the time at which polls without success end: ``end``, or :data:`SILENCE` from now on if it is 0.

    Raises :class:`SilenceError` after that time.
    """
    now = time.monotonic()
    if end and now > end:
        raise silence()
    return end or now + SILENCE
