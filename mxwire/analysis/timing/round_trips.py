"""Detect ping-pong in the messages of a conversation."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.state import CONVERSATIONS
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.message_counter import BOUNDS, SIZE_CLASSES
from mxwire.analysis.timing.measured_messages import UNKNOWN, MeasuredMessages, in_order
from mxwire.analysis.timing.samples import Samples
from mxwire.structured import concatenated

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

    def extend(self, lengths: NDArray[np.int64], durations_ns: NDArray[np.int64]) -> None:
        """Add durations, in order; arrays of shape (n,)."""
        for place, members in in_order(np.searchsorted(BOUNDS, lengths)):
            self.by_class[SIZE_CLASSES[place][0]].extend(durations_ns[members])
        for length, members in in_order(lengths):
            self.by_length[length].extend(durations_ns[members])


_COMPARED: Final = np.dtype(
    [
        ("conversation", "i8"), ("side", "i8"), ("kind", "i8"), ("length", "i8"),
        ("first_ns", "i8"), ("complete_ns", "i8"), ("ping_ns", "i8"), ("repeated", "?"), ("pong", "?"),
    ]
)  # fmt: skip
"""Columns of compared messages; the time of the ping, and whether the message is its pong, are results."""


class RoundTrips:
    """Detector of round trips in the messages of conversations, taken in the order of their first frames.

    A ping and its pong are consecutive messages of the same length in opposite directions, the second beginning after
    the first is complete. Half an *iteration* is half the time from a ping to the next one of the same length, as
    benchmarks print it, independent of the capture point. Half an *answer* is half the time from the first frame of the
    ping to the last byte of the pong, as seen at the capture point: in a capture at the pinging host it excludes the
    time spent in that host. Only the newest :data:`~mxwire.analysis.conversations.state.CONVERSATIONS` are examined.
    """

    def __init__(self) -> None:
        self._last = np.zeros(0, _COMPARED)
        """The latest message of each conversation."""
        self._newest = 0
        """The highest number of a conversation."""

    def take(self, messages: MeasuredMessages, iterations: Lengths, answers: Lengths) -> None:
        """Add the next messages."""
        taken, places = self._compared(messages)
        order = np.argsort(taken["conversation"], kind="stable")
        taken, places = taken.take(order), places[order]
        answering = _answering(taken)
        # In a row of messages that answer one another, every other one is a pong. The row begins with a message that
        # answers none, or with the latest one of the previous messages, which may be a pong.
        index = np.arange(len(taken))
        begin = np.maximum.accumulate(np.where(answering, 0, index))
        taken["pong"] = pong = (index - begin + taken["pong"][begin]) % 2 == 1
        before = np.maximum(index - 1, 0)
        fresh = places >= 0
        first, complete = taken["first_ns"], taken["complete_ns"]
        taken["ping_ns"] = np.where(fresh, first[before], taken["ping_ns"])
        for lengths, chosen, durations in (
            (answers, pong & fresh & (complete != UNKNOWN), complete - taken["ping_ns"]),
            (iterations, answering & ~pong, first - taken["ping_ns"][before]),
        ):
            found = np.flatnonzero(chosen)
            found = found[np.argsort(places[found])]
            lengths.extend(taken["length"][found], durations[found] // 2)
        ends = np.append(taken["conversation"][1:] != taken["conversation"][:-1], True)[: len(taken)]
        self._last = taken.compress(ends)

    def _compared(self, messages: MeasuredMessages) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the latest messages before, then the next ones, with their places; -1 for those before."""
        added = np.zeros(len(messages.columns), _COMPARED)
        flows = [(each.conversation.number, each.side) for each in messages.flows]
        by_flow = np.array(flows, np.int64).reshape(-1, 2)[messages["flow"]]
        added["conversation"], added["side"] = by_flow.T
        for name in ("kind", "length", "first_ns", "complete_ns", "repeated"):
            added[name] = messages[name]
        newest = np.maximum.accumulate(np.append(self._newest, added["conversation"]))
        self._newest = int(newest[-1])
        places = np.flatnonzero(added["conversation"] > newest[1:] - CONVERSATIONS)
        former = self._last.compress(self._last["conversation"] > self._newest - CONVERSATIONS)
        return concatenated([former, added.take(places)]), np.append(np.full(len(former), -1), places)


def _answering(taken: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of messages that answer the one before."""
    pong, ping = taken[1:], taken[:-1]
    answering = np.zeros(len(taken), np.bool_)
    answering[1:] = (pong["side"] != ping["side"]) & (pong["length"] != UNKNOWN) & (ping["complete_ns"] != UNKNOWN)
    for name in ("conversation", "length", "kind"):
        answering[1:] &= pong[name] == ping[name]
    answering[1:] &= (pong["first_ns"] >= ping["complete_ns"]) & ~(pong["repeated"] | ping["repeated"])
    return answering
