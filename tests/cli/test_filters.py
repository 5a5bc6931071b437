"""One filter for all commands that read frames: the same options, with the same meaning."""

from __future__ import annotations

import click
import pytest

from mxwire.capture.notes import read_notes
from mxwire.cli.filters import FILTERS
from mxwire.cli.main import cli
from tests.cli.support import CAPTURES, mxwire

EVERY_TYPE = CAPTURES / "mxoe-every-type.pcap"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
EARLY = CAPTURES / "mxoe-early.pcap"
ONE, OTHER = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
LACKING = {
    "decode": set(),
    "info": {"by_name"},
    "messages": set(),
    "follow": {"messages"},
    "extract": {"messages", "by_name"},
    "stats": {"messages", "by_name"},
    "verify": set(),
    "diagnose": set(),
    "merge": {"by_name"},
    "capture": set(),
    "replay": {"endpoint", "by_name"},
}
"""The commands with a filter, and the options that they have with another type, or not at all."""


@pytest.mark.parametrize("name", LACKING)
def test_every_command_has_the_whole_filter(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert {each.name for each in command.params} & FILTERS == FILTERS - LACKING[name]


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "vm1:0"],
        ["--pair", "vm2", "5254.000a.0001"],
        ["--pair", "vm1:0:5", f"{OTHER}/3"],
        ["--pair", "vm1:0:4", f"{OTHER}/3"],
        ["--endpoint", "5"],
        ["--type", "MEDIUM"],
        ["--kind", "rndv", "--kind", "SMALL"],
        ["--match", "0x1003"],
        ["--message", "3-5,9-"],
        ["--frames", "40-60"],
        ["--between", "35.8", "35.81"],
        ["--flag", "retransmission", "--flag", "gap"],
        ["--where", "role == ack or length > 4000"],
        ["--kind", "MEDIUM", "--host", "vm2", "--type", "MEDIUM", "--where", "frag_seqnum == 1"],
    ],
)
@pytest.mark.parametrize("path", [EVERY_TYPE, EARLY])
def test_messages_are_those_of_the_selected_frames(options, path, tmp_path):
    """A message is selected exactly if one of its frames is."""
    peers = tmp_path / "peers"
    peers.write_text("02:00:00:00:00:99 vm1\n52:54:00:0a:00:aa vm2\n" if path is EARLY else "")
    frames = mxwire("decode", "--json=full", *options, "--peers", peers, path).objects
    expected = sorted({each["message"] for each in frames if each["message"]})
    found = [each["message"] for each in mxwire("messages", "--json=full", *options, "--peers", peers, path).objects]
    assert found == expected
    conversations = mxwire("messages", "--by", "conversation", "--json", *options, "--peers", peers, path)
    assert conversations.code == 0 and len(conversations.objects) >= bool(expected)
    if "--message" not in options:
        counted = mxwire("stats", "--json", *options, "--peers", peers, path).objects[0]
        assert (counted["messages"], counted["frames"]) == (len(expected), len(frames))


def test_a_frame_without_endpoints_has_those_of_its_message():
    replies = mxwire("decode", "--json=full", "--type", "PULL_REPLY", LOSSY).objects
    host = f"{ONE}/5"
    assert (
        mxwire("decode", "--json=full", "--type", "PULL_REPLY", "--pair", host, f"{OTHER}:3", LOSSY).objects == replies
    )
    assert not mxwire("decode", "--json=full", "--type", "PULL_REPLY", "--endpoint", "4", LOSSY).objects


def test_names_come_from_name_resolution_blocks_too(tmp_path):
    cut = tmp_path / "cut.pcapng"
    mxwire("decode", "--type", "TINY", "-w", cut, EVERY_TYPE)
    assert "vm1:0" in read_notes(cut).names.values()
    tiny = mxwire("decode", "--json=full", "--type", "TINY", "--where", f"source == '{ONE}'", EVERY_TYPE).objects
    named = mxwire("decode", "--json=full", "--host", "vm1:0", "--where", f"source == '{ONE}'", cut).objects
    assert tiny and [each["time_ns"] for each in named] == [each["time_ns"] for each in tiny]


def test_given_names_take_precedence_and_read_no_capture_twice(tmp_path):
    peers = tmp_path / "peers"
    peers.write_text(f"{OTHER} vm1:0\n")
    run = mxwire(
        "decode", "--json=full", "--host", "vm1", "--type", "TINY", "--peers", peers, "-", stdin=LOSSY.read_bytes()
    )
    assert run.code == 0 and "no frame matches" in run.err
    assert mxwire("info", "--json", "--host", "vm1", "--peers", peers, LOSSY).objects[0]["frames"]


@pytest.mark.parametrize(
    "command", ["decode --type TINY", "messages", "messages --by conversation", "follow 7", "verify", "diagnose"]
)
def test_names_replace_addresses(command, tmp_path):
    plain, named = mxwire(*command.split(), "--no-names", EVERY_TYPE), mxwire(*command.split(), EVERY_TYPE)
    # Advice keeps addresses, since it contains commands to copy.
    shown = named.out.partition("What to do:")[0]
    assert named.code == plain.code and ONE in plain.out and ONE not in shown and "vm1:0" in shown
    assert len(named.lines) <= len(plain.lines)
    peers = tmp_path / "peers"
    # Two hosts with one name cannot be distinguished by it, and names of many characters do not fit.
    peers.write_text(f"{ONE} same:0\n{OTHER} same:0\n")
    assert ONE in mxwire(*command.split(), "--peers", peers, EVERY_TYPE).out


def test_expressions_name_hosts():
    for named, same in (
        ("source == 'vm1' and type == TINY", f"source == '{ONE}' and type == TINY"),
        ("type == SMALL and destination != 'vm1:0'", f"type == SMALL and destination != '{ONE}'"),
        ("destination in ('vm2:0', '02:00:00:00:00:01')", f"destination == '{OTHER}'"),
    ):
        found = mxwire("decode", "--where", named, EVERY_TYPE).lines
        assert found and found == mxwire("decode", "--where", same, EVERY_TYPE).lines


def test_names_in_a_pipe_apply_from_their_announcement_on():
    run = mxwire("decode", "-", stdin=EVERY_TYPE.read_bytes())
    assert run.lines == mxwire("decode", EVERY_TYPE).lines
    assert any(line.split()[2] == "vm1:0" for line in run.lines)


def test_merge_writes_the_selected_frames_of_both(tmp_path):
    one, other, both = (tmp_path / name for name in ("one.pcap", "other.pcap", "both.pcapng"))
    mxwire("decode", "-w", one, LOSSY)
    mxwire("decode", "-w", other, LOSSY)
    run = mxwire("merge", one, other, "--type", "PULL", "--between", 0, 0.5, "-w", both)
    wanted = mxwire("decode", "--json=full", "--no-analysis", "--type", "PULL", "--between", 0, 0.5, LOSSY).objects
    written = mxwire("decode", "--json=full", "--no-analysis", both).objects
    assert run.code == 0 and [each["fields"] for each in written] == [each["fields"] for each in wanted]
    refused = mxwire("merge", one, other, "--type", "PULL")
    assert refused.code == 2 and "give -w FILE as well" in refused.err


@pytest.mark.parametrize("command", [("follow",), ("extract", "-w", "-")])
def test_a_filter_chooses_a_message(command):
    assert mxwire(*command, "--where", "frame == 371", LOSSY).out == mxwire(*command, "2", LOSSY).out
