"""Decoded frames as JSON Lines, and the JSON of whole batches of frames from columns.

:func:`mxwire.report.frame_record.record` and :func:`mxwire.report.compact.compact` define the result, byte by byte;
here one template per packet type formats the columns.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.marks import ROLES, flag_names
from mxwire.ethernet import mac_text
from mxwire.report.compact import STATED, compact
from mxwire.report.frame_output import FrameText
from mxwire.report.json_line import json_line, plain_line, with_seconds
from mxwire.units import SECOND
from mxwire.wire.checks import Reason
from mxwire.wire.enums import packet_type_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxwire.analysis.marks import FrameMarks
    from mxwire.wire.columns import LayoutBlock
    from mxwire.wire.decoder import DecodedBatch

_EXACT: Final = 1 << 53
"""Integers below it are exact as floating-point numbers."""
_ROLES: Final = ["" if each is None else f',"role":"{each.value}"' for each in ROLES]
_WORTH: Final = 4
"""Inverse of the share of a batch above which describing all frames is faster than describing only the frames to
show."""


class FrameJson(FrameText):
    """JSON Lines: one object per frame, without what was not there unless ``full``; ``several``: with the name of its
    capture."""

    def __init__(
        self, fields: Sequence[str] | None = None, *, full: bool = False, verbose: bool = False, several: bool = False
    ) -> None:
        self._fields = fields
        self._full = full
        self._verbose = verbose
        self._several = several

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp], marks: FrameMarks | None = None) -> None:
        """Print the objects of the frames at ``places``."""
        if self._full or self._verbose or self._fields is not None:
            super().show(decoded, places, marks)
            return
        file = json_line({"file": self.path})[1:-1] + "," if self._several else ""
        # Describing a whole batch at once costs more than a few of its frames.
        known = json_lines(decoded, marks, self.decoder.start_ns, file) if len(places) * _WORTH > len(decoded) else None
        texts = [
            (None if known is None else known[place]) or next(self.lines(decoded, place, marks))
            for place in places.tolist()
        ]
        if texts:
            sys.stdout.write("\n".join(texts) + "\n")
        sys.stdout.flush()

    def lines(self, decoded: DecodedBatch, place: int, marks: FrameMarks | None) -> Iterator[str]:
        """The object of one frame."""
        # A record needs the classes of all packets; most frames are described without one.
        from mxwire.report.frame_record import record

        entry = record(decoded, place, verbose=self._verbose, marks=marks)
        if self._fields is not None:
            entry["fields"] = {name: value for name, value in entry["fields"].items() if name in self._fields}
        if self._several:
            entry = {"file": self.path} | entry
        if self._full:
            yield json_line(entry, self.decoder.start_ns)
        else:
            yield plain_line(compact(with_seconds(entry, self.decoder.start_ns), all_fields=self._fields is not None))


def json_lines(
    decoded: DecodedBatch, marks: FrameMarks | None, start_ns: int | None, file: str = ""
) -> list[str | None]:
    """Return the lines of a batch by place, beginning with the key ``file``; None for frames without a quick way:
    malformed and tagged ones, and host names."""
    lines: list[str | None] = [None] * len(decoded)
    if not decoded.located.has_destination or start_ns is None:
        return lines
    whole = decoded.columns.reason == Reason.NONE
    if decoded.located.vlan.size:
        whole &= decoded.located.vlan.max(axis=1) < 0
    for block in decoded.columns.blocks:
        payload = block.layout.payload
        if payload is None or not payload.text:
            good = whole[block.place]
            which = np.arange(len(block)) if good.all() else np.flatnonzero(good)
            texts = _texts(decoded, block, which, marks, start_ns, file)
            for place, text in zip(block.place[which].tolist(), texts, strict=True):
                lines[place] = text
    return lines


def _texts(
    decoded: DecodedBatch,
    block: LayoutBlock,
    which: NDArray[np.intp],
    marks: FrameMarks | None,
    start_ns: int,
    file: str,
) -> list[str]:
    """Return the lines of the frames ``which`` of a block."""
    place, batch = block.place[which], decoded.batch
    times = batch.timestamp_ns[place]
    length, captured = np.maximum(batch.wire_length[place], batch.length[place]), batch.length[place]
    template = [f'{{{file.replace("%", "%%")}"frame":%d,"time_ns":%d,"time_relative_s":%r,"wire_length":%d']
    columns: list[Sequence[object]] = [batch.number[place].tolist(), times.tolist(), seconds_since(times, start_ns)]
    columns.append(length.tolist())

    def add(texts: Sequence[str] | None) -> None:
        if texts is not None:
            template.append("%s")
            columns.append(texts)

    add(_differing(captured, length))
    add(_hosts(decoded, place))
    add(_dialects(decoded, place))
    template.append(f',"type":"{packet_type_name(block.layout.packet_type)}"')
    add(None if marks is None else _marks(marks, place))
    names = [each for each in block.names if each not in STATED]
    template.append(',"fields":{')
    for number, name in enumerate(names):
        values = block[name][which]
        if name == "checksum":
            if values.any():
                add([f'{"," if number else ""}"checksum":{each}' if each else "" for each in values.tolist()])
            continue
        template.append(f'{"," if number else ""}"{name}":%d')
        columns.append(values.tolist())
    template.append("}" + (',"byte_order":"little"}' if block.swapped else "}"))
    return list(map("".join(template).__mod__, zip(*columns, strict=True)))


def seconds_since(times: NDArray[np.int64], start_ns: int) -> list[float]:
    """Return the seconds since the first frame, each the nearest floating-point number."""
    passed: NDArray[np.int64] = times - start_ns
    if len(passed) and int(np.abs(passed).max()) >= _EXACT:
        return [(each - start_ns) / SECOND for each in times.tolist()]
    seconds: list[float] = (passed / SECOND).tolist()
    return seconds


def _differing(captured: NDArray[np.int64], length: NDArray[np.int64]) -> list[str] | None:
    if (captured == length).all():
        return None
    return [
        "" if one == other else f',"captured":{one}'
        for one, other in zip(captured.tolist(), length.tolist(), strict=True)
    ]


def _hosts(decoded: DecodedBatch, place: NDArray[np.intp]) -> list[str]:
    known: dict[tuple[int, int], str] = {}
    located = decoded.located
    pairs = [*zip(located.source[place].tolist(), located.destination[place].tolist(), strict=True)]
    for pair in {*pairs}:
        known[pair] = f',"source":"{mac_text(pair[0])}","destination":"{mac_text(pair[1])}"'
    return [known[pair] for pair in pairs]


def _dialects(decoded: DecodedBatch, place: NDArray[np.intp]) -> list[str] | None:
    assignment = decoded.assignment
    decided = assignment.decided[place]
    if not decided.any():
        return None
    names = ["", *(f',"dialect":{plain_line({"": each.name})[4:-1]}' for each in assignment.dialects)]
    return [names[each] for each in np.where(decided, assignment.which[place] + 1, 0).tolist()]


def _marks(marks: FrameMarks, place: NDArray[np.intp]) -> list[str]:
    columns = (marks.message[place].tolist(), marks.role[place].tolist(), marks.acknowledges[place].tolist())
    texts = [
        f'{f""","message":{message}""" if message else ""}{_ROLES[role]}'
        f'{f""","acknowledges":{acknowledges}""" if acknowledges else ""}'
        for message, role, acknowledges in zip(*columns, strict=True)
    ]
    for at in np.flatnonzero((marks.flags[place] != 0) | (marks.repeat[place] != 0)).tolist():
        message, role, acknowledges = (each[at] for each in columns)
        flags, repeat = flag_names(int(marks.flags[place[at]])), int(marks.repeat[place[at]])
        texts[at] = "".join(
            (
                f',"message":{message}' if message else "",
                _ROLES[role],
                f',"flags":{plain_line({"": flags})[4:-1]}' if flags else "",
                f',"repeat":{repeat}' if repeat else "",
                f',"acknowledges":{acknowledges}' if acknowledges else "",
            )
        )
    return texts
