"""``mxwire decode``: the frames of captures as lines, trees, JSON Lines, columns or a table."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command
from mxwire.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxwire.analysis.marks import FrameMarker
    from mxwire.analysis.selection import Selection
    from mxwire.cli.capture_set import Files
    from mxwire.cli.writer_process import WriterProcess
    from mxwire.report.frame_output import FrameOutput
    from mxwire.report.merged_records import Record


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Parsed options of ``mxwire decode``."""

    filters: FilterOptions
    decoding: shared.DecodingOptions
    count: int | None
    verbose: bool
    as_json: bool
    fields: list[str] | None
    target: Path | None
    time_format: str
    analysis: bool
    write: str | None

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for options that would otherwise be ignored."""
        if self.filters.selection().needs_marks and not self.analysis:
            raise OptionError(
                "--flag, --kind, --match, --message and marks in --where need the analysis: leave out --no-analysis"
            )
        if self.fields is not None and self.verbose and not self.as_json:
            raise OptionError("--fields prints columns: omit --verbose")


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=shared.FILE)
@click.option("-v", "--verbose", is_flag=True, help="Also print every field with value, meaning and bytes.")
@shared.json_option("JSON Lines: one object per frame.")
@shared.name_option(
    "Print only these fields, tab-separated; with --to, write only these columns; with --json, only these fields.",
    "field",
    "--fields",
    metavar="A,B",
    listed=True,
)
@shared.set_table_option
@shared.worker_options
@shared.write_option(
    "Write the frames to FILE, with marks as comments and names of hosts in pcapng; - is standard output."
)
@conflicts("--write", "--to", "--json", "--verbose", "--fields", error="-w writes a capture: omit {option}")
@conflicts("--to", "--json", "--verbose", error="--to writes a table: omit {option}")
@conflicts("--on", "--count", "--write", error="--on writes a table of all frames: omit --count and --write")
@filter_options()
@shared.count_option("Stop after N frames.")
@shared.decoding_options
@shared.time_format_option
@click.option(
    "--analysis/--no-analysis",
    default=True,
    show_default=True,
    help="Follow the messages to mark retransmissions, duplicates, acknowledgements and so on.",
)
def command(files: tuple[str, ...], fields: str | None, workers: shared.WorkerOptions, **given: Any) -> None:
    """Decode captures (pcap, pcapng, gzip or zstd; - is standard input) frame by frame.

    With --on, many captures are decoded by several processes into one partitioned table, the folder of --to.
    """
    with ExitStack() as stack:
        # The process starts before the options are examined, which loads NumPy.
        process = None if given["target"] is None or workers.analyse_set() else _writer_process(stack)
        options = DecodeOptions(fields=_field_names(fields) if fields is not None else None, **given)
        if workers.analyse_set():
            _decode_set(files, options, workers)
        else:
            _decode_all(files, options, process)


def _writer_process(stack: ExitStack) -> WriterProcess | None:
    """Start the process that writes the table, if possible."""
    from mxwire.cli.writer_process import WriterProcess

    process = WriterProcess.start()
    if process is not None:
        stack.callback(process.end)
    return process


def _decode_all(files: tuple[str, ...], options: DecodeOptions, process: WriterProcess | None) -> None:
    """Decode all files, one after another."""
    from mxwire.cli.notes import note, wrote
    from mxwire.cli.reading import Failures, note_undecided

    failures = Failures()
    undecided: list[str] = []
    shown = 0
    with ExitStack() as stack:
        output = _output(options, files, stack, process)
        for path in files:
            with failures.noted():
                left = None if options.count is None else options.count - shown
                shown += _decode(path, options, output, left, undecided)
            if shown == options.count:
                break
    if options.target is not None and (shown or not failures.count):
        wrote(shown, "frame", options.target)
    if options.write is not None and (shown or not failures.count):
        wrote(shown, "frame", "standard output" if options.write == "-" else options.write)
    note_undecided(undecided, len(files))
    if not shown and not failures.count and options.filters.selection().is_limited:
        note("no frame matches the selection")
    failures.end()


def _decode(path: str, options: DecodeOptions, output: FrameOutput, most: int | None, undecided: list[str]) -> int:
    """Decode one file; return the number of frames shown, at most ``most``."""
    from mxwire.cli.reading import capture_of, decoded_batches, is_undecided, note_frames, refuse_empty, selection_of

    selection = selection_of(options.filters, path, options.decoding)
    decoder = options.decoding.decoder()
    marker = _marker(options, selection)
    shown = 0
    with capture_of(path, options.decoding.skip_damage) as reader:
        output.begin(reader.name, decoder, selection.names if options.filters.by_name else None)
        for decoded in decoded_batches(decoder, reader, streams=options.target is None):
            if options.write is not None or options.filters.by_name:
                selection.names.learn(decoded)
                if not shown:
                    selection.names.add_all(reader.names)
            marks = None if marker is None else marker.observe(decoded)
            places = selection.places(decoded, marks, decoder.start_ns)[: None if most is None else most - shown]
            output.show(decoded, places, marks)
            shown += len(places)
            if shown == most or (len(decoded) and selection.is_over(int(decoded.batch.number[-1]))):
                break
        else:
            refuse_empty(reader, decoder)
            note_frames(reader.name, decoder)
            if is_undecided(decoder):
                undecided.append(reader.name)
        selection.names.add_all(reader.names)
        output.end(selection.names)
    return shown


def _decode_set(names: tuple[str, ...], options: DecodeOptions, workers: shared.WorkerOptions) -> None:
    """Decode many captures into a data set."""
    from mxwire.cli.capture_set import CaptureSet, prepare_dataset
    from mxwire.cli.notes import wrote

    if options.count is not None or options.write is not None:
        raise OptionError("--on writes a table of all frames: omit --count and --write")
    folder = prepare_dataset(options.target, "decode", workers)
    captures = CaptureSet(names, workers, joined=options.analysis)
    rows = sum(
        each["rows"] for records in captures.records(partial(_decode_files, options, folder)) for each in records
    )
    wrote(rows, "frame", str(options.target), what=f"{captures.title}, ")
    captures.end()


def _decode_files(options: DecodeOptions, folder: Path, files: Files) -> Iterator[Record]:
    """Decode a capture into its part of the data set, and yield the number of its rows."""
    from mxwire.analysis.dataset import DatasetPart
    from mxwire.analysis.table import TableBuilder
    from mxwire.cli.reading import decoded_batches, note_frames, refuse_empty, ring_of, selection_of

    selection = selection_of(options.filters, files, options.decoding)
    decoder, marker = options.decoding.decoder(), _marker(options, selection)
    # The table is partitioned by these two columns.
    fields = None if options.fields is None else [*dict.fromkeys([*options.fields, "source", "time_ns"])]
    builder, rows = TableBuilder(fields), 0
    with ring_of(files, options.decoding.skip_damage) as ring, DatasetPart(folder, files[0], "time_ns") as part:
        for decoded in decoded_batches(decoder, ring):
            marks = None if marker is None else marker.observe(decoded)
            places = selection.places(decoded, marks, decoder.start_ns)
            if len(places):
                file, before = ring.place_of(int(decoded.batch.number[0]))
                part.put(builder.columns(decoded, file, None if len(places) == len(decoded) else places, marks, before))
                rows += len(places)
        refuse_empty(ring, decoder)
        note_frames(ring.name, decoder)
    yield {"rows": rows}


def _marker(options: DecodeOptions, selection: Selection) -> FrameMarker | None:
    """The analysis; None if the user disabled it or the chosen columns do not need it."""
    from mxwire.analysis.marks import FrameMarker
    from mxwire.analysis.table import MARK_COLUMNS

    without = options.fields is not None and not options.as_json and set(options.fields).isdisjoint(MARK_COLUMNS)
    return (
        FrameMarker(facts=selection.uses_facts) if options.analysis and (selection.uses_marks or not without) else None
    )


def _output(
    options: DecodeOptions, files: tuple[str, ...], stack: ExitStack, process: WriterProcess | None
) -> FrameOutput:
    from mxwire.cli.notes import note
    from mxwire.cli.reading import refuse_overwriting

    if options.write is not None:
        from mxwire.cli.frame_capture import FrameCapture

        if options.write != "-":
            refuse_overwriting(files, Path(options.write))
        if options.write.removesuffix(".gz").removesuffix(".zst").endswith((".pcap", ".cap")):
            note(f"{options.write}: only pcapng has comments and names of hosts; this is pcap, without them")
        return FrameCapture(options.write, stack)
    if options.target is not None:
        from mxwire.analysis.table import TableWriter
        from mxwire.report.frame_output import FrameTable

        refuse_overwriting(files, options.target)
        opener = None if process is None else process.open
        return FrameTable(stack.enter_context(TableWriter(options.target, options.fields, opener)))
    from mxwire.report.frame_text import FrameColumns, FrameJson, FrameListing
    from mxwire.report.terminal import is_coloured

    several = len(files) > 1
    if options.as_json:
        return FrameJson(options.fields, verbose=options.verbose, several=several)
    if options.fields is not None:
        return FrameColumns(options.fields)
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
