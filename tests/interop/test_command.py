"""``mxwire interop`` as a user has it: its output and files, and its errors where it cannot work."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from mxwire.interop.result import InteropReport
from tests.cli.support import ROOT, mxwire
from tests.waiting import until

SMALL = (
    "--implementation",
    "open-mx-1.5",
    "--implementation",
    "open-mx-1.5-omx-1500",
    "--case",
    "sizes",
    "--jobs",
    "1",
)


@cache
def as_json():
    return mxwire("interop", *SMALL, "--json")


def test_the_matrix_as_text(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = mxwire("interop", *SMALL)
    assert run.code == 0
    assert max(map(len, run.lines)) <= 80
    report = InteropReport.from_json_lines(as_json().lines)
    first, second = (each.name for each in report.implementations)
    of_first = [each for each in report.cells if each.left == first]
    squares = [
        f"{sum(each.works for each in cells)}/{len(cells)}"
        for cells in ([each for each in of_first if each.right == right] for right in (first, second))
    ]
    row = next(line for line in run.lines if line.startswith(f" 1 {first}"))
    assert row.split()[2:] == squares and squares[0].split("/")[0] == squares[0].split("/")[1] != "0"
    assert run.lines[-1].endswith("pass.")


def test_the_whole_matrix_fits_into_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = mxwire("interop", "--case", "connect", "--impairment", "none", "--jobs", "1")
    assert run.code == 0
    assert max(map(len, run.lines)) <= 80
    assert len(re.findall(r" 1/1\b", run.out)) == 144


def test_columns_without_room_follow_below(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    run = mxwire("interop", "--case", "connect", "--impairment", "none", "--jobs", "1")
    assert run.code == 0
    matrix = run.lines[: next(place for place, line in enumerate(run.lines) if line.startswith("Rows initiate"))]
    assert max(map(len, matrix)) <= 60
    rows = [line for line in run.lines if line.startswith(" 1 open-mx-1.5 ")]
    assert len(rows) > 1 and sum(row.count(" 1/1") for row in rows) == 12


def test_json_is_a_report():
    run = as_json()
    report = InteropReport.from_json_lines(run.lines)
    assert report.complete and report.as_expected
    assert {each["record"] for each in run.objects} == {"report", "implementation", "case", "impairment", "cell"}
    assert all(each.capture is None for each in report.cells)


def test_junit_counts_failures(tmp_path):
    mxwire("interop", *SMALL, "--junit", tmp_path / "report.xml")
    suites = ElementTree.parse(tmp_path / "report.xml").findall("testsuite")
    assert {each.get("name") for each in suites} >= {"open-mx-1.5 to open-mx-1.5, loss"}
    assert sum(int(each.get("tests", 0)) for each in suites) > 20
    assert not any(int(each.get("failures", 1)) for each in suites)


def test_a_report_has_captures_with_comments(tmp_path):
    folder = tmp_path / "report"
    run = mxwire("interop", "--case", "lost-first-reply", "--implementation", "open-mx-1.5", "--report", folder)
    assert run.code == 0, run.err
    (cell,) = InteropReport.read(folder).cells
    capture = folder / "captures" / cell.capture
    decoded = [json.loads(line) for line in mxwire("decode", "--json=full", capture).lines]
    assert len(decoded) == cell.frames
    assert b"lost in the network" in capture.read_bytes()
    assert mxwire("verify", capture).code == 0


def test_a_site_is_written(tmp_path):
    folder = tmp_path / "site"
    run = mxwire("interop", *SMALL[:2], "--case", "size-tiny", "--html", folder)
    assert run.code == 0, run.err
    assert f"wrote {folder / 'index.html'}" in run.err
    first, *_ = run.err.splitlines()
    assert re.fullmatch(rf"mxwire: \d+ cells?: the site in {re.escape(str(folder))} will take about \d+ MB", first)
    assert "open-mx-1.5" in (folder / "index.html").read_text()


def test_the_command_of_a_cell_plays_it_again():
    small = ("--implementation", "open-mx-1.5-omx-1500", "--case", "size-blocks", "--seed", "3")
    cell = InteropReport.from_json_lines(mxwire("interop", *small, "--json").lines).cells[-1]
    assert cell.command.startswith("mxwire ")
    again = InteropReport.from_json_lines(mxwire(*cell.command.split()[1:], "--json").lines)
    assert again.cells == [cell]


def test_cases_and_implementations_can_be_listed():
    run = mxwire("interop", "--list")
    assert "native-mx" in run.out and "lost-first-reply" in run.out and "heavy-loss" in run.out
    assert {each["record"] for each in mxwire("interop", "--list", "--json").objects} == {
        "implementation",
        "case",
        "impairment",
    }


def test_a_folder_that_exists_is_left_alone(tmp_path):
    folder = tmp_path / "report"
    arguments = ("interop", "--case", "connect", "--implementation", "open-mx-1.5", "--report", folder)
    assert mxwire(*arguments).code == 0
    run = mxwire(*arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err == f"mxwire: {folder}: exists already; --force replaces it, or name another folder\n"
    assert mxwire(*arguments, "--force").code == 0
    (folder / "report.jsonl").unlink()
    run = mxwire(*arguments, "--force")
    assert run.code == 2 and "contains no report of mxwire interop, so --force does not touch it" in run.err
    assert (folder / "captures").is_dir()


def running_in(group: int) -> list[str]:
    """The processes of a group, except those that have ended and wait for their parent."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, members = each.read_text().rpartition(")")[2].split()[:3]
            if int(members) == group and state != "Z":
                found.append(each.parent.name)
    return found


def test_ctrl_c_leaves_a_partial_report_and_nothing_that_runs(tmp_path):
    folder = tmp_path / "report"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "interop", "--jobs", "2", "--report", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    captures = folder / "captures"
    until(lambda: captures.is_dir() and len(list(captures.iterdir())) > 20)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "mxwire: interrupted after " in err and "the report is partial" in err
    assert "Traceback" not in err
    assert "The run was interrupted, so the result" in out
    report = InteropReport.read(folder)
    assert not report.complete
    assert {"pass", "missing"} <= {each.verdict for each in report.cells}
    kept = {each.capture for each in report.cells if each.capture is not None}
    assert kept == {each.name for each in captures.iterdir()}, "what was played is told"
    # The server that forks the workers notices the end of the command by itself.
    until(lambda: not running_in(process.pid))
