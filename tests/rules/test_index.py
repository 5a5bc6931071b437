"""Every rule is implemented and tested, and the index lists the places."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from mxwire.cli.main import cli
from mxwire.errors import MxwireError
from mxwire.report.rules import select
from mxwire.rules import CATALOGUE
from mxwire.rules.index import Places, numbers_in, places, scan

ROOT = Path(__file__).parents[2]


@cache
def found_places() -> dict[str, Places]:
    """Scan the checkout once, in the processes that run these tests."""
    return scan(ROOT)


def missing(number: str) -> list[str]:
    """Return the missing places of a rule: implementation (of the wire format: a judge) and test."""
    rule, found = CATALOGUE[number], found_places()[number]
    if rule.checker_only:
        return []
    implemented = found.judge if number.startswith(("W-", "D-")) and found.judge else found.engine
    lacks = [] if implemented else ["implementation"]
    return lacks if found.tests else [*lacks, "test"]


def test_every_rule_is_implemented_and_tested():
    lacks = {number: missing(number) for number in CATALOGUE}
    assert {number: each for number, each in lacks.items() if each} == {}


def test_checker_only_needs_a_reason():
    assert all(rule.why for rule in CATALOGUE.values() if rule.checker_only or rule.judged != "wire")


def test_demands_can_be_judged():
    nobody = [rule for rule in CATALOGUE.values() if rule.judged == "not"]
    assert nobody and {rule.force for rule in nobody} <= {"MAY", "fact"}
    assert {rule.judged for rule in CATALOGUE.values() if rule.force == "MAY"} == {"not"}


def test_texts_are_one_line():
    for number, rule in CATALOGUE.items():
        assert number == rule.number and rule.chapter
        assert len(rule.text) <= 120 and rule.text.endswith((".", ":")) and "\n" not in rule.text


def test_the_index_knows_every_rule():
    assert set(places()) == set(CATALOGUE)


def test_places_exist():
    for found in found_places().values():
        for place in (*found.engine, *found.judge, *found.tests):
            assert (ROOT / place.partition(":")[0]).is_file()


def test_numbers_in_a_text():
    assert set(numbers_in("R-MED-02 to R-MED-04, D-5 and W-6.4 (not AD-1, R-X or D-123)")) == {
        "R-MED-02",
        "R-MED-03",
        "R-MED-04",
        "D-5",
        "W-6.4",
    }


def test_specification_named_in_the_code_exists():
    """No docstring speaks of a rule that there is none of."""
    for path in (ROOT / "mxwire").rglob("*.py"):
        for number in re.findall(r"\bR-[A-Z]{2,4}-\d\d\b", path.read_text(encoding="utf-8")):
            assert number in CATALOGUE, f"{path}: {number}"


# The command


def run(*arguments):
    done = CliRunner().invoke(cli, ["rules", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_all_rules_are_listed():
    printed = run()
    assert all(re.search(rf"^{re.escape(number)}\s", printed, re.MULTILINE) for number in CATALOGUE)


def test_one_rule_in_full():
    printed = run("r-seq-05")
    assert "R-SEQ-05 (Sequence numbers, MUST)" in printed
    assert "mxwire/rules/chapters/numbers.py:first_number" in printed
    assert "Tested by" not in printed and printed.count("MUST: a real peer drops or refuses the frame") == 1
    assert "tests/rules/breaches.py:another_first_number" in run("r-seq-05", "-v")


def test_beginnings_and_chapters():
    assert [rule.number for rule in select(["r-not"])] == ["R-NOT-01", "R-NOT-02", "R-NOT-03"]
    assert {rule.number for rule in select(["D-1"])} == {"D-1"}
    assert {rule.chapter for rule in select(chapter="pull")} == {"Pull"}
    assert select(["R-SEQ"], "pull") == []


def test_json():
    rows = [json.loads(line) for line in run("--json", "R-PUL-13", "D-9").splitlines()]
    assert [row["number"] for row in rows] == ["R-PUL-13", "D-9"]
    assert rows[0]["judged"] == "wire" and rows[0]["judge"]
    assert rows[1]["checker_only"] is True


@pytest.mark.parametrize("number", ["R-PUL-3", "r-pul-3", " R-PUL-03 "])
def test_a_number_needs_neither_capitals_nor_a_leading_zero(number):
    assert [rule.number for rule in select([number])] == ["R-PUL-03"]


@pytest.mark.parametrize(
    ("numbers", "chapter", "message"),
    [
        (["R-SEQ-77"], None, "no rule 'R-SEQ-77' (did you mean R-SEQ-07, R-SEQ-0"),
        (["17"], None, "no rule '17'; numbers look like"),
        ([""], None, "no rule"),
        ([], "cooking", "there are Wire format, Model"),
    ],
)
def test_unknown_rules(numbers, chapter, message):
    with pytest.raises(MxwireError, match=re.escape(message)):
        select(numbers, chapter)
