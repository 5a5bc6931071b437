"""Campaigns by Slurm jobs: real workers, started by a batch system of three shell scripts instead of Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from mxwire.cli.main import cli

# Not by an import, which replaces the handlers of SIGINT and SIGTERM in the process of all tests.
pytestmark = pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="dask-jobqueue is not installed")
ROOT = Path(__file__).parents[2]
SEEDS = ("simulate", "--seeds", "0-29")
SBATCH = """#!/bin/sh
if [ "$1" = --test-only ]; then
    if grep -q '^#SBATCH -p none'; then echo 'sbatch: error: invalid partition specified: none' >&2; exit 1; fi
    exit 0
fi
cp "$1" "$JOBS/script-$$"
setsid sh "$JOBS/script-$$" >"$JOBS/output-$$" 2>&1 &
touch "$JOBS/$!"
echo "Submitted batch job $!"
"""
"""Like Slurm, it copies the script, which is removed as soon as it returns."""
SQUEUE = """#!/bin/sh
for job in $(echo "$3" | tr , ' '); do
    if [ -e "$JOBS/$job" ] && grep -q '^State:\t[^Z]' "/proc/$job/status" 2>/dev/null; then echo "$job"; fi
done
"""
"""A job that has ended can remain as a zombie: the fork server of other tests makes this process the parent of jobs,
and it does not wait for them."""
SCANCEL = """#!/bin/sh
for job in "$@"; do [ -e "$JOBS/$job" ] && kill -- "-$job" 2>/dev/null; touch "$JOBS/cancelled-$job"; done
exit 0
"""
SETTINGS = 'jobs = 2\nqueue = "{queue}"\ncores = 1\nmemory = "1GB"\n{more}\n'


@pytest.fixture
def slurm(tmp_path):
    """Run the command in a folder with the programs of Slurm and a file of settings."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(queue: str, more: str = "", path: str | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "slurm.toml").write_text(SETTINGS.format(queue=queue, more=more))
        path = f"{programs}:{os.environ['PATH']}" if path is None else path
        environment = os.environ | {"JOBS": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": path}
        words = [sys.executable, str(ROOT / "cli.py"), *SEEDS, "--on", "dask-slurm:slurm.toml"]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return run


def test_slurm_jobs_have_the_digest_of_one_process_and_are_cancelled(slurm, tmp_path):
    alone = CliRunner().invoke(cli, [*SEEDS, "--jobs", "1"])
    run = slurm("short")
    assert (run.returncode, run.stdout) == (0, alone.output), run.stderr
    assert len([*tmp_path.glob("output-*")]) == len([*tmp_path.glob("cancelled-*")]) == 2


def test_jobs_that_slurm_refuses_are_reported_in_a_line(slurm, tmp_path):
    run = slurm("none")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "mxwire: slurm.toml: Slurm refuses the job: sbatch: error: invalid partition specified: none\n"
    )
    assert not [*tmp_path.glob("output-*")]


def test_jobs_that_end_without_a_worker_are_reported_in_a_line(slurm):
    run = slurm("short", 'job_script_prologue = ["exit 3"]')
    assert (run.returncode, run.stdout) == (2, "")
    assert "ended before a worker started: see their output, slurm-*.out" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_machine_without_slurm_is_reported_in_a_line(slurm, tmp_path):
    run = slurm("short", path=str(tmp_path / "nothing"))
    assert (run.returncode, run.stdout) == (2, "")
    assert "slurm.toml: the Slurm jobs cannot be started: " in run.stderr and "sbatch" in run.stderr
