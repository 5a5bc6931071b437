"""One-line form of frames, fitted to the terminal or unlimited."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import mac_text
from mxwire.report.ascii_text import cut
from mxwire.report.summary import endpoints_text, ends_text, summaries, summary, type_text
from mxwire.report.times import day_text, seconds_columns, time_text
from mxwire.wire.checks import Reason
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import packet_type_name

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

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
_LAYOUTS: Final = (_WHOLE, _LineLayout(6, 6, _TAIL, " → ", 5, "  "), _LineLayout(5, 6, _TAIL, "→", 5, " "))
"""Layouts from the widest to the narrowest."""


def layout_for(width: int | None) -> _LineLayout:
    """The widest layout for a terminal of ``width`` columns; the full layout if ``width`` is None (no terminal)."""
    if width is None:
        return _WHOLE
    return next((each for each in _LAYOUTS if each.least <= width), _LAYOUTS[-1])


class FrameLines:
    """Formats frames as lines of at most ``width`` columns, or of any length if ``width`` is None.

    On narrow terminals, addresses omit their vendor octets, times have microseconds, and a summary that is too long
    ends in an ellipsis; only the reason of malformed frames wraps to further lines. ``clock`` is ``relative`` (seconds
    since ``start_ns``), ``delta`` (seconds since the previous line) or ``absolute``. Names replace addresses where they
    fit (:meth:`restart`).
    """

    def __init__(self, clock: str, width: int | None) -> None:
        self.start_ns = 0
        self._clock = clock
        self._names: HostNames | None = None
        self._last_ns: int | None = None
        self._hosts: dict[tuple[int, int], str] = {}
        """Source and destination as shown, by address; of the current names and layout."""
        self._hosts_of: object = None
        self.resize(width)

    def resize(self, width: int | None) -> None:
        """Adapt to a new terminal width."""
        self._width = width
        self._layout = layout_for(width)

    def restart(self, names: HostNames | None = None) -> None:
        """Forget the previous line, before frames of another capture, whose hosts have ``names``."""
        self._last_ns = None
        self._names, self._hosts_of = names, None

    def lines(
        self, decoded: DecodedBatch, places: NDArray[np.intp], marks: Mapping[int, str] | None = None
    ) -> list[str]:
        """Format the frames at ``places``: one text per frame, with newlines in those of malformed frames that wrap.

        ``marks``, by position in ``places``, follow the summary in brackets; on narrow terminals the summary is cut to
        its first word before the mark is.
        """
        listed = places.tolist()
        texts = self._texts(decoded, listed)
        shown = self._whole(decoded, places, texts)
        noted = {position: f"  [{mark}]" for position, mark in (marks or {}).items()}
        for position, mark in noted.items():
            shown[position] += mark
        if self._width is not None:
            for position, line in enumerate(shown):
                if len(line) > self._width:
                    text, mark = texts[position], noted.get(position, "")
                    head = line[: len(line) - len(text) - len(mark)]
                    is_malformed = decoded.columns.reason[listed[position]] != Reason.NONE
                    shown[position] = self._fitted(self._width, head, text, mark, is_malformed)
        return shown

    def _fitted(self, width: int, head: str, text: str, mark: str, is_malformed: bool) -> str:
        if is_malformed:
            pieces = textwrap.wrap(text, max(width - len(head), _SMALLEST_ROOM), break_on_hyphens=False)
            return f"\n{' ' * len(head)}".join([head + pieces[0], *pieces[1:]])
        room = max(width - len(head), 1)
        mark = mark.replace("message ", "#")
        if len(mark) + 1 >= room:
            return head + cut(mark.strip() + text, room)
        first = text.partition(" ")[0]
        if len(first) >= room - len(mark):
            # The first word is the reason of a nack, without which the mark means little.
            return head + cut(first + mark, room)
        return head + cut(text, room - len(mark)) + mark

    def _texts(self, decoded: DecodedBatch, places: list[int]) -> list[str]:
        """The summaries of the frames at ``places``."""
        # Describing a whole batch at once costs more than a few of its frames.
        known = summaries(decoded) if len(places) * WORTH > len(decoded) else None
        texts = [
            (None if known is None else known[place]) or summary(decoded.frame(place), decoded.dialect(place))
            for place in places
        ]
        return texts if self._layout is _WHOLE else [_LEADING_ZEROS.sub("match 0x", each) for each in texts]

    def _whole(self, decoded: DecodedBatch, places: NDArray[np.intp], texts: list[str]) -> list[str]:
        """The lines of the frames at ``places``, with their summaries ``texts``."""
        layout = self._layout
        time, *times = self._times(decoded.batch.timestamp_ns[places])
        row = layout.gap.join((f"%{layout.number}d", time, "%s%s"))
        numbers = decoded.batch.number[places].tolist()
        return list(map(row.__mod__, zip(numbers, *times, self._labels(decoded, places), texts, strict=True)))

    def _labels(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> list[str]:
        """The hosts, endpoints and packet types of the frames at ``places``, as shown.

        Few differ, so each is formatted once.
        """
        hosts, kinds, blocks = decoded.assignment, np.full(len(decoded), _INCOMPLETE), decoded.columns.blocks
        for number, block in enumerate(blocks):
            kinds[block.place] = number << 16
            for name, shift in _ENDS.items():
                if name in block.names:
                    kinds[block.place] |= block[name].astype(np.int64) << shift
        _, pair = np.unique(
            hosts.source[places].astype(np.int64) << 32 | hosts.destination[places], return_inverse=True
        )
        # The copies of frames without a complete header differ in what they lack.
        kinds = kinds[places]
        incomplete = np.flatnonzero(kinds == _INCOMPLETE)
        kinds[incomplete] = _INCOMPLETE + incomplete
        _, first, which = np.unique(pair << 32 | kinds, return_index=True, return_inverse=True)
        at = places[first]
        pairs = self._pairs(decoded.located.source[at].tolist(), decoded.located.destination[at].tolist(), decoded)
        shown: dict[int, str] = {}
        labels = np.empty(len(first), object)
        for number, (place, kind, both) in enumerate(zip(at.tolist(), kinds[first].tolist(), pairs, strict=True)):
            if kind not in shown:
                shown[kind] = self._kind(decoded, place, kind)
            labels[number] = both + shown[kind]
        found: list[str] = labels[which].tolist()
        return found

    def _kind(self, decoded: DecodedBatch, place: int, kind: int) -> str:
        """The endpoints and the packet type of a frame as shown."""
        if kind >= _INCOMPLETE:
            frame = decoded.frame(place)
            ends, name = endpoints_text(frame), type_text(frame)
        else:
            block = decoded.columns.blocks[kind >> 16]
            both = (kind >> shift & 0xFF if each in block.names else None for each, shift in _ENDS.items())
            ends, name = ends_text(*both), packet_type_name(block.layout.packet_type)
        gap = self._layout.gap
        return f"{gap}{ends:>{self._layout.endpoints}}{gap}{name:{_TYPE}}{gap}"

    def _pairs(self, sources: list[int], destinations: list[int], decoded: DecodedBatch) -> list[str]:
        """The hosts of frames as shown."""
        layout, known = self._layout, self._hosts
        current = layout, decoded.located.has_destination, None if self._names is None else self._names.version
        if current != self._hosts_of or len(known) > _HOSTS_KEPT:
            self._hosts_of, self._hosts, known = current, {}, {}
            self._hosts = known
        pairs = [*zip(sources, destinations, strict=True)]
        labels: dict[int, str] | None = None
        for pair in {*pairs} - known.keys():
            if labels is None:
                labels = {} if self._names is None else self._names.labels(layout.address)
            source, destination = (labels.get(each, mac_text(each)[-layout.address :]) for each in pair)
            if not (pair[1] or decoded.located.has_destination):
                destination = "?"
            known[pair] = f"{source:{layout.address}}{layout.arrow}{destination:{layout.address}}"
        return [known[pair] for pair in pairs]

    def _times(self, timestamps_ns: NDArray[np.int64]) -> tuple[str, *tuple[list[Any], ...]]:
        """A template of the times, and its values."""
        digits = self._layout.digits
        if self._clock == "absolute":
            if digits == _WHOLE.digits:
                return "%s", list(map(time_text, timestamps_ns.tolist()))
            return "%s", [day_text(each, digits) for each in timestamps_ns.tolist()]
        if self._clock == "delta" and len(timestamps_ns):
            last = timestamps_ns[0] if self._last_ns is None else self._last_ns
            self._last_ns = int(timestamps_ns[-1])
            return seconds_columns(np.diff(timestamps_ns, prepend=last), digits)
        return seconds_columns(timestamps_ns - self.start_ns, digits)


_ENDS: Final = {"src_endpoint": 8, "dst_endpoint": 0}
"""Fields with endpoints, and their bits in the codes of kinds, which have the number of the block above."""
_INCOMPLETE: Final = 1 << 30
"""Code of the kind of frames without a complete header."""
_SMALLEST_ROOM: Final = 20
"""Minimum width of wrapped text, however narrow the terminal."""
WORTH: Final = 4
"""Inverse of the share of a batch above which describing all frames is faster than describing only the frames to
show."""
_HOSTS_KEPT: Final = 1 << 16
"""Maximum number of pairs of hosts whose texts are cached."""
