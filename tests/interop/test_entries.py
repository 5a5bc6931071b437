"""Implementations of ``--with``: commands whose environment names their role, interface and case."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.interop import live_matrix
from mxwire.interop.configuration import LiveConfiguration, configuration_with
from mxwire.interop.matrix import CellSelection
from mxwire.interop.result import Cell, InteropReport
from tests.cli.support import ROOT, mxwire

EXAMPLES = ROOT / "examples" / "interop"
PATIENT = 1.0
BAD = """
import os, signal, sys, time
how, case = sys.argv[1], os.environ["TESTCASE"]
if how == "hang":
    time.sleep(1000)
if how == "crash":
    os.abort()
if how == "unsupported" and case == "connect":
    sys.exit(127)
print(*(os.environ[name] for name in ("ROLE", "INTERFACE", "NAME", "DIALECT", "ENDPOINT", "KEY", "PEER")), flush=True)
if how == "later":
    time.sleep(0.3)
    sys.exit("no memory left")
time.sleep(1000)
"""


def impatient(configuration: LiveConfiguration) -> LiveConfiguration:
    """Wait for nothing longer than a second."""
    externals = tuple(
        replace(each, programs={role: replace(program, patience=PATIENT) for role, program in each.programs.items()})
        for each in configuration.externals
    )
    return replace(configuration, externals=externals, patience=PATIENT)


def cells(command: str, *cases: str) -> dict[str, Cell]:
    configuration = impatient(configuration_with([f"mine={command}"], ()))
    orders = live_matrix.plan(configuration, CellSelection((), cases, (), (), 1))
    with live_matrix.opened(configuration, None) as player:
        return {order.case: player.play(order) for order in orders}


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    return f"{sys.executable} {path}"


@pytest.mark.usefixtures("_namespaces_work")
class TestBadPrograms:
    def test_one_that_hangs_costs_its_patience_once(self, bad: str) -> None:
        found = cells(f"{bad} hang", "connect", "size-tiny", "one-way")
        silent = "did not print a line within 1 s"
        assert [found[case].verdict for case in ("connect", "size-tiny", "one-way")] == ["fail", "missing", "fail"]
        assert found["connect"].reason.endswith(silent) and found["one-way"].reason.endswith(silent)
        assert found["size-tiny"].reason == "not played: mine did not become ready as 'echo' in connect"

    def test_one_that_crashes_at_once_is_named_with_its_signal(self, bad: str) -> None:
        found = cells(f"{bad} crash", "connect", "size-tiny")
        assert {each.verdict for each in found.values()} == {"fail"}
        assert "ended at once by SIGABRT" in found["size-tiny"].reason

    def test_one_that_ends_during_a_case_is_named_with_its_last_words(self, bad: str) -> None:
        found = cells(f"{bad} later", "connect")["connect"]
        assert found.verdict == "fail"
        assert found.reason.startswith("mine ended as 'echo' with status 1: no memory left; in the case: left: connect")

    def test_127_is_unsupported(self, bad: str) -> None:
        found = cells(f"{bad} unsupported", "connect", "size-tiny")
        assert found["connect"].verdict == "missing" and found["size-tiny"].verdict == "fail"
        assert found["connect"].reason == "not played: mine does not support connect as 'echo' (status 127)"


def test_an_entry_is_one_host_per_dialect_and_knows_it_from_its_environment() -> None:
    configuration = configuration_with(["mine=ls -l"], ("open-mx-1.5", "native-mx", "open-mx-1.5-omx-9000"))
    first, second = configuration.externals
    assert [each.implementation.name for each in (first, second)] == ["mine", "mine-omx-9000"]
    assert second.programs["perf"].environment == {
        "ROLE": "perf",
        "INTERFACE": "eth1",
        "NAME": "mine",
        "DIALECT": "omx:9000",
        "ENDPOINT": "0",
        "KEY": "0x12345678",
        "MXWIRE_INTERFACE": "eth1",
        "MXWIRE_NAME": "mine",
        "MXWIRE_DIALECT": "omx:9000",
    }
    (order, *_) = live_matrix.plan(configuration, CellSelection((), ("connect",), (), (), 3))
    assert order.command == "mxwire interop --cell open-mx-1.5/mine/connect/none --seed 3 --with 'mine=ls -l'"


def test_implementations_may_name_the_entries_themselves() -> None:
    chosen = configuration_with(["mine=true", "other=true"], ("mine", "open-mx-1.1"))
    assert [each.name for each in chosen.implementations] == ["open-mx-1.1"]
    assert [each.name for each in configuration_with(["mine=true"], ("mine",)).implementations] == ["open-mx-1.5"]


def test_a_file_must_name_the_interface_of_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[left]\ninterface = "eth0"\n[[external]]\nname = "x"\nhost = "x:0"\n')
    done = mxwire("interop", "--with", "mine=ls", str(path))
    assert done.code == 2 and "right: is missing" in done.err
    with pytest.raises(MxwireError, match="two hosts"):
        configuration_with(["mine=ls", "mine=ls"], ())


@pytest.mark.usefixtures("_namespaces_work")
def test_the_example_in_python_and_the_entry_point_play_and_make_a_site(tmp_path: Path) -> None:
    site = tmp_path / "site"
    entries = [f"python={sys.executable} {EXAMPLES / 'echo.py'}", f"shell={EXAMPLES / 'run_endpoint.sh'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mxwire", "interop", "--html", str(site)]
        + [word for each in entries for word in ("--with", each)]
        + [word for each in ("size-large", "one-way", "perf", "given-up") for word in ("--case", each)],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(each.right, each.case): each.verdict for each in InteropReport.read(site).cells}
    unsupported = {("python", "perf"), ("shell", "given-up")}
    assert {each for each, verdict in found.items() if verdict == "missing"} == unsupported
    assert {verdict for each, verdict in found.items() if each not in unsupported} == {"pass"}
    assert (site / "index.html").is_file() and len(list((site / "cells").iterdir())) == 8
    assert not list(Path("/run/netns").glob(f"mxwire-*-{os.getpid()}"))


def test_the_examples_are_short() -> None:
    for name in ("echo.py", "run_endpoint.sh"):
        text = (EXAMPLES / name).read_text().splitlines()
        assert len([line for line in text if line.strip() and not line.startswith("#")]) <= 40, name
