"""Goals are judged by the worst point, and the recording takes quiet runs only."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mxwire.bench.record import Conditions, Measurement, Recording, Series, read_recordings

QUIET = Conditions(time="2026-11-01T00:00:00Z", processor="P", processors=2, load=0.2, compiled=True)


def recording(values: dict[str, dict[int, float]], conditions: Conditions = QUIET, study: str = "curve") -> Recording:
    """A recording with half round trips, by contestant and size."""
    points = [
        Measurement(name, "µs", (value * 0.99, value, value * 1.01), {"size": size})
        for name, found in values.items()
        for size, value in found.items()
    ]
    return Recording(study, conditions, [Series("half round trip", "µs", measurements=points)])


@pytest.fixture
def goals(module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = module("goals")
    monkeypatch.setattr(found, "RECORDING", tmp_path / "recording.jsonl")
    return found


def test_the_worst_length_decides(goals: Any) -> None:
    made = recording({"mxoe": {0: 10.0, 129: 30.0, 8192: 90.0}, "tcp": {0: 10.0, 129: 10.0, 8192: 10.0}})
    goal = goals.Goal("curve", "half round trip", "mxoe", 2.0, "tcp", (0, 4096))
    verdict = goals.judged(goal, made)
    assert (verdict.size, verdict.found, verdict.reached) == (129, pytest.approx(3.0), False)
    assert "MISSED" in verdict.text and verdict.record()["reached"] is False
    assert goals.judged(replace(goal, limit=3.0), made).reached
    assert goals.judged(replace(goal, limit=20.0, how="difference"), made).reached
    assert not goals.judged(replace(goal, limit=19.0, how="difference"), made).reached
    assert goals.judged(replace(goal, enough=30.0), made).reached
    assert goals.judged(replace(goal, contestant="omx:9000"), made) is None
    assert goals.judged(replace(goal, other="udp"), made) is None


def test_more_is_better_in_a_rate(goals: Any) -> None:
    point = Measurement("mxoe", "MB/s", (50.0,))
    made = Recording("own", QUIET, [Series("rate", "MB/s", "", "", [point])])
    goal = goals.Goal("own", "rate", "mxoe", 40.0, how="value")
    assert goals.judged(goal, made).reached and not goals.judged(replace(goal, limit=60.0), made).reached


@pytest.mark.parametrize("slow", ["mxoe", "omx:9000"])
def test_every_dialect_is_judged(goals: Any, slow: str) -> None:
    values = {name: {0: 90.0 if name == slow else 10.0} for name in ("mxoe", "omx:9000")}
    made = recording(values | {f"frames, {name}": {0: 10.0} for name in values})
    limits = [each for each in goals.verdicts(made) if each.goal.other.startswith("frames")]
    assert {each.goal.contestant: each.reached for each in limits} == {name: name != slow for name in values}


def test_figures_of_the_readme_are_goals_within_a_tenth(goals: Any) -> None:
    recording({"mxoe": {0: 10.0}, "tcp": {0: 10.0}}).write(goals.RECORDING)
    for value, reached in ((10.9, True), (11.1, False)):
        made = recording({"mxoe": {0: value}})
        (goal,) = goals.published(made)
        assert goals.judged(goal, made).reached is reached
    assert list(goals.published(recording({"mxoe": {0: 90.0}}, replace(QUIET, processor="Q")))) == []


def test_only_quiet_runs_are_recorded(module: Any, tmp_path: Path) -> None:
    record, path = module("record"), tmp_path / "recording.jsonl"
    for bad in (replace(QUIET, load=0.6), replace(QUIET, quick=True)):
        assert "not recorded" in next(record.recorded(recording({"mxoe": {0: 10.0}}, bad), path))
    assert not path.exists()
    assert list(record.recorded(recording({"mxoe": {0: 10.0}}), path)) == ["curve: recorded (load 0.2)"]
    list(record.recorded(recording({"mxwire": {0: 5.0}}, study="local"), path))
    list(record.recorded(recording({"mxoe": {0: 8.0}}), path))
    found = {each.study: each.series[0].measurements[0].median for each in read_recordings(path)}
    assert found == {"curve": 8.0, "local": 5.0}
    assert '"median"' not in path.read_text()


def test_a_point_is_worse_beyond_the_scatter_and_a_tenth(module: Any, tmp_path: Path) -> None:
    record, path = module("record"), tmp_path / "recording.jsonl"
    list(record.recorded(recording({"mxoe": {0: 10.0, 129: 10.0}}), path))
    for value, words in ((10.9, []), (9.0, []), (12.0, ["curve: half round trip, mxoe at 129: 10 to 12 µs, 1.20 x"])):
        assert list(record.worse(recording({"mxoe": {0: 10.0, 129: value}}), path)) == words
    slower = recording({"mxoe": {0: 10.0, 129: 12.0}})
    assert next(record.compared(slower, path)) == "curve: 1 worse than on 2026-11-01"
    elsewhere = recording({"mxoe": {129: 99.0}}, replace(QUIET, processor="Q"))
    assert "another machine" in next(record.compared(elsewhere, path))
    loud = next(record.compared(recording({"mxoe": {0: 10.0}}, replace(QUIET, load=3.0)), path))
    assert loud.endswith("; NOT QUIET, or --quick (load 3.0)")
    assert list(record.compared(recording({"mxwire": {0: 1.0}}, study="local"), path)) == []


def test_a_benchmark_without_a_recording_is_named_and_not_run(module: Any, monkeypatch, capsys, tmp_path: Path) -> None:
    record = module("record")
    monkeypatch.setattr(record, "INTERPRETED", tmp_path / "recording-interpreted.jsonl")
    monkeypatch.setattr(record, "measured", pytest.fail)
    monkeypatch.setattr("sys.argv", ["record.py", "--compare", "--interpreted", "decode", "engine"])
    assert record.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [each.partition(":")[0] for each in lines] == ["engine", "decode"]
    assert lines[0].endswith("in recording-interpreted.jsonl: record it with make bench BENCH='--interpreted engine'")


def test_a_measured_command_leaves_no_process_behind(module: Any, tmp_path: Path) -> None:
    """The rest of its group is killed when the command has ended by itself."""
    left = tmp_path / "left"
    seconds, peak = module("contest").time_and_memory(["sh", "-c", f"sleep 600 & echo $! > {left}"])
    assert seconds < 600 and peak > 0
    stat = Path(f"/proc/{left.read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while stat.exists() and stat.read_text().rpartition(") ")[2][0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not stat.exists() or stat.read_text().rpartition(") ")[2][0] == "Z"
