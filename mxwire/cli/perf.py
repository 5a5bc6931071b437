"""``mxwire perf``: latency and bandwidth as omx_perf measures them, against any host that has omx_perf or mxwire."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mxwire.cli.live import Destination, DestinationType, Live, live_options, timeout_option

EPILOG = """\b
One line per length: half a round trip in microseconds (with -U the whole of it), MB/s (10^6) and MiB/s (2^20).
Without -d it waits for a sender and answers, as `omx_perf` does; the option letters are those of omx_perf.
-r, -S, -E, -M, -I, -N, -W, -P, -U, -Y and --plot are for the sender alone, which sends its parameters to the receiver.
Both sides poll for frames, which takes a whole CPU on each side. Where CPUs are few (two sides on one machine, a
virtual machine, other busy programs), use -w on both sides; perf warns when it is being preempted.
--profile selects the kind of host: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.

\b
Exit code: 0 all was measured, 1 it ended early (earlier results are printed), 2 it cannot work, 130 after Ctrl-C.

\b
Examples:
  mxwire perf -i veth0 --name alpha:0                          the receiver, for one sender
  mxwire perf -i veth1 -d alpha:0                              the sender
  mxwire perf -i veth1 -d alpha:0 -w                           … on a machine with few CPUs
  mxwire perf -i eth0 -d node7:0 -S 0 -E 33 -I 1 -N 10000      tiny messages, one byte after the other
  mxwire perf -i eth0 -d node7:0 -U -Y -S 4194304 -N 100       one way, synchronous, 4 MiB
  mxwire perf -i eth0 -d node7:0 --plot perf.svg               a picture of it
  mxwire perf -i eth0 -d node7:0 --json | jq 'select(.event=="length").median_us'
"""
_OF_THE_SENDER = {
    "remote": "-r",
    "start": "-S",
    "end": "-E",
    "multiplier": "-M",
    "increment": "-I",
    "iterations": "-N",
    "warmup": "-W",
    "pause": "-P",
    "unidirectional": "-U",
    "synchronous": "-Y",
    "plot": "--plot",
}
_LENGTH = click.IntRange(0, (1 << 63) - 1)
_COUNT = click.IntRange(0, (1 << 32) - 1)


def _plot_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(f"{value}: name a file that ends in .png or .svg")
    return value


def _refuse_sending() -> None:
    """A receiver is told by its sender what is measured: what says so here would be in vain."""
    from mxwire.errors import MxwireError

    context = click.get_current_context()
    given = [
        letter
        for name, letter in _OF_THE_SENDER.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        verb = "is" if len(given) == 1 else "are"
        raise MxwireError(f"{', '.join(given)} {verb} for the sender: name the receiver with -d HOST")


@click.command(epilog=EPILOG)
@live_options
@click.option("-d", "destination", metavar="HOST", type=DestinationType(), help="Send to this host: be the sender.")
@click.option("-r", "remote", type=click.IntRange(0, 255), metavar="N", help="Its endpoint.  [default: 0]")
@click.option("-S", "start", type=_LENGTH, default=0, show_default=True, metavar="BYTES", help="First length.")
@click.option(
    "-E", "end", type=_LENGTH, default=4194305, show_default=True, metavar="BYTES", help="Lengths stay below this."
)
@click.option(
    "-M", "multiplier", type=_LENGTH, default=2, show_default=True, metavar="N", help="Multiply the length by N …"
)
@click.option(
    "-I",
    "increment",
    type=_LENGTH,
    default=0,
    show_default=True,
    metavar="BYTES",
    help="… and add BYTES, for the next length.",
)
@click.option(
    "-N", "iterations", type=_COUNT, default=1000, show_default=True, metavar="N", help="Round trips per length."
)
@click.option(
    "-W", "warmup", type=_COUNT, default=10, show_default=True, metavar="N", help="Round trips before those that count."
)
@click.option(
    "-P",
    "pause",
    type=click.IntRange(0, 10**9),
    default=100,
    show_default=True,
    metavar="MS",
    help="Pause between lengths.",
)
@click.option("-U", "unidirectional", is_flag=True, help="Empty answers; times are of whole round trips.")
@click.option("-Y", "synchronous", is_flag=True, help="Synchronous sends.")
@click.option("-a", "aligned", is_flag=True, help="Page-aligned buffers.")
@click.option(
    "-e", "endpoint", type=click.IntRange(0, 255), metavar="N", help="Our endpoint.  [default: 0; sender: any]"
)
@click.option("-b", "board", type=click.IntRange(0, 0), metavar="N", help="Our board: 0, the interface of -i.")
@click.option("-s", "slave", is_flag=True, help="Receiver: serve one sender after the other, until Ctrl-C.")
@click.option("-w", "sleep", is_flag=True, help="Sleep while waiting instead of polling: for machines with few CPUs.")
@click.option("-y", "yielding", is_flag=True, help="Yield the CPU between polls.")
@click.option("-v", "verbose", is_flag=True, help="Also report progress, and percentiles of the times.")
@timeout_option(
    30.0, "Seconds of silence after which the other side is abandoned; a receiver waits for a sender without limit."
)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object per line.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_plot_file,
    metavar="FILE",
    help="Sender: draw latency and bandwidth into a .png or .svg.",
)
def command(
    live: Live,
    destination: Destination | None,
    remote: int | None,
    endpoint: int | None,
    pause: int,
    slave: bool,
    sleep: bool,
    yielding: bool,
    verbose: bool,
    timeout: float,
    as_json: bool,
    plot: Path | None,
    **measured: Any,
) -> None:
    """Measure latency and bandwidth between two hosts by the application protocol of omx_perf.

    The other side may be mxwire perf or a real omx_perf on a host with Open-MX or MX.
    """
    del measured["board"]
    from mxwire.cli import measuring
    from mxwire.errors import MxwireError
    from mxwire.host.perf import PerfParameters

    manner = measuring.Manner(sleep=sleep, yielding=yielding, silence=timeout, verbose=verbose, as_json=as_json)
    if destination is None:
        _refuse_sending()
        if measuring.receive(live, manner, 0 if endpoint is None else endpoint, slave):
            sys.exit(1)
        return
    if slave:
        raise MxwireError("-s is for the receiver: leave it, or leave -d")
    parameters = PerfParameters(**measured)
    parameters.check()
    if plot is not None:
        from mxwire.report.plot import check

        check()
        measuring.check_writable(plot)
    number = remote if remote is not None else destination.endpoint or 0
    failed = measuring.send(live, manner, destination.host, number, endpoint, parameters, pause / 1000, plot)
    if failed:
        sys.exit(1)
