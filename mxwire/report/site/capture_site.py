"""The report of captures: a page per capture with findings, pairs, graphs, messages, and the ladder of each message.

Because there are many ladders, they are in separate compressed files, and the page loads one when the user chooses a
message. A browser refuses to fetch data from a disk, but runs scripts from there, so these files are scripts. Since a
report must stay small, messages without anything remarkable lose their ladders first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from mxwire.analysis.capture_overview import CaptureOverview, PairState, is_notable
from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis import CATALOGUE, Finding, Party
from mxwire.errors import OutputError
from mxwire.report.diagnosis import NO_COST, cost_text, grouped
from mxwire.report.exchange import Exchange, ReadingCache, rows_of, shown_frame
from mxwire.report.messages import message_notes
from mxwire.report.pairs import party_text
from mxwire.report.site.fields import FieldTables
from mxwire.report.site.graphs import MessageColumns, graph_data, packed, page_data
from mxwire.report.site.pages import FileNames, page, page_ladder, write_assets, write_text
from mxwire.report.times import duration_text, seconds_text, time_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.words import count_of

LADDERS: Final = 4_000
"""Maximum number of messages with ladders."""
FRAMES: Final = 60_000
"""Maximum number of frames in all ladders together."""
FRAMES_OF_A_MESSAGE: Final = 400
"""Maximum number of frames in one ladder, before similar ones are folded."""
POINTS_OF_A_MESSAGE: Final = 1500
"""Maximum number of points in the time-sequence graph of one message."""
BATCH_OF_LADDERS: Final = 40
"""Number of messages per file."""
_DATA: Final = "data"
_INDEX: Final = "index.html"

Reopen = Callable[[], Iterable[DecodedBatch]]
"""Reads the capture again, from its beginning."""


@dataclass(frozen=True, slots=True)
class CaptureSource:
    """One capture of a report."""

    name: str
    overview: CaptureOverview
    reopen: Reopen
    facts: tuple[str, ...] = ()
    """Lines about the capture as a whole, such as frames that were left out."""


@dataclass(slots=True)
class WrittenReport:
    """A report on disk."""

    index: Path
    """The first page."""
    bytes: int = 0
    messages: int = 0
    ladders: int = 0
    """Number of messages that have a ladder."""


def write_report(folder: Path, sources: Iterable[CaptureSource]) -> WrittenReport:
    """Write the report of captures into ``folder``, one after another; files of an earlier report are replaced.

    One capture has its page in the folder itself, each of several has a folder, and the first page lists them. Raises
    :class:`~mxwire.errors.OutputError` if a file cannot be written, :class:`~mxwire.extras.MissingExtraError` if Bokeh
    is missing.
    """
    captures = list(sources)
    written = WrittenReport(folder / _INDEX)
    tables, names = FieldTables(), FileNames()
    several = len(captures) > 1
    listed: list[dict[str, Any]] = []
    try:
        for source in captures:
            inside = names.of(Path(source.name).name, "") if several else ""
            made = _CapturePage(source, folder / inside, "../" if several else "", tables).write(written)
            listed.append({"folder": inside, "name": Path(source.name).name, **made})
        write_assets(folder / "assets", tables.layouts)
        if several:
            write_text(folder / _INDEX, page("captures.html", "", title="Captures", captures=listed))
        written.bytes = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    except OSError as error:
        raise OutputError.of(error.filename or folder, error) from None
    return written


@dataclass(slots=True)
class _Ladders:
    """The messages that have ladders, and the frames in them."""

    messages: list[CapturedMessage] = field(default_factory=list)
    frames: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Message numbers and flags by frame number."""
    dropped: dict[int, int] = field(default_factory=dict)
    """Number of frames that a message has besides these."""


class _CapturePage:
    """Creates the page of one capture, and the files of its ladders."""

    def __init__(self, source: CaptureSource, folder: Path, root: str, tables: FieldTables) -> None:
        self._source = source
        self._overview = source.overview
        self._folder = folder
        self._root = root
        self._tables = tables
        self._facts = source.overview.examination.facts
        self._names = source.overview.names
        self._start_ns = self._facts.decoder.start_ns or 0

    def write(self, written: WrittenReport) -> dict[str, Any]:
        """Write all files; return what the list of captures shows."""
        data = self._folder / _DATA
        data.mkdir(parents=True, exist_ok=True)
        for old in data.glob("*.js"):
            old.unlink()
        ladders = self._choose()
        places = self._write_ladders(ladders)
        columns = MessageColumns(self._names, self._start_ns)
        for message in self._overview.messages:
            columns.add(message)
        pairs = self._overview.pair_states()
        content = page_data(
            columns, self._overview.trace, [each.statistics for each in pairs], self._names, self._start_ns
        )
        content["files"] = places
        write_text(data / "page.js", f'mxwireData("{packed(content)}");\n')
        findings = self._overview.findings()
        values = self._values(pairs, findings, len(ladders.messages))
        write_text(self._folder / _INDEX, page("capture.html", self._root, **values))
        written.messages += len(self._overview.messages) + self._overview.omitted_messages
        written.ladders += len(ladders.messages)
        return {"facts": values["facts"], "findings": [CATALOGUE[each.id].title for each, *_ in values["findings"]]}

    # Ladders

    def _choose(self) -> _Ladders:
        """Choose the messages that get ladders: first remarkable messages, then those of longest duration, then the
        others.
        """
        chosen = _Ladders()
        ranked = sorted(self._overview.messages, key=lambda each: (not is_notable(each), each.first_ns - each.end_ns))
        room = FRAMES
        for message in ranked[:LADDERS]:
            numbers, flags, count = self._overview.trace.frames_of(message.number, min(FRAMES_OF_A_MESSAGE, room))
            if not len(numbers):
                continue
            room -= len(numbers)
            chosen.messages.append(message)
            chosen.dropped[message.number] = count - len(numbers)
            for number, bits in zip(numbers.tolist(), flags.tolist(), strict=True):
                chosen.frames.setdefault(number, []).append((message.number, bits))
            if room <= 0:
                break
        chosen.messages.sort(key=lambda each: each.number)
        return chosen

    def _write_ladders(self, ladders: _Ladders) -> dict[int, int]:
        """Write the ladders; return the number of the file of each message."""
        exchanges = self._read(ladders) if ladders.frames else {}
        places = {}
        for file, first in enumerate(range(0, len(ladders.messages), BATCH_OF_LADDERS)):
            fragments = {}
            for message in ladders.messages[first : first + BATCH_OF_LADDERS]:
                fragments[message.number] = self._fragment(message, exchanges.pop(message.number))
                places[message.number] = file
            text = f'mxwireFile({file}, "{packed(fragments)}");\n'
            write_text(self._folder / _DATA / f"{file}.js", text)
        return places

    def _read(self, ladders: _Ladders) -> dict[int, Exchange]:
        """Read the frames of all ladders from the capture."""
        found = {
            each.number: Exchange([], self._names, self._start_ns, dropped=ladders.dropped[each.number])
            for each in ladders.messages
        }
        numbers = np.array(sorted(ladders.frames), np.int64)
        readings = ReadingCache()
        for decoded in self._source.reopen():
            places = np.flatnonzero(np.isin(decoded.batch.number, numbers))
            if not len(places):
                continue
            # Copied, because a view of a few frames would keep the whole capture in memory.
            picked = decoded.select(places)
            picked = replace(picked, located=replace(picked.located, batch=picked.batch.compact()))
            for index, number in enumerate(picked.batch.number.tolist()):
                for message, flags in ladders.frames[number]:
                    seen = shown_frame(picked, index, self._start_ns, readings)
                    seen.flags, seen.message = flags, message
                    found[message].frames.append(seen)
        return found

    def _fragment(self, message: CapturedMessage, exchange: Exchange) -> str:
        """Return the part of the page that shows a message."""
        # A message of one frame has nothing to draw against time.
        drawn = message.frame_count > 1
        graph = self._overview.trace.of_message(message.number, POINTS_OF_A_MESSAGE) if drawn else None
        more = f"mxwire follow {message.number} {Path(self._source.name).name} shows all."
        rows = rows_of(exchange.frames)
        return page(
            "message.html",
            self._root,
            message=message,
            notes=list(message_notes(message)),
            ladder=page_ladder(exchange, rows, f"message {message.number}", self._tables, more=more),
            graph=None if graph is None else graph_data(graph, self._names, self._start_ns),
        )

    # The page

    def _values(self, pairs: list[PairState], findings: list[Finding], ladders: int) -> dict[str, Any]:
        examination = self._overview.examination
        return {
            "title": Path(self._source.name).name,
            "facts": [*self._lines(), *self._source.facts],
            "findings": list(grouped(findings)),
            "diagnoses": CATALOGUE,
            "advice": _advice,
            "cost": self._cost,
            "party": self._party,
            "dialect": self._dialect,
            "seconds": self._seconds,
            "duration": duration_text,
            "limits": examination.limits(),
            "pairs": pairs,
            "notes": list(self._notes(ladders)),
            "started": time_text(self._start_ns),
        }

    def _lines(self) -> Iterator[str]:
        follower, decoder = self._facts.follower, self._facts.decoder
        duration = seconds_text(self._facts.duration_ns).strip()
        yield f"{count_of(follower.frames, 'MXoE frame', grouped=True)} in {duration} s"
        yield count_of(follower.messages, "message", grouped=True)
        dialects = sorted({each.name for each in self._facts.dialects().values()})
        if dialects:
            yield f"dialect {' and '.join(dialects)}"
        if decoder.skipped:
            yield count_of(decoder.skipped, "frame of other protocols", "frames of other protocols", grouped=True)

    def _notes(self, ladders: int) -> Iterator[str]:
        overview = self._overview
        shown = len(overview.messages)
        if overview.omitted_messages:
            yield (
                f"The table has {shown:,} of {shown + overview.omitted_messages:,} messages: the first, and remarkable "
                "ones (mxwire messages lists all)."
            )
        if overview.left_out:
            yield f"{count_of(overview.left_out, 'finding')} outside the selection left out."
        if ladders < shown:
            yield f"{ladders:,} of them have a ladder here; mxwire follow NUMBER FILE draws that of any message."
        if overview.trace.omitted:
            yield f"The graphs lack the last {count_of(overview.trace.omitted, 'frame')}."

    def _cost(self, found: Finding) -> str:
        cost = cost_text(found.cost.ns, found.cost.frames, self._facts.duration_ns, self._facts.follower.frames)
        return "" if cost == NO_COST else cost

    def _dialect(self, pair: PairState) -> str:
        low, high = sorted(each.address for each in pair.statistics.ends)
        dialect = self._facts.dialects().get((low, high))
        return "" if dialect is None else dialect.name

    def _seconds(self, time_ns: int) -> str:
        return f"{self._facts.since_start(time_ns) / 1e9:.6f} s"

    def _party(self, party: Party) -> str:
        return party_text(party, self._names)


def _advice(same: list[Finding]) -> list[str]:
    return list(dict.fromkeys(text for each in same for text in each.advice))
