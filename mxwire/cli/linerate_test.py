"""``mxwire linerate test``: RFC 2544 tests of a cable, a switch or a host, with frames and messages of MXoE."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli.completion import interfaces, offers
from mxwire.cli.group import CommandGroup
from mxwire.cli.live import LiveOptions, end_like_interrupt
from mxwire.cli.notes import end_interrupted_line, note
from mxwire.cli.options import Amount, Command
from mxwire.cli.perf import check_writable
from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, mac_bytes
from mxwire.report.json_line import json_line

if TYPE_CHECKING:
    from mxwire.linerate.requirement import Requirement
    from mxwire.linerate.tester import LineTester, SizeMeasurement, TesterOptions
    from mxwire.link.interface import NetworkInterface

_SIZES: Final = (60, 168, 1024, 4128)
"""Lengths of test frames by default: full TINY with padding, SMALL, the classic kilobyte, and full PULL_REPLY."""
_RFC2544: Final = {"trial": 60.0, "settle": 2.0, "cool_down": 5.0, "resolution": 0.001}
"""Settings of RFC 2544, sections 23 to 26."""


@click.group("test", cls=CommandGroup)
def tests() -> None:
    """Search for the limits of a network or a host.

    --to is the other side: an interface of this machine (veth1, or NAMESPACE/veth1 in another network namespace), on
    which a sink is started, or the Ethernet address of a sink on another machine. By default the sink that answers.
    The tester's own limit is measured first; results near it are marked, as they describe the tester.
    """


class Share(click.ParamType):  # type: ignore[type-arg]
    """A percentage like ``0.1%``, or the same as a number like ``0.001``; as a number from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1:
            self.fail(f"{value!r} is not a share: write 0.1% or 0.001", param, ctx)
        return number


class SizeList(click.ParamType):  # type: ignore[type-arg]
    """Lengths of frames in bytes, with commas: ``60,1024,4128``."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The lengths, in the given order."""
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(dict.fromkeys(int(each) for each in str(value).split(",")))
        except ValueError:
            sizes = ()
        if not sizes or not all(60 <= each <= 65535 for each in sizes):
            self.fail(f"{value!r} is not a list of frame lengths: write 60,1024,4128, each at least 60", param, ctx)
        return sizes


@dataclass(frozen=True, slots=True)
class LineTestOptions:
    """Parsed options of all tests of frames."""

    interface: str
    target: str | None
    sizes: tuple[int, ...] | None
    tester: dict[str, Any]
    requirements: tuple[Requirement, ...]
    csv: Path | None
    plot: Path | None
    via: str
    cpu: int | None
    timeout: float
    as_json: bool


_OPTIONS: Final = (
    click.option(
        "-i",
        "--interface",
        metavar="IF",
        shell_complete=offers(interfaces),
        required=True,
        help="The Ethernet interface, like eth0.",
    ),
    click.option("--to", "target", metavar="IF|MAC", help="The other side.  [default: the sink that answers]"),
    click.option(
        "--sizes",
        type=SizeList(),
        metavar="BYTES,…",
        help=f"Lengths of the frames.  [default: {','.join(map(str, _SIZES))}, as far as they fit the MTU]",
    ),
    click.option(
        "--duration",
        "trial",
        type=Amount(0, min_open=True),
        metavar="S",
        help="Trials of S seconds.  [default: 1]",
    ),
    click.option("--resolution", type=Share(), metavar="SHARE", help="Resolution of a search.  [default: 1%]"),
    click.option(
        "--accept-loss",
        "accepted_loss",
        type=Share(),
        default=0.0,
        metavar="SHARE",
        help="Loss at which a trial passes.",
    ),
    click.option(
        "--repetitions",
        type=click.IntRange(1, 1000),
        default=3,
        show_default=True,
        metavar="N",
        help="Trials that must pass at the result; bursts to search.",
    ),
    click.option("--settle", type=Amount(0), metavar="S", help="Wait for late frames.  [default: 0.2]"),
    click.option("--cool-down", type=Amount(0), metavar="S", help="Pause between trials.  [default: 0.2]"),
    click.option("--rfc2544", is_flag=True, help="Times of RFC 2544: trials of 60 s, 2 s and 5 s of pauses, 0.1%."),
    click.option("--streams", type=click.IntRange(1, 1024), default=1, show_default=True, metavar="N", help="Streams."),
    click.option(
        "--require",
        "requirements",
        multiple=True,
        metavar="LIMIT",
        help="Exit with 1 unless met: 4128:>=95%, >=50k/s, <=20us; may be repeated.",
    ),
    click.option(
        "--csv", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the results as CSV."
    ),
    click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Also draw the results into a .png or .svg.",
    ),
    click.option(
        "--via",
        type=click.Choice(("packet", "xdp")),
        default="packet",
        show_default=True,
        help="Packet socket (AF_PACKET), or AF_XDP.",
    ),
    click.option("--cpu", type=click.IntRange(0), metavar="N", help="Run on this CPU only.  [default: any]"),
    click.option(
        "--timeout",
        type=Amount(0, min_open=True),
        default=10.0,
        show_default=True,
        metavar="S",
        help="Seconds to wait for a sink.",
    ),
    click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object per event."),
)
_TESTER: Final = (*("trial", "resolution", "accepted_loss", "repetitions", "settle", "cool_down", "streams"),)


def test_options(function: Command) -> Command:
    """Give a command the options of all tests of frames, passed to it as ``options``."""

    @functools.wraps(function)
    def wrapped(
        *,
        interface: str,
        target: str | None,
        sizes: tuple[int, ...] | None,
        rfc2544: bool,
        requirements: tuple[str, ...],
        csv: Path | None,
        plot: Path | None,
        via: str,
        cpu: int | None,
        timeout: float,
        as_json: bool,
        **rest: Any,
    ) -> Any:
        from mxwire.linerate.requirement import Requirement

        chosen = {name: rest.pop(name) for name in _TESTER}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        options = LineTestOptions(
            interface=interface,
            target=target,
            sizes=sizes,
            tester=(_RFC2544 if rfc2544 else {}) | chosen,
            requirements=tuple(map(Requirement.parse, requirements)),
            csv=csv,
            plot=plot,
            via=via,
            cpu=cpu,
            timeout=timeout,
            as_json=as_json,
        )
        return function(options=options, **rest)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


_EPILOG: Final = """\b
Exit code: 0 measured, 1 a requirement is not met or the test ended early (results so far are printed), 2 it cannot
start, 130 Ctrl-C.

\b
Examples:
  {examples}
"""


def _epilog(*examples: str) -> str:
    return _EPILOG.format(examples="\n  ".join(examples))


@tests.command(
    epilog=_epilog(
        "mxwire linerate test throughput -i veth0 --to veth1 --sizes 60,1024,4128,9000",
        "mxwire linerate test throughput -i eth0 --rfc2544 --require '4128:>=95%' --csv result.csv",
        "mxwire linerate test throughput -i eth0 --accept-loss 0.001% --json | jq .frames_per_second",
    )
)
@test_options
def throughput(options: LineTestOptions) -> None:
    """Search the highest rate without loss (RFC 2544, section 26.1)."""
    _run(options, "throughput", lambda tester, measured: iter([tester.throughput(measured)]))


@tests.command(
    epilog=_epilog(
        "mxwire linerate test latency -i veth0 --to veth1",
        "mxwire linerate test latency -i eth0 --rate 10000/s --sizes 60 --require '<=50us'",
    )
)
@test_options
@click.option("--rate", metavar="RATE", help="Frames (50000/s) or bits (1Gbit/s) per second; else the throughput.")
def latency(options: LineTestOptions, rate: str | None) -> None:
    """Measure latencies at 10, 50, 90 and 100 % of the throughput, or of --rate (RFC 2544, 26.2; RFC 8219)."""
    from mxwire.linerate.rates import frame_rate

    if rate is not None:
        frame_rate(rate, 1.0, 1)

    def run(tester: LineTester, measured: SizeMeasurement) -> Iterator[dict[str, Any]]:
        at = None if rate is None else frame_rate(rate, measured.size, measured.megabits)
        return tester.latency(measured, at)

    _run(options, "latency", run)


@tests.command(
    epilog=_epilog(
        "mxwire linerate test loss -i veth0 --to veth1 --sizes 1024",
        "mxwire linerate test loss -i eth0 --plot loss.svg",
    )
)
@test_options
def loss(options: LineTestOptions) -> None:
    """Measure the loss at 100 %, 90 % … of the highest rate, until two in a row have none (RFC 2544, 26.3)."""
    _run(options, "loss", lambda tester, measured: iter([tester.loss(measured)]))


@tests.command(
    epilog=_epilog(
        "mxwire linerate test burst -i veth0 --to veth1 --sizes 4128 --repetitions 5",
        "mxwire linerate test burst -i eth0 --require '4128:>=64'",
    )
)
@test_options
def burst(options: LineTestOptions) -> None:
    """Search the longest burst at full speed without loss (RFC 2544, section 26.4; RFC 9004)."""
    _run(options, "burst", lambda tester, measured: iter([tester.burst(measured)]))


SizeTest = Callable[["LineTester", "SizeMeasurement"], "Iterator[dict[str, Any]]"]


def _run(options: LineTestOptions, test: str, run: SizeTest) -> None:
    """Run a test for each frame length, and report; results so far are kept if it ends early."""
    from mxwire.linerate.requirement import failures
    from mxwire.linerate.tester import TesterOptions

    _check_files(options)
    end_like_interrupt()
    tester_options = TesterOptions(**options.tester)
    reporter = _TestReporter(options, test)
    ended: str | None = None
    interrupted = False
    with ExitStack() as stack:
        tester, found, addresses, megabits = _open(options, stack, tester_options, reporter)
        sizes = _sizes(options, found)
        reporter.begin(found, tester_options, sizes)
        try:
            _measure(tester, sizes, addresses, run, reporter)
        except KeyboardInterrupt:
            interrupted = True
        except MxwireError as error:
            ended = str(error)
    del megabits
    unmet = [] if interrupted or ended else failures(options.requirements, reporter.results)
    reporter.end(ended="interrupted" if interrupted else ended, unmet=unmet)
    if interrupted:
        end_interrupted_line()
        sys.exit(130)
    if ended or unmet:
        sys.exit(1)


def _measure(
    tester: LineTester, sizes: tuple[int, ...], addresses: tuple[bytes, bytes], run: SizeTest, reporter: _TestReporter
) -> None:
    from mxwire.linerate.template import template_of_size

    for size in sizes:
        measured = tester.measure(size, (template_of_size(size, *addresses),))
        for result in run(tester, measured):
            reporter.result(result)


def _check_files(options: LineTestOptions) -> None:
    for path in (options.csv, options.plot):
        if path is not None:
            check_writable(path)
    if options.plot is not None:
        from mxwire.report.plot import check

        if options.plot.suffix not in (".png", ".svg", ".pdf"):
            raise MxwireError(f"{options.plot}: name a file that ends in .png or .svg")
        check()


def _open(
    options: LineTestOptions, stack: ExitStack, tester_options: TesterOptions, reporter: _TestReporter
) -> tuple[LineTester, NetworkInterface, tuple[bytes, bytes], int | None]:
    """Open the interface, start or find the sink, and return the tester with the addresses of both sides."""
    from mxwire.cli.linerate import find_sink, pin
    from mxwire.linerate.run import GeneratorRun
    from mxwire.linerate.sink_process import SinkProcess
    from mxwire.linerate.template import RUNS
    from mxwire.linerate.tester import LineTester
    from mxwire.linerate.transmitters import Via, open_transmitter
    from mxwire.link import PacketLink
    from mxwire.link.ethtool import read_hardware

    found = LiveOptions(options.interface).check()
    address: bytes | None = None
    if options.target is not None and not _is_address(options.target):
        if options.target == options.interface:
            raise MxwireError(f"--to {options.target}: this is the interface that sends; name the one that receives")
        near, far = _processors(options.cpu)
        pin(near)
        address = stack.enter_context(SinkProcess(options.target, cpu=far)).address
    else:
        pin(options.cpu)
        address = None if options.target is None else mac_bytes(options.target)
    own = stack.enter_context(PacketLink.open(options.interface))
    control, sink = find_sink(own, address, options.timeout)
    transmitter = stack.enter_context(open_transmitter(own, Via(options.via)))
    megabits = read_hardware(options.interface).megabits
    run = GeneratorRun(transmitter, control, sink, first=SystemRandom().randrange(RUNS))
    tester = LineTester(run, tester_options, megabits=megabits, progress=reporter.progress)
    return tester, found, (sink.address, own.address), megabits


def _is_address(text: str) -> bool:
    try:
        mac_bytes(text)
    except MxwireError:
        return False
    return True


def _processors(chosen: int | None) -> tuple[int | None, int | None]:
    """CPUs of generator and sink on one machine: different ones, if there are two."""
    available = sorted(os.sched_getaffinity(0))
    near = available[0] if chosen is None and len(available) > 1 else chosen
    others = [each for each in available if each != near]
    return near, (others[-1] if near is not None and others else None)


def _sizes(options: LineTestOptions, found: NetworkInterface) -> tuple[int, ...]:
    """Return the frame lengths to test; those by default only if they fit the MTU."""
    from mxwire.linerate.generator import check_length

    if options.sizes is None:
        return tuple(each for each in _SIZES if each <= found.mtu + HEADER_SIZE)
    check_length(options.interface, found.mtu, max(options.sizes))
    return options.sizes


class _TestReporter:
    """Prints the results of a test, and writes its files."""

    def __init__(self, options: LineTestOptions, test: str) -> None:
        self._options = options
        self._test = test
        self.results: list[dict[str, Any]] = []
        self._shown = not options.as_json and sys.stderr.isatty()

    def begin(self, found: NetworkInterface, tester: TesterOptions, sizes: tuple[int, ...]) -> None:
        from dataclasses import asdict

        from mxwire.linerate.machine import machine_record
        from mxwire.report.linerate import machine_text

        self.machine = machine_record(found, self._options.via)
        if self._options.as_json:
            record = {"event": "begin", "test": self._test, "machine": self.machine, "sizes": list(sizes)}
            click.echo(json_line(record | {"options": asdict(tester)}))
        else:
            click.echo(machine_text(self.machine))
        sys.stdout.flush()

    def progress(self, text: str) -> None:
        """Show the current trial on a terminal."""
        if self._shown:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def result(self, result: dict[str, Any]) -> None:
        """Keep a result; with --json print it at once."""
        self.results.append(result)
        if self._options.as_json:
            click.echo(json_line({"event": "result", **result}))
            sys.stdout.flush()

    def end(self, *, ended: str | None, unmet: list[str]) -> None:
        """Print all results, and write the files."""
        from mxwire.report.document import show
        from mxwire.report.linerate import csv_text, result_blocks

        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
        if self._options.as_json:
            record = {"event": "summary", "test": self._test, "results": len(self.results), "complete": ended is None}
            click.echo(json_line(record | {"ended": ended, "unmet": unmet}))
        elif self.results:
            show(result_blocks(self._test, self.results))
        for text in unmet:
            note(f"not met: {text}")
        if ended is not None:
            note(f"the test is not complete: {ended}; the results above are those up to then")
        if self._options.csv is not None:
            self._options.csv.write_text(csv_text(self.results), encoding="utf-8")
        if self._options.plot is not None and self.results:
            from mxwire.report.plot_linerate import draw

            draw(self._options.plot, self._test, self.results, self.machine)
        sys.stdout.flush()
