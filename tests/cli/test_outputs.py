"""Each command that writes a file reports one that it cannot write in the same words, with the remedy."""

from __future__ import annotations

import os

import pytest

from .support import CAPTURES, EVERY_TYPE, mxwire

CONNECT = CAPTURES / "mxoe-connect.pcap"
WRITERS = {
    "decode -w": ["decode", EVERY_TYPE, "-w", "{}.pcap"],
    "decode --to": ["decode", EVERY_TYPE, "--to", "{}.csv"],
    "messages --to": ["messages", EVERY_TYPE, "--to", "{}.csv"],
    "stats --plot": ["stats", EVERY_TYPE, "--plot", "{}.svg"],
    "extract -w": ["extract", EVERY_TYPE, "--message", "1", "-w", "{}.bin"],
    "bench path --write": ["bench", "path", "--write", "{}.jsonl"],
    "bench path --plot": ["bench", "path", "--plot", "{}.svg"],
    "bench claims --markdown": ["bench", "claims", "--model-only", "--markdown", "{}.md"],
    "perf --plot": ["perf", "-i", "nowhere0", "-d", "alpha", "--plot", "{}.svg"],
    "linerate test --csv": ["linerate", "test", "loss", "-i", "nowhere0", "--csv", "{}.csv"],
    "linerate test --plot": ["linerate", "test", "loss", "-i", "nowhere0", "--plot", "{}.svg"],
    "simulate --pcap": ["simulate", "--seed", "1", "--pcap", "{}.pcap"],
    "simulate --checkpoint": ["simulate", "--seeds", "0-1", "--color", "never", "--checkpoint", "{}.jsonl"],
    "replay -w": ["replay", CONNECT, "--as", "52:54:00:0a:00:01", "--simulate", "open-mx", "-w", "{}.pcap"],
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("none/out", "No such file or directory; create its directory first"),
        ("folder", "Is a directory; name a file in it"),
        ("file/out", "Not a directory; a part of its path is a file: choose another place"),
    ],
)
def test_a_file_that_cannot_be_written_is_reported_with_the_remedy(tmp_path, words, place, why):
    words = [str(each).replace("{}", place) for each in words]
    target = next(each for each in words if each.startswith(f"{place}."))
    (tmp_path / "file").touch()
    if place == "folder":
        (tmp_path / target).mkdir()
    run = mxwire(*words, cwd=tmp_path)
    assert (run.code, run.out) == (2, "")
    assert run.err.splitlines()[-1] == f"mxwire: {target}: cannot be written: {why}"


@pytest.mark.parametrize(
    "words",
    [
        ["decode", EVERY_TYPE, "--to", "{}"],
        ["extract", EVERY_TYPE, "--message", "1", "-w", "{}"],
        ["simulate", "--seeds", "0-1", "--checkpoint", "{}"],
        ["plugin", "names", EVERY_TYPE, "-w", "{}"],
    ],
    ids=["table", "extract", "checkpoint", "names"],
)
def test_a_pipe_is_not_replaced_or_read(tmp_path, words):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    run = mxwire(*(str(each).replace("{}", str(pipe)) for each in words))
    line = f"mxwire: {pipe}: cannot be written: it is a device or pipe; name a regular file"
    assert (run.code, run.out, run.err.splitlines()[-1:]) == (2, "", [line])
    assert pipe.is_fifo()


def test_extract_keeps_a_symbolic_link(tmp_path):
    (tmp_path / "link").symlink_to("file")
    assert mxwire("extract", EVERY_TYPE, "--message", "1", "-w", tmp_path / "link").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["decode", EVERY_TYPE, "-w", "/dev/full"],
        ["simulate", "--seed", "1", "--pcap", "/dev/full"],
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_is_reported_with_the_remedy(words):
    run = mxwire(*words)
    assert run.code == 2
    line = "mxwire: /dev/full: cannot be written: No space left on device; free some space, or choose another place"
    assert run.err.splitlines()[-1] == line
