"""The legend of frames' lines: complete, and the fields exist."""

from __future__ import annotations

import re

from mxwire.analysis.table import COLUMN_NAMES
from mxwire.report.fields import field_meanings
from mxwire.report.legend import LEGEND
from tests.cli.support import CAPTURES, mxwire

_LABEL = re.compile(r"(?<![\w-])([a-z]+) (?:0x[0-9a-f]+|\d+(?:[/.]+\d+)*)(?![\w.])")


def test_every_label_of_a_line_is_explained_and_occurs():
    seen: set[str] = set()
    for capture in sorted(CAPTURES.glob("*.pcap")):
        for line in mxwire("decode", "--no-analysis", capture).lines:
            reported = line.split("  ")[-1].partition("  [")[0]
            seen |= set(_LABEL.findall(reported)) if "MALFORMED" not in line else set()
    assert seen == set(LEGEND)


def test_fields_behind_labels_exist():
    assert {field for label in LEGEND.values() for field in label.fields} <= set(COLUMN_NAMES)


def test_decode_help_has_the_legend():
    text = mxwire("decode", "--help").out
    assert all(f"  {label.shown} " in text for label in LEGEND.values())


def test_formats_lists_all_fields():
    meanings = list(field_meanings())
    assert list(dict.fromkeys(each.name for each in meanings)) == list(COLUMN_NAMES)
    text = mxwire("formats", "--fields").out
    assert all(each in text for each in COLUMN_NAMES)
    assert {each["field"] for each in mxwire("formats", "--fields", "--json").objects} == set(COLUMN_NAMES)
