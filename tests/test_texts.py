"""Texts that are files of the package: each has the keys and types of its kind, and is used."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from mxwire.analysis.diagnosis import CATALOGUE, GROUPS, catalogue, registry
from mxwire.analysis.diagnosis.registry import DiagnosisText, texts
from mxwire.rules import CATALOGUE as RULES
from mxwire.rules import catalogue as rule_catalogue
from mxwire.texts import entries, table_rows

TEXTS = Path(registry.__file__).with_name("texts")


def test_each_diagnosis_has_its_text_and_each_text_its_diagnosis():
    assert {each.stem for each in TEXTS.iterdir()} == set(GROUPS)
    for group in GROUPS:
        assert set(texts(group)) == {each.id for each in catalogue() if each.group == group}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_diagnosis_has_all_texts_and_no_unknown_ones(name):
    values = entries(registry.__file__, f"texts/{CATALOGUE[name].group}.toml")[name]
    known = {each.name: each.default is MISSING for each in fields(DiagnosisText)}
    assert {each for each, needed in known.items() if needed} <= set(values) <= set(known)
    advice, needs, causes = (values.pop(each, ()) for each in ("advice", "needs", "follows_from"))
    assert isinstance(advice, tuple) and advice
    assert set(causes) <= set(CATALOGUE)
    for each in (*values.values(), *advice, *needs):
        assert isinstance(each, str) and each and each == " ".join(each.split())


def test_each_rule_has_a_row_of_its_own():
    rows = [cells for _, cells in table_rows(rule_catalogue.__file__, "catalogue.md")]
    assert [cells[0] for cells in rows] == list(RULES)
    assert all(rule.text.endswith(".") and rule.chapter for rule in RULES.values())


def test_a_table_has_rows_below_its_head_only(tmp_path):
    path = tmp_path / "table.md"
    path.write_text("# One\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | |\n\n## Two\n\n| no | table |\n")
    assert list(table_rows(tmp_path / "module.py", path.name)) == [("One", ["1", "2"]), ("One", ["3", ""])]


def test_line_breaks_in_a_text_are_spaces(tmp_path):
    path = tmp_path / "texts.toml"
    path.write_text("[a]\ntitle = '''\nOne\n  two.'''\nadvice = ['''\nThree\nfour.''']\n")
    assert entries(tmp_path / "module.py", path.name) == {"a": {"title": "One two.", "advice": ("Three four.",)}}
