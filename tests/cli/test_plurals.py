"""Counts agree with their nouns, in whatever the commands print of the captures."""

from __future__ import annotations

import re

import pytest

from tests.cli.support import CAPTURES, mxwire

_FALSE = re.compile(r"(?<![\w.,:/-])1 [A-Za-z]+s\b")
_RIGHT = {"1 s", "1 is", "1 has", "1 was", "1 as", "1 us", "1 ms", "1 ns", "1 SUCCESS"}
"""A number before a word that is not a plural."""


@pytest.mark.parametrize(
    "words",
    [
        ("decode",),
        ("info",),
        ("messages",),
        ("messages", "--by", "conversation"),
        ("stats",),
        ("verify",),
        ("diagnose",),
        ("follow", "--message", "1"),
    ],
    ids=lambda words: words[0],
)
def test_one_is_singular(words):
    captures = sorted(CAPTURES.glob("*.pcap*"))
    runs = [mxwire(*words, each) for each in captures] if words[0] == "follow" else [mxwire(*words, *captures)]
    assert any(run.out for run in runs)
    found = {match for run in runs for match in _FALSE.findall(run.out + run.err)}
    assert found <= _RIGHT


def test_simulation_adds_up():
    run = mxwire("simulate", "--seed", 3, "--kill", 1, "--loss", 0.05, "--json")
    (found,) = run.objects
    counts = found["counts"]
    assert counts["excused"] > 0
    assert counts["messages"] == counts["delivered"] + counts["excused"]
    assert "excused: messages not delivered" in " ".join(mxwire("simulate", "--messages", 3).out.split())
