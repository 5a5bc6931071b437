"""``mxwire bench``: measurements after the studies by which user-space communication was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mxwire.cli.bench_claims import claims
from mxwire.cli.bench_imb import imb
from mxwire.cli.bench_mtu import mtu
from mxwire.cli.bench_options import BenchOptions, bench_options, conduct, stage_of, stage_options
from mxwire.cli.group import CommandGroup
from mxwire.cli.live import end_like_interrupt
from mxwire.cli.notes import note

if TYPE_CHECKING:
    from collections.abc import Callable

    from mxwire.bench.record import Recording

EPILOG = """\b
All studies take --json, -w FILE, --html DIR and --quick; see mxwire bench COMMAND --help.

\b
Examples:
  sudo mxwire bench path                              where the time goes, as a ladder and a budget
  sudo mxwire bench imb PingPong Allreduce --ranks 4  patterns and collectives, in the columns of IMB or OSU
  mxwire bench mtu --simulated here --delay 70us      frame limit, depth of blocks, delay and coalescing
  sudo mxwire bench claims S1 S2 --html claims        the papers' claims, judged on this machine
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


command.add_command(imb)
command.add_command(mtu)
command.add_command(claims)
