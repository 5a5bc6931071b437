"""The example in C for ``mxwire interop --with``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mxwire.interop.result import InteropReport
from mxwire.myriexpress.build import Installation
from mxwire.myriexpress.launch import environment
from tests.live.namespaces import Port

from .conftest import Compile
from .programs import ending, run
from .test_hosts import expect_line

EXAMPLE = Path(__file__).parents[2] / "examples" / "interop" / "mx_echo.c"


@pytest.mark.usefixtures("_namespaces_work")
def test_the_example_in_c_plays(compile_program: Compile, installation: Installation) -> None:
    program = compile_program(EXAMPLE)
    done = run(
        [sys.executable, "-m", "mxwire", "interop", "--json", "--with", f"c={program}"]
        + [word for each in ("connect-repeated", "size-large", "one-way", "perf") for word in ("--case", each)],
        env=environment(installation, os.environ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each.case: each.verdict for each in InteropReport.from_json_lines(done.stdout.splitlines()).cells}
    assert found == {"connect-repeated": "pass", "size-large": "pass", "one-way": "pass", "perf": "missing"}


def test_ctrl_c_ends_a_program_that_waits(
    compile_program: Compile, installation: Installation, cable: tuple[Port, Port]
) -> None:
    """The signals are the program's, not those of the Python in it."""
    port = cable[0]
    own = {"MXWIRE_INTERFACE": port.interface, "MXWIRE_NAME": "c", "ROLE": "sink", "ENDPOINT": "1", "KEY": "1"}
    variables = environment(installation, os.environ) | own
    with ending(port.namespace.start(str(compile_program(EXAMPLE)), env=variables)) as process:
        expect_line(process, "ready\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
