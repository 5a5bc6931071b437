"""Templates, and the parts that the pages of captures and of cells have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mxwire import __version__
from mxwire.ethernet import mac_text
from mxwire.extras import import_extra
from mxwire.report.exchange import MOST_ROWS_WHOLE, Exchange, FrameStep, Omission, Row, ShownFrame
from mxwire.report.site.fields import FieldRecords, FieldTables, LayoutRow
from mxwire.report.site.graphs import packed, style_data
from mxwire.report.site.ladder_drawing import MOST_HOSTS, LadderDrawing
from mxwire.rules import CATALOGUE
from mxwire.words import count_of

Layouts = dict[str, tuple[LayoutRow, ...]]

_PACKAGE: Final = "mxwire.report.site"
_STATIC: Final = ("site.css", "site.js", "graphs.js")
_BREAKS: Final = re.compile(r"(?<=[-:_/])(?=[^-:_/])")
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)")
_LONGEST_FILE: Final = 120


@dataclass(frozen=True, slots=True)
class PageLadder:
    """An exchange as a page shows it."""

    exchange: Exchange
    drawing: Markup
    note: str
    frames: list[ShownFrame]
    """Frames with details on this page."""
    records: str
    """Their fields, packed."""
    whole_page: str | None = None
    """The page with all frames, if this one does not show them."""

    def name(self, address: int) -> str:
        """Return the name of a host."""
        return self.exchange.name(address)


def page_ladder(
    exchange: Exchange, rows: list[Row], subject: str, tables: FieldTables, *, whole: str | None = None, more: str = ""
) -> PageLadder:
    """Return the ladder of ``rows``; ``subject`` completes its title, ``whole`` is the page with all frames.

    ``more`` is the sentence about frames that no page shows.
    """
    steps = [row for row in rows if isinstance(row, FrameStep)]
    frames = [seen for step in steps for seen in ([step.first] if step.count == 1 else [step.first, step.last])]
    records = FieldRecords(tables)
    for each in frames:
        records.add(each)
    title = (
        f"Ladder of the {count_of(len(exchange.frames), 'frame')} of {subject}; the table below has the same content"
    )
    drawing = LadderDrawing(exchange, rows, title).markup()
    return PageLadder(exchange, drawing, _note(exchange, rows, whole, more), frames, packed(records.as_object()), whole)


def _note(exchange: Exchange, rows: list[Row], whole: str | None, more: str) -> str:
    """Return notes on the completeness of the shown frames."""
    parts = [f"{count_of(len(exchange.frames), 'frame')}, in the order of the capture. Select one to see its fields."]
    folded = sum(isinstance(row, FrameStep) and row.count > 1 for row in rows)
    left_out = sum(row.frames for row in rows if isinstance(row, Omission))
    if folded:
        parts.append("Consecutive similar frames form one step.")
    if left_out and (whole or more):
        parts.append(
            f"{left_out} of the frames are not shown here; shown are the first, the last and the notable ones."
        )
    elif left_out:
        parts.append(f"Only the first {MOST_ROWS_WHOLE} are shown; the capture contains all.")
    if exchange.dropped:
        parts.append(f"{count_of(exchange.dropped, 'more frame')} not examined.")
    if exchange.skipped:
        parts.append(f"{count_of(exchange.skipped, 'frame')} of other protocols left out.")
    if len(exchange.hosts) > MOST_HOSTS:
        parts.append(f"The ladder shows the first {MOST_HOSTS} of {len(exchange.hosts)} hosts.")
    if more and (left_out or exchange.dropped):
        parts.append(more)
    return " ".join(parts)


def page(template: str, root: str, **values: Any) -> str:
    """Render a template of these pages; ``root`` is the path from its folder to that of the site."""
    return environment(_PACKAGE).get_template(template).render(root=root, **values)


@cache
def environment(*packages: str) -> Environment:
    """Return the templates of some packages; a template may include and extend those of the others."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(breakable=_breakable, mac=mac_text, moment=_moment, count=count_of)
    templates.globals.update(catalogue=CATALOGUE, version=__version__)
    return templates


def _breakable(text: str) -> Markup:
    """Return a name that may be broken into lines after hyphens and similar characters."""
    return Markup("<wbr>").join(escape(each) for each in _BREAKS.split(text))


def _moment(text: str) -> str:
    """Format an ISO 8601 time for readers; return other text unchanged."""
    match = _MOMENT.fullmatch(text)
    return f"{match[1]} {match[2]} UTC" if match else text


# Files


class FileNames:
    """Unique page names that are valid in any file system and in URLs."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, name: str, suffix: str = ".html") -> str:
        """Return the name of a file, or with an empty suffix of a folder, for a name."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST_FILE] or "unnamed"
        made, number = plain, 1
        # Some file systems ignore case.
        while made.lower() in self._taken:
            number += 1
            made = f"{plain}-{number}"
        self._taken.add(made.lower())
        return f"{made}{suffix}"


def write_text(path: Path, text: str) -> None:
    """Write a file; invalid characters from the wire or a command do not prevent it."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_assets(folder: Path, layouts: Layouts) -> None:
    """Write the style sheet and the scripts of a site: its own, and the library of its graphs."""
    write_static(folder)
    write_text(folder / "bokeh.js", "\n".join(library_scripts()))
    write_text(folder / "layouts.js", f"const mxwireLayouts = {_literal(dict(sorted(layouts.items())))};\n")
    write_text(folder / "styles.js", f"const mxwireStyles = {_literal(style_data())};\n")


def write_static(folder: Path) -> None:
    """Write the style sheet and the scripts that need no library."""
    folder.mkdir(parents=True, exist_ok=True)
    static = files(_PACKAGE) / "static"
    for name in _STATIC:
        write_text(folder / name, (static / name).read_text(encoding="utf-8"))


def library_scripts() -> Sequence[str]:
    """Return the scripts of Bokeh, as its package has them."""
    resources = import_extra("bokeh.resources", "report", "--html")
    components = ["bokeh", "bokeh-api"]
    found: Sequence[str] = resources.Resources(mode="inline", components=components).js_raw
    # Without the last one, which writes to the console of the browser.
    return found[: len(components)]


def _literal(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
