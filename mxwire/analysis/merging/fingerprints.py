"""Fingerprints of frames, to find them in another capture: 32 bytes per frame, of any length."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.merging.errors import MergeError
from mxwire.ethernet import SOURCE
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from mxwire.wire.encapsulation import TAG_LENGTH, TAG_TYPES, TAGS_MAXIMUM

HEAD: Final = 96
"""Bytes of a frame that are compared where one of the captures cut frames: all headers, and some data."""
_TYPE: Final = 12
_TAGS: Final = frozenset(each.to_bytes(2, "big") for each in TAG_TYPES)


class Fingerprints:
    """The frames of one capture: what they are, when they were seen, and who sent them. Arrays have shape (n,)."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Name of the capture in messages."""
        self.cut = False
        """True if frames were cut when they were captured."""
        self._parts: list[tuple[NDArray[np.int64], ...]] = []
        self._whole: NDArray[np.int64] | None = None

    def add(self, batch: FrameBatch) -> None:
        """Take the next batch into account.

        Raises :class:`~mxwire.analysis.merging.MergeError` where frames are not as they were on Ethernet.
        """
        if batch.link_type != LINKTYPE_ETHERNET:
            raise MergeError(
                f"{self.name}: was not captured on an Ethernet interface (link type {batch.link_type}): where frames "
                "were going is not in it; capture on the interface itself, not on any"
            )
        rows = np.empty((3, len(batch)), np.int64)
        lengths, wire_lengths = batch.length.tolist(), batch.wire_length.tolist()
        for place, (length, wire_length) in enumerate(zip(lengths, wire_lengths, strict=True)):
            rows[:, place] = self._fingerprint(batch.frame(place), length, max(wire_length, length))
        self._parts.append((*rows, batch.timestamp_ns.astype(np.int64)))

    def _fingerprint(self, frame: bytes, length: int, wire_length: int) -> tuple[int, int, int]:
        """Of all bytes, of the first bytes, and the source address; VLAN tags do not count."""
        tags = 0
        while tags < TAGS_MAXIMUM and frame[_TYPE + tags * TAG_LENGTH :][:2] in _TAGS:
            tags += 1
        if tags:
            frame = frame[:_TYPE] + frame[_TYPE + tags * TAG_LENGTH :]
        wire_length -= tags * TAG_LENGTH
        self.cut = self.cut or len(frame) < wire_length
        if len(frame) < min(HEAD, wire_length):
            raise MergeError(
                f"{self.name}: its frames were cut to {length} bytes: {HEAD} are needed to know them again"
            )
        head = frame[:HEAD] + wire_length.to_bytes(4, "big")
        return _digest(frame), _digest(head), int.from_bytes(frame[SOURCE], "big")

    def _column(self, which: int) -> NDArray[np.int64]:
        if len(self._parts) > 1:
            self._parts = [tuple(np.concatenate(each) for each in zip(*self._parts, strict=True))]
        return self._parts[0][which] if self._parts else np.zeros(0, np.int64)

    def __len__(self) -> int:
        """The number of frames."""
        return len(self._column(0))

    def keys(self, cut: bool) -> NDArray[np.int64]:
        """Equal for equal frames; with ``cut`` only their first bytes and their lengths are compared."""
        return self._column(1 if cut else 0)

    @property
    def source(self) -> NDArray[np.int64]:
        """Source addresses as integers."""
        return self._column(2)

    @property
    def time_ns(self) -> NDArray[np.int64]:
        """When each frame was seen, by this capture's clock."""
        return self._column(3)


def _digest(data: bytes) -> int:
    """64 bits that are the same in every process, unlike Python's own hashes: so is what follows from their order."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)
