"""The plugin that records which rows of the state tables are taken can fail."""

from __future__ import annotations

from enum import StrEnum

import pytest

from mxwire.protocol.state_machine import StateMachine, TransitionTable
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


class Light(StrEnum):
    RED = "red"
    GREEN = "green"


class Press(StrEnum):
    BUTTON = "button"


@pytest.mark.interpreted("a class of its own cannot be derived from a compiled one")
def test_a_row_is_recorded_while_a_test_of_the_folder_runs_and_no_longer(monkeypatch):
    class Lamp(StateMachine):
        table = TransitionTable("lamp", Light.RED, ((Light.RED, Press.BUTTON, Light.GREEN, None, ()),))

    monkeypatch.setattr("tests.protocol.tables.tables", lambda: {"lamp": Lamp.table})
    ours = Transitions()
    with ours._recorded():
        pass
    Lamp().fire(Press.BUTTON)
    assert ours.taken == set()
    with ours._recorded():
        Lamp().fire(Press.BUTTON)
    assert ours.taken == {"lamp: red --button--> green"}
