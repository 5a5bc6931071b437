"""The provider of libfabric with the programs that use it, on two hosts: fi_info, fi_pingpong, Open MPI and mpi4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mxwire.capture import create_capture
from mxwire.link import Tap
from mxwire.myriexpress.build import Installation, build
from tests.cli.support import mxwire
from tests.live.namespaces import Port

from .conftest import SOURCES

LONGEST = 60.0
ADDRESSES = ("10.86.0.1", "10.86.0.2")
AGENT = """#!/bin/sh
# Start a command on another host, as ssh would do.
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec ip netns exec NAMESPACE unshare -u sh -c "hostname beta; $*"
"""


def _missing(*programs: str) -> pytest.MarkDecorator:
    absent = [each for each in programs if shutil.which(each) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


@pytest.fixture(scope="module")
def variables(installation: Installation) -> dict[str, str]:
    """The environment of programs with libfabric."""
    if not installation.provider.is_file():
        pytest.skip("the header files of libfabric are not installed")
    # Debian's libfabric installs signal handlers otherwise.
    quiet = {"IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1"}
    return {**os.environ, "FI_PROVIDER_PATH": str(installation.provider.parent)} | quiet


class Hosts:
    """Two hosts with IP addresses; mpirun on alpha starts processes on beta."""

    def __init__(self, ports: tuple[Port, Port], variables: dict[str, str], agent: Path) -> None:
        self.ports, self.variables, self.agent = ports, variables, agent
        for port, address in zip(ports, ADDRESSES, strict=True):
            port.namespace.ip("addr", "replace", f"{address}/24", "dev", port.interface)
        agent.write_text(AGENT.replace("NAMESPACE", ports[1].namespace.name))
        agent.chmod(0o755)

    def mpirun(self, ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program with ``ranks`` per host over the provider."""
        hosts = ",".join(f"{each}:{ranks}" for each in ADDRESSES)
        options = (
            *("mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", str(2 * ranks), "--host", hosts),
            *("--mca", "plm_rsh_agent", str(self.agent), "--mca", "oob_tcp_if_include", f"{ADDRESSES[0]}/24"),
            *("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "mx"),
        )
        namespace = self.ports[0].namespace
        named = ("unshare", "-u", "sh", "-c", 'hostname alpha; exec "$@"', "sh")
        return namespace.run(*named, *options, *words, env=self.variables, timeout=LONGEST)

    @contextmanager
    def judged(self, capture: Path) -> Iterator[None]:
        """Record, and verify that no frame breaks a rule."""
        with self.ports[0].namespace.inside():
            tap = Tap.open(self.ports[0].interface, ring_bytes=256 << 20)
        ended = threading.Event()

        def record() -> None:
            while len(batch := tap.receive(0.2)) or not ended.is_set():
                writer.write(batch)

        with tap, create_capture(capture) as writer:
            recorder = threading.Thread(target=record)
            recorder.start()
            try:
                yield
            finally:
                ended.set()
                recorder.join()
            assert not tap.statistics().dropped
        judged = mxwire("verify", capture)
        assert judged.code == 0 and "fail" not in judged.out, judged.out


@pytest.fixture(scope="module")
def hosts(cable: tuple[Port, Port], variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(cable, variables, tmp_path_factory.mktemp("agent") / "agent")


def test_the_provider_uses_no_function_of_libfabric(installation: Installation, variables: dict[str, str]):
    """Programs bring their own libfabric, whose functions are not in reach."""
    listed = subprocess.run(["nm", "-D", installation.provider], capture_output=True, text=True, check=True).stdout
    assert [each.split()[-1] for each in listed.splitlines() if "fi_" in each] == ["fi_prov_ini"]


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("fabric_calls.c", 64 << 20),
        ("fabric_calls.c", 20_000),
        ("fabric_access.c", 64 << 20),
        ("fabric_waits.c", 64 << 20),
    ],
    ids=["messages held", "messages queued", "remote memory", "wait objects"],
)
def test_calls_of_libfabric_under_the_sanitizers(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, held: int
):
    """Each call that the provider supports, also when unexpected messages have to stay in the queue of MX."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
    monkeypatch.setenv("CFLAGS", f"{flags} -DHELD_MAXIMUM={held}")
    made = build(tmp_path / "prefix", libfabric=True)
    program = tmp_path / "calls"
    strict = ("-g", "-Wall", "-Wextra", "-Werror", *flags.split())
    subprocess.run(["cc", *strict, SOURCES / source, "-o", program, "-lfabric", "-pthread"], check=True)
    # Memory that Python keeps until the end is not a leak of the provider.
    own = {"FI_PROVIDER_PATH": str(made.provider.parent), "ASAN_OPTIONS": "detect_leaks=0", "MX_NO_MYRINET": "1"}
    done = subprocess.run([program], env=variables | own, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


def test_a_program_that_is_python_progresses_only_in_its_calls(installation: Installation):
    """It may hold the interpreter, which the engine needs, while it waits for the provider."""
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).mx__progresses())"
    words = (sys.executable, "-c", script, str(installation.library))
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "0\n"


@_missing("fi_info")
def test_fi_info_lists_the_provider(hosts: Hosts):
    done = hosts.ports[0].namespace.run("fi_info", "-p", "mx", env=hosts.variables)
    assert done.returncode == 0 and "domain: mx0" in done.stdout, done.stderr
    every = hosts.ports[0].namespace.run("fi_info", "-l", env=hosts.variables).stdout
    assert "mx:" in every.split()


@_missing("fi_info")
@pytest.mark.parametrize(
    ("interface", "reason"),
    [("lo", "lo: no Ethernet interface"), ("none0", "none0: no Ethernet interface")],
)
def test_a_provider_that_cannot_work_reports_it_once(hosts: Hosts, interface: str, reason: str):
    run = hosts.ports[0].namespace.run
    wrong = hosts.variables | {"MXWIRE_INTERFACE": interface}
    done = run("fi_info", "-p", "mx", env=wrong | {"FI_LOG_LEVEL": "warn"})
    assert done.returncode and done.stderr.count(f"libfabric:mx: {reason}\n") == 1, done.stderr
    assert "libfabric:mx" not in run("fi_info", "-p", "mx", env=wrong).stderr


def listens(server: subprocess.Popen[str]) -> None:
    """Wait until fi_pingpong listens at its port; at first, its process is still in the namespace of the test."""
    end = time.monotonic() + LONGEST
    while not re.search(":B9E8 [0-9A-F:]+ 0A ", Path(f"/proc/{server.pid}/net/tcp").read_text()):
        assert server.poll() is None and time.monotonic() < end, server.args
        time.sleep(0.01)


@_missing("fi_pingpong")
@pytest.mark.parametrize("mode", ["tagged", "msg"])
def test_fi_pingpong(hosts: Hosts, mode: str, tmp_path: Path):
    words = ("fi_pingpong", "-p", "mx", "-e", "rdm", "-m", mode, "-I", "5", "-S", "all", "-c")
    server, client = (each.namespace for each in hosts.ports)
    with hosts.judged(tmp_path / "run.pcap"), server.start(*words, env=hosts.variables) as serving:
        try:
            listens(serving)
            done = client.run(*words, ADDRESSES[0], env=hosts.variables, timeout=LONGEST)
            assert done.returncode == 0, done.stdout + done.stderr
            assert serving.wait(LONGEST) == 0
        finally:
            serving.kill()


@pytest.mark.parametrize(
    ("source", "server", "client"), [("fabric_access.c", "target", "initiator"), ("fabric_waits.c", "server", "client")]
)
def test_programs_on_two_hosts(hosts: Hosts, tmp_path: Path, source: str, server: str, client: str):
    """Remote memory whose program makes no call, but waits for its standard input; and programs that sleep in poll."""
    program = str(tmp_path / "program")
    subprocess.run(["cc", "-g", SOURCES / source, "-o", program, "-lfabric", "-pthread"], check=True)
    first, second = (each.namespace for each in hosts.ports)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": hosts.variables}
    with hosts.judged(tmp_path / "run.pcap"), first.start(program, server, **pipes) as serving:
        try:
            assert serving.stdout
            where = serving.stdout.readline().split()
            done = second.run(program, client, *where, env=hosts.variables, timeout=LONGEST)
            assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
            assert serving.communicate(timeout=LONGEST)[0] == "done\n"
        finally:
            serving.kill()


@_missing("mpirun", "mpicc")
def test_one_sided_communication_of_open_mpi(hosts: Hosts, tmp_path: Path):
    """Fences and locks between two ranks per host."""
    program = tmp_path / "window"
    subprocess.run(["mpicc", "-g", SOURCES / "mpi_window.c", "-o", program], check=True)
    done = hosts.mpirun(2, "--mca", "osc", "pt2pt", str(program))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


@_missing("mpirun", "mpicc")
def test_open_mpi(hosts: Hosts, tmp_path: Path):
    """Two ranks per host: messages out of order, probes, cancels, collectives; see mpi_messages.c."""
    program = tmp_path / "messages"
    source = SOURCES / "mpi_messages.c"
    subprocess.run(["mpicc", "-g", "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True)
    with hosts.judged(tmp_path / "run.pcap"):
        done = hosts.mpirun(2, str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["reverse", *3 * ["probe"], "cancel", "collective", "many", "derived"]


@_missing("mpirun")
def test_mpi4py_of_the_system(hosts: Hosts):
    """Its Python has no mxwire, and ends before the exit handlers of C."""
    imported = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True, check=False)
    if imported.returncode:
        pytest.skip("not installed: python3-mpi4py")
    script = SOURCES / "mpi_sum.py"
    done = hosts.mpirun(1, "/usr/bin/python3", str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["3", "3"]
