"""``mxwire linerate``: test frames at line rate, a sink that counts them, and tests of networks and hosts."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import linerate_options as line
from mxwire.cli import options as shared
from mxwire.cli.conflicts import requires
from mxwire.cli.group import CommandGroup
from mxwire.cli.linerate_search import tests
from mxwire.cli.live_options import LiveOptions, end_like_interrupt
from mxwire.cli.notes import counted, end_interrupted_line, note
from mxwire.cli.option_class import option, options_class, takes
from mxwire.cli.reading import capture_of
from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, mac_bytes, mac_text

if TYPE_CHECKING:
    from mxwire.linerate.generator import GeneratorResult
    from mxwire.linerate.generator_run import RunResult
    from mxwire.linerate.sink import SinkRun
    from mxwire.linerate.station import SinkStation
    from mxwire.linerate.template import FrameTemplate

VIA: Final = ("packet", "xdp", "kernel")
_CHECKS: Final = ("stamp", "header", "all")
_CATCH_UP_NS: Final = 1_000_000_000
"""Outside searches, a generator keeps its rate on average, even on a busy machine."""
_TURN: Final = 0.25
"""Seconds between two updates of the live line."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Measure networks and hosts with test frames at up to line rate.

    A generator sends valid MXoE frames with a stamp, a sink on the other side counts and checks them; the tests use
    both to search for limits. docs/linerate.md explains what each path through the kernel can reach.
    """


# generate


@requires("--no-sink", one_of=("--to",), error="--no-sink needs an address to send to: --to MAC")
@requires(
    "--burst", one_of=("--rate",), error="--burst needs --rate: frames that are sent as fast as possible are one burst"
)
@options_class
class GenerateOptions:
    """The options of mxwire linerate generate."""

    interface: str = line.interface_option
    target: str | None = option("Ethernet address of the sink.  [default: the one that answers]", "--to MAC")
    no_sink: bool = shared.flag_option("Send to --to without a sink: nothing is counted there.", "--no-sink")
    kind: str = option(
        "TINY, SMALL, MEDIUM, PULL, PULL_REPLY, mix (each in turn, at most --size), or the frames of a capture.",
        "--frame TYPE|FILE",
        type=shared.FILE,
        default="TINY",
    )
    skip_damage: bool = shared.damage_option
    size: int | None = line.size_option
    rate: str | None = option("Frames (50000/s) or bits (1Gbit/s) per second, or a percentage (80%).", "--rate RATE")
    count: int | None = shared.count_option("Stop after N frames.")
    seconds: float | None = shared.duration_option(None, "End after S seconds.  [default: Ctrl-C]")
    streams: int = line.streams_option
    burst: int = shared.integer_option(
        "With --rate: send N frames at a time.", "--burst", least=1, most=1 << 20, default=1
    )
    batch: int | None = shared.integer_option(
        "Frames per system call.  [default: 64; 256 with AF_XDP]", "--batch", least=1, most=1024
    )
    via: str = shared.via_option(*VIA)
    timeout: float = shared.timeout_option(10.0, "Seconds to wait for a sink.")
    cpu: int | None = line.cpu_option
    netns: str | None = line.netns_option
    as_json: bool = line.json_option

    def templates(self, destination: bytes, source: bytes) -> tuple[FrameTemplate, ...]:
        """Build the frames of ``--frame``."""
        return read_templates(self.kind, destination, source, self.size, self.skip_damage)


@command.command()
@takes(GenerateOptions)
def generate(options: GenerateOptions) -> None:
    """Send test frames, and compare with the counters of a sink."""
    from mxwire.lab.machine import machine_record, pin
    from mxwire.lab.namespaces import inside
    from mxwire.linerate.control import find_sink
    from mxwire.linerate.generator import GeneratorPlan, check_length
    from mxwire.linerate.generator_run import GeneratorRun
    from mxwire.linerate.rates import frame_rate
    from mxwire.linerate.template import RUNS, mean_length
    from mxwire.linerate.transmitters import Via, open_transmitter
    from mxwire.link import PacketLink
    from mxwire.link.ethtool import read_hardware

    address = None if options.target is None else mac_bytes(options.target)
    pin(options.cpu, "--cpu")
    end_like_interrupt()
    with inside(options.netns), ExitStack() as stack:
        found = LiveOptions(options.interface).check()
        own = stack.enter_context(PacketLink.open(options.interface))
        # Errors in the options are reported before the search for a sink, because its address does not affect the
        # lengths.
        templates = options.templates(address or BROADCAST, own.address)
        length = mean_length(templates)
        check_length(options.interface, own.mtu, max(map(len, templates)))
        pace = (
            None
            if options.rate is None
            else frame_rate(options.rate, length, read_hardware(options.interface).megabits)
        )
        control, sink = (None, None) if options.no_sink else find_sink(own, address, options.timeout)
        if sink is not None:
            templates = options.templates(sink.address, own.address)
        transmitter = stack.enter_context(open_transmitter(own, Via(options.via)))
        run = GeneratorRun(transmitter, control, sink, first=SystemRandom().randrange(RUNS))
        report = _GeneratorReport(options.as_json, options.count)
        lengths = sorted({len(each) for each in templates})
        machine = machine_record(found, options.via, transmitter.mode)
        report.show_begin(sink, machine=machine, frame=options.kind, lengths=lengths)
        plan = GeneratorPlan(pace, options.count, options.seconds, options.burst, _CATCH_UP_NS, options.batch)
        result = run.run(templates, plan, streams=options.streams, progress=report.progress)
    report.end(result)
    if options.via == "kernel" and result.sent and result.sink is not None and not result.received:
        from mxwire.linerate.live_frames import NOT_POLLED

        note(NOT_POLLED)
    if result.generator.ended == "interrupted":
        sys.exit(130)
    if result.error or result.generator.ended:
        sys.exit(1)


def read_templates(
    kind: str, destination: bytes, source: bytes, size: int | None, skip_damage: bool = False
) -> tuple[FrameTemplate, ...]:
    """Build the templates of ``--frame``: a packet type, a mix, or a capture file."""
    from mxwire.linerate.template import KINDS, MIX, captured_templates, templates_of

    if kind.upper().replace("-", "_") in (*KINDS, MIX):
        return templates_of(kind, destination, source, size)
    if not Path(kind).exists():
        raise MxwireError(f"--frame {kind}: this is neither a packet type ({', '.join(KINDS)}, mix) nor a capture file")
    if size is not None:
        raise MxwireError("--size is for a packet type; frames of a capture keep their lengths")

    with capture_of(kind, skip_damage) as reader:
        return captured_templates(reader, destination, source)


class _RateReport(line.LineReport):
    """Prints counts, and the rate since the last ones, in one line of a terminal."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self._next = 0.0
        self._before = (0, time.monotonic())

    def due(self) -> bool:
        """Return whether it is time for the next update of the line."""
        now = time.monotonic()
        if not self.line.shown or now < self._next:
            return False
        self._next = now + _TURN
        return True

    def rate(self, frames: int) -> str:
        """Frames per second since the last call."""
        from mxwire.report.linerate import rate_text

        count, when = self._before
        now = time.monotonic()
        self._before = (frames, now)
        return rate_text(max(frames - count, 0) / (now - when) if now > when else 0.0, "frames/s")


class _GeneratorReport(_RateReport):
    """Prints a run of the generator."""

    def __init__(self, as_json: bool, count: int | None) -> None:
        super().__init__(as_json)
        self._limit = "" if count is None else f" of {count:,}"

    def progress(self, result: GeneratorResult) -> None:
        """Show the frames sent so far."""
        if self.due():
            rate = self.rate(result.frames)
            self.line.show(f"{result.duration_ns / 1e9:.1f} s: {result.frames:,}{self._limit} frames, {rate}")

    def end(self, result: RunResult) -> None:
        """Print the result."""
        from mxwire.report.linerate import generator_lines

        self.line.show()
        if result.generator.ended == "interrupted":
            end_interrupted_line()
        self.emit("summary", **result.record())
        for text in generator_lines(result.record()):
            self.print(text)
        for text in (result.generator.ended, result.error):
            if text and text != "interrupted":
                note(f"{text}; the results above are those up to then")


# sink


@options_class
class SinkOptions:
    """The options of mxwire linerate sink."""

    interface: str = line.interface_option
    check: str = option(
        "Check only the stamp of each frame, also its header, or every byte.",
        "--check",
        type=click.Choice(_CHECKS),
        default="header",
    )
    runs: int | None = shared.integer_option("End after N runs.  [default: Ctrl-C]", "--runs", least=1)
    seconds: float | None = shared.duration_option(None, "End after S seconds.  [default: Ctrl-C]")
    strict: bool = shared.flag_option(
        "Exit with 1 if any frame was lost, duplicated, reordered or altered.", "--strict"
    )
    common_clocks: bool = shared.flag_option(
        "Clocks of both machines are synchronised: print latencies.", "--common-clocks"
    )
    ring: int = shared.integer_option("Receive ring.", "--ring MIB", least=1, most=1024, default=32)
    xdp_mode: str = option(
        "With --via xdp: run the program in the driver, or in the kernel.",
        "--xdp-mode [auto|native|generic]",
        default="auto",
    )
    every: float = shared.every_option
    via: str = shared.via_option("packet", "xdp")
    cpu: int | None = line.cpu_option
    netns: str | None = line.netns_option
    with_parent: int | None = option(
        "End with this parent process, and print no runs.", "--with-parent", type=int, hidden=True
    )
    as_json: bool = line.json_option


@command.command()
@takes(SinkOptions)
def sink(options: SinkOptions) -> None:
    """Count and check test frames, and answer generators."""
    from mxwire.lab.machine import machine_record, pin
    from mxwire.lab.namespaces import inside
    from mxwire.linerate.sink import CheckLevel
    from mxwire.linerate.station import SinkStation
    from mxwire.linerate.transmitters import Via, open_sink_link
    from mxwire.link import XdpLink

    pin(options.cpu, "--cpu")
    end_like_interrupt()
    if options.with_parent is not None:
        from mxwire.lab.child import end_with_parent

        end_with_parent(options.with_parent, signal.SIGTERM)
    with inside(options.netns):
        found = LiveOptions(options.interface).check()
        link = open_sink_link(options.interface, Via(options.via), options.ring << 20, options.xdp_mode)
        with link:
            report = _SinkReport(options.as_json, options.every, options.common_clocks)
            mode, refusals = (link.mode, link.refusals) if isinstance(link, XdpLink) else (None, [])
            station = SinkStation(link, level=CheckLevel(options.check), via=options.via, mode=mode, on_run=report.run)
            report.begin(machine_record(found, options.via, mode, refusals), link.address)
            report.silent = options.with_parent is not None
            interrupted = _collect(station, report, options.runs, options.seconds)
    if interrupted:
        sys.exit(130)
    if options.strict and report.flawed:
        sys.exit(1)


def _collect(station: SinkStation, report: _SinkReport, runs: int | None, seconds: float | None) -> bool:
    """Receive until the end; return whether it was interrupted."""
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while (runs is None or station.ended_runs < runs) and (end is None or time.monotonic() < end):
            station.step(_TURN)
            report.turn(station)
    except KeyboardInterrupt:
        end_interrupted_line()
        return True
    finally:
        report.line.show()
        station.end_runs()
        report.end(station)
    return False


class _SinkReport(_RateReport):
    """Prints the runs that a sink has counted."""

    def __init__(self, as_json: bool, every: float, common_clocks: bool) -> None:
        super().__init__(as_json)
        self._every = every
        self._common_clocks = common_clocks
        self._reported = time.monotonic()
        self._frames = 0
        self.flawed = False
        """True if a frame was lost, duplicated, reordered or altered."""
        self.silent = False
        """True for the sink of a test, whose results go to the test by control messages."""

    def begin(self, machine: dict[str, Any], address: bytes) -> None:
        """Print the machine, and how to send to this sink."""
        from mxwire.report.linerate import machine_text

        self.emit("listening", address=mac_text(address), machine=machine)
        self.print(machine_text(machine))
        self.print(f"sink at {mac_text(address)}: mxwire linerate generate -i IF --to {mac_text(address)}")

    def turn(self, station: SinkStation) -> None:
        """Print progress, if it is due."""
        from mxwire.report.linerate import rate_text

        if self.silent:
            return
        active = [each for each in station.sink.runs.values() if not each.ended]
        frames = sum(each.frames for each in active)
        if self.due():
            if active:
                lost = sum(each.counts().lost for each in active)
                ring = station.drops()["ring"]
                self.line.show(f"{frames:,} frames, {self.rate(frames)}, lost {lost:,}, dropped by the ring {ring:,}")
            return
        now = time.monotonic()
        if not self.line.shown and now - self._reported >= self._every:
            if active and frames != self._frames:
                rate = max(frames - self._frames, 0) / (now - self._reported)
                self.emit("progress", frames=frames, frames_per_second=round(rate, 1), **station.drops())
                self.print(f"{frames:,} frames, {rate_text(rate, 'frames/s')}")
            self._reported, self._frames = now, frames

    def run(self, run: SinkRun, drops: dict[str, int]) -> None:
        """Print a run that has ended."""
        from mxwire.lab.machine import boot_id
        from mxwire.report.document import show
        from mxwire.report.linerate import sink_run_blocks

        counts = run.counts()
        self.flawed |= bool(counts.lost or counts.duplicates or counts.reordered or run.altered)
        if self.silent:
            return
        common = self._common_clocks or (run.boot is not None and run.boot == boot_id())
        record = {
            **run.record(),
            "common_clocks": common,
            "latency_histogram": run.latency.buckets() if common else None,
            "drops": drops,
            "per_stream": run.stream_records(),
        }
        self.line.show()
        self.emit("run", **record)
        if not self.as_json:
            show(sink_run_blocks(record))
        sys.stdout.flush()

    def end(self, station: SinkStation) -> None:
        """Print the number of frames without a stamp."""
        runs, foreign = station.ended_runs, station.sink.foreign
        if self.silent:
            return
        self.emit("ended", runs=runs, foreign=foreign, **station.drops())
        if not self.as_json:
            if not runs:
                note("no test frame arrived")
            if foreign:
                note(f"{counted(foreign, 'frame')} of MXoE without a stamp, or with one of another generator")


command.add_command(tests)
