"""``--json``: accepted and heeded by every command, with times in seconds beside those in nanoseconds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import pytest

from mxwire.cli.main import cli
from mxwire.report.json_line import INSTANTS, json_line, with_seconds, without_seconds
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
WITHOUT_JSON = {
    "mxwire scenario host": "speaks JSON anyway, on both streams",
    "mxwire scenario highlight": "prints a file for Vim",
}
YEAR_2001 = 10**18
"""Nanoseconds since 1970: no duration is that long."""

ONE_CELL = ["interop", "--implementation", "open-mx-1.5", "--case", "size-tiny", "--impairment", "none"]
OFFLINE = [
    [{"EVERY": EVERY_TYPE, "LOSSY": LOSSY}.get(word, word) for word in line.split()]
    for line in Path(__file__).with_name("json-calls.txt").read_text().splitlines()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a folder with the files that the commands read."""
    made = tmp_path_factory.mktemp("json")
    shutil.copy(EVERY_TYPE, made / "copy.pcap")
    assert mxwire(*ONE_CELL, "--report", "recorded", cwd=made).code == 0
    return made


def _commands() -> Iterator[tuple[str, click.Command]]:
    def below(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from below(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command

    yield from below(cli, "mxwire")
    interop = cli.get_command(click.Context(cli), "interop")
    assert isinstance(interop, click.Group)
    yield "mxwire interop", interop.commands["run"]


@pytest.mark.parametrize(("path", "command"), list(_commands()), ids=lambda each: each if isinstance(each, str) else "")
def test_every_command_has_the_option(path, command):
    options = {name for each in command.params for name in each.opts}
    assert ("--json" in options) is (path not in WITHOUT_JSON)


def _pairs(value: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """All keys of an object, at any depth, with their values and the objects they belong to."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            for key, inner in each.items():
                yield key, inner, each
                yield from _pairs(inner)


@pytest.mark.parametrize("words", OFFLINE, ids=lambda words: " ".join(str(each).rpartition("/")[2] for each in words))
def test_every_line_is_an_object_with_seconds(words, folder):
    full = words[0] in ("decode", "capture") or (words[0] == "messages" and "--by" not in words)
    run = mxwire(*words, "--json=full" if full else "--json", cwd=folder)
    assert run.code in (0, 1) and run.lines, run.err
    for record in run.objects:
        assert isinstance(record, dict)
        for key, value, owner in _pairs(record):
            if not key.endswith("_ns"):
                continue
            seconds = owner[f"{key[:-3]}_s"]
            if isinstance(value, (int, float)):
                assert seconds == float(Fraction(value) / 10**9) or seconds == value / 1e9
                assert (abs(value) > YEAR_2001) <= (key in INSTANTS), key
            if words[0] not in ("simulate", "merge", "interop") and key in INSTANTS:
                assert f"{key[:-3]}_relative_s" in owner


def test_relative_times_are_exact_where_absolute_ones_are_not():
    start, time = 1_795_198_662_674_992_256, 1_795_198_662_674_992_257
    made = with_seconds({"time_ns": time, "after_ns": None, "edges_ns": [1, 2]}, start)
    assert made["time_ns"] == time and made["time_relative_s"] == 1e-9
    assert made["after_s"] is None and made["edges_s"] == [1e-9, 2e-9]
    assert "time_relative_s" not in with_seconds({"time_ns": time})
    assert without_seconds({"all": [made]}) == {"all": [{"time_ns": time, "after_ns": None, "edges_ns": [1, 2]}]}
    assert "\n" not in json_line({"text": "a\nb"}) and json.loads(json_line({"name": "é"})) == {"name": "é"}
