"""``mxwire perf``: latency and bandwidth as omx_perf measures them, against any host that has omx_perf or mxwire."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mxwire.cli.live import Destination, DestinationType, Live, live_options, timeout_option

EPILOG = """\b
A line a length: half a round trip in microseconds (with -U the whole of it), MB/s (10^6) and MiB/s (2^20).
Without -d it waits for a sender and answers, as `omx_perf` does; the option letters are those of omx_perf.
-r, -S, -E, -M, -I, -N, -W, -P, -U, -Y and --plot are for the sender alone: it tells the receiver what is measured.
--profile is what kind of host we are: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.

\b
Exit code: 0 all was measured, 1 it ended early (what was measured till then is told), 2 it cannot work, 130 after
Ctrl-C.

\b
Examples:
  mxwire perf -i veth0 --name alpha:0                          the receiver, for one sender
  mxwire perf -i veth1 -d alpha:0                              the sender
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
    "-M", "multiplier", type=_LENGTH, default=2, show_default=True, metavar="N", help="Next length: times N …"
)
@click.option("-I", "increment", type=_LENGTH, default=0, show_default=True, metavar="BYTES", help="… plus so many.")
@click.option(
    "-N", "iterations", type=_COUNT, default=1000, show_default=True, metavar="N", help="Round trips a length."
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
@click.option("-a", "aligned", is_flag=True, help="Messages in memory that begins with a page.")
@click.option(
    "-e", "endpoint", type=click.IntRange(0, 255), metavar="N", help="Our endpoint.  [default: 0; sender: any]"
)
@click.option("-b", "board", type=click.IntRange(0, 0), metavar="N", help="Our board: 0, the interface of -i.")
@click.option("-s", "slave", is_flag=True, help="Receiver: serve one sender after the other, until Ctrl-C.")
@click.option("-w", "sleep", is_flag=True, help="Sleep while waiting, instead of looking all the time.")
@click.option("-y", "yielding", is_flag=True, help="Let others run between two looks.")
@click.option("-v", "verbose", is_flag=True, help="Also say what goes on, and how times are distributed.")
@timeout_option(30.0, "Seconds after which a silent host is given up; a receiver waits for a sender for ever.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
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
    from mxwire.host.perf import Parameters

    manner = measuring.Manner(sleep=sleep, yielding=yielding, silence=timeout, verbose=verbose, as_json=as_json)
    if destination is None:
        _refuse_sending()
        if measuring.receive(live, manner, 0 if endpoint is None else endpoint, slave):
            sys.exit(1)
        return
    if slave:
        raise MxwireError("-s is for the receiver: leave it, or leave -d")
    parameters = Parameters(**measured)
    parameters.check()
    if plot is not None:
        from mxwire.report.plot import check

        check()
        measuring.check_writable(plot)
    number = remote if remote is not None else destination.endpoint or 0
    failed = measuring.send(live, manner, destination.host, number, endpoint, parameters, pause / 1000, plot)
    if failed:
        sys.exit(1)
