"""Each benchmark runs as the documentation shows it, and measures everything; no speed fails a test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.library.mpi_hosts import MPIS
from tests.live import bpf
from tests.live.namespaces import missing

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
ON_A_NETWORK = ("curve", "live", "live_processor", "agent", "mpi", "linerate", "replay")
WAYS = ("", ", steered")
CURVE = {"mxoe", "omx:9000", "libmyriexpress", "frames, mxoe", "frames, omx:9000", "udp", "tcp"}
XDP = set() if bpf.missing() else {"mxoe over xdp", "mxoe over xdp-send"}
TCPREPLAY = {"tcpreplay -K"} if shutil.which("tcpreplay") else set()
TSHARK = {"tshark with the plugin"} if shutil.which("tshark") else set()
COMMANDS = {"messages", "verify", "messages --json", "decode --json", "decode", "stats", "decode --to parquet", *TSHARK}
CALLS = {"messages, call", "timing, call", "verification, call", "diagnosis, call"}
ENDS = {"program killed", "program killed, many receives", "program stopped"}
SERIES: dict[str, dict[str, set[str]]] = {
    "curve": {f"{series}{way}": CURVE for series in ("half round trip", "windowed rate") for way in WAYS}
    | {"mx_test with nothing new": {"libmyriexpress"}, "mx_init": {"libmyriexpress"}},
    "live": {
        f"messages of 4 MiB (ring: 1 MiB){way}{more}": {"mxoe", "omx:9000", "tcp", "ring"} | XDP
        for way in WAYS
        for more in ("", ", processor time of the sender", ", processor time of the receiver")
    }
    | {f"messages of 8 bytes, 64 under way{way}": {"mxoe", "omx:9000", "udp"} for way in WAYS}
    | {f"half round trip, 0 bytes{way}": {"mxoe", "omx:9000", "frames", "ring", "udp", "tcp"} for way in WAYS}
    | {f"memory of a process, {moment}": {"mxoe and omx:9000"} for moment in ("at the start", "at the end")},
    "agent": {
        "half round trip with an agent": {"own host", "match", "card"},
        "time until an end is noticed": {"agent killed, match", "agent killed, card", *ENDS},
        "longest round trip of another program, at the end": ENDS,
        "longest round trip of another program, before": ENDS,
    },
    "live_processor": {
        f"processor time, {what}": {"mxoe", "omx:9000"}
        for what in (
            "half round trip",
            "half round trip, 2 bytes",
            "half round trip, 2 bytes in two segments",
            "8 bytes, 64 under way",
            "4 MiB, 4 under way",
            "4 MiB, its frames alone",
        )
    },
    "local": {"half round trip within a host": {"mxwire", "socket pair", "polled socket pair", "C"}},
    "mpi": {
        f"{series}, Open MPI": {"mx", "tcp", "ofi tcp", "raw mx", "frames, mxoe"}
        for series in ("half round trip", "windowed rate")
    },
    "engine": {
        "processor time per message, both sides": {"mxoe", "omx:1500", "omx:9000", "codec alone", "two copies"},
        "processor time per message, many partners": {"mxoe"},
        "memory per object, many outstanding receives": {"mxoe"},
    },
    "decode": {
        f"decoding of {kind} frames": {
            "mxwire columns, call",
            "mxwire typed frames, call",
            "mxwire decode --to parquet, command",
            "construct, call",
            "C loop over libpcap",
            "C loop into arrays over a mapped file",
        }
        for kind in ("small", "mixed")
    },
    "analysis": {
        "start of a command, processor time": COMMANDS,
        "tiny messages, calls": CALLS,
        "tiny messages, 100 hosts, commands": COMMANDS - TSHARK,
        "large messages, calls": CALLS,
        "JSON per frame, tiny messages": {"messages --json", "decode --json"},
        "peak memory, large messages, twice": {"messages", "verification"},
        "peak memory of a command, tiny messages, 10,000 hosts": {"messages", "verify"},
    },
    "campaign": {
        "set of captures": {"1 worker", "2 workers"},
        "counting alone, per process": {"1 process", "2 processes"},
        "disk space of a table, 10,000 hosts": {"data set", "one file"},
    },
    "dissector": {
        "processor time per frame, one line": {"plugin, analysis off", "plugin, checksums off", "scapy"}
        if TSHARK
        else {"scapy"}
    },
    "interop": {"cell, slowest": {"1 process"}},
    "linerate": {
        "72 bytes without receiver": {"AF_XDP", "sendmmsg", "C program"} | TCPREPLAY,
        "4136 bytes through, every header checked": {"AF_XDP", "sendmmsg"},
        "64 bytes to native AF_XDP": {"live frames", "AF_XDP"},
        "error of arrival times at 50,000 frames/s, 99th percentile": {"sendmmsg"} | TCPREPLAY,
    },
    "replay": {
        f"replay of {kind} frames at top speed": {"mxwire replay", "a Python loop of send"} | TCPREPLAY
        for kind in ("small", "mixed")
    },
}
"""Series of each benchmark with their contestants; there may be more of both."""


def run(name: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark; it compiles mxwire as the tests do, in a second."""
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options]
    variables = os.environ | {"MXWIRE_OPTIMIZE": "0"} | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=variables)


@pytest.mark.parametrize("name", SERIES)
def test_the_documented_command_measures_every_contestant(name: str) -> None:
    if name in ON_A_NETWORK and missing():
        pytest.skip(str(missing()))
    if name == "mpi" and not MPIS[0].available:
        pytest.skip("Open MPI 4 is not installed")
    done = run(name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    conditions = records[0]["conditions"]
    assert records[0]["study"] == name and conditions["quick"] and conditions["processor"]
    # scapy and tshark do not use what is compiled.
    assert conditions["compiled"] == (name != "dissector")
    points = [each for each in records if each["record"] == "measurement"]
    for series, contestants in SERIES[name].items():
        assert contestants <= {each["name"] for each in points if each["series"] == series}, series
    assert all(each["median"] > 0 for each in points)
    # A line for each as soon as it is measured.
    assert done.stderr.count("(round 1 of 1)") == len(points)
    assert [each["complete"] for each in records if each["record"] == "end"] == [True]
    goals = [each for each in records if each["record"] == "goal"]
    assert all(isinstance(each["reached"], bool) and each["benchmark"] == name for each in goals)


def test_every_goal_names_a_series_and_contestants_that_are_measured(module: Any) -> None:
    """Captures that ``--quick`` leaves out are not in SERIES."""
    optional = {"mxoe over xdp-send", "mxoe over xdp", "tcpreplay -K", "mxwire columns, numba, call"}
    optional |= {"tshark without the plugin"}
    for goal in module("goals").GOALS:
        known = SERIES[goal.benchmark].get(goal.series)
        assert known is None or {goal.contestant, goal.other} - {""} - optional <= known, goal


def test_all_benchmarks_are_recorded_and_documented_with_the_same_options(module: Any) -> None:
    names = set(module("record").BENCHMARKS)
    assert names == {*SERIES}
    assert {each.stem for each in BENCHMARKS.glob("*.py") if "run_benchmark(__file__" in each.read_text()} == names
    page = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
    assert {each for each in names if f"`{each}.py`" in page} == names
    actions = module("contest").command_line("curve", "about", 5)._actions
    options = {option for action in actions for option in action.option_strings} - {"-h", "--help"}
    section = page.partition("All benchmarks have the same options")[2].partition("The exit code")[0]
    assert {*re.findall(r"`(--[a-z]+)", section)} == options
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for program in re.findall(r"benchmarks/(\w+)\.py", path.read_text(encoding="utf-8")):
            assert (BENCHMARKS / f"{program}.py").exists(), (path, program)


PROGRAM = """
import sys, time
sys.path.insert(0, {folder!r})
from contest import Benchmark, BenchmarkError, Sample, run_benchmark

def fast():
    yield Sample("series", "µs", 1.0, 8)

def failing():
    raise BenchmarkError("no luck")
    yield

def endless():
    while True:
        time.sleep(0.01)

def measure(benchmark):
    benchmark.play("contest", {contestants})

run_benchmark("own.py", "About 100 % of it.", measure, rounds=2)
"""


def run_own(tmp_path: Path, contestants: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "own.py"
    path.write_text(PROGRAM.format(folder=str(BENCHMARKS), contestants=contestants), encoding="utf-8")
    command = [sys.executable, str(path), "--interpreted", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_a_contestant_that_fails_is_left_out_and_the_others_are_measured(tmp_path: Path) -> None:
    done = run_own(tmp_path, '{"failing": failing, "fast": fast, "other": "it is not installed"}')
    assert done.returncode == 2
    assert "contest: failing is left out in round 1 of 2: no luck" in done.stderr
    assert "contest: other is absent: it is not installed" in done.stderr
    assert "series: fast at 8 bytes: 1 µs (round 2 of 2)" in done.stderr and "Partial" in done.stdout


def test_the_time_of_a_benchmark_is_bounded(tmp_path: Path) -> None:
    """The bound is twice the minutes and ten more, here 1 s."""
    done = run_own(tmp_path, '{"fast": fast, "endless": endless}', "--minutes", str(-5 + 1.5 / 120))
    assert done.returncode == 2 and "not completed within twice --minutes" in done.stderr
    assert "fast" in done.stdout


def test_a_drawing_and_help(tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    done = run_own(tmp_path, '{"fast": fast}', "--quick", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert picture.read_text().startswith("<?xml") and "do not publish" in done.stdout
    done = run_own(tmp_path, '{"fast": fast}', "--help")
    assert done.returncode == 0 and "100 % of it" in done.stdout


def test_modules_of_pythonpath_are_measured(tmp_path: Path) -> None:
    """They come before those of the checkout, although the programs need both."""
    package = tmp_path / "mxwire"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('found')")
    command = [sys.executable, "-c", "import contest"]
    environment = {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=BENCHMARKS, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.strip() == "found"


def test_a_restarted_program_that_imports_an_interpreted_mxwire_fails() -> None:
    done = run("engine", "--quick", MXWIRE_BENCHMARK_RESTARTED="1")
    assert done.returncode == 2 and "has imported an interpreted mxwire" in done.stderr
