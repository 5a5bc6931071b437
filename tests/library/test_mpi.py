"""Today's MPI over the provider of libfabric, on two hosts: Open MPI 4 and 5, and MPICH, from C and from mpi4py."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mxwire.link import Tap
from mxwire.link.faults import Faults
from mxwire.myriexpress.build import Installation
from tests.live.faulty_cable import FaultyCable
from tests.live.namespaces import Laboratory, missing
from tests.waiting import until

from .conftest import SOURCES
from .mpi_hosts import ENVIRONMENT, MPIS, Hosts, Mpi, compile_mpi, processes_of
from .programs import run

PROBES = ("probe", "probe", "probe")
PARTS = ("reverse", *PROBES, "cancel", "collective", "many", "derived", "improbe", "synchronous", "persistent")
FEWER = ("reverse", "probe", "collective")
EXAMPLES = SOURCES.parents[1] / "examples"


@pytest.fixture(scope="module", params=MPIS, ids=[each.name for each in MPIS])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each implementation."""
    made: Mpi = request.param
    if not made.available:
        pytest.skip(f"{made.name} is not installed: no {made.compiler}")
    return made


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program in C, compiled for an implementation."""
    return str(compile_mpi(mpi, SOURCES / "mpi_messages.c", tmp_path_factory.mktemp(mpi.name) / "messages"))


def ended(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Require that a program has ended well, after these parts."""
    assert (done.returncode, done.stdout.split()) == (0, list(parts)), done.stdout + done.stderr


def test_four_ranks_exchange_messages(mpi: Mpi, program: str, hosts: Hosts, tmp_path: Path):
    """Two per host, all parts of one thread; the recorded frames break no rule."""
    with hosts.judged(tmp_path / "run.pcap"):
        done = hosts.mpirun(mpi, 2, program)
    ended(done, *PARTS)


def test_threads(mpi: Mpi, program: str, hosts: Hosts, tmp_path: Path):
    """MPI_THREAD_MULTIPLE; Open MPI 4 inserts the address of a rank once per thread that sends first."""
    with hosts.judged(tmp_path / "run.pcap"):
        done = hosts.mpirun(mpi, 1, program, "threads")
    ended(done, "threads")


def test_one_sided_transfers(mpi: Mpi, hosts: Hosts, tmp_path: Path):
    """Fences and locks between two ranks per host."""
    window = str(compile_mpi(mpi, SOURCES / "mpi_window.c", tmp_path / "window"))
    with hosts.judged(tmp_path / "run.pcap"):
        done = hosts.mpirun(mpi, 2, *mpi.one_sided, window)
    ended(done, "done")


def test_another_dialect(mpi: Mpi, program: str, hosts: Hosts, tmp_path: Path):
    """Each implementation in one of the two others."""
    mtu = 9000 if mpi.name == "open-mpi-5" else 1500
    dialect = f"omx:{mtu}"
    for port in hosts.ports:
        port.link("mtu", str(mtu))
    try:
        with hosts.judged(tmp_path / "run.pcap"):
            own = {"MXWIRE_DIALECT": dialect}
            done = hosts.mpirun(mpi, 1, *mpi.forwarding("MXWIRE_DIALECT"), program, *FEWER, **own)
        ended(done, "reverse", *PROBES, "collective")
    finally:
        for port in hosts.ports:
            port.link("mtu", "9000")


def test_mxwire_run_before_mpirun(mpi: Mpi, program: str, hosts: Hosts, installation: Installation):
    """One option instead of a dozen variables; they reach the ranks of the other host."""
    mxwire_run = (str(ENVIRONMENT / "bin" / "mxwire"), "run", "--mpi", "--prefix", str(installation.prefix))
    command = mpi.command(hosts.agent, 1)
    done = hosts.run(*mxwire_run, "--dialect", "omx:9000", "--", *command, program, "reverse", FI_PROVIDER_PATH="/")
    ended(done, "reverse")


def test_mxwire_run_before_each_rank(mpi: Mpi, program: str, hosts: Hosts, installation: Installation):
    mxwire_run = (str(ENVIRONMENT / "bin" / "mxwire"), "run", "--mpi", "--prefix", str(installation.prefix))
    done = hosts.run(*mpi.command(hosts.agent, 1), *mxwire_run, "--", program, "reverse", FI_PROVIDER_PATH="/")
    ended(done, "reverse")


def test_mpi4py(mpi: Mpi, hosts: Hosts):
    """Debian's Python has no mxwire, and ends before the exit handlers of C."""
    library = {"MPI4PY_LIBMPI": str(mpi.folder / "lib" / "libmpi.so.40")} if mpi.name == "open-mpi-5" else {}
    forwarded = mpi.forwarding(*library)
    imported = run([mpi.python, "-c", "import mpi4py"])
    if imported.returncode:
        pytest.skip(f"{mpi.python} has no mpi4py")
    ended(hosts.mpirun(mpi, 2, *forwarded, mpi.python, str(SOURCES / "mpi_messages.py"), **library), "right")
    done = hosts.mpirun(mpi, 1, *forwarded, mpi.python, str(EXAMPLES / "mpi_pingpong.py"), "--rounds", "1", **library)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].split()[0] == "bytes" and lines[-1].split()[0] == "4194304", done.stderr


@pytest.mark.parametrize("moment", ["killed-at-first", "killed", "killed-at-last"])
def test_a_killed_rank_ends_the_job(mpi: Mpi, program: str, hosts: Hosts, moment: str):
    """Nothing hangs; no process is left, nor memory, except segments of MPICH's own, which the documentation names."""
    hosts.left()
    assert hosts.mpirun(mpi, 2, program, moment).returncode
    until(lambda: not processes_of(program))
    of_mpich = "mpich_shm_" if mpi.name == "mpich" else "nothing"
    assert not [each for each in hosts.left() if not each.startswith(of_mpich)]


def test_a_job_that_hangs_is_killed_as_a_whole_and_its_output_shown(hosts: Hosts):
    """Also what is in a session of its own, as the servers of Open MPI are."""
    with pytest.raises(AssertionError, match=r"has not ended within 1 s\nwaits\n"):
        hosts.run("sh", "-c", "setsid sleep 1000 & echo waits; sleep 1000", limit=1)
    assert not any(port.namespace.processes() for port in hosts.ports)


@pytest.fixture(scope="module")
def lossy(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hosts, FaultyCable]]:
    """Two hosts whose frames pass a cable with faults, and whose mpirun another."""
    if (why_not := missing()) is not None:
        pytest.skip(why_not)
    with Laboratory() as laboratory, closing(FaultyCable(laboratory, 9000, seed=1)) as cable:
        one, other = cable.ports
        control = laboratory.cable(one.namespace, other.namespace, ("control0", "control1"))
        own = variables | {"MXWIRE_INTERFACE": "eth0"}
        yield Hosts((one, other), own, tmp_path_factory.mktemp("agent") / "agent", control), cable


def test_two_percent_loss(mpi: Mpi, program: str, lossy: tuple[Hosts, FaultyCable]):
    hosts, cable = lossy
    lost = cable.counts()["lost"]
    cable.change(Faults(loss=0.02))
    done = hosts.mpirun(mpi, 1, *mpi.forwarding("MXWIRE_INTERFACE"), program, *FEWER)
    cable.change(Faults())
    ended(done, "reverse", *PROBES, "collective")
    assert cable.counts()["lost"] > lost


def test_the_folder_of_the_provider_alone_chooses_it_only_for_open_mpi_5(mpi: Mpi, program: str, hosts: Hosts):
    """By itself, Open MPI 5 prefers any provider to those for TCP."""
    with hosts.ports[0].namespace.inside():
        tap = Tap.open(hosts.ports[0].interface)
    with tap:
        ended(hosts.run(*mpi.command(hosts.agent, 1), program, "reverse"), "reverse")
        assert bool(len(tap.receive(0.2))) is (mpi.name == "open-mpi-5")
