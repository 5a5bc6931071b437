"""The benchmark of analysis runs and reports what it promises; how fast anything is decides no test."""

from __future__ import annotations

import pytest

TABLE = "decode --to parquet"


@pytest.fixture
def reports(reports_of):
    return reports_of("analysis.py", "--tiny", 900, "--large", 900, "--memory", 900, "--rounds", 1)


def test_every_part_is_measured_and_compared_with_its_goal(reports):
    made, _ = reports
    assert set(made["results"]) == {"tiny", "large"}
    for measured in made["results"].values():
        assert {"messages", "timing", "verification", "diagnosis", TABLE} <= set(measured)
        assert all(each["frames_per_second"] > 0 for each in measured.values())
    goals = [(each["capture"], each["contestant"], each["goal"]) for each in made["goals"]]
    wanted = [("tiny", 100_000), ("large", 300_000)]
    analyses = [(kind, name, rate) for name in ("messages", "verification") for kind, rate in wanted]
    assert goals == [*analyses, ("tiny", TABLE, 400_000)]
    assert all(each["long"] >= each["short"] > 0 for each in made["memory"]) and len(made["memory"]) == 4


def test_people_get_a_table(reports):
    _, shown = reports
    assert "tiny messages" in shown and "frames/s" in shown and " x tshark" in shown
    last = shown.splitlines()[-9:]
    assert all(each.startswith(("MET   ", "MISSED")) for each in last) and "verification of large messages" in shown
