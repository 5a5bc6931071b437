"""The commands that carry messages, against the independent peer."""

from __future__ import annotations

import hashlib
import signal

import pytest

from mxwire.rules import Vantage
from mxwire.wire.dialect import dialect_by_name

from .independent.peer import MATCH, REFUSED, messages
from .processes import Story, run_mxwire, start_mxwire, start_peer
from .referee import findings
from .watcher import Watcher

DIALECTS = ("mxoe", "omx:1500", "omx:9000")
KINDS = tuple(messages())
ALPHA = ("--name", "alpha:0", "--endpoint", "9")
BETA = ("--name", "beta:0", "--endpoint", "5")
CLIENT = (*BETA, "--role", "client", "--to", "alpha:0", "--to-endpoint", "9", "--first-place", "259")
INTERRUPTED = 130
LENGTHS = (5, 100, 32768, 32769, 3_000_001)


def assert_clean(story: Story) -> None:
    assert story.deviations == [], story.complaints
    assert story.code == 0, story.complaints


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("way", ["--echo", "--sink"])
def test_serve_answers_the_peer(jumbo_cable, dialect, way):
    one, other = jumbo_cable
    with Watcher(one) as watcher:
        server = start_mxwire(one, "serve", "-i", one.interface, *ALPHA, "--dialect", dialect, way, "--json")
        assert server.ready
        options = [] if way == "--echo" else ["--no-echo"]
        steps = ",".join([*REFUSED, *KINDS])
        story = start_peer(other, *CLIENT, "--dialect", dialect, "--steps", steps, *options).story()
        server.process.send_signal(signal.SIGINT)
        served = server.story()
    assert_clean(story)
    assert len(story.of("echoed")) == (len(KINDS) if way == "--echo" else 0)
    assert served.code == INTERRUPTED, served.complaints
    assert "Traceback" not in served.complaints
    assert watcher.dropped == 0
    vantage = Vantage(from_start=True, empty_tables=True)
    assert findings(watcher.frames, dialect_by_name(dialect), vantage) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_send_to_the_peer(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    contents = [bytes(each % 251 for each in range(length)) for length in LENGTHS]
    files = [tmp_path / str(length) for length in LENGTHS]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    count = str(len(files))
    server = start_peer(one, *ALPHA, "--role", "server", "--messages", count, "--no-echo", "--dialect", dialect)
    assert server.ready["name"] == "alpha:0"
    to = ("alpha:0", "--endpoint", "9", "--match", str(MATCH), "-i", other.interface, "--name", "beta:0")
    run_mxwire(other, "send", *to, "--dialect", dialect, "--json", *map(str, files))
    story = server.story()
    assert_clean(story)
    assert [(each["bytes"], each["match"], each["digest"]) for each in story.of("received")] == [
        (len(each), f"{MATCH:#018x}", hashlib.sha256(each).hexdigest()) for each in contents
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_receive_from_the_peer(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    options = ["-i", one.interface, *ALPHA, "--dialect", dialect, "-o", str(tmp_path / "{}"), "--json"]
    receiver = start_mxwire(one, "receive", *options, "--count", str(len(KINDS)))
    story = start_peer(other, *CLIENT, "--dialect", dialect, "--steps", ",".join(KINDS), "--no-echo").story()
    assert_clean(story)
    taken = receiver.story()
    assert taken.code == 0, taken.complaints
    assert len(taken.of("message")) == len(KINDS)
    found = sorted(tmp_path.iterdir(), key=lambda each: int(each.name))
    assert [each.read_bytes() for each in found] == [each.data for each in messages().values()]
