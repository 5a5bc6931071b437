"""``mxwire stats``: how long things took."""

from __future__ import annotations

from pathlib import Path

import click

from mxwire.cli.inputs import Inputs, input_options
from mxwire.cli.options import dialect_option, ethertype_option

EPILOG = """\b
A ping and its pong are messages of one length, back and forth, one after the other. The time from a ping to
the next is what omx_perf halves and prints; the time to the last byte of the pong leaves out what happens
in the host that began, if it was captured there. MB/s (10^6) are by the median. "95 % sure" is where the
median of repeated measurements would be expected (bootstrap).

\b
Examples:
  mxwire stats trace.pcap
  mxwire stats -i eth0 --time 10                  what passes an interface within 10 s (without --time: until Ctrl-C)
  mxwire stats --plot pingpong.svg trace.pcap     latency, bandwidth, bytes in flight, gaps (also .png, .html)
  mxwire stats --json trace.pcap | jq -c 'select(.record == "half_iteration") | [.length, .median_ns]'
"""


@click.command(epilog=EPILOG)
@input_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, durations in ns.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw it too: .svg, .png or .html (needs matplotlib).",
)
@click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Of the bootstrap.")
@dialect_option
@ethertype_option
def command(
    inputs: Inputs, as_json: bool, plot: Path | None, seed: int, dialect: str, ethertypes: tuple[int, ...]
) -> None:
    """Measure captures: half round trips and throughput by length, delays of acknowledgements and repetitions, gaps
    between frames, and how much was in flight and sent again."""
    from mxwire.analysis.timing import Timing
    from mxwire.cli.following import decoder_of, tell_limits
    from mxwire.cli.notes import wrote
    from mxwire.cli.reading import Failures, judged_batches, refuse_empty, refuse_overwriting
    from mxwire.errors import MxwireError
    from mxwire.report.document import show
    from mxwire.report.json_line import json_line
    from mxwire.report.timing import timing_blocks, timing_records

    if plot is not None:
        from mxwire.report.plot_timing import check_plot

        if len(inputs.files) > 1:
            raise MxwireError("--plot draws one capture: name one file")
        check_plot(plot)
        refuse_overwriting(inputs.files, plot)
    failures = Failures()
    for name in inputs.names:
        with failures.noted(), inputs.open(name, ethertypes) as reader:
            decoder, timing = decoder_of(dialect, ethertypes), Timing(seed)
            for decoded in judged_batches(decoder, reader):
                timing.observe(decoded)
            timing.finish()
            refuse_empty(reader, decoder)
            if as_json:
                several = {"file": reader.name} if len(inputs.files) > 1 else {}
                for record in timing_records(timing):
                    click.echo(json_line(several | record, decoder.start_ns))
            else:
                show(timing_blocks(reader.name, timing))
            tell_limits(reader.name, timing.follower, decoder)
            if plot is not None:
                from mxwire.report.plot_timing import draw_timing

                draw_timing(plot, Path(reader.name).name, timing)
                wrote(decoder.decoded, "frame", plot, what="plots of ")
    failures.end()
