"""``mxwire bench``: bad input is refused beforehand, in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.live.namespaces import as_nobody

from .support import mxwire


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["path", "--rounds", 0], "--rounds"),
        (["path", "--mtu", 100], "--mtu"),
        (["path", "--delay", "70"], "write 70us, 1ms or 0.5s"),
        (["path", "--delay", "1h"], "write 70us"),
        (["path", "--delay", "-1us"], "--delay"),
        (["path", "--plot", "path.txt"], "name a file that ends in .svg"),
        (["path", "-w", "no/such/folder.jsonl"], "there is no folder"),
        (["path", "--plot", "no/such/folder.svg"], "there is no folder"),
        (["path", "--html", "/dev/null/x"], "cannot be created"),
        (["pth"], "did you mean path"),
    ],
)
def test_bad_input_is_refused_in_one_line(words, text, tmp_path):
    run = mxwire("bench", *words, cwd=tmp_path)
    assert run.code == 2 and "Traceback" not in run.err
    assert text in run.err


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
@pytest.mark.parametrize("words", [["bench", "path"]])
def test_without_root_the_reason_is_given(words):
    code = f"import sys; sys.argv = {['mxwire', *words]!r}\nfrom mxwire.__main__ import main; main()"
    command = as_nobody(code) if os.geteuid() == 0 else [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2 and "needs root" in run.stderr and not run.stdout
    assert "Traceback" not in run.stderr
