"""``mxwire perf``: latency and bandwidth as omx_perf measures them, against any host that has omx_perf or mxwire."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.group import Command
from mxwire.cli.live_options import LiveOptions, connect, end_like_interrupt
from mxwire.cli.notes import EventReport, note
from mxwire.cli.option_class import group, option, options_class, takes
from mxwire.errors import MxwireError
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice
    from mxwire.bench.imb.patterns import ImbBenchmark
    from mxwire.host import Endpoint, Host, HostError
    from mxwire.host.perf import PerfParameters, PerfReceiver, PerfResult
    from mxwire.host.perf.intervals import PerfInterval
    from mxwire.host.perf.roles import PerfRequest
    from mxwire.protocol import Partner

_LENGTH: Final = (1 << 63) - 1
_COUNT: Final = (1 << 32) - 1
_NAME_TIME: Final = 0.2
"""Seconds to wait for the name of a sender, which is only for the report."""
_AS: Final = {
    "osu_latency": "PingPong",
    "osu_bw": "Uniband",
    "osu_bibw": "Biband",
    "osu_mbw_mr": "Uniband",
    "imb:PingPong": "PingPong",
    "imb:Uniband": "Uniband",
    "imb:Biband": "Biband",
    "netpipe": "PingPong",
}
"""Formats of other benchmarks, each with its pattern."""
_WINDOWS: Final = 20
"""Default number of measured windows per length."""
_STARTING: Final = 5.0
"""Seconds during which a receiver may still be opening its endpoint."""
_RETRY: Final = 0.1


def _refuse_letter(_context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        raise MxwireError("-w is -B now (or --wait), as -w FILE writes a file in other commands")


@requires(
    *("-r", "-S", "-E", "-M", "-I", "-N", "-W", "-P", "--interval", "-U", "-Y", "--as", "--plot"),
    one_of=("-d",),
    error="{option} {are} for the sender: name the receiver with -d HOST",
)
@conflicts("-d", "-s", error="-s is for the receiver: omit it, or omit -d")
@conflicts("--as", "-U", "-Y", error="{option} and --as: the benchmark defines the pattern; omit one")
@conflicts("--as", "--json", "--interval", error="{option} and --as: choose one form of output")
@options_class
class PerfOptions(EventReport):
    """The options of mxwire perf, and its output."""

    live: LiveOptions = group(LiveOptions)
    destination: HostChoice | None = option("Send to this host: act as the sender.", "-d HOST", type=shared.host_type)
    remote: int | None = shared.integer_option("Its endpoint.  [default: 0]", "-r", most=255)
    start: int = shared.integer_option("First length.", "-S BYTES", most=_LENGTH, default=0)
    end: int = shared.integer_option("Lengths stay below this.", "-E BYTES", most=_LENGTH, default=4194305)
    multiplier: int = shared.integer_option("Multiply the length by N …", "-M", most=_LENGTH, default=2)
    increment: int = shared.integer_option("… and add BYTES, for the next length.", "-I BYTES", most=_LENGTH, default=0)
    iterations: int = shared.integer_option("Round trips per length.", "-N", most=_COUNT, default=1000)
    warmup: int = shared.integer_option("Round trips before those that count.", "-W", most=_COUNT, default=10)
    pause: int = shared.integer_option("Pause between lengths.", "-P MS", most=10**9, default=100)
    interval: float | None = shared.amount_option(
        "Also print a line per S seconds of a length: its messages, their times, and retransmissions.", "--interval"
    )
    unidirectional: bool = shared.flag_option("Empty answers; times are of whole round trips.", "-U")
    synchronous: bool = shared.flag_option("Synchronous sends.", "-Y")
    aligned: bool = shared.flag_option("Page-aligned buffers.", "-a")
    endpoint: int | None = shared.integer_option("Endpoint to open.  [default: 0; sender: any]", "-e", most=255)
    board: int | None = shared.integer_option("Local board: 0, the interface of -i.", "-b", most=0)
    slave: bool = shared.flag_option("Receiver: serve one sender after another, until Ctrl-C.", "-s")
    sleep: bool = shared.flag_option("Block instead of polling: for machines with few CPUs.", "-B", "--wait")
    yielding: bool = shared.flag_option("Yield the CPU between polls.", "-y")
    verbose: bool = shared.flag_option("Also print progress, and percentiles of the times.", "-v")
    timeout: float | None = shared.timeout_option(
        30.0, "Seconds of silence after which the other side is abandoned; a receiver waits for a sender without limit."
    )
    as_json: bool = shared.json_option("JSON Lines: one object per line.")
    columns: str | None = option(
        f"Sender: print the columns of {', '.join(list(_AS)[:-1])} or {list(_AS)[-1]}.",
        "--as BENCHMARK",
        type=click.Choice(list(_AS), case_sensitive=False),
    )
    plot: Path | None = shared.plot_option(
        "Sender: draw latency and bandwidth into a .png or .svg.", ".png", ".svg", ".pdf"
    )

    @property
    def polls(self) -> bool:
        """True if waits poll without pause, as those of omx_perf do by default."""
        return not (self.sleep or self.yielding)

    def open(self) -> Host:
        """Open the host; the measuring thread runs it, without one in the background."""
        return self.live.open(spin=self.polls, background=False)

    def show_interval(self, interval: PerfInterval) -> None:
        """Print a part of the measurement of a length."""
        self.print(interval.line())
        self.emit("interval", **interval.record())

    def remark(self, text: str) -> None:
        """Print a remark, if requested."""
        if self.verbose:
            note(text)


class _PreemptionWarning:
    """One warning per measurement that polls and is preempted: it measures the scheduler then."""

    def __init__(self, options: PerfOptions) -> None:
        from mxwire.host.perf.preemption import PreemptionMeter

        self._options = options
        self._meter = PreemptionMeter() if options.polls else None
        self.resume()

    def resume(self) -> None:
        """Start measuring, or continue after output."""
        if self._meter is not None:
            self._meter.start()

    def check(self) -> None:
        """Check the time since `resume`, and warn at the first preemption."""
        usage = self._meter.stop() if self._meter is not None else None
        if usage is None:
            return
        self._meter = None
        note(
            f"preempted: this side had a CPU for only {usage.cpu_share:.0%} of the time, so the times are too long; "
            "use -B on both sides where there are fewer CPUs than busy programs"
        )
        self._options.emit(
            "preempted", cpu_share=round(usage.cpu_share, 3), involuntary_switches=usage.switches, advice="-B"
        )


@click.command(cls=Command)
@click.option("-w", is_flag=True, hidden=True, expose_value=False, callback=_refuse_letter)
@takes(PerfOptions)
def command(options: PerfOptions) -> None:
    """Measure latency and bandwidth between two hosts by the application protocol of omx_perf.

    The other side may be mxwire perf or a real omx_perf on a host with Open-MX or MX.
    """
    from mxwire.host.perf import PerfParameters

    if options.destination is None:
        if _receive(options):
            sys.exit(1)
        return
    other = None if options.columns is None else OtherColumns(options.columns)
    parameters = PerfParameters(**{each.name: getattr(options, each.name) for each in fields(PerfParameters)})
    if other is not None:
        parameters = other.parameters(parameters)
    parameters.check()
    if _send(options, options.destination, parameters, other):
        sys.exit(1)


def _send(
    options: PerfOptions, destination: HostChoice, parameters: PerfParameters, other: OtherColumns | None
) -> bool:
    """Measure against a receiver, and print the results; return True if it ended early."""
    from mxwire.host import HostClosedError, HostError
    from mxwire.host.perf import PerfSender
    from mxwire.host.perf.intervals import PerfIntervals
    from mxwire.host.perf.parameters import SETTLE
    from mxwire.host.perf.roles import PerfWaiter
    from mxwire.host.requests import place_of

    results: list[PerfResult] = []
    live = options.live
    with options.open() as host:
        opened = host.open_endpoint(options.endpoint, DEFAULT_KEY)
        remote = options.remote if options.remote is not None else destination.endpoint or 0
        partner = _connect(opened, destination.host, remote, options.timeout)
        options.remark(
            f"connected to {place_of(partner)} from endpoint {opened.number}, dialect {live.dialect or 'mxoe'}"
        )
        waiter = PerfWaiter(opened, yielding=options.yielding, silence=options.timeout)
        sender = PerfSender(waiter, partner, parameters, 1 if other is None else other.window)
        every = options.interval
        intervals = None if every is None else PerfIntervals(opened, every, options.show_interval)
        failed = False
        try:
            sender.agree()
            options.emit("begun", **_about(live, place_of(partner), parameters))
            if other is not None:
                other.begin(parameters)
            warning = _PreemptionWarning(options)
            for result in sender.measure(options.pause / 1000, intervals):
                # Output is left out of the time in which this side must have a CPU.
                warning.check()
                results.append(result)
                if other is None:
                    _report(options, result)
                else:
                    other.row(result)
                warning.resume()
        except HostClosedError:
            raise
        except HostError as error:
            failed = True
            _report_failure(options, error, len(results))
        # The last answer of the receiver is still to be acknowledged.
        opened.close(0 if failed else SETTLE)
    if other is not None and not failed:
        other.end()
    if options.plot is not None and results:
        _draw(options.plot, live, destination.host, parameters, results)
        options.remark(f"drawn into {options.plot}")
    if not failed:
        options.emit("ended", lengths=len(results), status="success")
    return failed


class OtherColumns:
    """The output of ``--as``: the pattern of another benchmark, and its lines."""

    def __init__(self, name: str) -> None:
        from mxwire.bench.imb.patterns import WINDOW, benchmark_by_name

        self._name = name
        self._benchmark: ImbBenchmark = benchmark_by_name(_AS[name])
        self.window = WINDOW if self._benchmark.name != "PingPong" else 1
        self._count = 0
        self._lengths = 0

    def parameters(self, given: PerfParameters) -> PerfParameters:
        """The parameters for the receiver: the given options, completed by the defaults of the benchmark."""
        options, windows = shared.given_options(), self.window > 1
        start = given.start if "start" in options or self._name.startswith("imb:") else 1
        self._count = given.iterations if "iterations" in options or not windows else _WINDOWS
        warmup = given.warmup if "warmup" in options or not windows else 2
        return replace(
            given,
            start=start,
            iterations=min(self._count * self.window, _COUNT),
            warmup=min(warmup * self.window, _COUNT),
            unidirectional=self._benchmark.name == "Uniband",
        )

    def begin(self, parameters: PerfParameters) -> None:
        """Print the lines before the first length."""
        from mxwire import __version__
        from mxwire.bench.imb.columns import imb_banner, imb_head, osu_head

        lines: list[str] = []
        if self._name.startswith("imb:"):
            lengths, call = list(parameters.lengths()), " ".join(["mxwire", *sys.argv[1:]])
            lines += imb_banner(__version__, call, [self._benchmark.name], lengths[0], lengths[-1])
            lines += imb_head(self._benchmark, 2, self._remark())
        elif self._name != "netpipe":
            lines += osu_head(self._name, __version__, self._remark())
        for line in lines:
            click.echo(line)

    def _remark(self) -> str:
        return "the receiver answers each message, as omx_perf does" if self.window > 1 else ""

    def row(self, result: PerfResult) -> None:
        """Print the line of a length."""
        from mxwire.bench.imb.columns import ImbRow, imb_row, netpipe_row, osu_row, osu_values

        if self._name == "netpipe":
            click.echo(netpipe_row(self._lengths, result.length, self._count, result.microseconds))
        else:
            # A result is half of the time unless answers are empty, in which case it is the whole.
            step = result.microseconds * (1 if self._benchmark.name == "Uniband" else 2)
            row = ImbRow(result.length, self._count, step, step, step)
            if self._name.startswith("imb:"):
                click.echo(imb_row(self._benchmark, row))
            else:
                click.echo(osu_row(self._name, result.length, *osu_values(self._name, self._benchmark, row)))
        self._lengths += 1

    def end(self) -> None:
        """Print the lines after the last length."""
        from mxwire.bench.imb.columns import imb_end

        if self._name.startswith("imb:"):
            for line in imb_end():
                click.echo(line)


def _connect(endpoint: Endpoint, host: str, remote: int, timeout: float | None) -> Partner:
    """Connect; a receiver that starts at the same time has a few seconds to open its endpoint."""
    from mxwire.host import HostError
    from mxwire.protocol import Status

    end = time.monotonic() + _STARTING
    while True:
        try:
            return connect(endpoint, host, remote, DEFAULT_KEY, timeout, other_key="no omx_perf waits there")
        except HostError as error:
            if error.status != Status.REMOTE_ENDPOINT_CLOSED or time.monotonic() >= end:
                raise
        time.sleep(_RETRY)


def _about(live: LiveOptions, partner: str, parameters: PerfParameters) -> dict[str, Any]:
    return {"partner": partner, "dialect": live.dialect or "mxoe", "parameters": asdict(parameters)}


def _report(options: PerfOptions, result: PerfResult) -> None:
    if options.as_json:
        options.emit("length", **result.record())
        return
    click.echo(result.line())
    if options.verbose:
        low, high = result.times[0], result.times[-1]
        middle, late = result.percentile(50), result.percentile(99)
        note(f"  min {low:.3f}, median {middle:.3f}, p99 {late:.3f}, max {high:.3f} us")


def _report_failure(options: PerfOptions, error: HostError, lengths: int) -> None:
    """Report the error that ended a measurement early; earlier results stay valid."""
    note(f"the measurement ended after {count_of(lengths, 'length')}: {error} ({error.status.text})")
    options.emit("ended", lengths=lengths, status=error.status.text, reason=str(error))


def _receive(options: PerfOptions) -> bool:
    """Answer one sender, or as a slave one after another; return True if it ended early."""
    from mxwire.host import HostClosedError, HostError
    from mxwire.host.perf import PerfReceiver
    from mxwire.host.perf.roles import PerfWaiter
    from mxwire.host.stall import DialectMonitor

    end_like_interrupt()
    live, endpoint = options.live, options.endpoint or 0
    with options.open() as host:
        opened = host.open_endpoint(endpoint, DEFAULT_KEY)
        note(
            f"waiting for a sender on {live.interface}: mxwire perf -i IF -d {host.name}"
            + (f" -r {endpoint}" * bool(endpoint))
        )
        options.emit("waiting", host=host.name, endpoint=endpoint, dialect=live.dialect or "mxoe")
        strangers = DialectMonitor(host.core)

        def idle() -> None:
            for text in strangers.found():
                note(text)

        receiver = PerfReceiver(PerfWaiter(opened, yielding=options.yielding, silence=options.timeout))
        while True:
            try:
                measurement = receiver.wait(idle)
            except HostClosedError:
                raise
            # Any host can send a bad message, which must not end the service for others.
            except HostError as error:
                note(f"a message broke off, and is ignored: {error}")
                continue
            except MxwireError as error:
                note(f"a sender requests an impossible measurement: {error}")
                continue
            failed = _serve(options, host, receiver, measurement)
            receiver.forget(measurement)
            if not options.slave:
                return failed


def _serve(options: PerfOptions, host: Host, receiver: PerfReceiver, measurement: PerfRequest) -> bool:
    """Serve one measurement; return True if it ended early."""
    from mxwire.host import HostClosedError, HostError, HostTimeoutError
    from mxwire.host.requests import place_of

    # The name is only for the report, which shows the address if no name arrives in time.
    with suppress(HostTimeoutError):
        host.wait_for_peer(measurement.partner.peer.address, _NAME_TIME)
    who, done = place_of(measurement.partner), 0
    options.emit("begun", partner=who, parameters=asdict(measurement.parameters))
    options.remark(f"{who} measures {measurement.parameters.start} to {measurement.parameters.end} bytes")
    try:
        warning = _PreemptionWarning(options)
        for length in receiver.serve(measurement):
            warning.check()
            done += 1
            options.emit("length", length=length)
            options.remark(f"length {length} done")
            warning.resume()
    except HostClosedError:
        raise
    except HostError as error:
        _report_failure(options, error, done)
        return True
    options.emit("ended", lengths=done, status="success")
    return False


def _draw(path: Path, live: LiveOptions, host: str, parameters: PerfParameters, results: list[PerfResult]) -> None:
    from mxwire.report.plot import PlottedLength, draw
    from mxwire.wire.dialect import dialect_by_name

    measured = [
        PlottedLength(each.length, each.microseconds, each.percentile(50), each.percentile(99), each.megabytes)
        for each in results
    ]
    draw(path, measured, dialect_by_name(live.dialect or "mxoe"), host, unidirectional=parameters.unidirectional)
