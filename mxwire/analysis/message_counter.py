"""Count messages, not frames: all fragments and retransmissions of a message count once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Follower
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM, TINY_MAXIMUM

KINDS: Final = ("tiny", "small", "medium", "rndv")
"""The layouts that carry or announce a message."""

SIZE_CLASSES: Final = (
    ("0", 0),
    (f"1..{TINY_MAXIMUM}", TINY_MAXIMUM),
    (f"{TINY_MAXIMUM + 1}..{SMALL_MAXIMUM}", SMALL_MAXIMUM),
    (f"{SMALL_MAXIMUM + 1}..4096", 4096),
    (f"4097..{RENDEZVOUS_THRESHOLD}", RENDEZVOUS_THRESHOLD),
    (f"{RENDEZVOUS_THRESHOLD + 1}..1048576", 1 << 20),
    ("over 1048576", 1 << 32),
)
"""Names of the size classes and their largest length in bytes; the first four bounds are the protocol's own."""


BOUNDS: Final = tuple(largest for _, largest in SIZE_CLASSES)
"""The largest lengths of the size classes in bytes."""


def size_class(length: int) -> str:
    """Return the name of the size class of a length in bytes."""
    return SIZE_CLASSES[bisect_left(BOUNDS, length)][0]


class MessageCounter:
    """Counter of the messages of a capture by kind and size class, batch by batch; complete after :meth:`finish`."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        """Messages by kind (layout name) and size class."""
        self.bytes: Counter[tuple[str, str]] = Counter()
        """Sum of the announced lengths of the messages."""
        self.repeated: Counter[str] = Counter()
        """Number of frames that repeat a known message, by kind: retransmissions and duplicates."""
        self._follower = Follower(rows=True)

    def observe(self, decoded: DecodedBatch) -> None:
        """Count the messages of a batch."""
        self._count(self._follower.observe(decoded))

    def finish(self) -> None:
        """End the capture, and count the unfinished messages."""
        self._count(self._follower.finish())

    def _count(self, messages: Iterable[CapturedMessage]) -> None:
        groups = self._follower.take_rows()
        for message in chain(messages, *(group.messages for group in groups)):
            kind = message.kind.lower()
            self.repeated[kind] += message.repeated_frames
            if message.length is not None:
                self._add(kind, size_class(message.length), 1, message.length)
        for group in groups:
            lengths = group.rows["length"]
            keys = group.rows["kind"] * len(SIZE_CLASSES) + np.searchsorted(BOUNDS, lengths)
            for key, count in enumerate(np.bincount(keys).tolist()):
                if count:
                    kind, (size, _) = KINDS[key // len(SIZE_CLASSES)], SIZE_CLASSES[key % len(SIZE_CLASSES)]
                    self._add(kind, size, count, int(lengths[keys == key].sum()))

    def _add(self, kind: str, size: str, count: int, octets: int) -> None:
        self.messages[kind, size] += count
        self.bytes[kind, size] += octets
