"""The provider of libfabric by itself, and with fi_info and fi_pingpong on two hosts; see test_mpi.py for MPI."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.myriexpress.build import Installation, build
from mxwire.myriexpress.launch import environment
from tests.waiting import until

from .conftest import SOURCES
from .mpi_hosts import ADDRESSES, Hosts
from .programs import LONGEST, ending, read_line, run


def _missing(*programs: str) -> pytest.MarkDecorator:
    absent = [each for each in programs if shutil.which(each) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


def test_the_provider_uses_no_function_of_libfabric(installation: Installation, variables: dict[str, str]):
    """Programs bring their own libfabric, whose functions are not in reach."""
    listed = run(["nm", "-D", installation.provider], check=True).stdout
    assert [each.split()[-1] for each in listed.splitlines() if "fi_" in each] == ["fi_prov_ini"]


@pytest.mark.parametrize(
    ("limits", "programs"),
    [
        ("", ("calls", "access", "atomics", "waits", "refusals", "hostile")),
        ("-DHELD_MAXIMUM=20000 -DVISITS=8 -DCLOSE_MS=300", ("calls", "access", "atomics", "hostile", "memory")),
    ],
    ids=["held", "queued"],
)
def test_calls_of_libfabric_under_the_sanitizers(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: str, programs: tuple[str, ...]
):
    """Each call that the provider supports, refusals, and a plain MX program that forges headers, grants and replies;
    also when unexpected messages and accesses have to stay in the queue of MX."""
    flags = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined"
    monkeypatch.setenv("CFLAGS", f"{flags} {limits}")
    made = build(tmp_path / "prefix", libfabric=True)
    libraries = (f"-L{made.folder}", f"-Wl,-rpath,{made.folder}", "-lmyriexpress", "-lfabric", "-pthread")
    strict = ("-g", "-Wall", "-Wextra", "-Werror", *flags.split(), f"-I{made.include}")
    # Memory that Python keeps until the end is not a leak of the provider.
    own = {"FI_PROVIDER_PATH": str(made.provider.parent), "ASAN_OPTIONS": "detect_leaks=0", "MX_NO_MYRINET": "1"}
    own |= {"MXWIRE_DISCOVERY": "0.3", "FI_LOG_LEVEL": "warn"}
    warned = ""
    for each in programs:
        program = tmp_path / each
        run(["cc", *strict, SOURCES / f"fabric_{each}.c", "-o", program, *libraries], check=True)
        for words in [(str(seed), "1000") for seed in range(3)] if each == "hostile" else [()]:
            command = [program, *words]
            done = run(command, env=variables | own)
            assert (done.returncode, done.stdout) == (0, "done\n"), (command, done.stdout, done.stderr)
            warned += done.stderr
    assert warned.count(":mx: dropped a message that another version") == 3
    assert warned.count(":mx: an endpoint refuses messages") == ("refusals" in programs)
    stayed = [int(each) for each in re.findall(r":mx: (\d+) messages and accesses had to stay", warned)]
    # The partner of "memory" sends 4,000.
    assert 3900 < max(stayed) < 3995 if "memory" in programs else not stayed


def test_a_program_that_is_python_progresses_only_in_its_calls(installation: Installation):
    """It may hold the interpreter, which the engine needs, while it waits for the provider."""
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).mx__progresses())"
    words = (sys.executable, "-c", script, str(installation.library))
    assert run(words, check=True).stdout == "0\n"


@_missing("fi_info")
def test_fi_info_lists_the_provider(hosts: Hosts):
    done = run(hosts.ports[0].namespace.command("fi_info", "-p", "mx"), env=hosts.variables)
    assert done.returncode == 0 and "domain: mx0" in done.stdout, done.stderr
    every = run(hosts.ports[0].namespace.command("fi_info", "-l"), env=hosts.variables).stdout
    assert "mx:" in every.split()


@_missing("fi_info")
@pytest.mark.parametrize(
    ("interface", "reason"), [("lo", "lo: no Ethernet interface"), ("none0", "none0: no Ethernet interface")]
)
def test_a_provider_that_cannot_work_reports_it_once(hosts: Hosts, interface: str, reason: str):
    namespace = hosts.ports[0].namespace
    wrong = hosts.variables | {"MXWIRE_INTERFACE": interface}
    command = namespace.command("fi_info", "-p", "mx")
    done = run(command, env=wrong | {"FI_LOG_LEVEL": "warn"})
    assert done.returncode and done.stderr.count(f"libfabric:mx: {reason}\n") == 1, done.stderr
    assert "libfabric:mx" not in run(command, env=wrong).stderr


@_missing("fi_info", "setpriv")
def test_a_provider_without_permission_reports_it_once(hosts: Hosts):
    command = ("setpriv", "--bounding-set=-net_raw", "fi_info", "-p", "mx")
    done = run(hosts.ports[0].namespace.command(*command), env=hosts.variables | {"FI_LOG_LEVEL": "warn"})
    assert done.returncode and done.stderr.count("libfabric:mx: no permission to open interfaces") == 1, done.stderr


@_missing("fi_info")
def test_two_providers_of_one_name_are_one(hosts: Hosts, installation: Installation, tmp_path: Path):
    """A copy, which finds no library, beside the provider."""
    copy = tmp_path / "libother-fi.so"
    copy.write_bytes(installation.provider.read_bytes())
    both = {"FI_PROVIDER_PATH": f"{tmp_path}:{installation.provider.parent}"}
    found = [
        run(hosts.ports[0].namespace.command("fi_info", "-p", "mx"), env=hosts.variables | own).stdout
        for own in ({}, both, both | {"LD_LIBRARY_PATH": str(installation.search_folder)})
    ]
    assert found[0].count("domain: mx0") > 0 and found == [found[0]] * 3


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("no engine", "engine.so: cannot open shared object file"),
        ("other version", "libmyriexpress.so was built by another version of mxwire"),
        ("no mxwire", "cannot import mxwire"),
    ],
)
def test_a_library_that_cannot_start_refuses_a_domain_in_one_line(
    hosts: Hosts, installation: Installation, tmp_path: Path, damage: str, reason: str
):
    prefix, packages = tmp_path / "prefix", tmp_path / "packages"
    shutil.copytree(installation.prefix, prefix, symlinks=True)
    own = {"FI_PROVIDER_PATH": str(Installation(prefix).provider.parent), "PYTHONPATH": str(packages)}
    if damage == "no engine":
        Installation(prefix).engine.unlink()
    elif damage == "no mxwire":
        packages.joinpath("mxwire").mkdir(parents=True)
        packages.joinpath("mxwire", "__init__.py").touch()
    else:
        shutil.copytree(SOURCES.parents[1] / "mxwire", packages / "mxwire")
        packages.joinpath("mxwire", "__init__.py").open("a").write('\n__version__ = "other"\n')
    program = tmp_path / "program"
    run(["cc", SOURCES / "fabric_waits.c", "-o", program, "-lfabric", "-pthread"], check=True)
    done = run(hosts.ports[0].namespace.command(str(program)), env=hosts.variables | own)
    assert done.returncode == 1 and "fi_domain" in done.stdout
    assert reason in done.stderr and done.stderr.count("\n") == 1, done.stderr


def listens(server: subprocess.Popen[str]) -> None:
    """Wait until fi_pingpong listens at its port; at first, its process is still in the namespace of the test."""
    until(lambda: re.search(":B9E8 [0-9A-F:]+ 0A ", Path(f"/proc/{server.pid}/net/tcp").read_text()))


@_missing("fi_pingpong")
@pytest.mark.parametrize("mode", ["tagged -S all", "msg"])
def test_fi_pingpong(hosts: Hosts, mode: str, tmp_path: Path):
    """Of all sizes, and without tags of six."""
    words = ("fi_pingpong", "-p", "mx", "-e", "rdm", "-I", "2", "-c", "-m", *mode.split())
    server, client = (each.namespace for each in hosts.ports)
    with hosts.judged(tmp_path / "run.pcap"), ending(server.start(*words, env=hosts.variables)) as serving:
        listens(serving)
        done = run(client.command(*words, ADDRESSES[0]), env=hosts.variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert serving.wait(LONGEST) == 0


@pytest.mark.parametrize(
    ("source", "server", "client"), [("fabric_access.c", "target", "initiator"), ("fabric_waits.c", "server", "client")]
)
def test_programs_on_two_hosts(hosts: Hosts, tmp_path: Path, source: str, server: str, client: str):
    """Remote memory whose program makes no call, but waits for its standard input; and programs that sleep in poll."""
    program = str(tmp_path / "program")
    run(["cc", "-g", SOURCES / source, "-o", program, "-lfabric", "-pthread"], check=True)
    first, second = (each.namespace for each in hosts.ports)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": hosts.variables}
    with hosts.judged(tmp_path / "run.pcap"), ending(first.start(program, server, **pipes)) as serving:
        where = read_line(serving).split()
        done = run(second.command(program, client, *where), env=hosts.variables)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
        assert serving.communicate(timeout=LONGEST)[0] == "done\n"


@pytest.mark.parametrize(
    ("host", "number"),
    [(1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP), (1, 0)],
    ids=["killed", "killed on the same host", "stopped", "opened again"],
)
def test_operations_fail_after_their_partner_has_acknowledged_them_and_died(
    hosts: Hosts, installation: Installation, tmp_path: Path, host: int, number: int
):
    """Sends, accesses, and a receive that waits for the rest of its message."""
    program = str(tmp_path / "program")
    libraries = (f"-I{installation.include}", f"-L{installation.folder}", "-lmyriexpress", "-lfabric", "-pthread")
    run(["cc", "-g", SOURCES / "fabric_dead.c", "-o", program, *libraries], check=True)
    own = environment(installation, hosts.variables) | {"MX_MAX_RETRIES": "4"}
    survivor, partner = hosts.ports[0].namespace, hosts.ports[host].namespace
    words = (program, "partner", str(int(number)))
    with ending(partner.start(*words, stdout=subprocess.PIPE, env=own)) as dying:
        done = run(survivor.command(program, "survivor", read_line(dying).strip()), env=own)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
