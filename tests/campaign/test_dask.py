"""Campaigns by a real Dask cluster of worker processes on this machine."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import mxwire
from mxwire.campaign import workers
from mxwire.cli.main import cli
from mxwire.errors import MxwireError

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")

ROOT = Path(__file__).parents[2]
SEEDS = ["simulate", "--seeds", "0-29"]


@pytest.fixture(scope="module")
def client():
    import distributed

    from mxwire.campaign import private_dask

    before = dict(os.environ)
    with private_dask.local_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client
    assert dict(os.environ) == before


@pytest.fixture(scope="module")
def certificate(client, tmp_path_factory):
    """The variables by which Dask finds the client's certificate, in files."""
    folder = tmp_path_factory.mktemp("tls")
    role = client.security.get_tls_config_for_role("client")
    variables = {"ca_file": "CA_FILE", "cert": "CLIENT__CERT", "key": "CLIENT__KEY"}
    for name in variables:
        (folder / name).write_text(role[name])
    return {f"DASK_DISTRIBUTED__COMM__TLS__{variable}": str(folder / name) for name, variable in variables.items()}


def _descendants(pid: int) -> set[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return {pid}.union(*(_descendants(int(child)) for each in children for child in each.read_text().split()))


def _listening_ports(pids: set[int]) -> set[int]:
    """The TCP ports on which processes listen."""
    sockets = set()
    for pid in pids:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                sockets.add(str(each.readlink()).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in sockets}


def _answer(port: int, tls: bool) -> bytes:
    """Return the answer of a port to a request without the certificate."""
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain, suppress(ssl.SSLError, ConnectionError):
        connection = stranger.wrap_socket(plain) if tls else plain
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(100)
    return b""


def _forge_version(version: str) -> None:
    workers.__version__ = version


def _digest(out: str) -> str:
    (line,) = [each for each in out.splitlines() if each.startswith("digest of all runs ")]
    return line


def test_nothing_that_listens_answers_without_the_certificate(client):
    import distributed

    address = client.scheduler_info()["address"]
    assert address.startswith("tls://127.0.0.1:")
    client.wait_for_workers(2, timeout=60)
    ports = _listening_ports(_descendants(os.getpid()))
    # The scheduler, two nannies and two workers, and no port for HTTP.
    assert len(ports) == 5
    for port in ports:
        assert _answer(port, tls=True) == b""
        assert _answer(port, tls=False)[:1] in (b"", b"\x15")  # an alert of TLS
    for security in (distributed.Security(), distributed.Security.temporary()):
        for url in (address, address.replace("tls:", "tcp:")):
            with pytest.raises((OSError, TypeError, RuntimeError)):
                distributed.Client(url, security=security, timeout=1)


def test_workers_import_from_a_folder_of_their_user_only(client):
    folders = client.run(lambda dask_worker: dask_worker.local_directory)
    for folder in folders.values():
        top = next(each for each in Path(folder).parents if each.name.startswith("mxwire-dask-"))
        assert (top.stat().st_mode & 0o777, top.stat().st_uid) == (0o700, os.getuid())


def test_killed_workers_do_not_change_the_digest(client, certificate):
    alone = CliRunner().invoke(cli, [*SEEDS, "--jobs", "1"])
    together = CliRunner().invoke(cli, [*SEEDS, "--jobs", "2"])
    assert alone.exit_code == together.exit_code == 0
    on = f"dask:{client.scheduler_info()['address']}"
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), *SEEDS, "--on", on],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | certificate,
        text=True,
    )
    killed = 0
    while running.poll() is None and not killed:
        # Only a worker with a chunk is killed.
        busy = [each for each, keys in client.processing().items() if keys]
        pids = client.run(os.getpid, workers=busy, on_error="ignore") if busy else {}
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.1)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert killed
    assert _digest(out) == _digest(alone.output) == _digest(together.output)


def test_a_worker_of_another_version_is_refused(client, certificate):
    import dask

    tls = {name.removeprefix("DASK_").replace("__", ".").lower(): file for name, file in certificate.items()}
    client.wait_for_workers(2, timeout=60)
    address = client.scheduler_info()["address"]
    client.run(_forge_version, "0.0.1")
    try:
        why = rf"has mxwire 0\.0\.1, this is {mxwire.__version__}: install the same"
        with dask.config.set(tls), pytest.raises(MxwireError, match=why), workers.open_workers(f"dask:{address}"):
            pass
    finally:
        client.run(_forge_version, mxwire.__version__)


def test_unreachable_workers_are_reported_in_a_line(monkeypatch, tmp_path):
    import dask

    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 0.2)
    no_toml = tmp_path / "slurm.toml"
    no_toml.write_text("queue =")
    no_jobs = tmp_path / "none.toml"
    no_jobs.write_text("jobs = 0")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('cores = 2\nmemory = "1GB"\nqeue = "short"')
    for on, why in (
        ("dask:tcp://127.0.0.1:9", "the scheduler cannot be reached: "),
        ("dask:tls://127.0.0.1:9", "the scheduler cannot be reached: TLS expects"),
        ("dask:nonsense", "the scheduler cannot be reached: "),
        (f"dask:{tmp_path}/none.json", "the scheduler cannot be reached: "),
        (f"dask-slurm:{tmp_path}/none", "cannot be read: No such file"),
        (f"dask-slurm:{no_toml}", "not a TOML file"),
        (f"dask-slurm:{no_jobs}", "jobs = 0: give the number of Slurm jobs"),
        (f"dask-slurm:{wrong}", "the Slurm jobs cannot be started: "),
    ):
        with pytest.raises(MxwireError) as caught, workers.open_workers(on):
            pass
        assert why in str(caught.value)
        assert "\n" not in str(caught.value)
    why = "the scheduler cannot be reached: encryption required"
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(MxwireError, match=why),
        workers.open_workers("dask:tcp://127.0.0.1:9"),
    ):
        pass
    own = "--jobs is the number of processes of this machine"
    with pytest.raises(MxwireError, match=own), workers.open_workers("mpi", 2):
        pass
