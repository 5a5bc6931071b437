"""The page of a cell: its verdict, the reason, the ladder of its exchange, and the decoded fields of its frames."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from mxwire.errors import MxwireError
from mxwire.interop.implementations import dialect_of
from mxwire.interop.result import CAPTURES, Cell
from mxwire.interop.site.exchange import Exchange, ReadingCache, ShownFrame, read_exchange
from mxwire.interop.site.ladder import (
    MOST_HOSTS,
    MOST_ROWS_WHOLE,
    FrameStep,
    LadderDrawing,
    Omission,
    Row,
    is_everything,
    rows_of,
)
from mxwire.interop.site.views import CellView, Matrix, page
from mxwire.report.tree import FieldLine
from mxwire.wire.dialect import Dialect

_BYTES_SHOWN: Final = 16
"""Maximum number of bytes shown of data and padding."""
_FIXED: Final = 16
"""Maximum size of fields shown with all their bytes."""


Described = tuple[int, int, str, str, bool]
"""Offset, size, name, meaning of a field, and whether it is defined."""


class FieldTables:
    """Collects the layouts that frames of all pages refer to."""

    def __init__(self) -> None:
        self.layouts: dict[str, tuple[Described, ...]] = {}
        """By names derived from their content, so that pages made by separate processes agree."""
        self._names: dict[tuple[Described, ...], str] = {}

    def name(self, layout: tuple[Described, ...]) -> str:
        """Return the name of a layout."""
        name = self._names.get(layout)
        if name is None:
            name = self._names[layout] = blake2b(repr(layout).encode(), digest_size=4).hexdigest()
            self.layouts[name] = layout
        return name


class FieldRecords:
    """The fields of the frames of one page in compact form: shared texts are stored once."""

    def __init__(self, tables: FieldTables) -> None:
        self._tables = tables
        self._texts: dict[str, int] = {}
        self._frames: dict[int, list[Any]] = {}

    def add(self, seen: ShownFrame) -> None:
        """Add the fields of a frame."""
        lines = seen.lines()
        fixed = 0
        while fixed < len(lines) and _is_fixed(lines[fixed]):
            fixed += 1
        layout = tuple((each.offset, each.size, each.name, each.meaning, each.defined) for each in lines[:fixed])
        rest = [
            [each.offset, each.size, each.name, each.text, each.raw[:_BYTES_SHOWN].hex(), self._place(each.meaning)]
            for each in lines[fixed:]
        ]
        raw = "".join(each.raw.hex() for each in lines[:fixed])
        self._frames[seen.number] = [
            self._tables.name(layout),
            raw,
            [self._place(each.text) for each in lines[:fixed]],
            rest,
        ]

    def as_object(self) -> dict[str, Any]:
        """Return ``texts``, and ``frames`` by number, each as ``[layout, bytes, indexes of texts, rest]``.

        ``bytes`` are those of the layout's fields, in hexadecimal. ``rest`` are the fields of variable length, each as
        ``[offset, size, name, text, bytes, index of the meaning]``.
        """
        return {"texts": list(self._texts), "frames": self._frames}

    def _place(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _is_fixed(line: FieldLine) -> bool:
    """Return whether a field is complete, and equally long in each frame of the layout."""
    return line.size <= _FIXED and len(line.raw) == line.size and line.name != "padding"


FINDINGS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class PageLadder:
    """The exchange as shown on the page."""

    exchange: Exchange
    drawing: Markup
    note: str
    frames: list[ShownFrame]
    """Frames with details on this page."""
    records: dict[str, Any]
    whole_page: str | None = None
    """The page with all frames, if this one does not show them."""

    def name(self, address: int) -> str:
        """Return the name of a host."""
        return self.exchange.name(address)


class CellPages:
    """Creates the pages of cells; ``fields`` collects the layouts that their frames share."""

    def __init__(self, matrix: Matrix, folder: Path) -> None:
        self._matrix = matrix
        self._folder = folder
        self._dialects = {each.name: each.dialect for each in matrix.report.implementations}
        self._readings = ReadingCache()
        self.fields = FieldTables()

    def of(self, view: CellView) -> dict[str, str]:
        """Return the pages of a cell by path: one, and if there are many frames, a second one with all of them."""
        cell = view.cell
        exchange, complaint = self._exchange(cell)
        pages: dict[str, str] = {}
        ladder = None
        if exchange is not None and exchange.frames:
            rows = rows_of(exchange.frames)
            whole = None
            if not is_everything(rows):
                whole = f"../frames/{view.file}"
                all_rows = rows_of(exchange.frames, whole=True)
                pages[f"frames/{view.file}"] = self._page(
                    "whole.html", view, ladder=self._ladder(view, exchange, all_rows)
                )
            ladder = self._ladder(view, exchange, rows, whole)
        shown = {each.number for each in ladder.frames} if ladder else set()
        pages[f"cells/{view.file}"] = self._page(
            "cell.html",
            view,
            ladder=ladder,
            no_ladder=complaint,
            shown=shown,
            capture=f"../{CAPTURES}/{cell.capture}" if exchange is not None else None,
            duration=f"{cell.duration_ns / 1e6:.3f} ms",
            findings=cell.findings[:FINDINGS_SHOWN],
            more_findings=max(len(cell.findings) - FINDINGS_SHOWN, 0),
            rules=list(dict.fromkeys([*(each.rule for each in cell.findings), *cell.rules])),
            siblings=self._matrix.siblings(view),
        )
        return pages

    def _page(self, template: str, view: CellView, **values: Any) -> str:
        return page(template, self._matrix.report, "../", view=view, **values)

    def _exchange(self, cell: Cell) -> tuple[Exchange | None, str]:
        """Return the frames of a cell, or the reason why there are none."""
        if cell.capture is None:
            return None, "No frames were recorded."
        if not _is_plain_name(cell.capture):
            return None, "The capture named in the report is not in its folder."
        concerned: dict[int, dict[str, None]] = defaultdict(dict)
        for found in cell.findings:
            for number in found.frames:
                concerned[number][found.rule] = None
        marks = {number: tuple(rules) for number, rules in concerned.items()}
        try:
            exchange = read_exchange(self._folder / CAPTURES / cell.capture, self._readings, self._spoken(cell), marks)
        except MxwireError as error:
            return None, f"The capture cannot be shown: {error}"
        return exchange, "" if exchange.frames else "No frames were sent."

    def _spoken(self, cell: Cell) -> tuple[Dialect | None, ...]:
        return tuple(self._dialect(each) for each in (cell.left, cell.right))

    def _dialect(self, implementation: str) -> Dialect | None:
        try:
            return dialect_of(self._dialects[implementation])
        except (KeyError, MxwireError):
            return None

    def _ladder(self, view: CellView, exchange: Exchange, rows: list[Row], whole: str | None = None) -> PageLadder:
        steps = [row for row in rows if isinstance(row, FrameStep)]
        frames = [
            seen for step in steps for seen in ([step.first] if len(step.frames) == 1 else [step.first, step.last])
        ]
        records = FieldRecords(self.fields)
        for each in frames:
            records.add(each)
        title = (
            f"Ladder of the {len(exchange.frames)} frames of {view.case.title}; the table below has the same content"
        )
        return PageLadder(
            exchange,
            LadderDrawing(exchange, rows, title).markup(),
            _note(exchange, rows, whole),
            frames,
            records.as_object(),
            whole,
        )


def _is_plain_name(name: str) -> bool:
    """Return whether a name is a plain file name, which cannot lead out of its folder."""
    return bool(name) and not set(name) & set("/\\\0:?#%") and name not in (".", "..")


def _note(exchange: Exchange, rows: list[Row], whole: str | None) -> str:
    """Return notes on the completeness of the shown frames."""
    total = len(exchange.frames)
    said = [f"{total} frame{'s' if total != 1 else ''}, in the order of transmission. Select one to see its fields."]
    folded = sum(isinstance(row, FrameStep) and len(row.frames) > 1 for row in rows)
    left_out = sum(row.frames for row in rows if isinstance(row, Omission))
    if folded:
        said.append("Consecutive similar frames form one step.")
    if left_out and whole:
        said.append(f"{left_out} of the frames are not shown here; shown are the first, the last and the notable ones.")
    elif left_out:
        said.append(f"Only the first {MOST_ROWS_WHOLE} are shown; the capture contains all.")
    if exchange.dropped:
        said.append(f"{exchange.dropped} more were not examined.")
    if exchange.skipped:
        said.append(f"{exchange.skipped} frames of other protocols are left out.")
    if len(exchange.hosts) > MOST_HOSTS:
        said.append(f"The ladder shows the first {MOST_HOSTS} of {len(exchange.hosts)} hosts.")
    return " ".join(said)
