"""``mxwire bench imb``, ``models``, ``mtu`` and ``claims``: their output in virtual time."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from mxwire.bench.record import read_recordings
from mxwire.cli.bench_claims import claims

from .support import mxwire

MODEL = ("--simulated", "clovertown-2010")


def test_imb_writes_json_and_a_table(tmp_path):
    path = tmp_path / "imb.jsonl"
    options = ("--largest", "2", "--quick", "--json", "-w", str(path), "--algorithm", "binomial")
    done = mxwire("bench", "imb", "Bcast", *MODEL, *options)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [each["record"] for each in lines] == ["study", *["measurement"] * 3, "end"]
    assert lines[1]["parameters"]["algorithm"] == "binomial"
    assert len(path.read_text().splitlines()) == 5
    table = mxwire("bench", "imb", "Bcast", *MODEL, "--largest", "2", "--quick", "--format", "table")
    assert "modelled" in table.out and "Conditions" in table.out


def test_mtu_draws_the_bound_beside_the_rates():
    done = mxwire("bench", "mtu", *MODEL, "--mtu", "9000", "--delay", "70us", "--quick", "--json")
    assert (done.code, done.err) == (0, "")
    lines = [json.loads(line) for line in done.out.splitlines()]
    delayed = {each["name"] for each in lines if each.get("series") == "rate by delay"}
    assert {"mxoe, 8 frames per block", "bound: mxoe, 8 frames per block", "omx:9000, 32 frames per block"} <= delayed


def test_claims_are_judged_from_a_recording_and_resume_with_the_studies_that_are_missing(tmp_path, monkeypatch):
    """Each study is in the file when it has ended, whatever happens to the next one."""
    from mxwire.bench.claims import library_study, model_study

    path, text = tmp_path / "claims.jsonl", tmp_path / "claims.md"
    words = ["S2-F13", "--model-only", "--quick", "-w", str(path)]

    def killed(*_):
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr(library_study, "run_libraries", killed)
        assert CliRunner().invoke(claims, words).exit_code == 9
    (model,) = read_recordings(path)
    assert (model.study, model.complete) == ("model", True)
    done = mxwire("bench", "claims", *words, "--resume", "--markdown", str(text))
    assert (done.code, done.err) == (0, f"mxwire: model: kept from {model.conditions.time}\n")
    assert "S2-F13-a" in done.out and "S2-F9-a" not in done.out and "by a quick study" in done.out
    assert re.search(r"^Conditions\n=+\n", done.out, re.M)
    assert text.read_text().startswith("# The papers' claims\n")
    assert [each.study for each in read_recordings(path)] == ["model", "libraries", "mtu", "overlap"]
    again = mxwire("bench", "claims", "S2-F13", "--from", str(path), "--json")
    assert [json.loads(line)["claim"] for line in again.out.splitlines()] == ["S2-F13-a", "S2-F13-b"]
    # One with other options is not the same study.
    monkeypatch.setattr(model_study, "run_model", killed)
    assert CliRunner().invoke(claims, [*words[:2], "-w", str(path), "--resume"]).exit_code == 9


def test_a_stalled_study_of_claims_costs_neither_its_beginning_nor_the_others(tmp_path, monkeypatch):
    """One study ends after its first measurement, another one before."""
    from mxwire.bench.claims import library_study
    from mxwire.bench.imb.rank_testbed import ModelRanks
    from mxwire.bench.testbed import TestbedError

    def stall(*_):
        raise TestbedError("rank 1's side: no answer within 15 s")

    def stalling(measure):
        measured = []

        def run(self, benchmark, *rest):
            measured.append(None)
            return measure(self, benchmark, *rest) if len(measured) < 4 else stall()

        return run

    path = tmp_path / "claims.jsonl"
    monkeypatch.setattr(ModelRanks, "measure", stalling(ModelRanks.measure))
    monkeypatch.setattr(library_study, "_compute", stall)
    done = CliRunner().invoke(claims, ["S1", "S2", "--model-only", "--quick", "-w", str(path)])
    assert done.exit_code == 1, done.output
    assert "model: partial: ended early: rank 1's side: no answer within 15 s" in done.stderr
    assert "libraries: not measured: rank 1's side" in done.stderr and "mtu: not measured" in done.stderr
    model, overlap = read_recordings(path)
    assert overlap.study == "overlap" and overlap.complete
    assert model.study == "model" and model.series and not model.complete


@pytest.mark.parametrize("table", ["1", "2", "3"])
def test_tables_of_the_models_are_printed_and_written(table, tmp_path):
    printed = mxwire("bench", "models", "--table", table, "--model", "gam,bip,mx", cwd=tmp_path)
    assert printed.code == 0, printed.err
    assert all(each in printed.out for each in (f"Table {table}", "GAM", "BIP-0.92"))
    as_json = mxwire("bench", "models", "--table", table, "--json", "--html", "pages", cwd=tmp_path)
    rows = [json.loads(each) for each in as_json.out.splitlines()]
    assert {"gam", "mx", "tcp", "myricom-api"} <= {each["name"] for each in rows}
    assert "Table" in (tmp_path / "pages" / f"models-table-{table}.html").read_text()


def test_imb_prints_the_columns_of_imb():
    done = mxwire("bench", "imb", "PingPong", "barrier", *MODEL, "--ranks", "3", "--largest", "64", "--quick")
    assert (done.code, done.err) == (0, "")
    assert (
        "# Benchmarking PingPong \n# #processes = 2 \n# ( 1 additional processes waiting in MPI_Barrier)\n" in done.out
    )
    assert "dissemination" in done.out
    assert "# Maximum message length in bytes:   64\n" in done.out
    rows = [line for line in done.out.splitlines() if re.fullmatch(r" +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d", line)]
    assert [int(row.split()[0]) for row in rows] == [0, 1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("words", [("Allreduce", "--format", "osu"), ("osu_allreduce",)])
def test_imb_prints_the_columns_of_osu(words):
    done = mxwire("bench", "imb", *words, *MODEL, "--largest", "8", "--quick", "--over", "mx,tcp")
    assert done.code == 0
    assert done.out.count("# OSU MPI Allreduce Latency Test v7.4") == 2
    assert [line.split()[0] for line in done.out.splitlines() if line and line[0] != "#"] == ["4", "8"] * 2


def test_models_are_compared_in_memory(tmp_path):
    words = ("--compare", "--memory", "--quick", "--model", "pm", "--sizes", "4", "--rounds", "1")
    run = mxwire("bench", "models", *words, "--json", "--html", "pages", cwd=tmp_path)
    assert run.code == 0, run.err
    lines = [json.loads(each) for each in run.out.splitlines()]
    assert {"RTT/2", "bandwidth", "central queue"} <= {each.get("series") for each in lines}
    assert (tmp_path / "pages" / "models.html").exists()
