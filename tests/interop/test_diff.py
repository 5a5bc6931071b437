"""The changes between two reports, in words, as JSON, and by the exit code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mxwire.cli.interop import diff as command
from mxwire.errors import MxwireError
from mxwire.interop.diff import SHOWN, blocks, compare
from mxwire.interop.result import INTERRUPTED, VERDICTS, Cell, InteropReport
from mxwire.report.document import plain


def a_report(*verdicts: tuple[str, str], complete: bool = True) -> InteropReport:
    cells = [
        Cell("left", "right", case, "none", 7, verdict, f"works, with {verdict}", command="again")
        for case, verdict in verdicts
    ]
    return InteropReport("a", "1", "now", complete, cells=cells)


def test_cells_are_compared_by_name():
    old = a_report(("a", "pass"), ("b", "fail"), ("c", "pass"), ("d", "info"), ("e", "pass"))
    new = a_report(("f", "fail"), ("d", "non-strict"), ("b", "info"), ("a", "pass"), ("e", "fail"))
    found = compare(old, new)
    assert [(each.kind, each.cell.case) for each in found.changes] == [
        ("worse", "d"),
        ("worse", "e"),
        ("better", "b"),
        ("new", "f"),
        ("gone", "c"),
    ]
    assert found.counts == {"worse": 2, "better": 1, "new": 1, "gone": 1}
    assert found.same == 1 and found.is_worse
    assert compare(new, new).changes == [] and compare(new, new).same == 5


@pytest.mark.parametrize("was", VERDICTS)
@pytest.mark.parametrize("now", VERDICTS)
def test_which_verdict_is_better(was, now):
    order = ["fail", "non-strict", "info", "pass"]
    changes = compare(a_report(("a", was)), a_report(("a", now))).changes
    if was == now:
        assert changes == []
    elif "missing" in (was, now):
        assert changes[0].kind == ("better" if was == "missing" and now != "fail" else "worse")
    else:
        assert changes[0].kind == ("better" if order.index(now) > order.index(was) else "worse")


def test_to_work_is_better_than_to_be_right_to_fail():
    works, fails = a_report(("a", "pass")), a_report(("a", "pass"))
    fails.cells[0] = replace(fails.cells[0], reason="fails as expected: nothing arrives")
    assert [each.kind for each in compare(works, fails).changes] == ["worse"]
    assert [each.kind for each in compare(fails, works).changes] == ["better"]
    assert compare(fails, fails).changes == []
    assert "pass → pass (fails)  a, none: left → right\n" in plain(blocks(compare(works, fails)), 80)


def test_cases_missing_in_an_interrupted_run_are_not_worse():
    whole, partial = a_report(("a", "pass"), ("b", "pass")), a_report(("a", "pass"), ("b", "missing"), complete=False)
    partial.cells[1] = replace(partial.cells[1], reason=INTERRUPTED)
    assert [(each.kind, each.cell.case) for each in compare(whole, partial).changes] == [("gone", "b")]
    assert [(each.kind, each.cell.case) for each in compare(partial, whole).changes] == [("new", "b")]
    assert not compare(whole, partial).is_worse
    assert compare(whole, a_report(("a", "pass"), ("b", "missing"))).is_worse


def test_the_text_lists_changes_with_reasons():
    old = a_report(("a", "pass"), *((f"g{number}", "pass") for number in range(SHOWN + 3)))
    new = a_report(("a", "fail"), ("n", "fail"), complete=False)
    text = plain(blocks(compare(old, new)), 80)
    assert text.startswith(f"1 worse, 0 better, 1 new, {SHOWN + 3} gone, 0 the same\n")
    assert "The new report is partial" in text and "1 of the new cells fails." in text
    assert "pass → fail  a, none: left → right\n             works, with fail\n" in text
    assert "… and 3 more (--all shows them)" in text
    assert "more (" not in plain(blocks(compare(old, new), everything=True), 80)
    assert max(map(len, text.splitlines())) <= 80


def test_control_characters_are_shown_escaped():
    new = a_report(("a\x1b[2J", "fail"))
    assert "\x1b" not in plain(blocks(compare(a_report(), new)), 80)


def run(*arguments: object):
    return CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)


def test_the_command_compares_folders_and_files(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    a_report(("a", "pass")).write(good)
    a_report(("a", "fail")).write(bad)
    assert run(good, good).exit_code == 0
    assert run(bad, good / "report.jsonl").exit_code == 0
    worse = run("--json", good, bad)
    assert worse.exit_code == 1
    change, summary = map(json.loads, worse.output.splitlines())
    assert change == {
        "record": "change",
        "change": "worse",
        "left": "left",
        "right": "right",
        "case": "a",
        "impairment": "none",
        "seed": 7,
        "old": {"verdict": "pass", "works": True, "reason": "works, with pass"},
        "new": {"verdict": "fail", "works": True, "reason": "works, with fail"},
        "command": "again",
    }
    assert summary["record"] == "summary"
    assert [summary[each] for each in ("worse", "better", "new", "gone", "same")] == [1, 0, 0, 0, 0]


def test_a_file_that_is_not_a_report_is_refused_in_one_line(tmp_path):
    (tmp_path / "report.jsonl").write_text("no\n")
    with pytest.raises(MxwireError, match="not a report of mxwire interop: line 1"):
        run(tmp_path, tmp_path)
    with pytest.raises(MxwireError, match="the report cannot be read"):
        run(tmp_path / "nowhere", tmp_path)
