"""One-line form of frames, fitted to the terminal or unlimited."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mxwire.ethernet import mac_text
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.report.times import day_text, seconds_text, time_text
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch

_WHOLE_ADDRESS: Final = 17
_TAIL: Final = 8
"""Characters of an address without its three vendor octets."""


@dataclass(frozen=True, slots=True)
class _LineLayout:
    """Widths of the columns before the summary, in characters."""

    number: int
    digits: int
    """Decimal digits of seconds."""
    address: int
    arrow: str
    endpoints: int
    gap: str

    @property
    def least(self) -> int:
        """The minimum terminal width, at which most summaries are complete."""
        return self.indent + _SUMMARY

    @property
    def indent(self) -> int:
        """The column at which the summary begins."""
        columns = (self.number, self.digits + 5, 2 * self.address + len(self.arrow), self.endpoints, _TYPE)
        return sum(columns) + len(columns) * len(self.gap)


_LEADING_ZEROS: Final = re.compile(r"\bmatch 0x0+(?=[0-9a-f])")
_TYPE: Final = 10
_SUMMARY: Final = 48
_WHOLE: Final = _LineLayout(6, 9, _WHOLE_ADDRESS, " → ", 7, "  ")
_LAYOUTS: Final = (
    _WHOLE,
    _LineLayout(6, 6, _TAIL, " → ", 5, "  "),
    _LineLayout(5, 6, _TAIL, "→", 5, " "),
)
"""From the widest to the narrowest."""


def layout_for(width: int | None) -> _LineLayout:
    """The widest layout for a terminal of ``width`` columns; the full one if None (no terminal)."""
    if width is None:
        return _WHOLE
    return next((each for each in _LAYOUTS if each.least <= width), _LAYOUTS[-1])


class FrameLines:
    """Formats frames as lines of at most ``width`` columns, or of any length if ``width`` is None.

    On narrow terminals, addresses omit their vendor octets, times have microseconds, and a summary that is too long
    ends in an ellipsis; only the reason of malformed frames wraps to further lines. ``clock`` is ``relative`` (seconds
    since ``start_ns``), ``delta`` (seconds since the previous line) or ``absolute``.
    """

    def __init__(self, clock: str, width: int | None) -> None:
        self.start_ns = 0
        self._clock = clock
        self._last_ns: int | None = None
        self.resize(width)

    def resize(self, width: int | None) -> None:
        """Adapt to a new terminal width."""
        self._width = width
        self._layout = layout_for(width)

    def restart(self) -> None:
        """Forget the previous line, before frames of another capture."""
        self._last_ns = None

    def lines(self, decoded: DecodedBatch, place: int, mark: str = "") -> Iterator[str]:
        """Format the frame at ``place``: one line, or several for a malformed frame.

        ``mark`` follows the summary in brackets; on narrow terminals the summary is cut, not the mark.
        """
        layout, located, frame = self._layout, decoded.located, decoded.frame(place)
        source = mac_text(int(located.source[place]))
        destination = mac_text(int(located.destination[place])) if located.has_destination else "?"
        text = summary(frame, decoded.dialect(place))
        if layout is not _WHOLE:
            text = _LEADING_ZEROS.sub("match 0x", text)
        head = layout.gap.join(
            (
                f"{int(decoded.batch.number[place]):{layout.number}}",
                self._time(int(decoded.batch.timestamp_ns[place])),
                f"{source[-layout.address :]}{layout.arrow}{destination[-layout.address :]:{layout.address}}",
                f"{endpoints_text(frame):>{layout.endpoints}}",
                f"{type_text(frame):{_TYPE}}",
                "",
            )
        )
        mark = f"  [{mark}]" if mark else ""
        if self._width is None or len(head) + len(text) + len(mark) <= self._width:
            yield head + text + mark
        elif isinstance(frame, Malformed):
            room = max(self._width - len(head), _SMALLEST_ROOM)
            pieces = textwrap.wrap(text, room, break_on_hyphens=False)
            yield head + pieces[0]
            yield from (" " * len(head) + each for each in pieces[1:])
        else:
            room = max(self._width - len(head) - 1, 0)
            if len(mark) < room:
                yield head + text[: room - len(mark)] + "…" + mark
            else:
                yield head + mark.strip()[:room] + "…"

    def _time(self, timestamp_ns: int) -> str:
        digits = self._layout.digits
        if self._clock == "absolute":
            return time_text(timestamp_ns) if digits == _WHOLE.digits else day_text(timestamp_ns, digits)
        if self._clock == "delta":
            since, self._last_ns = self._last_ns, timestamp_ns
            return seconds_text(0 if since is None else timestamp_ns - since, digits)
        return seconds_text(timestamp_ns - self.start_ns, digits)


_SMALLEST_ROOM: Final = 20
"""Minimum width of wrapped text, however narrow the terminal."""
