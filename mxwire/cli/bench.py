"""``mxwire bench``: measurements after the studies by which user-space communication was judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.bench_claims import claims
from mxwire.cli.bench_compare import compare
from mxwire.cli.bench_imb import imb
from mxwire.cli.bench_mtu import mtu
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, stage_of, stage_options
from mxwire.cli.group import CommandGroup
from mxwire.cli.live import end_like_interrupt
from mxwire.cli.notes import note
from mxwire.cli.options import given_options, interface_option, json_option
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from mxwire.bench.record import Recording
    from mxwire.bench.stage import StudyStage

EPILOG = """\b
All studies take --json, -w FILE, --html DIR and --quick; see mxwire bench COMMAND --help.

\b
Examples:
  sudo mxwire bench path                              where the time goes, as a ladder and a budget
  sudo mxwire bench logp --over mx,tcp,udp,frames     L, o, g, G and three bandwidths
  sudo mxwire bench logp --json | jq -c 'select(.series == "g")'
  sudo mxwire bench serve -i eth0                     the other side of studies between two machines
  sudo mxwire bench imb PingPong Allreduce --ranks 4  patterns and collectives, in the columns of IMB or OSU
  mxwire bench mtu --simulated here --delay 70us      frame limit, depth of blocks, delay and coalescing
  sudo mxwire bench claims S1 S2 --html claims        the papers' claims, judged on this machine
  mxwire bench compare a.jsonl b.jsonl                do two recordings of a study agree?
"""
_PATH_EPILOG = """\b
The rungs, from memory shared by two processes to TCP and mxwire, polling and blocking, run between two pinned processes
in network namespaces. The parts of the budget are measured without mxwire's link; their sum is compared with the
measured half round trip. A compiled mxwire (make compiled) is used if it is current, and the interpreted one beside it.
At the end the table of costs "here" of the simulator is written, unless --quick.

\b
Examples:
  sudo mxwire bench path --plot path.svg
  sudo mxwire bench path --html studies -w path.jsonl
  sudo mxwire bench path --no-steering --offloads off
  sudo mxwire bench path --quick --json | jq 'select(.series == "half round trip").counts'

\b
Exit code: 0 complete, 1 ended early (earlier results are printed), 2 it cannot start, 130 Ctrl-C (likewise partial).
"""


_LOGP_EPILOG = """\b
--over takes mx (both dialects: mxoe and omx:9000), mxoe, omx:M, tcp, udp, frames (bare frames, a call each), ring
(bare frames through a mapped ring) and xdp. Each parameter is measured by the paper's fragments and by parametrised
round trips; where they differ by more than 15%, the point is marked. With -i the other side is another machine that
runs mxwire bench serve; otherwise both are in network namespaces here (root), or with --memory in this process, for
shapes and counts only.

\b
Examples:
  sudo mxwire bench logp --over mx,tcp,udp,frames --html studies
  sudo mxwire bench logp --over mxoe --sizes 1,1024,4096,65536 --as netgauge > loggp.txt
  sudo mxwire bench logp -i eth0 --over mx,frames       with mxwire bench serve -i eth0 on the other machine
  mxwire bench logp --memory --quick --over mx --json

\b
Exit code: 0 complete, 1 ended early (earlier results are printed), 2 it cannot start, 130 Ctrl-C (likewise partial).
"""
_SERVE_EPILOG = """\b
Requests arrive over the interface that is measured, as frames with EtherType 0x88B5; any host on its network may send
them. Each role runs in a process of its own. Studies of UDP and TCP need an IPv4 address on the interface.

\b
Examples:
  sudo mxwire bench serve -i eth0
  sudo mxwire bench serve -i eth0 --json
"""


@click.group(cls=CommandGroup, epilog=EPILOG)
def command() -> None:
    """Measure this machine, its network and mxwire as the papers on user-space communication did.

    Each study stores samples, counts and conditions; orderings are judged round by round, and undecided on a disturbed
    machine.
    """


@command.command(epilog=_PATH_EPILOG)
@bench_options
@stage_options
@click.option("--interpreted", is_flag=True, help="Do not use a compiled mxwire.")
def path(
    bench: BenchOptions, mtu: int, steering: bool, delay: float | None, offloads: str | None, interpreted: bool
) -> None:
    """Measure where the time goes: copies, system calls, frames, the kernel's protocols, the engine, wake-ups."""
    end_like_interrupt()
    from mxwire.bench.path import measure_path, path_blocks, path_figures

    def measure(started: Callable[[Recording], object]) -> Recording:
        stage = stage_of(mtu, steering, delay, offloads)
        return measure_path(bench.study, stage, bench.progress, compiled=not interpreted, recording_made=started)

    def measure_and_calibrate(started: Callable[[Recording], object]) -> Recording:
        recording = measure(started)
        if recording.complete and not bench.quick:
            from mxwire.bench.path import write_costs

            bench.progress("fitting the table of costs")
            written = write_costs(recording)
            if written is not None:
                note(f"wrote {written}, the table of costs here")
        return recording

    conduct(bench, "Where the time goes", measure_and_calibrate, path_blocks, path_figures)


def _sizes(value: str) -> tuple[int, ...]:
    """An option type: sizes of messages in bytes, with commas; in ascending order."""
    from mxwire.bench.channels.channel import LARGEST

    try:
        sizes = tuple(sorted({int(each) for each in value.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of sizes: write 4,1024,65536") from None
    if sizes[0] < 1 or sizes[-1] > LARGEST:
        raise click.BadParameter(f"{value!r}: sizes are from 1 to {LARGEST} bytes")
    return sizes


@command.command(epilog=_LOGP_EPILOG)
@click.option(
    "--over",
    default="mx,tcp,udp,frames",
    show_default=True,
    metavar="CARRIERS",
    help="Carriers, with commas between them.",
)
@click.option(
    "--sizes",
    type=_sizes,
    metavar="BYTES",
    help="Lengths of the messages, with commas.  [default: 4 to 1 MiB, times 4]",
)
@interface_option("Measure to another machine over this interface.")
@click.option("-d", "destination", metavar="MAC", help="Its Ethernet address.  [default: the one that answers]")
@click.option("--memory", is_flag=True, help="Both sides in this process, without root: shapes and counts only.")
@click.option("--as", "form", type=click.Choice(["netgauge"]), help="Print the file format of netgauge's LogGP.")
@bench_options
@stage_options
def logp(
    over: str,
    sizes: tuple[int, ...] | None,
    interface: str | None,
    destination: str | None,
    memory: bool,
    form: str | None,
    bench: BenchOptions,
    **cable: Any,
) -> None:
    """Measure L, o_s, o_r, g and G by two methods, and three bandwidths, of mxwire, TCP, UDP and bare frames."""
    end_like_interrupt()
    if destination is not None and interface is None:
        raise MxwireError("-d is for a study over an interface: add -i IF")
    if interface is not None:
        given = sorted({"--mtu", "--steering", "--delay", "--offloads", "--memory"} & set(given_options().values()))
        if given:
            raise MxwireError(f"{', '.join(given)}: not with -i, which measures the interface as it is")
    from mxwire.bench.logp import expanded, logp_blocks, logp_figures, measure_logp, netgauge_text

    carriers = expanded([each.strip() for each in over.split(",")])
    if form and len(carriers) != 1:
        raise MxwireError("the format of netgauge describes one network: measure one carrier (--over mxoe)")

    def measure(started: Callable[[Recording], object]) -> Recording:
        with _stage(interface, destination, memory, cable) as stage:
            return measure_logp(stage, bench.study, carriers, sizes, bench.progress, recording_made=started)

    conduct(bench, "LogP", measure, logp_blocks, logp_figures, text=netgauge_text if form else None)


def _stage(
    interface: str | None, destination: str | None, memory: bool, cable: dict[str, Any]
) -> AbstractContextManager[StudyStage]:
    """The stage that the options describe."""
    if interface is not None:
        from mxwire.bench.remote import RemoteStage
        from mxwire.ethernet import mac_bytes

        return RemoteStage(interface, None if destination is None else mac_bytes(destination))
    from mxwire.bench.machine import compiled_folder
    from mxwire.bench.stage import MemoryStage, open_stage

    return MemoryStage(cable["mtu"]) if memory else open_stage(replace(stage_of(**cable), package=compiled_folder()))


@command.command(epilog=_SERVE_EPILOG)
@interface_option(required=True)
@json_option("JSON Lines: one object per role.")
def serve(interface: str, as_json: bool) -> None:
    """Be the other side of studies on another machine, until Ctrl-C."""
    end_like_interrupt()
    from mxwire.bench.remote import StudyServer
    from mxwire.report.json_line import keyed_line

    def report(text: str) -> None:
        click.echo(keyed_line(event="role", text=text) if as_json else text)

    server = StudyServer(interface, report)
    note(f"serving studies on {interface}: mxwire bench logp -i IF on the other machine")
    if as_json:
        click.echo(keyed_line(event="serving", interface=interface))
    try:
        while True:
            server.step(1.0)
    finally:
        server.close()


command.add_command(imb)
command.add_command(mtu)
command.add_command(claims)
command.add_command(compare)
