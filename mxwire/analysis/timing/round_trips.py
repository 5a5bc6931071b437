"""Detect ping-pong in the messages of a conversation."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Final, TypeVar

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.message_counter import size_class
from mxwire.analysis.timing.samples import Samples

_Key = TypeVar("_Key", int, str)
LENGTHS: Final = 4096
"""Maximum number of distinct lengths."""


class Lengths:
    """Durations by message length and by size class."""

    def __init__(self, seed: int) -> None:
        make = partial(Samples, seed)
        self.by_length: FirstKeys[int, Samples] = FirstKeys(LENGTHS, make)
        """By length; of very many lengths only the first."""
        self.by_class: defaultdict[str, Samples] = defaultdict(make)
        """By the names of :data:`~mxwire.analysis.message_counter.SIZE_CLASSES`."""

    def add(self, length: int, duration_ns: int) -> None:
        """Add a duration."""
        self.by_class[size_class(length)].add(duration_ns)
        self.by_length[length].add(duration_ns)


class RoundTrips:
    """Detector of round trips in the messages of one conversation, taken in the order of their first frames.

    A ping and its pong are consecutive messages of the same length in opposite directions, the second beginning after
    the first is complete. Half an *iteration* is half the time from a ping to the next one of the same length, as
    benchmarks print it, independent of the capture point. Half an *answer* is half the time from the first frame of the
    ping to the last byte of the pong, as seen at the capture point: in a capture at the pinging host it excludes the
    time spent in that host.
    """

    __slots__ = ("_ping", "_pong")

    def __init__(self) -> None:
        self._ping: CapturedMessage | None = None
        self._pong: CapturedMessage | None = None

    def take(self, message: CapturedMessage, iterations: Lengths, answers: Lengths) -> None:
        """Add the next message."""
        ping, pong = self._ping, self._pong
        if ping is not None and pong is None and _answers(message, ping):
            assert message.length is not None
            if message.complete_ns is not None:
                answers.add(message.length, (message.complete_ns - ping.first_ns) // 2)
            self._pong = message
            return
        if ping is not None and pong is not None and _answers(message, pong):
            assert message.length is not None
            iterations.add(message.length, (message.first_ns - ping.first_ns) // 2)
        self._ping, self._pong = message, None


def _answers(pong: CapturedMessage, ping: CapturedMessage) -> bool:
    """Return whether ``pong`` answers ``ping``."""
    return (
        pong.flow is ping.flow.back
        and pong.length is not None
        and pong.length == ping.length
        and pong.kind == ping.kind
        and ping.complete_ns is not None
        and pong.first_ns >= ping.complete_ns
        and not (pong.retransmissions or ping.retransmissions)
    )
