"""``mxwire bench``: bad input is refused beforehand, in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from mxwire.bench.record import read_recordings
from tests.live.namespaces import as_nobody

from .support import mxwire


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["logp", "-i", "none0"], "none0"),
        (["logp", "--memory", "--over", "tcp"], "no carrier can be used"),
        (["imb", "PingPong", "-i", "none0"], "none0"),
    ],
)
def test_bad_input_is_refused_after_the_state_of_the_computer_is_reported(words, text):
    run = mxwire("bench", *words)
    assert run.code == 2 and text in run.err.splitlines()[-1]


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
@pytest.mark.parametrize("words", [["bench", "path"], ["bench", "logp"]])
def test_without_root_the_reason_is_given(words):
    code = f"import sys; sys.argv = {['mxwire', *words]!r}\nfrom mxwire.__main__ import main; main()"
    command = as_nobody(code) if os.geteuid() == 0 else [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2 and "needs root" in run.stderr and not run.stdout
    assert "Traceback" not in run.stderr


def test_logp_in_virtual_time_needs_no_root_and_names_carriers_without_a_model(tmp_path):
    words = ["logp", "--simulated", "clovertown-2010", "--quick", "--sizes", "4,1024", "-w", "logp.jsonl"]
    run = mxwire("bench", *words, cwd=tmp_path)
    assert run.code == 0 and "tcp, µs, modelled" in run.out and "Agreement" in run.out
    assert "frames: not applicable: not in virtual time" in run.out
    assert max(map(len, run.out.splitlines())) <= 100
    (recording,) = read_recordings(tmp_path / "logp.jsonl")
    assert recording.conditions.testbed == "virtual time, clovertown-2010"
    assert set(recording.facts["agreement"]) == {"mxoe", "omx:9000", "tcp"}


def test_a_study_in_memory_needs_no_root_and_has_all_formats(tmp_path):
    words = ["logp", "--memory", "--quick", "--rounds", 1, "--over", "ring", "--sizes", "4,9000"]
    run = mxwire("bench", *words, "-w", "logp.jsonl", "--plot", "logp.svg", "--html", "pages", cwd=tmp_path)
    assert run.code == 0 and "ring, µs" in run.out and "Conditions" in run.out
    assert "<svg" in (tmp_path / "logp.svg").read_text() and (tmp_path / "pages" / "logp.html").exists()
    (recording,) = read_recordings(tmp_path / "logp.jsonl")
    assert recording.complete and recording.conditions.testbed == "memory"
    netgauge = mxwire("bench", *words, "--as", "netgauge", cwd=tmp_path)
    assert netgauge.code == 0 and netgauge.out.splitlines()[1].startswith("# size n PRTT(1,0,s)")
    as_json = mxwire("bench", *words, "--json", cwd=tmp_path)
    kinds = [each["record"] for each in as_json.objects]
    assert kinds[0] == "study" and kinds[-1] == "end" and set(kinds[1:-1]) == {"measurement"}
