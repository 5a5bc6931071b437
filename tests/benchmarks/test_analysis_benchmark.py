"""The benchmark of analysis runs and reports what it promises; how fast anything is decides no test."""

from __future__ import annotations

import pytest

TABLE = "decode --to parquet"
COMMANDS = ("messages", "verify", "messages --json", "decode --json", "decode")
MANY = ("100 hosts", "10,000 hosts")


@pytest.fixture
def reports(reports_of):
    return reports_of("analysis.py", "--tiny", 900, "--large", 900, "--memory", 900, "--rounds", 1, "--minutes", 0)


def test_every_part_is_measured_and_compared_with_its_goal(reports):
    made, _ = reports
    assert {*made["results"]} == {"tiny", "large", "mixed", "faulty", *MANY}
    for capture, measured in made["results"].items():
        inside = {"messages in process", "timing", "verification", "diagnosis", TABLE}
        assert (inside <= {*measured}) is (capture in ("tiny", "large")) and {*COMMANDS} <= {*measured}
        assert all(each["frames_per_second"] > 0 for each in measured.values())
    assert [(each["capture"], each["contestant"]) for each in made["slower"]] == [
        (a, b) for a in MANY for b in COMMANDS
    ]
    goals = {(each["capture"], each["contestant"]): each["goal"] for each in made["goals"]}
    assert goals["tiny", "verify"] == 300_000 and {name for kind, name in goals if kind == "tiny"} >= {*COMMANDS}
    assert all(each["long"] >= each["short"] > 0 for each in made["memory"]) and len(made["memory"]) == 4


def test_people_get_a_table(reports):
    _, shown = reports
    assert "tiny messages" in shown and "frames/s" in shown and " x tshark" in shown
    last = shown.splitlines()[-24:]
    assert all(each.startswith(("MET   ", "MISSED")) for each in last) and "verification of large messages" in shown
