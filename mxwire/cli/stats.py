"""``mxwire stats``: round trips, throughput, delays and gaps."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Literal

import click

from mxwire.cli.options import DecodingOptions, Inputs, decoding_options, input_options, integer_option, json_option

EPILOG = """\b
A ping and its pong are two messages of the same length, in opposite directions, one after the other. omx_perf prints
half the ping-to-ping interval; the time to the last byte of the pong excludes the delay in the initiating host, if the
capture was made there. MB/s (10^6) are computed from the median, and the confidence interval of the median by
bootstrap. p10 and p90 need 10 samples, p99 needs 100.

\b
Examples:
  mxwire stats trace.pcap
  mxwire stats --by endpoint --sort retransmissions trace.pcap     the worst pairs of endpoints first
  mxwire stats -i eth0 --duration 10              the frames that pass an interface in 10 s
  mxwire stats --plot pingpong.svg trace.pcap     latency, bandwidth, bytes in flight, gaps (also .png, .html)
  mxwire stats --json trace.pcap | jq -c 'select(.record == "half_iteration") | [.length, .median_ns]'
"""
_SORTS = ("bytes", "frames", "messages", "rate", "retransmissions", "duplicates", "failed", "delivery")


@click.command(epilog=EPILOG)
@input_options
@json_option("JSON Lines: one object per measurement, durations in ns.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also draw plots: .svg, .png or .html (needs matplotlib).",
)
@click.option(
    "--by", type=click.Choice(["host", "endpoint"]), default="host", show_default=True, help="Pairs of these in a row."
)
@click.option(
    "--sort",
    type=click.Choice(_SORTS),
    default="bytes",
    show_default=True,
    metavar="KEY",
    help=f"Order of the pairs, the greatest first: {', '.join(_SORTS)}.",
)
@integer_option("Random seed, for the bootstrap.", "--seed", default=0)
@decoding_options
def command(
    inputs: Inputs,
    as_json: bool,
    plot: Path | None,
    by: Literal["host", "endpoint"],
    sort: str,
    seed: int,
    decoding: DecodingOptions,
) -> None:
    """Measure captures: totals and rates per pair of hosts or endpoints, half round trips and throughput by length,
    delays of acknowledgements and retransmissions, gaps between frames, and the amounts in flight and retransmitted."""
    from mxwire.analysis.timing import Timing
    from mxwire.cli.notes import wrote
    from mxwire.cli.reading import Failures, judged_batches, note_messages, refuse_empty, refuse_overwriting
    from mxwire.errors import MxwireError
    from mxwire.report.document import Paragraph, show
    from mxwire.report.json_line import json_line
    from mxwire.report.pairs import PairOrder, pair_blocks, pair_records
    from mxwire.report.pointers import SEE_MESSAGES
    from mxwire.report.timing import timing_blocks, timing_records

    if plot is not None:
        from mxwire.report.plot_timing import check_plot

        if len(inputs.files) > 1:
            raise MxwireError("--plot draws a single capture: name one file")
        check_plot(plot)
        refuse_overwriting(inputs.files, plot)
    order = PairOrder(by, sort)
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, decoding.ethertypes) as reader:
            decoder, timing = decoding.decoder(), Timing(seed)
            for decoded in judged_batches(decoder, reader):
                timing.observe(decoded)
            timing.finish()
            refuse_empty(reader, decoder)
            if as_json:
                several = {"file": reader.name} if len(inputs.files) > 1 else {}
                for record in chain(timing_records(timing), pair_records(timing, order)):
                    click.echo(json_line(several | record, decoder.start_ns))
            else:
                blocks = timing_blocks(reader.name, timing, pair_blocks(timing, order))
                named = timing.messages and not inputs.live
                show([*blocks, Paragraph(SEE_MESSAGES)] if named else blocks)
            note_messages(reader.name, timing.follower, decoder)
            if plot is not None:
                from mxwire.report.plot_timing import draw_timing

                draw_timing(plot, Path(reader.name).name, timing)
                wrote(decoder.decoded, "frame", plot, what="plots of ")
    failures.end()
