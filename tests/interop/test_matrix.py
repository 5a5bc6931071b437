"""The whole simulated matrix, once; it fails where it must, and is the same each time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from mxwire.errors import MxwireError
from mxwire.interop import cell_player
from mxwire.interop.cases import ALL_CASES, GROUPS
from mxwire.interop.cell_player import CellOrder, play_simulated
from mxwire.interop.expectations import WORKS
from mxwire.interop.external_programs import ProgramError
from mxwire.interop.impairments import TREATMENTS, treatment_by_name
from mxwire.interop.implementations import IMPLEMENTATIONS, dialect_of, implementation_by_name
from mxwire.interop.matrix import CellSelection, plan, report_of, run
from mxwire.interop.result import Cell
from mxwire.interop.roles import UnplayableCase
from mxwire.interop.simulated_testbed import SimulatedTestbed
from mxwire.link import LinkError
from mxwire.protocol import LocalProtocolError, Status
from mxwire.protocol.library.reliability import OwedAck
from mxwire.rules import CATALOGUE

PAIRS = list(product(IMPLEMENTATIONS, IMPLEMENTATIONS))
REFERENCE = "open-mx-1.5"
PARTS = 6
"""Pairs of two implementations, other than the reference, play one cell in this number, others for each pair; with the
reference and with itself, each implementation has all cells in both roles. ``make nightly`` plays all of every pair."""
PLAYED_AGAIN = 36
"""One cell in this number is played again, by its name; in one pair every cell."""


def played(name: str, seed: int = 1) -> Cell:
    (order,) = plan(CellSelection(cells=(name,), seed=seed))
    return play_simulated(order)


def cells(left: str, right: str, part: slice = slice(None)) -> list[Cell]:
    """The standard cells of a pair, in the one direction."""
    orders = plan(CellSelection(implementations=(left, right)))
    chosen = [each for each in orders if (each.left.name, each.right.name) == (left, right)]
    return [play_simulated(each) for each in chosen[part]]


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=map("-to-".join, PAIRS))
def test_every_cell_is_as_expected(left, right):
    parts = 1 if left == right or REFERENCE in (left, right) else PARTS
    first = sum(map(list(IMPLEMENTATIONS).index, (left, right))) % parts
    found = cells(left, right, slice(first, None, parts))
    assert [f"{each.name}: {each.reason}" for each in found if each.verdict not in ("pass", "info")] == []
    assert len(found) >= len(ALL_CASES) // parts
    for each in found:
        assert each.events or not each.frames
        if not each.reason.startswith("works"):
            assert each.expectation in ("fails", "either")
            assert each.diagnosis, each.name
    for each in found[:: 1 if (left, right) == ("open-mx-1.5-as-found", "native-mx") else PLAYED_AGAIN]:
        assert played(each.name) == each, "it was another run"


@pytest.mark.parametrize("impairment", ["heavy-loss", "slow"])
@pytest.mark.parametrize("name", ["open-mx-1.5", "open-mx-1.5-as-found", "native-mx", "open-mx-1.5-omx-1500"])
def test_hosts_withstand_rarely_played_impairments(name, impairment):
    orders = plan(CellSelection(implementations=(name,), impairments=(impairment,)))
    found = [play_simulated(each) for each in orders]
    assert [f"{each.name}: {each.reason}" for each in found if each.verdict not in ("pass", "info")] == []


def test_hosts_that_do_not_speak_alike_fail_in_the_documented_way():
    found = {each.case: each for each in cells("open-mx-1.5", "open-mx-1.5-omx-9000")}
    assert {name for name, each in found.items() if each.reason == "works"} >= {"connect", "size-tiny", "size-small"}
    failed = found["size-medium"]
    assert (failed.verdict, failed.expectation) == ("pass", "fails")
    assert failed.expected.startswith("fails: 4097 bytes from left to right cannot arrive: MEDIUM has another layout")
    assert any("uses mxoe" in line and "is configured for omx:9000" in line for line in failed.diagnosis)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        # Differences document, sections 1, 3 and 4.2.
        ("native-mx/open-mx-1.1/size-medium/none", "fragments of 2048 bytes"),
        ("native-mx/open-mx-1.5/disconnected/none", "keeps its partners after a disconnect"),
        ("open-mx-1.1-omx-9000/open-mx-1.5-omx-9000/mediums/none", "uses omx/N3"),
        ("open-mx-1.5-omx-1500/open-mx-1.5-omx-9000/size-large/none", "uses omx:1500"),
        ("open-mx-0.5-omx/open-mx-1.0-omx-9000/size-blocks/none", "Bad Number of Replies"),
    ],
)
def test_known_incompatibilities_are_diagnosed(cell, why):
    found = played(cell)
    assert (found.verdict, found.expectation) == ("pass", "fails")
    assert any(why in line for line in found.diagnosis), found.diagnosis


def test_a_pair_that_ought_to_work_and_does_not_has_failed(monkeypatch):
    monkeypatch.setattr(cell_player, "expected_of", lambda *_: WORKS)
    found = played("open-mx-1.5/open-mx-1.5-omx-9000/size-large/none")
    assert found.verdict == "fail"
    assert "did not complete within 60 s" in found.reason


def test_a_pair_that_ought_to_fail_and_works_has_failed(monkeypatch):
    fails = replace(WORKS, expectation="fails", text="fails: so it is said")
    monkeypatch.setattr(cell_player, "expected_of", lambda *_: fails)
    found = played("open-mx-1.5/open-mx-1.5/connect/none")
    assert (found.verdict, found.reason) == ("fail", "works, though it should not: fails: so it is said")


def test_a_failure_that_nothing_explains_is_not_strictly_as_expected(monkeypatch):
    monkeypatch.setattr(cell_player, "diagnose", lambda *_: [])
    assert played("open-mx-1.5/open-mx-1.5-omx-9000/size-large/none").verdict == "non-strict"


def test_a_broken_rule_fails_a_case_that_works(monkeypatch):
    honest = OwedAck.piggyback
    monkeypatch.setattr(OwedAck, "piggyback", lambda self: (honest(self) - 1) & 0x3FFF)
    found = played("open-mx-1.5/open-mx-1.5/bidirectional/none")
    assert found.verdict == "fail"
    assert any(each.rule == "R-ACK-01" and each.severity == "violation" for each in found.findings), found.findings


def test_a_defect_of_a_case_is_called_so(monkeypatch):
    def broken(testbed):
        raise ZeroDivisionError("by hand")

    monkeypatch.setitem(ALL_CASES, "connect", replace(ALL_CASES["connect"], play=broken))
    found = played("open-mx-1.5/open-mx-1.5/connect/none")
    assert (found.verdict, found.reason) == ("fail", "a defect of mxwire: ZeroDivisionError: by hand")


@pytest.mark.parametrize(
    "name", ["open-mx-1.5/native-mx/size-tiny/mixed", "open-mx-1.5-as-found/open-mx-1.5/connect-bad-key/loss"]
)
def test_two_hundred_runs_are_one(name):
    runs = {(each.verdict, each.reason, each.digest, each.events) for each in (played(name) for _ in range(200))}
    assert len(runs) == 1


def test_another_seed_is_another_run():
    name = "open-mx-1.5/open-mx-1.5/stream/mixed"
    assert len({played(name, seed).digest for seed in range(5)}) == 5


def test_several_processes_have_the_same_results_as_one():
    orders = plan(CellSelection(implementations=("open-mx-1.5", "native-mx"), cases=("connecting", "sizes")))
    reports = [report_of(orders, "twice") for _ in range(2)]
    for report, jobs in zip(reports, (1, 2), strict=True):
        assert run(orders, report, jobs=jobs)
        report.started = ""
    assert reports[0] == reports[1]


def test_errors_outside_the_hosts_are_not_blamed_on_them():
    def outcome(error: MxwireError) -> cell_player.CaseOutcome:
        def broken(testbed):
            raise error

        (order,) = plan(CellSelection(cells=("open-mx-1.5/open-mx-1.5/connect/none",)))
        casting = cell_player.casting_of(order.left, "left")
        testbed = SimulatedTestbed(casting, casting, treatment_by_name("none"), 1)
        return cell_player.perform(replace(ALL_CASES["connect"], play=broken), testbed)

    refused = LocalProtocolError(Status.BAD_REQUEST, "no such partner")
    assert outcome(refused) == cell_player.CaseOutcome(False, "a call was refused: no such partner")
    for error in (ProgramError("node7: nothing: cannot be started"), LinkError("eth0: has gone"), UnplayableCase("no")):
        with pytest.raises(type(error), match=str(error)):
            outcome(error)


def test_an_interrupted_run_lists_the_missing_cases():
    orders = plan(CellSelection(implementations=("open-mx-1.5",), cases=("connecting",)))
    report = report_of(orders, "interrupted")

    def play(order: CellOrder) -> Cell:
        if len(report.cells) == 3:
            raise KeyboardInterrupt
        return play_simulated(order)

    assert not run(orders, report, play=play)
    assert not report.complete
    assert [each.verdict for each in report.cells] == ["pass"] * 3 + ["missing"] * (len(orders) - 3)
    assert report.cells[-1].reason == "not played: the run was interrupted"


def test_every_case_has_a_description():
    for name, part in ALL_CASES.items():
        assert part.case.name == name
        assert part.case.description.endswith("."), name
        assert part.case.rules, name
        assert set(part.case.rules) <= set(CATALOGUE), name
    assert set(Counter(part.case.group for part in ALL_CASES.values())) == set(GROUPS)
    assert not set(GROUPS) & set(ALL_CASES)


@pytest.mark.parametrize(
    ("selection", "why"),
    [
        (CellSelection(implementations=("openmx",)), "unknown implementation 'openmx' (did you mean open-mx-"),
        (CellSelection(impairments=("heavy",)), "unknown impairment 'heavy' (did you mean heavy-loss?)"),
        (CellSelection(implementations=("mx",)), "unknown implementation 'mx'; mxwire interop --list lists them all"),
        (CellSelection(cases=("size",)), "unknown case 'size' (did you mean sizes, size-tiny or size-empty?)"),
        (CellSelection(impairments=("bad",)), "unknown impairment 'bad'; mxwire interop --list"),
        (CellSelection(cells=("a/b",)), "invalid cell 'a/b': use the form LEFT/RIGHT/CASE/IMPAIRMENT"),
    ],
)
def test_unknown_names_are_reported_with_the_known_ones(selection, why):
    with pytest.raises(MxwireError) as error:
        plan(selection)
    assert str(error.value).startswith(why)


def test_dialects_have_generations():
    assert dialect_of("omx:1500/N2").generation == "N2"
    assert dialect_of("omx/n3").name == "omx:9000/N3"
    for wrong in ("mxoe/N3", "omx:9000/N5", "omx:9000/"):
        with pytest.raises(MxwireError, match="only omx has generations"):
            dialect_of(wrong)


def test_a_name_selects_its_implementation():
    for each in IMPLEMENTATIONS.values():
        assert implementation_by_name(each.name.upper()) is each
        assert dialect_of(each.dialect).name == each.dialect
    assert TREATMENTS["none"].faults.loss == 0
