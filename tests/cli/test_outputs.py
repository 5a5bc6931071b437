"""Pipes and symbolic links as files to write; ``transcripts/refusals.txt`` has those that cannot be written."""

from __future__ import annotations

import os

import pytest

from .support import EVERY_TYPE, mxwire


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
