"""Campaigns by the processes of a real MPI job on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mxwire.campaign.workers import RANK_VARIABLES, launched_rank
from mxwire.cli.main import cli

pytest.importorskip("mpi4py")
LAUNCHER = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(LAUNCHER is None, reason="mpiexec is not installed (package mpich)")

ROOT = Path(__file__).parents[2]
SEEDS = ("simulate", "--seeds", "0-29")


def job(processes: int, *arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command in an MPI job."""
    words = [str(LAUNCHER), "-n", str(processes), sys.executable, str(ROOT / "cli.py"), *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_an_mpi_job_has_the_digest_of_one_process_and_writes_one_checkpoint(tmp_path):
    alone = CliRunner().invoke(cli, [*SEEDS, "--jobs", "1"])
    checkpoint = tmp_path / "seeds.jsonl"
    for _ in range(2):
        run = job(3, *SEEDS, "--on", "mpi", "--checkpoint", checkpoint, "--to", tmp_path / "runs.csv")
        assert run.returncode == 0, run.stderr
        assert run.stdout == alone.output, "printed by one process only"
        header, *chunks = map(json.loads, checkpoint.read_text().splitlines())
        assert header.keys() == {"mxwire", "campaign"}
        assert sorted(each["first"] + place for each in chunks for place in range(len(each["answers"]))) == [*range(30)]
        assert len((tmp_path / "runs.csv").read_text().splitlines()) == 31
        assert sorted(each.name for each in tmp_path.iterdir()) == ["runs.csv", "seeds.jsonl"]


def test_a_set_of_captures_is_analysed_by_an_mpi_job():
    pattern = str(ROOT / "captures" / "mxoe-n*.pcap")
    alone = CliRunner().invoke(cli, ["diagnose", "--on", "local", "--jobs", "1", "--json", pattern])
    run = job(3, "diagnose", "--on", "mpi", "--json", pattern)
    assert (run.returncode, run.stdout) == (1, alone.stdout), run.stderr


def test_a_job_of_one_process_is_refused():
    run = job(1, *SEEDS, "--on", "mpi")
    assert run.returncode == 2
    assert "this MPI job has 1 process: start it with mpirun -n N or srun" in run.stderr
    assert run.stderr.count("\n") == 1


def test_jobs_do_not_go_with_mpi():
    run = CliRunner().invoke(cli, [*SEEDS, "--on", "mpi", "--jobs", "2"])
    assert "--jobs is the number of processes of this machine" in str(run.exception)


def test_an_error_in_the_options_is_printed_by_one_process():
    """All at once in one job. The silent process waits for two seconds; mpiexec would spin if the other one did not."""
    wrong = ("--seeds 5-x", "--seeds 0-5 --jobs 2", "--seeds 0-5 --pcap x")
    script = 'for wrong in "$@"; do ("$0" cli.py simulate $wrong --on mpi; echo $?) & done; wait'
    script += '; [ "${PMI_RANK:-1}" != 0 ] || sleep 2'
    words = [str(LAUNCHER), "-n", "2", "sh", "-c", script, sys.executable, *wrong]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.stdout.split() == ["2"] * 2 * len(wrong)
    assert [line.partition(" ")[0] for line in run.stderr.splitlines()] == ["mxwire:"] * len(wrong)


def test_an_error_of_the_operating_system_is_printed_by_every_process(tmp_path):
    """It may concern one machine only."""
    run = job(2, *SEEDS, "--on=mpi", "--to", tmp_path / "missing" / "runs.csv")
    assert run.returncode == 2
    assert run.stderr.count("create its directory first") == 2


@pytest.mark.parametrize(
    ("variables", "rank"),
    [({}, 0), ({"SLURM_PROCID": "3"}, 3), ({"SLURM_PROCID": "1", "PMI_RANK": "0"}, 0), ({"PMI_RANK": "x"}, 0)],
)
def test_the_rank_is_that_of_the_launcher(monkeypatch, variables, rank):
    for name in (*RANK_VARIABLES, *variables):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched_rank() == rank
