"""The plugin that records which rows of the state tables are taken can fail."""

from __future__ import annotations

import pytest

from mxwire.protocol.machine import Machine
from tests.protocol.tables import tables
from tests.transitions import Transitions

EVERY = {f"{name}: {row.state} --{row.event}--> {row.next}" for name, table in tables().items() for row in table.rows}


class Node:
    """A process of pytest-xdist that has ended."""

    def __init__(self, whole: bool, taken: set[str]) -> None:
        self.workeroutput = {"transitions": (whole, sorted(taken))}


def test_a_row_that_no_process_has_taken_is_reported():
    missing = max(EVERY)
    ours = Transitions()
    ours.pytest_testnodedown(Node(True, EVERY - {missing, min(EVERY)}))
    ours.pytest_testnodedown(Node(True, {min(EVERY)}))
    report = ours._report()
    assert (ours.whole, report.outcome) == (True, "failed")
    assert report.longrepr.splitlines()[1:] == [missing]
    ours.pytest_testnodedown(Node(True, {missing}))
    assert ours._report().outcome == "passed"


@pytest.mark.interpreted("compiled code reads its tables itself")
def test_a_row_is_recorded_while_a_test_of_the_folder_runs_and_no_longer():
    ours = Transitions()
    table = tables()["connect"]
    row = table.rows[0]
    machine = type("Any", (Machine,), {"table": table, row.action: lambda self, *details: None})
    for _ in range(2):
        with ours._recorded():
            pass
        started = machine()
        started.state = row.state
        started.fire(row.event)
        assert ours.taken == set()
    with ours._recorded():
        started = machine()
        started.state = row.state
        started.fire(row.event)
    assert ours.taken == {f"connect: {row.state} --{row.event}--> {row.next}"}
