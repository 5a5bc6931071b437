"""``mxwire stats``: round trips, throughput, delays and gaps."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from mxwire.cli import options as shared
from mxwire.cli.completion import folders
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.time_sequence import SequenceGraph
    from mxwire.analysis.timing import Timing
    from mxwire.cli.capture_set import Files
    from mxwire.report.merged_records import Record
    from mxwire.report.pairs import PairOrder

_SORTS = ("bytes", "frames", "messages", "rate", "retransmits", "duplicates", "failed", "delivery")


@click.command(cls=Command)
@shared.input_options
@shared.json_option("JSON Lines: one object per measurement, durations in ns.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also draw plots: .svg, .png or .html (needs matplotlib).",
)
@click.option(
    "--by",
    type=click.Choice(["host", "endpoint"]),
    default="host",
    show_default=True,
    help="List pairs of hosts, or of endpoints.",
)
@click.option(
    "--sort",
    type=click.Choice(_SORTS),
    default="bytes",
    show_default=True,
    metavar="KEY",
    help=f"Order of the pairs, largest first: {', '.join(_SORTS)}.",
)
@click.option(
    "--xplot",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    shell_complete=folders,
    help="Also write time-sequence and throughput graphs for xplot into DIR.",
)
@shared.integer_option(
    "The message to draw in a time-sequence graph, by its number in mxwire messages.", "--message", least=1
)
@shared.integer_option(
    "Time-sequence graphs of this conversation, as numbered by mxwire messages --by conversation.  "
    "[default: the one with the most bytes]",
    "--conversation",
    least=1,
)
@shared.integer_option("Random seed, for the bootstrap.", "--seed", default=0)
@shared.worker_options
@conflicts(
    "--message",
    "--conversation",
    error="--message and --conversation cannot be combined: choose the graph by one of them",
)
@requires(
    "--message",
    "--conversation",
    one_of=("--plot", "--xplot"),
    error="--message and --conversation choose the graph of --plot FILE or --xplot DIR: add one of them",
)
@conflicts("--on", "--plot", "--xplot", error="--plot and --xplot draw a single capture: omit --on")
@filter_options("messages", "by_name")
@shared.decoding_options
def command(
    inputs: shared.Inputs,
    as_json: bool,
    plot: Path | None,
    xplot: Path | None,
    message: int | None,
    conversation: int | None,
    by: Literal["host", "endpoint"],
    sort: str,
    seed: int,
    workers: shared.WorkerOptions,
    filters: FilterOptions,
    decoding: shared.DecodingOptions,
) -> None:
    """Measure captures: totals and rates per pair of hosts or endpoints, half round trips and throughput by length,
    delays of acknowledgements and retransmissions, gaps between frames, and the amounts in flight and retransmitted.

    A filter limits the frames that are counted and the messages that are measured, to those that mxwire decode and
    mxwire messages select; all frames are followed. Totals per pair of endpoints are those of whole conversations.

    With --on, many captures are measured by several processes, and merged: totals per pair, durations and gaps.
    """
    from mxwire.analysis.time_sequence import FrameTrace
    from mxwire.analysis.timing import Timing
    from mxwire.cli.reading import (
        Failures,
        judged_batches,
        note_messages,
        refuse_empty,
        refuse_overwriting,
        selection_of,
    )
    from mxwire.report.document import Paragraph, show
    from mxwire.report.json_line import json_line
    from mxwire.report.pairs import PairOrder, pair_blocks, pair_records
    from mxwire.report.pointers import SEE_MESSAGES
    from mxwire.report.timing import timing_blocks, timing_records

    draws = plot is not None or xplot is not None
    if draws and len(inputs.files) > 1:
        raise MxwireError(f"--{'plot' if plot is not None else 'xplot'} draws a single capture: name one file")
    if plot is not None:
        from mxwire.report.plot_timing import check_plot

        check_plot(plot)
        refuse_overwriting(inputs.files, plot)
    if xplot is not None:
        from mxwire.errors import create_folder

        create_folder(xplot)
    order = PairOrder(by, sort)
    filters.selection()  # mistakes are reported before anything is read
    if workers.analyse_set(inputs.live):
        from mxwire.cli.capture_set import CaptureSet
        from mxwire.report.merged_records import PairSet

        analysis = partial(_measure_files, order, seed, filters, decoding)
        CaptureSet(inputs.files, workers).merge(analysis, PairSet(sort), as_json)
        return
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, decoding.ethertypes, decoding.skip_damage) as reader:
            selection = selection_of(filters, name, decoding, live=inputs.live)
            decoder, timing = decoding.decoder(), Timing(seed, FrameTrace() if draws else None, selection)
            for decoded in judged_batches(decoder, reader):
                timing.observe(decoded, decoder.start_ns)
            timing.finish()
            refuse_empty(reader, decoder, selection)
            if as_json:
                several = {"file": reader.name} if len(inputs.files) > 1 else {}
                for record in chain(timing_records(timing), pair_records(timing, order)):
                    click.echo(json_line(several | record, decoder.start_ns))
            else:
                blocks = timing_blocks(reader.name, timing, pair_blocks(timing, order))
                named = timing.messages and not inputs.live
                show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
            note_messages(reader.name, timing.follower, decoder)
            if draws:
                _draw(timing, _graphs(reader.name, timing, message, conversation), Path(reader.name).name, plot, xplot)
    failures.end()


def _measure_files(
    order: PairOrder, seed: int, filters: FilterOptions, decoding: shared.DecodingOptions, files: Files
) -> Iterator[Record]:
    """Measure a capture, and yield its records."""
    from mxwire.analysis.timing import Timing
    from mxwire.cli.reading import judged_batches, note_messages, refuse_empty, ring_of, selection_of
    from mxwire.report.json_line import json_line
    from mxwire.report.merged_timing import sample_records
    from mxwire.report.pairs import pair_records
    from mxwire.report.timing import timing_records

    selection, decoder = selection_of(filters, files, decoding), decoding.decoder()
    timing = Timing(seed, None, selection)
    with ring_of(files, decoding.skip_damage) as ring:
        for decoded in judged_batches(decoder, ring):
            timing.observe(decoded, decoder.start_ns)
        timing.finish()
        refuse_empty(ring, decoder)
        for record in chain(timing_records(timing), pair_records(timing, order), sample_records(timing, order)):
            yield json.loads(json_line({"file": ring.name} | record, decoder.start_ns))
        note_messages(ring.name, timing.follower, decoder)


def _graphs(path: str, timing: Timing, message: int | None, conversation: int | None) -> list[SequenceGraph]:
    """The time-sequence graphs to draw: of a message, of a conversation, or of the conversation with the most bytes.

    Raises :class:`~mxwire.errors.MxwireError` if the capture has no such message or conversation.
    """
    from mxwire.cli.notes import note
    from mxwire.words import count_of

    trace = timing.trace
    assert trace is not None
    if trace.omitted:
        note(f"{path}: the graphs lack the last {count_of(trace.omitted, 'frame')}, to limit memory")
    if message is not None:
        graph = trace.of_message(message)
        if graph is None:
            there = count_of(timing.messages, "message", none="none")
            raise MxwireError(f"{path}: no message {message} to draw: it has {there} (mxwire messages lists them)")
        return [graph]
    known = trace.conversations()
    if conversation is None:
        return trace.of_conversation(known[0]) if known else []
    if conversation not in known:
        raise MxwireError(
            f"{path}: no conversation {conversation} with messages (mxwire messages --by conversation lists them)"
        )
    return trace.of_conversation(conversation)


def _draw(timing: Timing, graphs: list[SequenceGraph], name: str, plot: Path | None, xplot: Path | None) -> None:
    from mxwire.cli.notes import note, wrote

    if plot is not None:
        from mxwire.report.plot_timing import draw_timing

        draw_timing(plot, name, timing, graphs)
        wrote(timing.frames, "frame", plot, what="plots of ")
    if xplot is not None:
        from mxwire.report.xplot import write_xplot

        for path in write_xplot(xplot, graphs, timing):
            note(f"wrote {path}")
