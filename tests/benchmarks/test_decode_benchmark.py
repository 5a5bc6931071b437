"""The decoding benchmark runs and reports everything it promises; how fast anything is decides no test."""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mxwire.capture import open_capture
from mxwire.wire.decoder import Decoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FRAMES = 500
GOALS = 6

Load = Callable[[str], ModuleType]


@pytest.fixture
def reports(reports_of: Callable[..., tuple[dict[str, Any], str]]) -> tuple[dict[str, Any], str]:
    return reports_of("decode.py", "--frames", FRAMES, "--rounds", 1)


@pytest.fixture
def data(reports: tuple[dict[str, Any], str]) -> dict[str, Any]:
    return reports[0]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of the benchmark by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    return importlib.import_module


def names(module: Load, folder: Path) -> list[str]:
    return [each.name for each in module("ours").contestants() + module("peers").contestants(folder)]


def test_every_contestant_is_measured_or_named_as_absent(data: dict[str, Any], module: Load, tmp_path: Path) -> None:
    assert [each["name"] for each in data["captures"]] == ["small", "mixed"]
    for capture in data["captures"]:
        measured = {each["name"]: each for each in capture["results"]}
        assert not measured.keys() & data["absent"].keys()
        assert measured.keys() | data["absent"].keys() == set(names(module, tmp_path))
        assert all(each["frames_per_second"] > 0 and len(each["rounds"]) == 1 for each in measured.values())


def test_the_captures_are_as_long_as_they_should_be(data: dict[str, Any]) -> None:
    small, mixed = data["captures"]
    assert small["frames"] == mixed["frames"] == FRAMES
    assert small["average_length"] == pytest.approx(62, abs=1)
    assert mixed["average_length"] == pytest.approx(1480, rel=0.1)


def test_every_goal_has_a_verdict(data: dict[str, Any]) -> None:
    assert len(data["goals"]) == GOALS
    for goal in data["goals"]:
        known = goal["frames_per_second"] is not None and goal["ratio"] is not None
        assert isinstance(goal["reached"], bool) or not known


def test_the_table_has_a_row_for_each_contestant(
    reports: tuple[dict[str, Any], str], module: Load, tmp_path: Path
) -> None:
    text = reports[1]
    assert all(text.count(f"\n  {name} ") == 2 for name in names(module, tmp_path))
    assert sum(line.split()[0] in ("reached", "missed", "unknown") for line in text.splitlines() if line) == GOALS


def test_a_goal_without_its_yardstick_is_unknown_unless_the_rate_alone_reaches_it(module: Load) -> None:
    goals, contest = module("goals"), module("contest")
    goal = goals.Goal("small", "ours", 100.0, "theirs", 2.0)
    fast, slow, theirs = (contest.Result(name, (rate,)) for name, rate in (("ours", 150), ("ours", 50), ("theirs", 20)))
    assert goals.judge(goal, {"ours": fast}).reached is True
    assert goals.judge(goal, {"ours": slow}).reached is None
    assert goals.judge(goal, {}).reached is None
    assert goals.judge(goal, {"ours": slow, "theirs": theirs}).reached is True
    assert goals.judge(goal, {"ours": contest.Result("ours", (30,)), "theirs": theirs}).reached is False


@pytest.mark.parametrize("kind", ["SMALL", "MIXED"])
def test_the_loop_in_c_reads_the_same_values_as_the_columns(kind: str, module: Load, tmp_path: Path) -> None:
    traffic, peers = module("traffic"), module("peers")
    path = tmp_path / "traffic.pcap"
    traffic.write_capture(path, getattr(traffic, kind), FRAMES)
    if peers.contestants(tmp_path)[-1].run is None:
        pytest.skip("the loop in C cannot be compiled here")
    done = subprocess.run([str(tmp_path / "libpcap_loop"), str(path)], check=True, capture_output=True, text=True)
    frames, total, _ = done.stdout.split()
    assert (int(frames), int(total)) == (FRAMES, _sum_of_columns(path))


def _sum_of_columns(path: Path) -> int:
    """Every field of every frame, both addresses, times and lengths, added modulo 2**64."""
    total = 0
    decoder = Decoder()
    with open_capture(path) as reader:
        for batch in reader:
            columns = decoder.decode(batch).columns
            located = columns.located
            arrays = [located.source, located.destination, batch.timestamp_ns, batch.wire_length]
            arrays += [block[name] for block in columns.blocks for name in block.names]
            total += sum(int(each.sum(dtype=np.uint64)) for each in arrays)
    return total % (1 << 64)
