"""``mxwire serve``, ``send`` and ``receive`` between two machines."""

from __future__ import annotations

import signal
import subprocess
from random import Random

import pytest

from mxwire.cli.notes import counted

from .commands import INTERRUPTED, mxwire, running

ALPHA = ("--name", "alpha:0")


def receiving(port, *options):
    return running(port, "receive", *ALPHA, *options)


def test_files_arrive_as_they_were(ports, tmp_path):
    contents = [Random(each).randbytes(each) for each in (0, 20, 5000, 3_000_000)]
    files = [tmp_path / f"sent{place}" for place in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    with receiving(ports[0], "--count", "4", "-o", str(tmp_path / "got{}"), "--json") as receiver:
        receiver.until("waiting")
        done = mxwire(ports[1], "send", "alpha:0", *map(str, files), "--match", "0x77", "--json")
        assert done.code == 0, done.err
        assert receiver.end(None) == 0
    assert [(tmp_path / f"got{place}").read_bytes() for place in range(1, 5)] == contents
    *messages, summary = receiver.objects
    assert [each["bytes"] for each in messages] == [len(each) for each in contents]
    assert {each["match"] for each in messages} == {0x77} and {each["status"] for each in messages} == {"success"}
    assert (summary["event"], summary["messages"]) == ("summary", 4)
    sent = done.objects
    assert [each["event"] for each in sent] == ["sent"] * 4 + ["summary"]


@pytest.mark.parametrize("way", ["pipe", "chunks"])
def test_standard_input_and_output_are_pipes(ports, tmp_path, way):
    content = Random(7).randbytes(200_000)
    options, count = (["--chunk", "65536"], "4") if way == "chunks" else (["--sync"], "1")
    with (tmp_path / "out").open("wb") as out:
        receiver = ports[0].namespace.start(
            *("python3", "-c", "import sys, subprocess; sys.exit(subprocess.run(sys.argv[1:]).returncode)"),
            *_command("receive", ports[0], *ALPHA, "--count", count),
            stdout=out,
            text=True,
        )
        assert receiver.stderr is not None and "waiting" in receiver.stderr.readline()
        sender = ports[1].namespace.start(
            *_command("send", ports[1], "alpha:0", *options), stdin=subprocess.PIPE, text=False
        )
        _, complaints = sender.communicate(content, timeout=60)
        assert sender.returncode == 0, complaints
        _, output = receiver.communicate(timeout=60)
    assert receiver.returncode == 0 and (tmp_path / "out").read_bytes() == content
    assert f"received {counted(int(count), 'message')}, 200,000 bytes" in output


def test_a_small_message_needs_little_memory(ports):
    with receiving(ports[0]) as receiver:
        receiver.until("waiting")
        limited = ["sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh"]
        done = ports[1].namespace.run(*limited, *_command("send", ports[1], "alpha:0"), input="hello")
        assert done.returncode == 0, done.stderr
        assert receiver.end(None) == 0
    assert "hello" in "".join(receiver.output)


def _command(name, port, *rest):
    import sys

    from .commands import CLI

    return (sys.executable, CLI, name, "-i", port.interface, *rest)


def test_a_message_that_does_not_fit_is_cut_and_both_sides_report_it(ports, tmp_path):
    (tmp_path / "large").write_bytes(bytes(100_000))
    with receiving(ports[0], "-o", str(tmp_path / "got"), "--maximum", "50000") as receiver:
        receiver.until("waiting")
        done = mxwire(ports[1], "send", "alpha:0", str(tmp_path / "large"))
        assert receiver.end(None) == 1
    assert done.code == 1 and "took 50,000 of 100,000 bytes (message truncated)" in done.err
    assert "50,000 bytes of 100,000, the rest was cut off" in "".join(receiver.output)
    assert (tmp_path / "got").stat().st_size == 50_000


def test_match_and_mask_choose_messages(ports, tmp_path):
    with receiving(ports[0], "--match", "0x20", "--mask", "0xf0", "--json") as receiver:
        receiver.until("waiting")
        for match in ("0x11", "0x2f"):
            assert mxwire(ports[1], "send", "alpha", "--match", match, input="x").code == 0
        assert receiver.end(None) == 0
    assert [each["match"] for each in receiver.objects if each["event"] == "message"] == [0x2F]


def test_serve_reports_its_clients_and_transfers(ports, tmp_path):
    (tmp_path / "file").write_bytes(bytes(40_000))
    with running(ports[0], "serve", "--sink", *ALPHA, "--endpoint", "3", "--key", "0x99", "--json") as server:
        server.until("serving")
        for _ in range(2):
            done = mxwire(ports[1], "send", "alpha:0:3", str(tmp_path / "file"), "--key", "153", "--name", "beta")
            assert done.code == 0, done.err
        assert server.end() == INTERRUPTED
    begin, *_, summary = server.objects
    assert (begin["event"], begin["what"], begin["endpoints"], begin["key"]) == ("serving", "sink", [3], 0x99)
    assert [each["host"] for each in server.objects if each["event"] == "client"] == ["beta:0"]
    assert (summary["event"], summary["messages"], summary["bytes"]) == ("summary", 2, 80_000)


def test_serving_ends_by_ctrl_c_and_by_sigterm_with_a_summary(ports):
    for how in (signal.SIGINT, signal.SIGTERM):
        with running(ports[0], "serve", "--echo", *ALPHA) as server:
            server.until("Ctrl-C ends it")
            assert server.end(how) == INTERRUPTED
            assert "served 0 messages" in "".join(server.output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--endpoint", "5"], "endpoint 5 is not open there"),
        (["--endpoint", "77"], "that host has no endpoint 77"),
        (["--key", "5"], "the endpoint has another key than 0x5: see --key"),
    ],
)
def test_a_refused_connection_is_explained(ports, arguments, words):
    with running(ports[0], "serve", *ALPHA) as server:
        server.until("Ctrl-C")
        done = mxwire(ports[1], "send", "alpha:0", *arguments, input="x")
        assert (done.code, done.out) == (2, "") and words in done.err
        assert done.err.count("\n") == 1


def test_an_endpoint_that_is_taken_is_busy(ports):
    with running(ports[0], "serve", *ALPHA) as server:
        server.until("Ctrl-C")
        done = mxwire(ports[0], "receive", *ALPHA)
        assert done.code == 2 and "endpoint 1 of veth0 is taken by" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["send", "nobody:0", "--timeout", "0.5"], "nobody:0 was not found within 0.5 s: no other host was"),
        (["send", "nobody:0", "--timeout", "0.5"], " frames heard); sent "),
        (["perf", "-d", "nobody:0", "--timeout", "0.5"], " frames heard); sent "),
        (["send", "02:00:00:00:00:99", "--timeout", "0.7"], "has not answered"),
        (["receive", "-o", "/nowhere/file"], "/nowhere/file: cannot be written"),
    ],
)
def test_mistakes_are_reported_in_one_line(ports, arguments, words):
    done = mxwire(ports[1], *arguments, input="x")
    assert done.code == 2 and words in done.err, done.err
    assert done.err.count("\n") == 1
