"""The commands that carry messages, against the independent peer."""

from __future__ import annotations

import hashlib

import pytest

from .commands import INTERRUPTED, mxwire, running, start_peer
from .independent.peer import MATCH, REFUSED, messages
from .independent_results import assert_clean, assert_judged
from .recorder import Recorder

DIALECTS = ("mxoe", "omx:1500", "omx:9000")
KINDS = tuple(messages())
ALPHA = ("--name", "alpha:0", "--endpoint", "9")
BETA = ("--name", "beta:0", "--endpoint", "5")
CLIENT = (*BETA, "--role", "client", "--to", "alpha:0", "--to-endpoint", "9", "--first-place", "259", "--listen-first")
LENGTHS = (5, 100, 32768, 32769, 3_000_001)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("way", ["--echo", "--sink"])
def test_serve_answers_the_peer(jumbo_cable, dialect, way):
    one, other = jumbo_cable
    with Recorder(one) as recorder, running(one, "serve", *ALPHA, "--dialect", dialect, way, "--json") as server:
        server.until("serving")
        options = [] if way == "--echo" else ["--no-echo"]
        steps = ",".join([*REFUSED, *KINDS])
        client = start_peer(other, *CLIENT, "--dialect", dialect, "--steps", steps, *options)
        assert len(assert_clean(client, "echoed")) == (len(KINDS) if way == "--echo" else 0)
        assert server.end() == INTERRUPTED
    assert server.objects[-1]["messages"] == len(KINDS)
    assert_judged(recorder, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_send_to_the_peer(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    contents = [bytes(each % 251 for each in range(length)) for length in LENGTHS]
    files = [tmp_path / str(length) for length in LENGTHS]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    count = str(len(files))
    server = start_peer(one, *ALPHA, "--role", "server", "--messages", count, "--no-echo", "--dialect", dialect)
    server.until("ready")
    to = ("alpha:0", "--endpoint", "9", "--match", str(MATCH), "--name", "beta:0")
    assert mxwire(other, "send", *to, "--dialect", dialect, "--json", *files).code == 0
    assert [(each["bytes"], each["match"], each["digest"]) for each in assert_clean(server, "received")] == [
        (len(each), f"{MATCH:#018x}", hashlib.sha256(each).hexdigest()) for each in contents
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_receive_from_the_peer(jumbo_cable, tmp_path, dialect):
    one, other = jumbo_cable
    options = [*ALPHA, "--dialect", dialect, "-o", tmp_path / "{}", "--json", "--count", len(KINDS)]
    with running(one, "receive", *options) as receiver:
        receiver.until("waiting")
        assert_clean(start_peer(other, *CLIENT, "--dialect", dialect, "--steps", ",".join(KINDS), "--no-echo"))
        assert receiver.end(None) == 0
    assert [each["event"] for each in receiver.objects].count("message") == len(KINDS)
    found = sorted(tmp_path.iterdir(), key=lambda each: int(each.name))
    assert [each.read_bytes() for each in found] == [each.data for each in messages().values()]
