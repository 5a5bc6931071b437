"""The full-screen view of ``mxwire top``, an application of Textual.

The application shows snapshots that another thread makes; at each refresh it calls ``latest`` for the newest snapshot,
and never waits for that thread. Everything that hosts announce passes through ``printable``, and is shown as plain
text, without Textual's markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import ModalScreen, Screen
from textual.widgets import ContentSwitcher, DataTable, Footer, Input, Static

from mxwire.analysis.diagnosis import CATALOGUE
from mxwire.analysis.snapshot import ConversationSnapshot, OpenFinding, PairRates, TrafficSnapshot
from mxwire.ethernet import mac_text
from mxwire.report.times import day_text
from mxwire.report.traffic import (
    PAIR_COLUMNS,
    HostLabels,
    age_text,
    amount_text,
    finding_text,
    host_cells,
    labels_of,
    matches,
    pair_label,
    sorted_pairs,
    summary_text,
)
from mxwire.texts import file_text
from mxwire.words import count_of, printable

_WIDE: Final = 110
"""Minimum number of terminal columns for complete addresses."""
_ROWS: Final = 300
"""Maximum number of rows of a table; a filter selects among the others."""
_FINDINGS_LINES: Final = 4
_COLOURS: Final = {"error": "bold red", "warning": "yellow", "note": "dim"}


class HelpScreen(ModalScreen[None]):
    """The meaning of columns and keys."""

    CSS = "HelpScreen { align: center middle; } #help { width: 80; height: auto; max-height: 100%; padding: 0 1; }"

    def compose(self) -> ComposeResult:
        """Make the page."""
        yield Static(file_text(__file__, "top_help.txt").rstrip(), id="help", markup=False)

    def on_key(self) -> None:
        """Close the page."""
        self.app.pop_screen()


class FindingScreen(ModalScreen[None]):
    """One finding with its evidence and advice."""

    CSS = (
        "FindingScreen { align: center middle; } #finding { width: 90%; height: auto; max-height: 100%; padding: 0 1; }"
    )

    def __init__(self, found: OpenFinding, snapshot: TrafficSnapshot) -> None:
        super().__init__()
        finding = found.finding
        lines = [CATALOGUE[finding.id].title, "", finding_text(found, labels_of(snapshot)), ""]
        lines += [f"• {printable(each.text)}" for each in finding.evidence]
        lines += ["", "What to do:", *(f"{place}. {each}" for place, each in enumerate(finding.advice, 1))]
        lines += ["", f"Reported since {day_text(found.first_ns, 0)[:8]} UTC. Press any key to close this page."]
        # The text is fixed: later snapshots may no longer contain this finding.
        self._text = "\n".join(lines)

    def compose(self) -> ComposeResult:
        """Make the page."""
        yield Static(self._text, id="finding", markup=False)

    def on_key(self) -> None:
        """Close the page."""
        self.app.pop_screen()


class ConversationScreen(Screen[None]):
    """The endpoints and messages of one pair of hosts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back"),
        Binding("space", "app.pause", "pause"),
    ]

    def compose(self) -> ComposeResult:
        """Make the title and two tables."""
        # Host names come from the network: markup in them must not be interpreted.
        yield Static("", id="title", markup=False)
        yield _table("endpoints")
        yield _table("messages")
        yield Footer()

    def on_mount(self) -> None:
        """Name the columns."""
        self.query_one("#endpoints", DataTable).add_columns(
            "endpoints", *map(_right, ("frames", "messages", "retransmits", "last frame"))
        )
        self.query_one("#messages", DataTable).add_columns(
            "time (UTC)", "from → to", "kind", *map(_right, ("bytes", "tries")), "outcome", _right("duration")
        )

    def update(self, found: ConversationSnapshot, snapshot: TrafficSnapshot, labels: HostLabels) -> None:
        """Show a newer snapshot."""
        one, other = map(labels.label, found.hosts)
        self.query_one("#title", Static).update(Text(f"{one} ↔ {other}: endpoints, and the latest messages"))
        rows: list[Sequence[str | Text]] = []
        for each in found.endpoints:
            ends = " ↔ ".join(f"{labels.label(host)}:{_number(endpoint)}" for host, endpoint in each.ends)
            ago = age_text(max(0, snapshot.time_ns - each.last_ns))
            counts = (each.frames, each.messages, each.retransmits)
            rows.append((ends, *(_right(f"{sent:,} / {back:,}") for sent, back in counts), _right(f"{ago} ago")))
        _fill(self.query_one("#endpoints", DataTable), rows[::-1])
        rows = []
        for line in reversed(found.messages):
            style = {"in flight": "bold", "failed": "red", "nacked": "red", "abandoned": "red"}.get(line.outcome, "")
            source, target = map(_number, line.endpoints)
            rows.append(
                (
                    day_text(line.first_ns, 3),
                    f"{labels.label(line.source)}:{source} → {target}",
                    line.kind,
                    _right(amount_text(line.length)),
                    _right(str(line.transmissions), "yellow" if line.transmissions > 1 else ""),
                    Text(line.outcome, style),
                    _right(age_text(line.duration_ns)),
                )
            )
        _fill(self.query_one("#messages", DataTable), rows)

    def action_back(self) -> None:
        """Return to the pairs."""
        self.dismiss()


class TopApp(App[None]):
    """The view of one source.

    ``name`` is that of the source, ``latest`` returns its newest snapshot (None before the first), ``watch`` sets the
    pair whose conversation is part of snapshots, and ``ended`` returns why there are no more frames, or None. The
    screen is updated every ``interval`` seconds.
    """

    CSS = """
    Screen { layout: vertical; }
    #header { height: 1; background: $primary-darken-2; color: $text; }
    #views { height: 1fr; }
    DataTable { height: 1fr; }
    #endpoints { height: auto; max-height: 40%; }
    #header, #news { text-wrap: nowrap; text-overflow: ellipsis; }
    #news { height: auto; max-height: 6; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    #filter.shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "view('pairs')", "pairs"),
        Binding("h", "view('hosts')", "hosts"),
        Binding("f", "view('findings')", "findings"),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", "reverse", show=False),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("space", "pause", "pause"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q,ctrl+c", "quit", "quit", key_display="q"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        name: str,
        latest: Callable[[], TrafficSnapshot | None],
        watch: Callable[[tuple[int, int] | None], None],
        ended: Callable[[], str | None],
        *,
        interval: float,
        sort: str,
    ) -> None:
        super().__init__()
        self._name = printable(name)
        self._latest = latest
        self._watch = watch
        self._ended = ended
        self._interval = interval
        self._sort = sort
        self._reverse = False
        self._wanted = ""
        self._paused = self._begun = False
        self._snapshot: TrafficSnapshot | None = None
        self._findings: list[OpenFinding] = []
        self._pairs: list[PairRates] = []

    def compose(self) -> ComposeResult:
        """Make the header, the tables of which one is shown, the newest findings, and the filter."""
        yield Static("", id="header", markup=False)
        with ContentSwitcher(initial="pairs", id="views"):
            for name in ("pairs", "hosts", "findings"):
                yield _table(name)
        yield Static("", id="news", markup=False)
        yield Input(placeholder="filter: part of a name, address, dialect or finding", id="filter", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to refresh."""
        self._begun = True
        self.set_interval(self._interval, self._refresh_snapshot)
        self._refresh_snapshot()
        self.query_one("#pairs").focus()

    # Refreshing

    def _refresh_snapshot(self) -> None:
        if not self._paused:
            self._snapshot = self._latest()
        self._show()

    def on_resize(self) -> None:
        """Choose the widths again."""
        self._show()

    def _show(self) -> None:
        snapshot = self._snapshot
        # A resize may come before the widgets exist.
        if not self._begun:
            return
        # The tables are on the first screen, even while another covers it.
        main = self.screen_stack[0]
        header = main.query_one("#header", Static)
        state = self._ended() or ("paused" if self._paused else "")
        parts = [f"{self._name}"]
        if snapshot is None:
            header.update(Text(f"{self._name}: {state or 'no MXoE frame yet'}", no_wrap=True))
            return
        parts.append(summary_text(snapshot))
        if state:
            parts.insert(1, state.upper())
        if self._wanted:
            parts.append(f"filter {printable(self._wanted)}")
        header.update(Text("  ".join(parts), no_wrap=True, overflow="ellipsis"))
        labels = labels_of(snapshot, short=self.size.width < _WIDE)
        self._show_pairs(main, snapshot, labels)
        self._show_hosts(main, snapshot, labels)
        self._show_findings(main, snapshot, labels)
        if isinstance(self.screen, ConversationScreen) and snapshot.conversation is not None:
            self.screen.update(snapshot.conversation, snapshot, labels)

    def _show_pairs(self, main: Screen[Any], snapshot: TrafficSnapshot, labels: HostLabels) -> None:
        found = [
            each
            for each in sorted_pairs(snapshot, self._sort, reverse=self._reverse)
            if matches(self._wanted, each.hosts, snapshot, each.dialect)
        ]
        self._pairs = found[:_ROWS]
        table = main.query_one("#pairs", DataTable)
        wide = self.size.width >= _WIDE
        headings: list[str | Text] = [f"hosts ({len(found):,})"]
        for name, column in PAIR_COLUMNS.items():
            headings.append(_right(column.heading if wide else column.short, "reverse" if name == self._sort else ""))
        rows = []
        for each in self._pairs:
            troubled = bool(each.retransmit_rate)
            label = pair_label(each, labels)
            # The spaces around the arrow are all that a narrow terminal can spare here.
            cells: list[str | Text] = [Text(label if wide else label.replace(" ", ""), no_wrap=True)]
            for name, column in PAIR_COLUMNS.items():
                cells.append(_right(column.text(each), "yellow" if troubled and name == "retransmits" else ""))
            rows.append(cells)
        _fill(table, rows, headings, [f"{one:012x}{other:012x}" for one, other in (each.hosts for each in self._pairs)])

    def _show_hosts(self, main: Screen[Any], snapshot: TrafficSnapshot, labels: HostLabels) -> None:
        hosts = [each for each in snapshot.hosts if matches(self._wanted, [each.address], snapshot, *each.dialects)]
        hosts.sort(key=lambda each: each.sent.byte_rate + each.received.byte_rate, reverse=not self._reverse)
        headings: list[str | Text] = [f"host ({len(hosts):,})"]
        headings += [*map(_right, ("sent/s", "bytes/s", "received/s", "bytes/s", "peers", "flight")), "dialect"]
        rows = []
        for each in hosts[:_ROWS]:
            name, *numbers, dialect = host_cells(each, labels)
            if snapshot.names.get(each.address) and self.size.width >= _WIDE:
                name = f"{name} {mac_text(each.address)}"
            rows.append([Text(name), *map(_right, numbers), Text(dialect)])
        table = main.query_one("#hosts", DataTable)
        _fill(table, rows, headings, [f"{each.address:012x}" for each in hosts[:_ROWS]])

    def _show_findings(self, main: Screen[Any], snapshot: TrafficSnapshot, labels: HostLabels) -> None:
        self._findings = [
            each
            for each in snapshot.findings
            if matches(self._wanted, [party.address for party in each.finding.concerns], snapshot, each.finding.id)
        ]
        rows = [
            [
                Text(each.finding.severity, _COLOURS[each.finding.severity]),
                Text(day_text(each.first_ns, 0)[:8]),
                Text(finding_text(each, labels), no_wrap=True),
            ]
            for each in self._findings[:_ROWS]
        ]
        headings = ["severity", "since (UTC)", f"finding ({len(self._findings):,}); enter shows evidence and advice"]
        _fill(main.query_one("#findings", DataTable), rows, headings)
        news = Text(no_wrap=True, overflow="ellipsis")
        for place, each in enumerate(self._findings[:_FINDINGS_LINES]):
            news.append("\n" if place else "").append(finding_text(each, labels), _COLOURS[each.finding.severity])
        hidden = len(self._findings) - _FINDINGS_LINES
        if hidden > 0:
            news.append(f"\n{count_of(hidden, 'more finding')}: press f", "dim")
        main.query_one("#news", Static).update(news)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys of the tables only where these are shown."""
        if isinstance(self.screen, ModalScreen):
            return False
        # Elsewhere the footer would offer keys that change what is not visible.
        return len(self.screen_stack) == 1 or action in ("pause", "quit")

    def action_view(self, name: str) -> None:
        """Show one of the tables."""
        self.query_one(ContentSwitcher).current = name
        # The table of findings contains the lines below the others.
        self.query_one("#news").display = name != "findings"
        self.query_one(f"#{name}").focus()

    def action_sort(self) -> None:
        """Sort pairs by the next column."""
        names = list(PAIR_COLUMNS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self._show()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._reverse = not self._reverse
        self._show()

    def action_pause(self) -> None:
        """Stop refreshing, or continue; frames are counted at the same time."""
        self._paused = not self._paused
        self._refresh_snapshot()

    def action_help(self) -> None:
        """Explain columns and keys."""
        self.push_screen(HelpScreen())

    def action_filter(self) -> None:
        """Ask for a filter."""
        entry = self.query_one("#filter", Input)
        entry.add_class("shown")
        entry.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter while it is typed."""
        self._wanted = event.value
        self._show()

    def on_input_submitted(self) -> None:
        """Close the filter's line; the filter stays."""
        self._close_filter()

    def on_key(self, event: Key) -> None:
        """Remove the filter with Escape."""
        entry = self.query("#filter")
        # Other screens have no filter, and use the key themselves.
        if event.key == "escape" and entry and entry.only_one().has_class("shown"):
            self._wanted = ""
            self.query_one("#filter", Input).value = ""
            self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("shown")
        self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()
        self._show()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter a pair or a finding."""
        place = event.cursor_row
        if event.data_table.id == "pairs" and place < len(self._pairs):
            # Before the screen opens: the snapshot with the conversation comes only after the next refresh.
            self._watch(self._pairs[place].hosts)
            self.push_screen(ConversationScreen(), lambda _result: self._watch(None))
        elif event.data_table.id == "findings" and place < len(self._findings) and self._snapshot is not None:
            self.push_screen(FindingScreen(self._findings[place], self._snapshot))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column whose heading was clicked."""
        # The first column, the hosts, has no order of its own.
        if event.data_table.id == "pairs" and event.column_index:
            self._sort = list(PAIR_COLUMNS)[event.column_index - 1]
            self._show()


def _table(name: str) -> DataTable[str | Text]:
    return DataTable(id=name, cursor_type="row", zebra_stripes=False, cell_padding=1)


def _right(text: str, style: str = "") -> Text:
    return Text(text, style, justify="right")


def _number(endpoint: int | None) -> str:
    return "?" if endpoint is None else str(endpoint)


def _fill(
    table: DataTable[Any],
    rows: Iterable[Sequence[str | Text]],
    headings: Sequence[str | Text] | None = None,
    keys: Sequence[str] | None = None,
) -> None:
    """Replace the contents of a table; the cursor stays on its row, which ``keys`` identify, or on its place."""
    # Both are lost when the table is cleared.
    place, offset = table.cursor_row, table.scroll_offset
    key = None
    if keys is not None and table.row_count and 0 <= place < table.row_count:
        key = table.ordered_rows[place].key.value
    table.clear(columns=headings is not None)
    if headings is not None:
        table.add_columns(*headings)
    for number, row in enumerate(rows):
        table.add_row(*row, key=None if keys is None else keys[number])
    if key is not None and keys is not None and key in keys:
        place = keys.index(key)
    if table.row_count:
        table.move_cursor(row=min(place, table.row_count - 1), animate=False, scroll=False)
        table.scroll_to(offset.x, offset.y, animate=False)
