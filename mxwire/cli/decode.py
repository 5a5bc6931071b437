"""``mxwire decode``: the frames of captures as lines, trees, JSON Lines, columns or a table."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.capture_set import CaptureSet, OpenCapture, prepare_dataset
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.option_class import argument, group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.reading import decoded_batches, note_frames, note_undecided, refuse_empty, refuse_overwriting
from mxwire.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxwire.analysis.marks import FrameMarker
    from mxwire.analysis.selection import Selection
    from mxwire.cli.writer_process import WriterProcess
    from mxwire.report.frame_output import FrameOutput


@conflicts("--write", "--to", "--json", "--verbose", "--fields", error="-w writes a capture: omit {option}")
@conflicts("--to", "--json", "--verbose", error="--to writes a table: omit {option}")
@conflicts("--on", "--count", "--write", error="--on writes a table of all frames: omit --count and --write")
@requires("--piece", one_of=("--on",), error="--piece divides captures among workers: add --on local")
@options_class
class DecodeOptions:
    """The options of mxwire decode."""

    files: tuple[str, ...] = argument(metavar="FILE...", nargs=-1, required=True, type=shared.FILE)
    verbose: bool = shared.flag_option("Also print every field with value, meaning and bytes.", "-v", "--verbose")
    as_json: bool | str = shared.full_json_option("JSON Lines: one object per frame.")
    fields: str | None = shared.name_option(
        "Print only these fields, tab-separated; with --to, write only these columns; with --json, only these fields.",
        "field",
        "--fields A,B",
        listed=True,
    )
    target: Path | None = shared.set_table_option
    workers: WorkerOptions = group(WorkerOptions)
    piece: float = shared.piece_option
    write: str | None = shared.write_option(
        "Write the frames to FILE, with marks as comments and names of hosts in pcapng; - is standard output."
    )
    filters: FilterOptions = group(FilterOptions)
    count: int | None = shared.count_option("Stop after N frames.")
    decoding: DecodingOptions = group(DecodingOptions)
    time_format: str = shared.time_format_option
    analysis: bool = option(
        "Follow the messages to mark retransmissions, duplicates, acknowledgements and so on.",
        "--analysis/--no-analysis",
        default=True,
    )

    @property
    def columns(self) -> list[str] | None:
        """The names of ``--fields``, if it is given."""
        return None if self.fields is None else _field_names(self.fields)

    def check(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for options that would otherwise be ignored."""
        if not self.analysis and self.filters.selection().needs_marks:
            raise OptionError(
                "--flag, --kind, --match, --message and marks in --where need the analysis: leave out --no-analysis"
            )
        if self.columns is not None and self.verbose and not self.as_json:
            raise OptionError("--fields prints columns: omit --verbose")


@command_with(DecodeOptions)
def command(options: DecodeOptions) -> None:
    """Decode captures (pcap, pcapng, gzip or zstd; - is standard input) frame by frame.

    With --on, many captures are decoded by several processes into one partitioned table, the folder of --to. A large
    capture is divided among them.
    """
    with ExitStack() as stack:
        # The process starts before the options are examined, which loads NumPy.
        process = None if options.target is None or options.workers.analyse_set() else _writer_process(stack)
        options.check()

        inputs, octets = Inputs(options.files), round(options.piece * 1e6)
        captures = CaptureSet(
            inputs, options.filters, options.decoding, options.workers, joined=options.analysis, piece=octets
        )
        if captures.merges:
            _decode_set(captures, options)
        else:
            _decode_all(captures, options, process)


def _writer_process(stack: ExitStack) -> WriterProcess | None:
    """Start the process that writes the table, if possible."""
    from mxwire.cli.writer_process import WriterProcess

    process = WriterProcess.start()
    if process is not None:
        stack.callback(process.end)
    return process


def _decode_all(captures: CaptureSet, options: DecodeOptions, process: WriterProcess | None) -> None:
    """Output the frames of all captures, one after another."""
    from mxwire.cli.notes import note, wrote

    undecided: list[str] = []
    with ExitStack() as stack:
        output = _output(options, stack, process)
        decode = partial(_decode, output, options, undecided)
        for _ in captures.run(decode, until=lambda: output.shown == options.count):
            pass
    if options.target is not None and (output.shown or not captures.failed):
        wrote(output.shown, "frame", options.target)
    if options.write is not None and (output.shown or not captures.failed):
        wrote(output.shown, "frame", "standard output" if options.write == "-" else options.write)
    note_undecided(undecided, len(options.files))
    if not output.shown and not captures.failed and captures.selection.is_limited:
        note("no frame matches the selection")
    captures.end()


def _decode(output: FrameOutput, options: DecodeOptions, undecided: list[str], capture: OpenCapture) -> Iterator[int]:
    """Output the frames of a capture, and yield the numbers of those shown."""

    selection, decoder, source = capture.selection, capture.decoder, capture.source
    marker = _marker(options, selection)
    before = output.shown
    output.begin(source.name, decoder, selection.names if options.filters.by_name else None)
    for decoded in decoded_batches(decoder, source, streams=options.target is None):
        if options.write is not None or options.filters.by_name:
            selection.names.learn(decoded)
            if output.shown == before:
                selection.names.add_all(source.names)
        marks = None if marker is None else marker.observe(decoded)
        places = capture.own(decoded, selection.places(decoded, marks, decoder.start_ns))
        places = places[: None if options.count is None else options.count - output.shown]
        output.show(decoded, places, marks)
        output.shown += len(places)
        yield len(places)
        if output.shown == options.count or (len(decoded) and selection.is_over(int(decoded.batch.number[-1]))):
            break
    else:
        refuse_empty(source, decoder)
        note_frames(source.name, decoder)
        if decoder.dialect is None and decoder.decoded and decoder.detector.is_undecided():
            undecided.append(source.name)
    selection.names.add_all(source.names)
    output.end(selection.names)


def _write_part(folder: Path, options: DecodeOptions, capture: OpenCapture) -> Iterator[int]:
    """Decode a capture into its part of the data set."""
    from mxwire.analysis.dataset import DatasetPart
    from mxwire.report.frame_output import FramePart

    with DatasetPart(folder, capture.name, "time_ns", capture.part) as part:
        yield from _decode(FramePart(part, options.columns, capture.place_of), options, [], capture)


def _decode_set(captures: CaptureSet, options: DecodeOptions) -> None:
    """Decode many captures into a data set."""
    from mxwire.cli.notes import wrote

    write = partial(_write_part, prepare_dataset(options.target, "decode", options.workers), options)
    rows = sum(frames for frames, _ in captures.run(write))
    wrote(rows, "frame", str(options.target), what=f"{captures.title}, ")
    captures.end()


def _marker(options: DecodeOptions, selection: Selection) -> FrameMarker | None:
    """The analysis; None if the user disabled it or the chosen columns do not need it."""
    from mxwire.analysis.marks import MARK_COLUMNS, FrameMarker

    columns = options.columns
    without = columns is not None and not options.as_json and set(columns).isdisjoint(MARK_COLUMNS)
    if not options.analysis or (without and not selection.uses_marks):
        return None
    return FrameMarker(facts=selection.uses_facts)


def _output(options: DecodeOptions, stack: ExitStack, process: WriterProcess | None) -> FrameOutput:
    from mxwire.cli.notes import note

    if options.write is not None:
        from mxwire.cli.frame_capture import FrameCapture

        if options.write != "-":
            refuse_overwriting(options.files, Path(options.write))
        if shared.is_plain_pcap(options.write):
            note(f"{options.write}: only pcapng has comments and names of hosts; this is pcap, without them")
        return FrameCapture(options.write, stack)
    if options.target is not None:
        from mxwire.analysis.table import TableWriter
        from mxwire.report.frame_output import FrameTable

        refuse_overwriting(options.files, options.target)
        opener = None if process is None else process.open
        return FrameTable(stack.enter_context(TableWriter(options.target, options.columns, opener)))
    several = len(options.files) > 1
    if options.as_json:
        from mxwire.report.frame_json import FrameJson

        return FrameJson(options.columns, full=options.as_json == "full", verbose=options.verbose, several=several)
    from mxwire.report.frame_text import FrameColumns, FrameListing
    from mxwire.report.terminal import is_coloured

    if options.columns is not None:
        return FrameColumns(options.columns)
    style = click.style if is_coloured() else None
    return FrameListing(options.time_format, verbose=options.verbose, several=several, style=style)


def _field_names(text: str) -> list[str]:
    """Names of columns; raise :class:`~mxwire.errors.MxwireError` for unknown and repeated ones."""
    from mxwire.analysis.table import COLUMN_NAMES

    names = [each.strip() for each in text.split(",") if each.strip()]
    for name in names:
        if name not in COLUMN_NAMES:
            raise OptionError(_unknown_field(name, COLUMN_NAMES))
    if len(set(names)) < len(names):
        raise OptionError(f"--fields names a field twice: {text}")
    if not names:
        raise OptionError("--fields names no field: write it like --fields frame,type,lib_seqnum")
    return names


def _unknown_field(name: str, known: Sequence[str]) -> str:
    """The error for an unknown field: the field behind a label of the lines, or the nearest names."""
    from mxwire.report.legend import LEGEND
    from mxwire.words import suggestion

    lister = "mxwire formats --fields"
    label = LEGEND.get(name.lower())
    if label is None:
        return f"no field {name!r}{suggestion(name, known, lister=lister, most=1)}"
    return f"no field {name!r}: the label in a line stands for {label.fields_text}; {lister} lists them all"
