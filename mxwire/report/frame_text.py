"""Decoded frames as text: lines and trees, or columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mxwire.report.ascii_text import print_octets
from mxwire.report.frame_line import FrameLines
from mxwire.report.frame_output import FrameOutput, FrameText
from mxwire.report.frame_record import RECORD_KEYS, record
from mxwire.report.summary import type_text
from mxwire.report.terminal import terminal_width
from mxwire.report.tree import tree
from mxwire.wire.codec import Malformed
from mxwire.wire.packets import Frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.marks import FrameMarks
    from mxwire.wire.decoder import DecodedBatch, Decoder


class FrameColumns(FrameText):
    """Tab-separated values; an empty value if a frame lacks the field."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields

    def lines(self, decoded: DecodedBatch, place: int, marks: FrameMarks | None) -> Iterator[str]:
        """The values of one frame."""
        flat = _flat(record(decoded, place, marks=marks), self.path)
        yield "\t".join(_cell(flat.get(name)) for name in self._fields)


class FrameListing(FrameOutput):
    """One line per frame, no wider than the terminal; ``verbose``: with its tree of fields below.

    ``style`` colours a line: it takes the line and the colour as ``fg``. ``several``: captures get headings.
    """

    def __init__(
        self,
        time_format: str = "relative",
        *,
        verbose: bool = False,
        several: bool = False,
        style: Callable[..., str] | None = None,
    ) -> None:
        self._verbose = verbose
        self._lines = FrameLines(time_format, None)
        self._several = several
        self._style = style

    def begin(self, path: str, decoder: Decoder, names: HostNames | None = None) -> None:
        """Start the frames of a capture, under its name if there are several."""
        super().begin(path, decoder)
        self._lines.restart(names)
        if self._several:
            sys.stdout.write(f"== {path}\n")

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Print the frames at ``places``, fitted to the terminal's current width."""
        self._width = terminal_width()
        self._lines.resize(self._width)
        self._lines.start_ns = self.decoder.start_ns or 0
        noted = None if marks is None else marks.texts(places)
        if self._width is None and not (self._style or self._verbose):
            print_octets(self._lines.octets(decoded, places, noted))
            return
        for place, text in zip(places.tolist(), self._lines.lines(decoded, places, noted), strict=True):
            for line in self._more(decoded, place, text, marks):
                sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def _more(self, decoded: DecodedBatch, place: int, text: str, marks: FrameMarks | None) -> Iterator[str]:
        """The lines of one frame in colour, and the lines of its tree."""
        colour = _colour(decoded.frame(place)) if self._style else None
        for line in text.split("\n"):
            yield self._style(line, fg=colour) if self._style else line
        if self._verbose:
            if marks is not None and marks.message[place]:
                yield f"  message {marks.message[place]}, {marks.role_at(place)}"
            yield from tree(decoded, place, self._width)
            yield ""


def _flat(made: dict[str, Any], path: str) -> dict[str, Any]:
    """A record with the names of the table's columns."""
    general = {name: made[name] for name in RECORD_KEYS if name not in ("fields", "payload", "malformed")}
    flat: dict[str, Any] = {"file": path} | general | made["fields"]
    for group in ("payload", "malformed"):
        flat |= {f"{group}_{name}": value for name, value in (made[group] or {}).items()}
    return flat


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


_COLOURS = {
    "NACK_LIB": "red",
    "NACK_MCP": "red",
    "CONNECT": "cyan",
    "RNDV": "green",
    "NOTIFY": "green",
    "PULL": "yellow",
    "TRUC": "bright_black",
    "RAW": "magenta",
    "HOST_QUERY": "magenta",
    "HOST_REPLY": "magenta",
}


def _colour(frame: Frame | Malformed) -> str | None:
    return "bright_red" if isinstance(frame, Malformed) else _COLOURS.get(type_text(frame))
