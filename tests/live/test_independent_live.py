"""The independent peer on real interfaces: two of them, judged by the rules of mxwire."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.rules import Vantage
from mxwire.wire.dialect import dialect_by_name

from .independent.peer import REFUSED, STALE, messages
from .processes import Story, run_mxwire, start_host, start_peer
from .referee import findings
from .watcher import Watcher

DIALECTS = ("mxoe", "omx:1500", "omx:9000")
KINDS = tuple(messages())
ALPHA = ("--name", "alpha:0", "--endpoint", "9")
BETA = ("--name", "beta:0", "--endpoint", "5")
TO_ALPHA = ("--to-endpoint", "9")
SERVER = (*ALPHA, "--role", "server")
AT_ONCE = (*BETA, "--role", "client", "--to", "alpha:0", *TO_ALPHA, "--first-place", "259")
CLIENT = (*AT_ONCE, "--listen-first")
WATCHED_FROM_THE_START = Vantage(from_start=True, empty_tables=True)


def assert_clean(story: Story) -> None:
    assert story.deviations == [], story.complaints
    assert story.code == 0, story.complaints


def assert_well_formed(path: Path, dialect: str, frames: int) -> None:
    """``mxwire decode`` finds every frame, and none that is malformed."""
    command = [sys.executable, "-m", "mxwire", "decode", "--json=full", "--dialect", dialect, str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == frames
    assert [each for each in lines if each.get("malformed")] == []


def assert_judged(watcher: Watcher, dialect: str, path: Path) -> None:
    assert watcher.dropped == 0
    assert findings(watcher.frames, dialect_by_name(dialect), WATCHED_FROM_THE_START) == []
    watcher.write_pcap(path)
    assert_well_formed(path, dialect, len(watcher.frames))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("offset", ["0", "291"])
def test_two_independent_peers_agree_and_follow_the_rules(jumbo_cable, tmp_path, dialect, offset):
    one, other = jumbo_cable
    common = ["--dialect", dialect, "--region-offset", offset]
    with Watcher(one) as watcher:
        server = start_peer(one, *SERVER, "--messages", str(len(KINDS)), *common)
        assert server.ready["name"] == "alpha:0"
        client = start_peer(other, *CLIENT, "--steps", ",".join(KINDS), *common)
        stories = client.story(), server.story()
    for story in stories:
        assert_clean(story)
    assert len(stories[0].of("echoed")) == len(KINDS)
    assert_judged(watcher, dialect, tmp_path / "talk.pcap")


def test_two_independent_peers_refuse_alike(jumbo_cable):
    """Section 9 of the examples, in both roles; the client announces itself before it has heard any host."""
    one, other = jumbo_cable
    server = start_peer(one, *SERVER, "--messages", "1", "--provoked")
    assert server.ready["name"] == "alpha:0"
    client = start_peer(other, *AT_ONCE, "--steps", ",".join([*REFUSED, *STALE, "tiny"]))
    asking, serving = client.story(), server.story()
    assert_clean(asking)
    assert_clean(serving)
    assert [(each["kind"], each["why"]) for each in serving.of("refused")] == [
        ("CONNECT_REQUEST", 2),
        ("CONNECT_REQUEST", 1),
        ("TINY", 3),
        ("PULL", 4),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_live_host_serves_the_peer(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    with Watcher(one) as watcher:
        server = start_host(one, *ALPHA, "--dialect", dialect, "--echo", str(len(KINDS)))
        assert server.ready["name"] == "alpha:0"
        client = start_peer(other, *CLIENT, "--dialect", dialect, "--steps", ",".join([*REFUSED, *KINDS]))
        asking, serving = client.story(), server.story()
    assert_clean(asking)
    assert len(asking.of("echoed")) == len(KINDS)
    assert (serving.code, serving.complaints) == (0, "")
    assert [each["bytes"] for each in serving.of("echoed")] == [len(each.data) for each in messages().values()]
    assert_judged(watcher, dialect, tmp_path / "talk.pcap")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_peer_serves_a_live_host(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    with Watcher(one) as watcher:
        options = ["--dialect", dialect, "--messages", str(len(KINDS))]
        server = start_peer(one, *SERVER, *options)
        assert server.ready["name"] == "alpha:0"
        client = start_host(
            other, *BETA, "--dialect", dialect, "--call", "alpha:0", *TO_ALPHA, "--kinds", ",".join(KINDS)
        )
        asking, serving = client.story(), server.story()
    assert (asking.code, asking.complaints) == (0, "")
    assert [(each["kind"], each["same"]) for each in asking.of("answered")] == [(each, True) for each in KINDS]
    assert_clean(serving)
    assert_judged(watcher, dialect, tmp_path / "talk.pcap")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_peer_is_found_and_pinged(jumbo_cable, dialect):
    """By ``mxwire discover`` and ``mxwire ping``, which no application answers."""
    one, other = jumbo_cable
    listener = start_peer(one, *ALPHA, "--role", "listener", "--provoked", "--dialect", dialect)
    assert listener.ready["name"] == "alpha:0"
    common = ["-i", other.interface, "--dialect", dialect, "--json"]
    [found] = run_mxwire(other, "discover", "--duration", "30", "-c", "1", *common)
    assert (found["address"], found["name"]) == (one.address.hex(":"), "alpha:0")
    assert found["dialect"] == dialect.partition(":")[0]
    for target in ("alpha:0", "alpha:0:9"):
        *answers, summary = run_mxwire(other, "ping", target, "-c", "3", "--interval", "0", "-W", "20", *common)
        assert (len(answers), summary["loss"]) == (3, 0)
    listener.process.terminate()
    assert_clean(listener.story())


def test_a_peer_that_hears_no_host_reports_it(jumbo_cable):
    client = start_peer(jumbo_cable[0], *AT_ONCE, "--patience", "1")
    story = client.story()
    assert story.code == 1
    assert [each["deviation"] for each in story.deviations] == ["waiting"]
