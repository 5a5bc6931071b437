"""A capture without any MXoE frame is nothing that a command could have passed judgement on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.captures import write_capture
from tests.cli.support import EVERY_TYPE, mxwire

COMMANDS = [
    "decode",
    "decode --json",
    "info",
    "info --json",
    "messages",
    "messages --json",
    "messages --by conversation",
    "stats",
    "stats --json",
    "verify",
    "verify --json",
    "verify --junit /dev/null",
    "diagnose",
    "diagnose --json",
    "compat",
    "top --once",
    "top --once --json",
    "follow --message 1",
    "follow 1",
    "follow --frame 1",
    "extract --frame 1 -w -",
    "extract --message 1 -w -",
]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture with 1,234 frames of ARP."""
    return write_capture(tmp_path_factory.mktemp("empty") / "arp.pcap", [bytes(12) + b"\x08\x06" + bytes(46)] * 1234)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_input_that_cannot_work(command: str, others: Path) -> None:
    run = mxwire(*command.split(), others)
    assert run.code == 2
    assert run.err.startswith(f"mxwire: {others}: ")
    assert run.err.count("\n") == 1
    if command.split()[0] not in ("compat", "follow", "extract"):
        assert "no MXoE frames (EtherType 0x86df) among 1,234 frames; " in run.err and "--ethertype" in run.err
    assert "pass" not in run.out


def test_others_are_looked_at_all_the_same(others: Path) -> None:
    run = mxwire("verify", "--json", others, EVERY_TYPE)
    assert run.code == 2
    assert {each["file"] for each in run.objects} == {str(EVERY_TYPE)}


def test_another_ethertype_is_named(others: Path) -> None:
    run = mxwire("messages", "--ethertype", "0x88b5", others)
    assert run.code == 2 and "(EtherType 0x88b5)" in run.err


def test_a_selection_that_matches_nothing_is_something_else() -> None:
    run = mxwire("messages", "--endpoint", "77", EVERY_TYPE)
    assert run.code == 0 and run.err == "mxwire: no message matches the selection\n"
