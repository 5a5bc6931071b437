"""``mxwire bench``: measurements as in the papers on user-space communication."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mxwire.cli import bench_options as studies
from mxwire.cli.bench_claims import claims
from mxwire.cli.bench_compare import compare
from mxwire.cli.bench_imb import imb
from mxwire.cli.bench_intranode import intranode
from mxwire.cli.bench_models import models
from mxwire.cli.bench_mtu import mtu
from mxwire.cli.bench_overlap import overlap
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import CommandGroup
from mxwire.cli.live_options import end_like_interrupt
from mxwire.cli.notes import EventReport, end_interrupted_line, note
from mxwire.cli.option_class import group, option, options_class, takes
from mxwire.cli.options import flag_option, interface_option, json_option
from mxwire.errors import MxwireError
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.bench.record import Recording
    from mxwire.bench.study import StudyOptions


@click.group(cls=CommandGroup)
def command() -> None:
    """Measure this machine, its network and mxwire by the methods of papers on user-space communication.

    Each study stores samples, counts and conditions; orderings are judged round by round, and undecided on a disturbed
    machine.
    """


@command.command()
@takes(studies.BenchOptions, name="bench")
@takes(studies.OtherMachine, name="machine")
@takes(studies.CableOptions, name="cable")
@flag_option("Do not use a compiled mxwire.", "--interpreted")
def path(
    bench: studies.BenchOptions, machine: studies.OtherMachine, cable: studies.CableOptions, interpreted: bool
) -> None:
    """Measure where the time goes: copies, system calls, frames, the kernel's protocols, the engine, wake-ups."""
    from mxwire.bench.path import measure_path
    from mxwire.bench.path_report import path_blocks, path_figures

    opener = cable.opener(machine)

    def measure_and_calibrate(options: StudyOptions) -> Recording:
        recording = measure_path(opener, options, compiled=not interpreted)
        if recording.complete and not bench.quick:
            from mxwire.bench.path import write_costs

            options.progress("fitting the table of costs")
            written = write_costs(recording)
            if written is not None:
                note(f"wrote {written}, the table of costs here")
        return recording

    studies.conduct(bench, "Where the time goes", measure_and_calibrate, path_blocks, path_figures)


@conflicts("-i", "--memory", "--simulated", error=studies.NOT_WITH_INTERFACE)
@conflicts("--memory", "--delay", "--offloads", "--simulated", "--steering", error="{option}: not with --memory")
@conflicts("--simulated", "--offloads", "--steering", error="{option}: not with --simulated")
@options_class
class LogpOptions:
    """The options of mxwire bench logp."""

    over: str = option("Carriers, separated by commas.", "--over CARRIERS", default="mx,tcp,udp,frames")
    sizes: tuple[int, ...] | None = option(
        "Lengths of the messages, separated by commas.  [default: powers of 4 up to 1 MiB]",
        "--sizes BYTES",
        type=studies.sizes_type,
    )
    machine: studies.OtherMachine = group(studies.OtherMachine)
    memory: bool = studies.memory_option
    simulated: str | None = studies.simulated_option
    form: str | None = option("Print the file format of netgauge's LogGP.", "--as [netgauge]")
    bench: studies.BenchOptions = group(studies.BenchOptions)
    cable: studies.CableOptions = group(studies.CableOptions)


@command.command()
@takes(LogpOptions)
def logp(given: LogpOptions) -> None:
    """Measure L, o_s, o_r, g and G by two methods, and three bandwidths, of mxwire, TCP, UDP and bare frames."""
    opener = studies.choose_testbed(given.machine, given.memory, given.simulated, given.cable)
    from mxwire.bench.logp import expanded, logp_blocks, logp_figures, measure_logp, netgauge_text

    carriers = expanded([each.strip() for each in given.over.split(",")])
    if given.form and len(carriers) != 1:
        raise MxwireError("the format of netgauge describes one network: measure one carrier (--over mxoe)")

    def measure(options: StudyOptions) -> Recording:
        with opener() as testbed:
            return measure_logp(testbed, options, carriers, given.sizes)

    text = netgauge_text if given.form else None
    studies.conduct(given.bench, "LogP", measure, logp_blocks, logp_figures, text=text, live=given.simulated is None)


@command.command()
@interface_option(required=True)
@json_option("JSON Lines: one object per role.")
def serve(interface: str, as_json: bool) -> None:
    """Act as the other side of studies on another machine, until Ctrl-C or SIGTERM."""
    end_like_interrupt()
    from mxwire.bench.remote import StudyServer

    def report(text: str) -> None:
        output.print(text)
        output.emit("role", text=text)

    output = EventReport(as_json)
    server = StudyServer(interface, report)
    try:
        note(f"serving studies on {interface}: mxwire bench path, logp, models, imb or mtu with -i there")
        output.emit("serving", interface=interface)
        while True:
            server.step(1.0)
    except KeyboardInterrupt:
        end_interrupted_line()
        note(f"ended: {count_of(server.studies, 'study', 'studies')} served, {count_of(server.roles, 'role')}")
        sys.exit(130)
    finally:
        server.close()


command.add_command(imb)
command.add_command(models)
command.add_command(intranode)
command.add_command(mtu)
command.add_command(overlap)
command.add_command(claims)
command.add_command(compare)
