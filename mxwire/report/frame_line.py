"""One-line form of frames, fitted to the terminal or unlimited."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import mac_text
from mxwire.report.ascii_text import cut
from mxwire.report.summary import endpoints_text, ends_text, summary, summary_column, type_text
from mxwire.report.text_columns import Text, beside, chosen, constant, decimals, extended, seconds_column, text_of
from mxwire.report.times import day_text, time_text
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


_END: Final = "\x1f"
"""Separator of the beginning of a line and its summary, which no text contains."""
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

    def octets(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: Mapping[int, str] | None = None) -> bytes:
        """The lines of the frames at ``places`` in UTF-8, of any length, each with its newline.

        ``marks``, by position in ``places``, follow the summary in brackets.
        """
        text, rests = self._text(decoded, places)
        for position, mark in (marks or {}).items():
            rests[position] = f"{rests.get(position, '')}  [{mark}]"
        return extended(text, rests)

    def lines(
        self, decoded: DecodedBatch, places: NDArray[np.intp], marks: Mapping[int, str] | None = None
    ) -> list[str]:
        """The lines of the frames at ``places``: one text per frame, with newlines in those of malformed frames that
        wrap.

        On narrow terminals the summary is cut to its first word before a mark (:meth:`octets`) is.
        """
        shown = []
        noted = {position: f"  [{mark}]" for position, mark in (marks or {}).items()}
        rows, rests = self._text(decoded, places, _END)
        for position, row in enumerate(rows.decode().split("\n")[:-1]):
            head, _, text = f"{row}{rests.get(position, '')}".partition(_END)
            if self._layout is not _WHOLE:
                # Narrow lines have no room for them; in wide lines they align the values.
                text = _LEADING_ZEROS.sub("match 0x", text)
            mark = noted.get(position, "")
            line = head + text + mark
            if self._width is not None and len(line) > self._width:
                # The reason is what users need of a malformed frame, so it is never cut.
                is_malformed = bool(decoded.columns.reason[places[position]] != Reason.NONE)
                line = self._fitted(self._width, head, text, mark, is_malformed)
            shown.append(line)
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

    def _text(
        self, decoded: DecodedBatch, places: NDArray[np.intp], separator: str = ""
    ) -> tuple[bytes, dict[int, str]]:
        """The lines of the frames at ``places`` in UTF-8, without marks; ``separator`` precedes the summary.

        The summaries that columns do not describe are apart, by position.
        """
        layout = self._layout
        gap = constant(layout.gap)
        texts, others = summary_column(decoded, places)
        columns = (
            *(decimals(decoded.batch.number[places], layout.number), gap),
            *(self._times(decoded.batch.timestamp_ns[places]), gap),
            *(self._labels(decoded, places), constant(separator), texts),
        )
        rests = {
            position: summary(decoded.frame(place), decoded.dialect(place))
            for position, place in zip(others.tolist(), places[others].tolist(), strict=True)
        }
        return text_of(len(places), *columns), rests

    def _labels(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> Text:
        """The hosts, endpoints and packet types of the frames at ``places``, as shown.

        Few differ, so each is formatted once.
        """
        hosts, kinds, blocks = decoded.assignment, np.full(len(decoded), _INCOMPLETE), decoded.columns.blocks
        for number, block in enumerate(blocks):
            kinds[block.place] = number << 16
            for name, shift in _ENDS.items():
                if name in block.names:
                    kinds[block.place] |= block[name].astype(np.int64) << shift
        # The copies of frames without a complete header differ in what they lack.
        kinds = kinds[places]
        incomplete = np.flatnonzero(kinds == _INCOMPLETE)
        kinds[incomplete] = _INCOMPLETE + incomplete
        distinct, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
        shown = [self._kind(decoded, *each) for each in zip(places[first].tolist(), distinct.tolist(), strict=True)]
        # Pairs as one number each, which NumPy sorts faster than rows of two.
        both = hosts.source[places].astype(np.int64) << 32 | hosts.destination[places]
        _, first, pair = np.unique(both, return_index=True, return_inverse=True)
        at = places[first]
        pairs = self._pairs(decoded.located.source[at].tolist(), decoded.located.destination[at].tolist(), decoded)
        return beside(len(places), chosen(pairs, pair), chosen(shown, kind))

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
        # Names are learned while the capture is read, and change the texts of pairs already formatted.
        current = layout, decoded.located.has_destination, None if self._names is None else self._names.version
        if current != self._hosts_of or len(known) > _HOSTS_KEPT:
            self._hosts_of, self._hosts, known = current, {}, {}
            self._hosts = known
        pairs = [*zip(sources, destinations, strict=True)]
        # Made only for a new pair: most batches have none.
        labels: dict[int, str] | None = None
        for pair in {*pairs} - known.keys():
            if labels is None:
                labels = {} if self._names is None else self._names.labels(layout.address)
            source, destination = (labels.get(each, mac_text(each)[-layout.address :]) for each in pair)
            if not (pair[1] or decoded.located.has_destination):
                destination = "?"
            known[pair] = f"{source:{layout.address}}{layout.arrow}{destination:{layout.address}}"
        return [known[pair] for pair in pairs]

    def _times(self, timestamps_ns: NDArray[np.int64]) -> Text:
        digits = self._layout.digits
        if self._clock == "absolute":
            text = time_text if digits == _WHOLE.digits else partial(day_text, digits=digits)
            return chosen(list(map(text, timestamps_ns.tolist())))
        if self._clock == "delta" and len(timestamps_ns):
            last = timestamps_ns[0] if self._last_ns is None else self._last_ns
            # The first frame of the next batch counts from here.
            self._last_ns = int(timestamps_ns[-1])
            return seconds_column(np.diff(timestamps_ns, prepend=last), digits)
        return seconds_column(timestamps_ns - self.start_ns, digits)


_ENDS: Final = {"src_endpoint": 8, "dst_endpoint": 0}
"""Fields with endpoints, and their bits in the codes of kinds, which have the number of the block above."""
_INCOMPLETE: Final = 1 << 30
"""Code of the kind of frames without a complete header."""
_SMALLEST_ROOM: Final = 20
"""Minimum width of wrapped text, however narrow the terminal."""
_HOSTS_KEPT: Final = 1 << 16
"""Maximum number of pairs of hosts whose texts are cached."""
