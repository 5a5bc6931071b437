"""Output of decoded frames: the destination, lines of text, a table file, and a part of a data set."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mxwire.analysis.dataset import DatasetPart
    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.marks import FrameMarks
    from mxwire.analysis.table import TableWriter
    from mxwire.wire.decoder import DecodedBatch, Decoder


class FrameOutput(ABC):
    """A destination of decoded frames."""

    shown = 0
    """Number of frames."""

    def begin(self, path: str, decoder: Decoder, names: HostNames | None = None) -> None:
        """Start the frames of a capture; lines show ``names`` instead of addresses."""
        self.path = path
        self.decoder = decoder

    def end(self, names: Mapping[int, str]) -> None:  # noqa: B027 - most outputs need no end
        """End the frames of a capture, in which hosts announced ``names`` by address."""

    @abstractmethod
    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Output the frames of a batch at ``places``, with their ``marks`` if the capture is analysed."""


class FrameText(FrameOutput):
    """Lines of text on standard output."""

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Print the lines of the frames at ``places``."""
        for place in places.tolist():
            for line in self.lines(decoded, place, marks):
                sys.stdout.write(line + "\n")
        sys.stdout.flush()

    @abstractmethod
    def lines(self, decoded: DecodedBatch, place: int, marks: FrameMarks | None) -> Iterator[str]:
        """The lines of one frame."""


class FrameTable(FrameOutput):
    """All columns in a table file."""

    def __init__(self, table: TableWriter) -> None:
        self._table = table

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Append rows."""
        self._table.write(decoded, self.path, None if len(places) == len(decoded) else places, marks)


class FramePart(FrameOutput):
    """The part of a data set for one capture, whose frames are in the files that ``place_of`` names."""

    def __init__(
        self, part: DatasetPart, fields: Sequence[str] | None, place_of: Callable[[int], tuple[str, int]]
    ) -> None:
        from mxwire.analysis.table import TableBuilder

        # The table is partitioned by these two columns.
        self._builder = TableBuilder(None if fields is None else [*dict.fromkeys([*fields, "source", "time_ns"])])
        self._part = part
        self._place_of = place_of

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Append rows."""
        if len(places):
            file, before = self._place_of(int(decoded.batch.number[0]))
            chosen = None if len(places) == len(decoded) else places
            self._part.put(self._builder.columns(decoded, file, chosen, marks, before))
