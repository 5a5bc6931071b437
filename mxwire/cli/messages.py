"""``mxwire messages``: the messages of captures, and how each ended; or their conversations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.conversations import CapturedMessage, Follower
    from mxwire.analysis.host_names import HostNames
    from mxwire.cli.capture_set import Files
    from mxwire.report.merged_records import Record


@click.command(cls=Command)
@shared.input_options
@shared.json_option("JSON Lines: one object per message.")
@shared.set_table_option
@shared.worker_options
@conflicts("--to", "--json", error="--to writes a table: omit --json")
@conflicts(
    "--by conversation",
    "--to",
    "--on",
    "--incomplete",
    error="--by conversation lists totals: omit --to, --on and --incomplete",
)
@filter_options()
@click.option(
    "--by",
    type=click.Choice(["message", "conversation"]),
    default="message",
    show_default=True,
    help="List the messages, or the conversations with their totals.",
)
@click.option("--incomplete", is_flag=True, help="Only messages that failed, or were only partly captured.")
@shared.decoding_options
def command(
    inputs: shared.Inputs,
    as_json: bool,
    target: Path | None,
    workers: shared.WorkerOptions,
    filters: FilterOptions,
    by: str,
    incomplete: bool,
    decoding: shared.DecodingOptions,
) -> None:
    """List the messages of captures: TINY, SMALL, MEDIUM and large ones (RNDV), each once, regardless of
    retransmissions.

    Filters for single frames (--type, --frames, --between, --flag, --where) select the messages of which at least one
    frame meets all of them. With --by conversation, they select the conversations of which at least one message meets
    them; the totals are those of the whole conversation.

    With --on, many captures are analysed by several processes into one partitioned table, the folder of --to. A message
    that continues in the next file of a ring (capture -C or -G) is followed there.
    """
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.selection import MessageSelector
    from mxwire.cli.conversations import list_conversations
    from mxwire.cli.notes import note, wrote
    from mxwire.cli.reading import Failures, followed, refuse_empty, selection_of

    if by == "conversation":
        list_conversations(inputs, as_json, filters, decoding)
        return
    filters.selection()  # mistakes are reported before anything is read
    if workers.analyse_set(inputs.live):
        _list_set(inputs.files, workers, target, filters, incomplete, decoding)
        return
    failures = Failures()
    shown = seen = 0
    with ExitStack() as stack:
        output = _output(inputs.files, as_json, target, stack)
        for name in inputs.names:
            with failures.noted(), inputs.open(name, decoding.ethertypes, decoding.skip_damage) as reader:
                selection = selection_of(filters, name, decoding, live=inputs.live)
                selector = MessageSelector(selection)
                decoder, follower = decoding.decoder(), Follower(marks=selector.needs_marks)
                begun = False
                for message in followed(follower, decoder, reader, streams=target is None, selector=selector):
                    if incomplete and not message.is_incomplete:
                        continue
                    if not begun:
                        selection.names.add_all(reader.names)
                        output.begin(reader.name, decoder.start_ns or 0, selection.names if filters.by_name else None)
                        begun = True
                    output.show(message, follower)
                    shown += 1
                seen += follower.messages
                refuse_empty(reader, decoder, selection)
        output.end()
    if target is not None and (shown or not failures.count):
        wrote(shown, "message", target)
    if seen and not shown and not failures.count:
        note("no message matches the selection")
    failures.end()


def _list_set(
    names: tuple[str, ...],
    workers: shared.WorkerOptions,
    target: Path | None,
    filters: FilterOptions,
    incomplete: bool,
    decoding: shared.DecodingOptions,
) -> None:
    """Write the messages of many captures into a data set."""
    from mxwire.cli.capture_set import CaptureSet, prepare_dataset
    from mxwire.cli.notes import wrote

    folder = prepare_dataset(target, "messages", workers)
    captures = CaptureSet(names, workers)
    analysis = partial(_list_files, folder, filters, incomplete, decoding)
    rows = sum(each["rows"] for records in captures.records(analysis) for each in records)
    wrote(rows, "message", str(target), what=f"{captures.title}, ")
    captures.end()


def _list_files(
    folder: Path, filters: FilterOptions, incomplete: bool, decoding: shared.DecodingOptions, files: Files
) -> Iterator[Record]:
    """Write the messages of a capture into its part of the data set, and yield their number."""
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.dataset import DatasetPart
    from mxwire.analysis.message_table import message_columns, message_row
    from mxwire.analysis.selection import MessageSelector
    from mxwire.analysis.table_file import ROWS
    from mxwire.cli.reading import followed, refuse_empty, ring_of, selection_of

    selector = MessageSelector(selection_of(filters, files, decoding))
    decoder, follower = decoding.decoder(), Follower(marks=selector.needs_marks)
    rows: list[tuple[Any, ...]] = []
    count = 0
    with ring_of(files, decoding.skip_damage) as ring, DatasetPart(folder, files[0], "start_ns") as part:
        for message in followed(follower, decoder, ring, streams=True, selector=selector):
            if incomplete and not message.is_incomplete:
                continue
            file, before = ring.place_of(next(message.frames)[0])
            rows.append(message_row(file, message, follower.names, before))
            count += 1
            if len(rows) == ROWS:
                part.put(message_columns(rows))
                rows = []
        part.put(message_columns(rows))
        refuse_empty(ring, decoder)
    yield {"rows": count}


def _output(files: tuple[str, ...], as_json: bool, target: Path | None, stack: ExitStack) -> _MessageOutput:
    if target is not None:
        return _MessageTableFile(files, target, stack)
    return _MessageJson(len(files) > 1) if as_json else _MessageListing(files)


class _MessageOutput(ABC):
    """A destination of messages."""

    def begin(self, path: str, start_ns: int, names: HostNames | None = None) -> None:
        """Start the messages of a capture; lines show ``names`` instead of addresses."""
        self.path = path
        self.start_ns = start_ns
        self.host_names = names

    @abstractmethod
    def show(self, message: CapturedMessage, follower: Follower) -> None:
        """Output a message."""

    def end(self) -> None:  # noqa: B027 - JSON needs no end
        """Finish the output."""


class _MessageListing(_MessageOutput):
    def __init__(self, files: tuple[str, ...]) -> None:
        from mxwire.report.messages import message_layout
        from mxwire.report.terminal import terminal_width

        self._several = len(files) > 1
        self._live = not files
        self._shown = False
        self._width = terminal_width()
        self._layout = message_layout(self._width)

    def begin(self, path: str, start_ns: int, names: HostNames | None = None) -> None:
        super().begin(path, start_ns, names)
        if self._several:
            click.echo(f"== {path}")
        click.echo(self._layout.heading())
        self._shown = True

    def show(self, message: CapturedMessage, follower: Follower) -> None:
        for line in self._layout.lines(message, self.start_ns, self._width, self.host_names):
            click.echo(line)

    def end(self) -> None:
        from mxwire.report.document import Paragraph, show
        from mxwire.report.pointers import SEE_MESSAGE

        if self._shown and not self._live:
            click.echo()
            show([Paragraph(SEE_MESSAGE)])


class _MessageJson(_MessageOutput):
    def __init__(self, several: bool) -> None:
        from mxwire.report.json_line import json_line
        from mxwire.report.messages import message_record

        self._several = several
        self._encode = json_line
        self._record = message_record

    def show(self, message: CapturedMessage, follower: Follower) -> None:
        record = self._record(message, follower.names)
        click.echo(self._encode({"file": self.path} | record if self._several else record, self.start_ns))


class _MessageTableFile(_MessageOutput):
    def __init__(self, files: tuple[str, ...], target: Path, stack: ExitStack) -> None:
        from mxwire.analysis.message_table import MessageTable
        from mxwire.cli.reading import refuse_overwriting

        refuse_overwriting(files, target)
        self._table = stack.enter_context(MessageTable(target))

    def show(self, message: CapturedMessage, follower: Follower) -> None:
        self._table.add_message(self.path, message, follower.names)
