"""``mxwire linerate test``: RFC 2544 tests of a cable, a switch or a host, with frames and messages of MXoE."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import linerate_options as line
from mxwire.cli import options as shared
from mxwire.cli.group import CommandGroup
from mxwire.cli.live_options import MEETING_POINT, LiveOptions, connect, end_like_interrupt
from mxwire.cli.notes import end_interrupted_line, note
from mxwire.cli.option_class import group, option, options_class, takes
from mxwire.errors import MxwireError, check_writable, write_file
from mxwire.ethernet import HEADER_SIZE

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice
    from mxwire.linerate.control import SinkAddress
    from mxwire.linerate.line_tester import LineTester, LineTesterOptions, SizeMeasurement
    from mxwire.link.interface import NetworkInterface

_SIZES: Final = (60, 168, 1024, 4128)
"""Lengths of test frames by default: full TINY with padding, SMALL, the classic kilobyte, and full PULL_REPLY."""
_RFC2544: Final = {"trial": 60.0, "settle": 2.0, "cool_down": 5.0, "resolution": 0.001}
"""Settings of RFC 2544, sections 23 to 26."""


@click.group("test", cls=CommandGroup)
def tests() -> None:
    """Search for the limits of a network or a host.

    --to is the other side: an interface of this machine (veth1, or NAMESPACE/veth1 in another network namespace), on
    which a sink is started, or the Ethernet address of a sink on another machine. Without --to, the test uses the sink
    that answers a broadcast. The tester's own limit is measured first; results near it are marked, as they describe
    the tester.
    """


def share_type(*, zero: bool = True) -> Callable[[str | float], float]:
    """An option type: a percentage like ``0.1%``, or the same as a number like ``0.001``; as a number from 0 to 1."""

    def share(value: str | float) -> float:
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1 or not (number or zero):
            raise click.BadParameter(f"{value!r} is not a share: write 0.1% or 0.001{'' if zero else ', not 0'}")
        return number

    return share


def lengths_type(least: int, most: int) -> Callable[[str], tuple[int, ...]]:
    """An option type: lengths in bytes, with commas, each from ``least`` to ``most``; in the given order."""

    def lengths(value: str) -> tuple[int, ...]:
        try:
            sizes = tuple(dict.fromkeys(int(each) for each in value.split(",")))
        except ValueError:
            sizes = ()
        if not sizes or not all(least <= each <= most for each in sizes):
            raise click.BadParameter(
                f"{value!r} is not a list of lengths: write 60,1024,4128, each from {least} to {most}"
            )
        return sizes

    return lengths


trial_option = shared.amount_option("Each trial lasts S seconds.  [default: 1]", "--duration", "trial")
resolution_option = option(
    "Resolution of a search, as a share of its limit.  [default: 1%; messages: 5%]",
    "--resolution SHARE",
    type=share_type(zero=False),
)
csv_option = option("Write the results as CSV.", "--csv FILE", type=shared.PATH)
plot_option = shared.plot_option("Also draw the results into a .png or .svg.", ".png", ".svg", ".pdf")


@options_class
class LineTestOptions:
    """The options of all tests of frames."""

    interface: str = line.interface_option
    target: str | None = option("The other side.  [default: the sink that answers]", "--to IF|MAC")
    sizes: tuple[int, ...] | None = option(
        f"Lengths of the frames.  [default: {','.join(map(str, _SIZES))}, if they fit the MTU]",
        "--sizes BYTES,…",
        type=lengths_type(60, 65535),
    )
    trial: float | None = trial_option
    resolution: float | None = resolution_option
    accepted_loss: float = option(
        "Loss up to which a trial passes.  [default: 0]", "--accept-loss SHARE", type=share_type(), default=0.0
    )
    repetitions: int = line.repetitions_option
    settle: float | None = shared.amount_option("Wait for late frames.  [default: 0.2]", "--settle", zero=True)
    cool_down: float | None = shared.amount_option("Pause between trials.  [default: 0.2]", "--cool-down", zero=True)
    rfc2544: bool = shared.flag_option(
        "As in RFC 2544: trials of 60 s, pauses of 2 s and 5 s, resolution 0.1%.", "--rfc2544"
    )
    streams: int = line.streams_option
    requirements: tuple[str, ...] = line.requirements_option
    csv: Path | None = csv_option
    plot: Path | None = plot_option
    via: str = shared.via_option("packet", "xdp", "kernel")
    sink_via: str | None = option(
        "Receive through AF_PACKET or AF_XDP, if --to names an interface.  [default: packet; xdp for live frames]",
        "--sink-via [packet|xdp]",
    )
    cpu: int | None = line.cpu_option
    timeout: float = line.sink_timeout_option
    as_json: bool = line.json_option

    def tester(self) -> LineTesterOptions:
        """The settings of the tests; settings without an option are those of RFC 2544."""
        from mxwire.linerate.line_tester import LineTesterOptions

        given = {each.name: getattr(self, each.name) for each in fields(LineTesterOptions)}
        chosen = {name: value for name, value in given.items() if value is not None}
        return LineTesterOptions(**(_RFC2544 if self.rfc2544 else {}) | chosen)


@tests.command()
@takes(LineTestOptions)
def throughput(options: LineTestOptions) -> None:
    """Find the highest rate without loss (RFC 2544, section 26.1)."""
    _run(options, "throughput", lambda tester, measured: iter([tester.throughput(measured)]))


@tests.command()
@takes(LineTestOptions)
@option("Frames (50000/s) or bits (1Gbit/s) per second.  [default: shares of the throughput]", "--rate RATE")
def latency(options: LineTestOptions, rate: str | None) -> None:
    """Measure latencies at 10, 50, 90 and 100% of the throughput, or of --rate (RFC 2544, 26.2; RFC 8219)."""
    from mxwire.linerate.rates import frame_rate

    if rate is not None:
        frame_rate(rate, 1.0, 1)

    def run(tester: LineTester, measured: SizeMeasurement) -> Iterator[dict[str, Any]]:
        at = None if rate is None else frame_rate(rate, measured.size, measured.megabits)
        return tester.latency(measured, at)

    _run(options, "latency", run)


@tests.command()
@takes(LineTestOptions)
def loss(options: LineTestOptions) -> None:
    """Measure the loss at 100%, 90% … of the highest rate, until two in a row have none (RFC 2544, 26.3)."""
    _run(options, "loss", lambda tester, measured: iter([tester.loss(measured)]))


@tests.command()
@takes(LineTestOptions)
def burst(options: LineTestOptions) -> None:
    """Find the longest burst at full speed without loss (RFC 2544, section 26.4; RFC 9004)."""
    _run(options, "burst", lambda tester, measured: iter([tester.burst(measured)]))


SizeTest = Callable[["LineTester", "SizeMeasurement"], "Iterator[dict[str, Any]]"]


def _run(options: LineTestOptions, test: str, run: SizeTest) -> None:
    """Run a test for each frame length, and report; results so far are kept if it ends early."""
    report = _TestReport(test, options.via, options)
    end_like_interrupt()
    settings = options.tester()
    with ExitStack() as stack:
        tester, network_interface, addresses = _open(options, stack, settings, report)
        sizes = _sizes(options, network_interface)
        report.begin(network_interface, {"sizes": list(sizes), **asdict(settings)}, sizes)
        report.run(_measure(tester, options.via, sizes, addresses, run))
    report.finish()


def _measure(
    tester: LineTester, via: str, sizes: tuple[int, ...], addresses: tuple[bytes, bytes], run: SizeTest
) -> Iterator[dict[str, Any]]:
    from mxwire.linerate.live_frames import NOT_POLLED
    from mxwire.linerate.template import template_of_size

    for size in sizes:
        measured = tester.measure(size, (template_of_size(size, *addresses),))
        if via == "kernel" and not measured.limit.received:
            raise MxwireError(f"no frame arrived: {NOT_POLLED}")
        yield from run(tester, measured)


def _open(
    options: LineTestOptions, stack: ExitStack, settings: LineTesterOptions, report: _TestReport
) -> tuple[LineTester, NetworkInterface, tuple[bytes, bytes]]:
    """Open the interface, start or find the sink, and return the tester with the addresses of both sides."""
    from mxwire.lab.machine import pin
    from mxwire.linerate.control import find_sink
    from mxwire.linerate.generator_run import GeneratorRun
    from mxwire.linerate.line_tester import LineTester
    from mxwire.linerate.sink_process import names_interface, sink_address, two_processors
    from mxwire.linerate.template import RUNS
    from mxwire.linerate.transmitters import Via, open_transmitter
    from mxwire.link import PacketLink
    from mxwire.link.ethtool import read_hardware

    local = names_interface(options.target)
    if options.sink_via is not None and not local:
        raise MxwireError(
            "--sink-via is for a sink that the test starts, on an interface (--to IF); give another one --via itself"
        )
    found = LiveOptions(options.interface).check()
    near, far = two_processors(options.cpu) if local else (options.cpu, None)
    pin(near, "--cpu")
    address = None
    if options.target is not None:
        address = sink_address(options.target, options.interface, stack, cpu=far, more=_sink_words(options))
    own = stack.enter_context(PacketLink.open(options.interface))
    control, sink = find_sink(own, address, options.timeout)
    transmitter = stack.enter_context(open_transmitter(own, Via(options.via)))
    report.mode, report.sink = transmitter.mode, sink
    run = GeneratorRun(transmitter, control, sink, first=SystemRandom().randrange(RUNS))
    megabits = read_hardware(options.interface).megabits
    tester = LineTester(run, settings, megabits=megabits, progress=report.line.show)
    return tester, found, (sink.address, own.address)


def _sink_words(options: LineTestOptions) -> tuple[str, ...]:
    """Options of a sink that a test starts. For live frames it uses native mode, which alone receives them, and larger
    buffers.
    """
    live = options.via == "kernel"
    via = options.sink_via or ("xdp" if live else "packet")
    return ("--via", via, *(("--xdp-mode", "native", "--ring", "64") if live and via == "xdp" else ()))


def _sizes(options: LineTestOptions, found: NetworkInterface) -> tuple[int, ...]:
    """Return the frame lengths to test; default lengths are omitted if they exceed the MTU or the kernel cannot make
    them.
    """
    from mxwire.linerate.generator import check_length
    from mxwire.linerate.live_frames import check_live_length
    from mxwire.link.bpf import LONGEST_LIVE_FRAME

    live = options.via == "kernel"
    if options.sizes is None:
        longest = found.mtu + HEADER_SIZE
        return tuple(each for each in _SIZES if each <= (min(longest, LONGEST_LIVE_FRAME) if live else longest))
    check_length(options.interface, found.mtu, max(options.sizes))
    if live:
        check_live_length(max(options.sizes))
    return options.sizes


# Incast


@options_class
class IncastTestOptions:
    """The options of mxwire linerate test incast."""

    interface: str = line.interface_option
    targets: tuple[str, ...] = option(
        "A sender; may be repeated.  [default: all that answer]", "--to IF|MAC", multiple=True
    )
    size: int | None = line.size_option
    blocks: int = shared.integer_option(
        "Maximum number of blocks of 8 frames per sender at once.", "--blocks", least=1, most=4096, default=64
    )
    repetitions: int = line.repetitions_option
    requirements: tuple[str, ...] = line.requirements_option
    csv: Path | None = csv_option
    plot: Path | None = plot_option
    cpu: int | None = line.cpu_option
    timeout: float = line.sink_timeout_option
    as_json: bool = line.json_option


@tests.command()
@takes(IncastTestOptions)
def incast(options: IncastTestOptions) -> None:
    """Have several senders answer PULLs at once, to find the buffer size of the switch in front of the requester.

    With 1, 2 … senders, the answer is doubled from one block of 8 frames until frames are lost.
    """
    from mxwire.lab.machine import pin
    from mxwire.linerate.control import find_sinks
    from mxwire.linerate.generator import check_length
    from mxwire.linerate.incast import IncastOptions, IncastTester
    from mxwire.linerate.sink_process import sink_address
    from mxwire.linerate.template import RUNS, full_size
    from mxwire.linerate.transmitters import SINK_RING_BYTES
    from mxwire.link import PacketLink

    report = _TestReport("incast", "packet", options)
    end_like_interrupt()
    found = LiveOptions(options.interface).check()
    size = full_size("PULL_REPLY") if options.size is None else options.size
    check_length(options.interface, found.mtu, size)
    with ExitStack() as stack:
        pin(options.cpu, "--cpu")
        addresses = [sink_address(each, options.interface, stack) for each in options.targets]
        link = stack.enter_context(PacketLink.open(options.interface, mode="bulk", ring_bytes=2 * SINK_RING_BYTES))
        control, senders = find_sinks(link, addresses, options.timeout)
        settings = IncastOptions(size, options.blocks, options.repetitions)
        first = SystemRandom().randrange(RUNS)
        tester = IncastTester(link, control, senders, settings, first=first, progress=report.line.show)
        report.begin(found, {"size": size, "blocks": options.blocks, "senders": len(senders)}, (size,))
        report.run(tester.measure(count) for count in range(1, len(senders) + 1))
    report.finish()


# Messages


@options_class
class MessageTestOptions:
    """The options of mxwire linerate test messages."""

    live: LiveOptions = group(LiveOptions)
    target: HostChoice = option("A host, like alpha:0.", "--to HOST", required=True, type=shared.host_type)
    lengths: tuple[int, ...] = option(
        "Lengths of the messages: eager up to 32768, else by rendezvous.",
        "--lengths BYTES,…",
        type=lengths_type(0, 1 << 28),
        default="8,4096,1048576",
    )
    partner: str = option(
        "The partner returns messages (serve --echo), or only takes them (serve --sink).",
        "--partner [echo|sink]",
        default="echo",
    )
    window: int = shared.integer_option("Messages in flight.", "--window", least=1, most=4096, default=64)
    trial: float | None = trial_option
    resolution: float | None = resolution_option
    key: int = shared.key_option
    requirements: tuple[str, ...] = line.requirements_option
    csv: Path | None = csv_option
    plot: Path | None = plot_option
    timeout: float = shared.timeout_option(10.0, "Seconds to wait for the host.")
    as_json: bool = line.json_option


@tests.command()
@takes(MessageTestOptions)
def messages(options: MessageTestOptions) -> None:
    """Find the highest rate of messages without retransmissions, and measure round trips below it.

    The partner is a real host: mxwire serve, or an application of Open-MX or MX.
    """
    from mxwire.linerate.message_tester import MessageOptions, MessageTester
    from mxwire.wire.dialect import dialect_by_name

    report = _TestReport("messages", "packet", options)
    end_like_interrupt()
    found = options.live.check()
    dialect = dialect_by_name(options.live.dialect or "mxoe")
    given: dict[str, Any] = {"trial": options.trial, "resolution": options.resolution}
    chosen = {name: each for name, each in given.items() if each is not None}
    settings = MessageOptions(window=options.window, echo=options.partner == "echo", **chosen)
    with options.live.open(background=False, spin=True) as host:
        endpoint = host.open_endpoint(None, options.key)
        number = MEETING_POINT if options.target.endpoint is None else options.target.endpoint
        remote = connect(endpoint, options.target.host, number, options.key, options.timeout)
        tester = MessageTester(host, endpoint, remote, dialect, settings, report.line.show)
        about = {
            "host": str(options.target),
            "dialect": dialect.name,
            "window": options.window,
            "partner": options.partner,
        }
        report.begin(found, about, options.lengths)
        report.run(tester.measure(each) for each in options.lengths)
    report.finish()


# Reports


class _TestReport(line.LineReport):
    """Prints the results of a test, writes its files, and decides the exit code.

    Raises :class:`~mxwire.errors.MxwireError` if a requirement or a file is not possible.
    """

    def __init__(self, test: str, via: str, output: LineTestOptions | IncastTestOptions | MessageTestOptions) -> None:
        from mxwire.linerate.requirement import Requirement

        super().__init__(output.as_json)
        self._test = test
        self._requirements = tuple(map(Requirement.parse, output.requirements))
        self._via = via
        self._csv = output.csv
        self._plot = output.plot
        self._machine: dict[str, Any] = {}
        self.mode: str | None = None
        """Mode of AF_XDP; may be set before ``begin``, as may ``sink``."""
        self.sink: SinkAddress | None = None
        self.results: list[dict[str, Any]] = []
        self._interrupted = False
        self._ended: str | None = None
        self._unmet: list[str] = []
        if output.csv is not None:
            check_writable(output.csv)

    def begin(self, found: NetworkInterface, options: dict[str, Any], sizes: tuple[int, ...]) -> None:
        """Print the machine and the settings.

        Raises :class:`~mxwire.errors.MxwireError` if a requirement is about a length that is not among ``sizes``.
        """
        from mxwire.lab.machine import machine_record
        from mxwire.linerate.requirement import check_sizes

        check_sizes(self._requirements, sizes)
        self._machine = machine_record(found, self._via, self.mode)
        self.show_begin(self.sink, test=self._test, machine=self._machine, options=options)

    def run(self, results: Iterator[dict[str, Any]]) -> None:
        """Store the results of a test; if it ends early, keep the results so far."""
        from mxwire.linerate.requirement import failures

        try:
            for each in results:
                self.results.append(each)
                self.emit("result", **each)
        except KeyboardInterrupt:
            self._interrupted, self._ended = True, "interrupted"
        except MxwireError as error:
            self._ended = str(error)
        else:
            self._unmet = failures(self._requirements, self.results)

    def finish(self) -> None:
        """Print all results, write the files, and exit with the code of the test."""
        self._print()
        if self._csv is not None:
            from mxwire.report.linerate import csv_text

            write_file(self._csv, csv_text(self.results))
        if self._plot is not None and self.results:
            from mxwire.report.plot_linerate import draw

            draw(self._plot, self._test, self.results, self._machine)
        if self._interrupted:
            end_interrupted_line()
            sys.exit(130)
        if self._ended or self._unmet:
            sys.exit(1)

    def _print(self) -> None:
        from mxwire.report.document import show
        from mxwire.report.linerate import result_blocks

        self.line.show()
        about = {"complete": self._ended is None, "ended": self._ended, "unmet": self._unmet}
        self.emit("summary", test=self._test, results=len(self.results), **about)
        if self.results and not self.as_json:
            show(result_blocks(self._test, self.results))
        for text in self._unmet:
            note(f"not met: {text}")
        if self._ended is not None:
            note(f"the test is not complete: {self._ended}; the results above are those up to then")
