"""Measure Open MPI over mxwire's provider for libfabric, beside the same Open MPI over TCP, and MX in C without MPI.

    sudo python benchmarks/mpi.py [OPTIONS]

Half a round trip, and the rate with a window of messages, between two ranks in two network namespaces that a veth
pair of MTU 9000 joins. The contestants are ``mx`` (the provider, in the dialect mxoe), ``tcp`` (Open MPI's own, btl
tcp), ``ofi tcp`` (libfabric's provider tcp;ofi_rxm, by the same part of Open MPI as mx), ``raw mx``: a program in C
on libmyriexpress, and from 64 KiB on the frames alone, as in curve.py, which are the limit of both. Calls of MPI or MX
in C are timed, without the start of the job.

Needs root, Open MPI 4 with its compiler (openmpi-bin, libopenmpi-dev) and libfabric-dev.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from contest import Benchmark, BenchmarkError, Failure, Run, cable, compiled_program, run_benchmark
from curve import Kind, Library, Pairs, kinds_of, samples, window_of

from mxwire.myriexpress.build import build
from mxwire.myriexpress.launch import provider_environment
from tests.library.mpi_hosts import ADDRESSES, MPIS, Hosts, compile_mpi

STEP = 384 << 10
"""A length at which the data of TCP that is under way has just left the processor's cache, or has not yet."""
LENGTHS = (
    *(0, 1, 8, 64, 128, 512, 1024, 4096, 16_384, 32_768),
    *sorted((STEP, *(1 << exponent for exponent in range(16, 23)))),
)
QUICK = (8, 4096, 1 << 20)
_OFI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include")
CONTESTANTS = {
    "mx": (*_OFI, "mx"),
    "tcp": ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", f"{ADDRESSES[0]}/24"),
    "ofi tcp": (*_OFI, "tcp;ofi_rxm"),
}
RAW = "raw mx"
LIMIT = "frames, mxoe"
LONG = 64 << 10
"""The least length at which the limit is measured."""
WAY = ", Open MPI"


def run_mpi(hosts: Hosts, program: Path, options: tuple[str, ...], kinds: list[Kind]) -> Iterator[tuple[Kind, float]]:
    """Run measurements in one job."""
    words = [str(word) for kind, length, count in kinds for word in (kind, length, count, window_of(length))]
    open_mpi = MPIS[0]
    done = hosts.run(*open_mpi.command(hosts.agent, 1), *options, str(program), *words)
    if done.returncode:
        raise Failure(done.stderr)
    yield from zip(kinds, map(float, done.stdout.split()), strict=True)


def measure(benchmark: Benchmark) -> None:
    if not MPIS[0].available:
        raise BenchmarkError("Open MPI is not installed: apt-get install openmpi-bin libopenmpi-dev")
    kinds = kinds_of(QUICK if benchmark.quick else LENGTHS, benchmark.quick)
    with TemporaryDirectory() as name, cable(addresses=()) as ports:
        folder, here = Path(name), Path(__file__)
        installation = build(folder / "prefix", libfabric=True)
        pairs = Pairs(ports)
        library = Library(pairs, folder, installation)
        program = compile_mpi(MPIS[0], here.with_name("mpi_program.c"), folder / "program")
        hosts = Hosts(ports, dict(os.environ) | provider_environment(installation), folder / "agent")
        runs: dict[str, Run | str] = {
            name: partial(samples, partial(run_mpi, hosts, program, chosen), kinds, WAY)
            for name, chosen in CONTESTANTS.items()
        }
        runs[RAW] = partial(samples, library.measured, kinds, WAY)
        long = [each for each in kinds if each[1] >= LONG]
        peers = compiled_program("curve_peers.c", folder)
        runs[LIMIT] = (
            peers if isinstance(peers, str) else partial(samples, partial(pairs.peer, peers, LIMIT), long, WAY)
        )
        benchmark.play("mpi", runs)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, network=True)
