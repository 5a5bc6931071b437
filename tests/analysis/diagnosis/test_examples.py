"""The examples of the documentation are those that the plays make, and show what they are there for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mxwire.analysis.diagnosis import CATALOGUE, GROUPS, catalogue
from mxwire.capture import open_capture
from tests.cli.support import mxwire
from tests.docs.maker import OUTPUT_WIDTH, PARTS

from .scene import examine, ids
from .write import EXAMPLES, REAL, saved

ROOT = Path(__file__).parents[3]


def test_examples_are_made_by_the_plays(tmp_path):
    made = saved(tmp_path)
    assert set(REAL) < set(CATALOGUE)
    assert {each.name for each in made} == {each.name for each in EXAMPLES.glob("*.pcap")}
    for each in made:
        assert (EXAMPLES / each.name).read_bytes() == each.read_bytes(), "python -m tests.analysis.diagnosis.write"


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_diagnosis_has_an_example_that_shows_it(name):
    path = ROOT / "captures" / f"{REAL[name]}.pcap" if name in REAL else EXAMPLES / f"{name}.pcap"
    with open_capture(str(path)) as reader:
        assert name in ids(examine(*reader).findings())


def test_page_has_a_section_and_the_real_output_for_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(OUTPUT_WIDTH))
    page = PARTS["diagnoses"]() + PARTS["diagnosis table"]()
    for each in catalogue():
        assert f"{{ #{each.id} }}" in page and f"(#{each.id})" in page
        for text in (each.title, each.text.users_see, each.text.capture_shows, each.text.distinction):
            assert text in page
    assert all(title in page for title in GROUPS.values())
    command = "mxwire diagnose --only mute-peer captures/mxoe-discovery-static.pcap"
    block = next(each for each in re.findall(r"```console\n(.*?)```", page, re.DOTALL) if command in each)
    printed = mxwire(*command.split()[1:], cwd=ROOT).out
    assert block.split("\n", 1)[1].strip() == printed.strip()


@pytest.mark.parametrize("each", catalogue(), ids=lambda each: each.id)
def test_catalogue_is_complete_and_consistent(each):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", each.id)
    assert each.group in GROUPS and each.text.advice
    assert set(each.text.follows_from) <= set(CATALOGUE) - {each.id}
    for text in (each.text.users_see, each.text.capture_shows, each.text.distinction, *each.text.advice):
        assert (text[0].isupper() or text.startswith("omx_")) and text.endswith("."), text
    assert not each.title.endswith(".")
