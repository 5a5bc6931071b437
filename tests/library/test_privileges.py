"""Programs with privileges that their user does not have run no code of the user, and read no file that it names."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from mxwire.myriexpress.build import Installation
from tests.library.conftest import SOURCES, Compile
from tests.library.programs import run

RUNS = "import os; open(os.environ['MARKER'], 'a').write(__name__ + '\\n')\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a program to another group needs root")
def test_a_privileged_program_runs_no_code_of_its_user(
    compile_program: Compile, installation: Installation, alone: dict[str, str], tmp_path: Path
):
    # LD_LIBRARY_PATH has no effect on such a program.
    ordinary = compile_program(SOURCES / "privileged.c", f"-Wl,-rpath,{installation.folder}")
    user = tmp_path / "user"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for package in (user / "mxwire", user / "lib" / version / "site-packages" / "numpy"):
        package.mkdir(parents=True)
        package.joinpath("__init__.py").write_text(RUNS)
    (user / "lib" / version / "site-packages" / "user.pth").write_text(RUNS)
    marker = tmp_path / "marker"
    named = alone | {"PYTHONPATH": str(user), "PYTHONUSERBASE": str(user), "MARKER": str(marker)}
    mine = run([ordinary], env=named)
    assert mine.stdout == "6 PYTHONPATH\n" and "mxwire" in marker.read_text(), mine.stderr
    marker.unlink()
    no_peers = alone | {"MXWIRE_PEERS": str(user / "none")}
    refused = run([ordinary], env=no_peers)
    assert str(user / "none") in refused.stderr

    privileged = tmp_path / "privileged"
    shutil.copy(ordinary, privileged)
    # A program of another group than its user's, which the kernel treats as one with file capabilities.
    os.chown(privileged, -1, 65534)
    privileged.chmod(0o2755)
    done = run([privileged], env=named | no_peers)
    assert (done.stdout, done.stderr, marker.exists()) == ("0 PYTHONPATH\n", "", False)
