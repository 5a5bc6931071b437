"""``mxwire stats``: round trips, throughput, delays and gaps."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from mxwire.cli import options as shared
from mxwire.cli.capture_set import CaptureSet, OpenCapture, print_results
from mxwire.cli.completion import folders
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.reading import judged_batches, note_messages, refuse_empty, refuse_overwriting
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.time_sequence import SequenceGraph
    from mxwire.analysis.timing import Timing
    from mxwire.report.pairs import MeasuredCapture, PairOrder

_SORTS = ("bytes", "frames", "messages", "rate", "retransmits", "duplicates", "failed", "delivery")


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
@options_class
class StatsOptions:
    """The options of mxwire stats."""

    inputs: Inputs = group(Inputs)
    as_json: bool = shared.json_option("JSON Lines: one object per measurement, durations in ns.")
    plot: Path | None = shared.plot_option(
        "Also draw plots: .svg, .png or .html (needs matplotlib).", ".svg", ".png", ".html"
    )
    by: Literal["host", "endpoint"] = option(
        "List pairs of hosts, or of endpoints.", "--by [host|endpoint]", default="host"
    )
    sort: str = option(
        f"Order of the pairs, largest first: {', '.join(_SORTS)}.",
        "--sort KEY",
        type=click.Choice(_SORTS),
        default="bytes",
    )
    xplot: Path | None = option(
        "Also write time-sequence and throughput graphs for xplot into DIR.",
        "--xplot DIR",
        type=click.Path(path_type=Path, file_okay=False),
        shell_complete=folders,
    )
    message: int | None = shared.integer_option(
        "The message to draw in a time-sequence graph, by its number in mxwire messages.", "--message", least=1
    )
    conversation: int | None = shared.integer_option(
        "Time-sequence graphs of this conversation, as numbered by mxwire messages --by conversation.  "
        "[default: the one with the most bytes]",
        "--conversation",
        least=1,
    )
    seed: int = shared.integer_option("Random seed, for the bootstrap.", "--seed", default=0)
    workers: WorkerOptions = group(WorkerOptions)
    filters: FilterOptions = group(FilterOptions, "messages", "by_name")
    decoding: DecodingOptions = group(DecodingOptions)

    @property
    def draws(self) -> bool:
        """True if graphs are drawn."""
        return self.plot is not None or self.xplot is not None


@command_with(StatsOptions)
def command(options: StatsOptions) -> None:
    """Measure captures: totals and rates per pair of hosts or endpoints, half round trips and throughput by length,
    delays of acknowledgements and retransmissions, gaps between frames, and the amounts in flight and retransmitted.

    A filter limits the frames that are counted and the messages that are measured, to those that mxwire decode and
    mxwire messages select; all frames are followed. Totals per pair of endpoints are those of whole conversations.

    With --on, many captures are measured by several processes, and merged: totals per pair, durations and gaps.
    """
    from mxwire.report.document import Heading, Paragraph, show
    from mxwire.report.pairs import MergedPairs, PairOrder, merged_blocks, pair_blocks
    from mxwire.report.pointers import SEE_MESSAGES
    from mxwire.report.timing import MergedTiming, duration_blocks, timing_blocks

    if options.draws and len(options.inputs.files) > 1:
        raise MxwireError(f"--{'plot' if options.plot is not None else 'xplot'} draws a single capture: name one file")
    if options.plot is not None:
        refuse_overwriting(options.inputs.files, options.plot)
    if options.xplot is not None:
        from mxwire.errors import create_folder

        create_folder(options.xplot)
    captures = CaptureSet(options.inputs, options.filters, options.decoding, options.workers)
    order = PairOrder(options.by, options.sort)
    timings, pairs = MergedTiming(), MergedPairs()

    for measured, origin in captures.run(partial(_measure, options, order, captures.merges), streams=options.as_json):
        if options.as_json:
            several = {"file": measured.timed.name} if captures.merges or len(options.inputs.files) > 1 else {}
            print_results((*measured.timed.results(), *measured.pairs), origin.start_ns, **several)
        elif not captures.merges:
            blocks = timing_blocks(measured.timed, pair_blocks(measured, order))
            named = measured.timed.totals.messages and not options.inputs.live
            show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
        if captures.merges:
            timings.add(measured.timed)
            for each in measured.pairs:
                pairs.add(each)
    if captures.merges:
        merged, durations, gaps = pairs.pairs(options.sort), timings.durations(), timings.gaps()
        if options.as_json:
            print_results((*merged, *durations, *([gaps] if gaps.count else [])))
        else:
            show([Heading(captures.title), *merged_blocks(merged), *duration_blocks(durations, gaps)])
    captures.end()


def _measure(options: StatsOptions, order: PairOrder, merges: bool, capture: OpenCapture) -> Iterator[MeasuredCapture]:
    """Measure a capture and yield the measurements; then draw its graphs."""
    from mxwire.analysis.time_sequence import FrameTrace
    from mxwire.analysis.timing import Timing
    from mxwire.report.pairs import PAIRS_SHOWN, MeasuredCapture

    decoder, timing = capture.decoder, Timing(options.seed, FrameTrace() if options.draws else None, capture.selection)
    for decoded in judged_batches(decoder, capture.source):
        timing.observe(decoded, decoder.start_ns)
    timing.finish()
    refuse_empty(capture.source, decoder, capture.selection)
    most = None if merges or options.as_json else PAIRS_SHOWN
    yield MeasuredCapture.of(capture.name, timing, order, merges, most)
    note_messages(capture.name, timing.follower, decoder)
    if options.draws:
        graphs = _graphs(capture.name, timing, options.message, options.conversation)
        _draw(timing, graphs, Path(capture.name).name, options.plot, options.xplot)


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
