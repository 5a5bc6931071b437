"""Campaigns by a real Dask cluster of worker processes on this machine."""

from __future__ import annotations

import os
import signal
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

    before = dict(os.environ)
    with workers.local_cluster(distributed, 2) as cluster, distributed.Client(cluster) as client:
        yield client
    assert dict(os.environ) == before


def _forge_version(version: str) -> None:
    workers.__version__ = version


def _digest(out: str) -> str:
    (line,) = [each for each in out.splitlines() if each.startswith("digest of all runs ")]
    return line


def test_killed_workers_do_not_change_the_digest(client):
    alone = CliRunner().invoke(cli, [*SEEDS, "--jobs", "1"])
    together = CliRunner().invoke(cli, [*SEEDS, "--jobs", "2"])
    assert alone.exit_code == together.exit_code == 0
    on = f"dask:{client.scheduler_info()['address']}"
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), *SEEDS, "--on", on],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
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


def test_a_worker_of_another_version_is_refused(client):
    client.wait_for_workers(2, timeout=60)
    address = client.scheduler_info()["address"]
    client.run(_forge_version, "0.0.1")
    try:
        why = rf"has mxwire 0\.0\.1, this is {mxwire.__version__}: install the same"
        with pytest.raises(MxwireError, match=why), workers.open_workers(f"dask:{address}"):
            pass
    finally:
        client.run(_forge_version, mxwire.__version__)


def test_unreachable_workers_are_reported_in_a_line(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 0.2)
    no_toml = tmp_path / "slurm.toml"
    no_toml.write_text("queue =")
    no_jobs = tmp_path / "none.toml"
    no_jobs.write_text("jobs = 0")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('cores = 2\nmemory = "1GB"\nqeue = "short"')
    for on, why in (
        ("dask:tcp://127.0.0.1:9", "the scheduler cannot be reached: "),
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
    own = "--jobs is the number of processes of this machine"
    with pytest.raises(MxwireError, match=own), workers.open_workers("mpi", 2):
        pass
