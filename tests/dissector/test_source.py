"""The Lua file as a file: its tables are current, and nothing in it is for one version of Lua only."""

from __future__ import annotations

import re

from mxwire.dissector import build, expert_rows, filter_rows, plugin_path, tables
from mxwire.dissector.location import documentation_path, source_path
from mxwire.wire.dialect import LARGEST_FRAME_LIMIT, SMALLEST_FRAME_LIMIT, omx

from .support import ROOT

TEXT = source_path().read_text(encoding="utf-8")
BY_HAND = TEXT.partition(build.END)[2]


def test_the_file_agrees_with_the_formats():
    assert source_path() not in build.stale(), "run python -m mxwire.dissector.build"


def test_the_tables_of_the_documentation_are_current():
    assert documentation_path() not in build.stale(), "run python -m mxwire.dissector.build"


def test_a_changed_table_is_noticed(monkeypatch, tmp_path):
    copy = tmp_path / "mxoe.lua"
    copy.write_text(TEXT.replace("at = 36", "at = 37", 1), encoding="utf-8")
    monkeypatch.setattr(build, "source_path", lambda: copy)
    assert build.stale() == {copy: TEXT}
    assert build.write()
    assert copy.read_text(encoding="utf-8") == TEXT
    assert not build.write()


def test_the_plugin_is_found():
    assert plugin_path().name == "mxoe.lua"
    assert plugin_path().exists()


def test_sizes_of_every_frame_limit():
    """The pieces that the plugin computes with give what the formulas give, for every M."""
    made = tables.dialects()
    for generation in tables.GENERATIONS:
        for name in ("fragment_payload", "receive_slot", "reply_payload", "frames_per_block", "fragments_maximum"):
            pieces = made[generation][name]
            for limit in range(SMALLEST_FRAME_LIMIT, LARGEST_FRAME_LIMIT + 1, 7):
                _, slope, constant = [each for each in pieces if each[0] <= limit][-1]
                assert slope * limit + constant == getattr(omx.__wrapped__(limit, generation), name)


def test_nothing_for_one_lua_only():
    """No operators that Lua 5.2 cannot parse, no functions that Lua 5.4 has no more."""
    code = re.sub(r"--[^\n]*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', BY_HAND))
    assert not re.search(r"//|<<|>>|[^~]~[^=]|&|\|", code)
    for gone in ("unpack(", "loadstring", "setfenv", "getfenv", "math.pow", "math.mod", "table.getn", "%z", "goto "):
        assert gone not in re.sub(r"table\.unpack", "", code), gone


def test_no_offset_is_written_by_hand():
    """Numbers of bytes and types come from the generated half: what is left are bases, shifts, and named constants."""
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', BY_HAND)
    code = re.sub(r"--[^\n]*", "", code)
    for place in (36, 40, 42, 44, 48, 60, 0x86DF, 0x210719, 4096, 8192, 9000, 0x55, 1024):
        assert not re.search(rf"(?<![\w.]){place}(?![\w.])", code), place


def test_names_are_unique_and_documented():
    names = [each.name for each in filter_rows()]
    assert len(names) == len(set(names)) > 90
    experts = [each.name for each in expert_rows()]
    assert len(experts) == len(set(experts)) >= 40
    assert not set(names) & set(experts)
    assert all(each.meaning for each in filter_rows())


def test_every_expert_is_used_and_every_used_one_exists():
    declared = {each.name.removeprefix("mxoe.") for each in expert_rows()}
    body = BY_HAND.partition("declare_experts()\n\n")[2]
    used = set(re.findall(r'"((?:\w+)\.[\w.]+)"', body)) & declared
    built = {each for each in declared if each.startswith(("malformed.", "nack_lib.", "nack_mcp."))}
    assert declared - used - built == set()


def test_rules_and_buttons_use_existing_names():
    known = {each.name for each in filter_rows()} | {each.name for each in expert_rows()} | {"mxoe"}
    for name in ("colorfilters", "dfilter_buttons"):
        text = (ROOT / "dissectors" / "wireshark" / name).read_text(encoding="utf-8")
        used = set(re.findall(r"\bmxoe(?:\.\w+)*", text))
        assert used and used <= known, used - known
