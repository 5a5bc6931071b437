"""Measure Open MPI over mxwire's provider for libfabric, beside the same Open MPI over TCP, and MX in C without MPI.

    sudo python benchmarks/mpi.py [--rounds N] [--quick] [--interpreted] [--json] [--plot FILE]

Half a round trip, and the rate with a window of messages, between two ranks in two network namespaces that a veth
pair of MTU 9000 joins. The contestants take turns in one run, and the median of the rounds counts: ``mx`` (the
provider, in the dialect mxoe), ``tcp`` (Open MPI's own, btl tcp), ``ofi tcp`` (libfabric's provider tcp;ofi_rxm, by
the same part of Open MPI as mx), and ``raw mx``: a program in C on libmyriexpress, whose rate is measured for long
messages only. mxwire is compiled (tools/compile.py) unless ``--interpreted`` is given. A run at a load above 0.5 is
marked: do not publish it.

Needs root, Open MPI 4 with its compiler (openmpi-bin, libopenmpi-dev) and libfabric-dev. The exit code is 1 if a goal
is missed, unless ``--quick`` is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from curve import Curve, Goal, count_of, report, window_of
from laboratory import Laboratory, command_line, options_of
from library import Measure, Rounds

from mxwire.myriexpress.build import build
from mxwire.myriexpress.launch import provider_environment
from tests.library.mpi_hosts import ADDRESSES, MPIS, Hosts, compile_mpi

LENGTHS = (0, 1, 8, 64, 128, 512, 1024, 4096, 16_384, 32_768, *(1 << exponent for exponent in range(16, 23)))
QUICK = (8, 4096, 1 << 20)
LARGE = 1 << 20
"""Length from which ``raw mx`` measures the rate, too."""
_OFI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include")
CONTESTANTS = {
    "mx": (*_OFI, "mx"),
    "tcp": ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", f"{ADDRESSES[0]}/24"),
    "ofi tcp": (*_OFI, "tcp;ofi_rxm"),
}
RAW = "raw mx"
GOALS = (
    Goal("trip", "mx", (0, 64), 1.4, RAW),
    Goal("trip", "mx", (128, 4 << 20), 1.2, RAW),
    Goal("rate", "mx", (8, 8), 1.0, "tcp"),
    Goal("rate", "mx", (4 << 20, 4 << 20), 0.9, RAW),
)


def run_mpi(
    hosts: Hosts, program: Path, options: tuple[str, ...], kinds: list[tuple[str, int, int]]
) -> Iterator[float]:
    """Run measurements, each a kind, a length and a count, in one job; yield the results."""
    words = [str(word) for kind, length, count in kinds for word in (kind, length, count, window_of(length))]
    open_mpi = MPIS[0]
    done = hosts.run(*open_mpi.command(hosts.agent, 1), *options, str(program), *words)
    if done.returncode:
        raise SystemExit(f"mpirun ended with exit code {done.returncode}: {done.stderr.strip()}")
    return map(float, done.stdout.split())


def run_raw(rounds: Rounds, kind: str, length: int, count: int) -> float | None:
    """Measure MX in C; None for the rate of short messages."""
    if kind == "trip":
        return rounds.pair("library", Measure("trip", "", "", 1.0, count, count, length))
    if length < LARGE:
        return None
    return rounds.pair("library", Measure("large", "", "", 1.0, count, count, length)) / length


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = command_line(__doc__, rounds=5)
    parser.add_argument("--plot", type=Path, help="draw the results into this file")
    options = options_of(parser)
    if not MPIS[0].available:
        print("Open MPI is not installed: apt-get install openmpi-bin libopenmpi-dev", file=sys.stderr)
        return 2
    load, curve = os.getloadavg()[0], Curve()
    lengths = QUICK if options.quick else LENGTHS
    kinds = [(kind, length, count_of(length, options.quick)) for length in lengths for kind in ("trip", "rate")]
    with tempfile.TemporaryDirectory() as folder, Laboratory() as laboratory:
        installation = build(Path(folder, "prefix"), libfabric=True)
        here, raw = Path(__file__), Path(folder, "library_program")
        flags = (f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress")
        subprocess.run(["cc", "-O2", here.with_name("library_program.c"), "-o", raw, *flags], check=True)
        program = compile_mpi(MPIS[0], here.with_name("mpi_program.c"), Path(folder, "program"))
        ports = laboratory.pair(9000)
        hosts = Hosts(ports, dict(os.environ) | provider_environment(installation), Path(folder, "agent"))
        rounds = Rounds(ports, installation, raw, options.quick)
        for _ in range(options.rounds):
            for name, chosen in CONTESTANTS.items():
                for (kind, length, _), value in zip(kinds, run_mpi(hosts, program, chosen, kinds), strict=True):
                    curve.setdefault((kind, name, length), []).append(value)
            for kind, length, count in kinds:
                found = run_raw(rounds, kind, length, count)
                if found is not None:
                    curve.setdefault((kind, RAW, length), []).append(found)
    reached = report(curve, GOALS, RAW, f"medians of {options.rounds} rounds", load, options)
    return 0 if options.quick or reached else 1


if __name__ == "__main__":
    sys.exit(main())
