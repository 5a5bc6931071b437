"""The interfaces of a pcapng section as a table, for lookups for all frames of a batch at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.link_types import SUPPORTED_LINK_TYPES
from mxwire.capture.timestamps import TimestampClock


class InterfaceTable:
    """One column per property, indexed by interface number.

    Capacity doubles as needed, because a file may add an interface after every frame.
    """

    def __init__(self) -> None:
        """Create an empty table, as at the start of a section."""
        self.labels: list[str] = []
        """Name of each interface in messages."""
        self._columns = np.zeros((5, 4), np.int64)
        self._clocks: list[TimestampClock] = []
        self._clock_places: dict[TimestampClock, int] = {}

    def __len__(self) -> int:
        """The number of interfaces."""
        return len(self.labels)

    def add(self, label: str, link_type: int, snap_length: int, frame_check_bytes: int, clock: TimestampClock) -> None:
        """Add the next interface of the section."""
        place = self._clock_places.setdefault(clock, len(self._clocks))
        if place == len(self._clocks):
            self._clocks.append(clock)
        if len(self) == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
        supported = link_type in SUPPORTED_LINK_TYPES
        self._columns[:, len(self)] = link_type, snap_length, frame_check_bytes, place, supported
        self.labels.append(label)

    @property
    def link_type(self) -> NDArray[np.int64]:
        """The link type of each interface."""
        return self._column(0)

    @property
    def snap_length(self) -> NDArray[np.int64]:
        """Snap length of each interface in bytes; 0 for none."""
        return self._column(1)

    @property
    def frame_check_bytes(self) -> NDArray[np.int64]:
        """Length in bytes of the frame check sequence of each interface's frames."""
        return self._column(2)

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Mask of the interfaces with a supported link type."""
        return self._column(4).astype(np.bool_)

    def nanoseconds(self, interface: NDArray[np.int64], ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Convert the timestamps of frames to nanoseconds, each by the clock of its interface."""
        if len(self._clocks) == 1:
            return self._clocks[0].nanoseconds(ticks)
        clock = self._column(3)[interface]
        order = np.argsort(clock, kind="stable")
        bounds = np.flatnonzero(np.diff(clock[order])) + 1
        times = np.empty(len(ticks), np.int64)
        for frames in np.split(order, bounds):
            times[frames] = self._clocks[clock[frames[0]]].nanoseconds(ticks[frames])
        return times

    def _column(self, index: int) -> NDArray[np.int64]:
        return self._columns[index, : len(self)]
