"""The page of a cell: its verdict, the reason, and the exchange, as the pages of captures show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from mxwire.capture import open_capture
from mxwire.capture.notes import CaptureNotes, read_notes
from mxwire.errors import MxwireError
from mxwire.interop.implementations import dialect_of
from mxwire.interop.result import CAPTURES, Cell
from mxwire.interop.site.views import CellView, Matrix, page
from mxwire.report.exchange import Exchange, ReadingCache, is_everything, read_exchange, rows_of
from mxwire.report.site.fields import FieldTables
from mxwire.report.site.graphs import MessageColumns, packed, page_data
from mxwire.report.site.pages import page_ladder
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect

FINDINGS_SHOWN: Final = 50


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
        ladder = data = None
        if exchange is not None and exchange.frames:
            rows = rows_of(exchange.frames)
            whole = None
            if not is_everything(rows):
                whole = f"../frames/{view.file}"
                all_rows = rows_of(exchange.frames, whole=True)
                everything = page_ladder(exchange, all_rows, view.case.title, self.fields)
                pages[f"frames/{view.file}"] = self._page("whole.html", view, ladder=everything)
            ladder = page_ladder(exchange, rows, view.case.title, self.fields, whole=whole)
            data = _data(exchange)
        shown = {each.number for each in ladder.frames} if ladder else set()
        pages[f"cells/{view.file}"] = self._page(
            "cell.html",
            view,
            ladder=ladder,
            data=data,
            notes=(),
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
        for violation in cell.findings:
            for number in violation.frames:
                concerned[number][violation.rule] = None
        path = self._folder / CAPTURES / cell.capture
        try:
            notes = read_notes(path)
            names = {int.from_bytes(each, "big"): name for each, name in notes.names.items()}
            decoder = Decoder()
            exchange = read_exchange(
                self._decoded(path, decoder, notes, cell),
                names,
                self._readings,
                comments=notes.comments,
                concerned={number: tuple(rules) for number, rules in concerned.items()},
            )
        except MxwireError as error:
            return None, f"The capture cannot be shown: {error}"
        exchange.skipped = decoder.skipped
        return exchange, "" if exchange.frames else "No frames were sent."

    def _decoded(self, path: Path, decoder: Decoder, notes: CaptureNotes, cell: Cell) -> Iterator[DecodedBatch]:
        """Yield the frames of a cell, each in the dialect of its sender.

        The hosts are in the order in which the capture names them, or else of their first frames; further hosts have
        the dialect of the right one.
        """
        spoken = [self._dialect(each) for each in (cell.left, cell.right)]
        places = {int.from_bytes(each, "big"): place for place, each in enumerate(notes.names)}
        with open_capture(path, damaged=lambda _: None) as reader:
            for decoded in decoder.decode_all(reader):
                dialects, which = list(decoded.assignment.dialects), decoded.assignment.which.copy()
                sources = decoded.located.source
                for source in dict.fromkeys(sources.tolist()):
                    dialect = spoken[min(places.setdefault(source, len(places)), 1)]
                    if dialect is not None:
                        if dialect not in dialects:
                            dialects.append(dialect)
                        which[np.flatnonzero(sources == source)] = dialects.index(dialect)
                yield replace(decoded, assignment=replace(decoded.assignment, dialects=tuple(dialects), which=which))

    def _dialect(self, implementation: str) -> Dialect | None:
        try:
            return dialect_of(self._dialects[implementation])
        except (KeyError, MxwireError):
            return None


def _data(exchange: Exchange) -> str:
    columns = MessageColumns(exchange.names, exchange.start_ns)
    for message in exchange.messages:
        columns.add(message)
    assert exchange.trace is not None and exchange.pairs is not None
    return packed(page_data(columns, exchange.trace, exchange.pairs.by_hosts(), exchange.names, exchange.start_ns))


def _is_plain_name(name: str) -> bool:
    """Return whether a name is a plain file name, which cannot lead out of its folder."""
    return bool(name) and not set(name) & set("/\\\0:?#%") and name not in (".", "..")
