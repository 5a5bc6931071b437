"""Transcripts: what commands print, and their exit codes; ``refusals.txt`` has the errors of all commands.

A file of ``transcripts/`` has commands after ``$``, each with its output, lines of standard error after ``!``, and its
exit code after ``=`` unless that is 0. They are played in one folder per file. To record them again, after a change of
output or with a new command: ``python -m tests.cli.test_transcripts [NAME …]``.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mxwire.capture import create_capture
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from tests.captures import read_batch
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire

FILES = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))
_NUMBERS = re.compile(r"\[(?:[-+.\de]+,){32,}[-+.\de]+\]")
_INTERFACES = re.compile(r"(?<=; there are )[\w@.:, -]+$", re.MULTILINE)
"""The interfaces of this computer."""


PREPARED = 8
"""Number of captures and folders that are prepared."""


def prepare(folder: Path) -> None:
    """Make the captures that no host records: cut, damaged, wrong, of another protocol, in the files of a ring."""
    (folder / "captures").symlink_to(CAPTURES)
    (folder / "bad.pcap").write_text("no capture")
    (folder / "cut.pcap").write_bytes((CAPTURES / "mxoe-early.pcap").read_bytes()[:3000])
    _write(folder / "other.pcap", FrameBatch.from_frames([bytes(12) + b"\x08\x00" + bytes(46)]))
    frames = read_batch(EVERY_TYPE)
    places = np.arange(len(frames))
    for number, part in enumerate(np.array_split(places, 2), 1):
        _write(folder / f"ring-{number:05}.pcap", frames.select(part))
    # Without every third frame and with some twice, so that rules are broken.
    _write(folder / "wrong.pcap", frames.select(np.sort(np.concatenate([places[places % 3 > 0], places[::7]]))))
    early = read_batch(CAPTURES / "mxoe-early.pcap")
    early.timestamp_ns[:] += 1_000_000
    _write(folder / "early.pcap", early.select(np.arange(2, len(early))))


def _write(path: Path, frames: FrameBatch) -> None:
    with create_capture(path) as writer:
        writer.begin(LINKTYPE_ETHERNET)
        writer.write(frames)


def played(file: Path, folder: Path) -> str:
    """Run the commands of a transcript in ``folder``, and return the transcript that results."""
    prepare(folder)
    text = []
    for line in file.read_text().splitlines():
        if line.startswith("$ mxwire "):
            run = mxwire(*shlex.split(line)[2:], cwd=folder)
            text += [line, *_NUMBERS.sub(_digest, run.out).splitlines()]
            text += [f"! {each}" for each in _INTERFACES.sub("…", run.err).splitlines()]
            text += [f"= {run.code}"] if run.code else []
    return "\n".join(text) + "\n"


def _digest(numbers: re.Match[str]) -> str:
    """Long lists of numbers are compared by their digest."""
    return f"[{numbers[0].count(',') + 1} numbers, {hashlib.sha256(numbers[0].encode()).hexdigest()[:8]}]"


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.stem)
def test_commands_print_their_transcripts(file: Path, tmp_path: Path) -> None:
    assert played(file, tmp_path) == file.read_text()
    if file.stem == "refusals":
        assert len(list(tmp_path.iterdir())) == PREPARED, "a command that refuses its options has written a file"


if __name__ == "__main__":
    for each in (each for each in FILES if each.stem in sys.argv[1:] or not sys.argv[1:]):
        with tempfile.TemporaryDirectory() as where:
            each.write_text(played(each, Path(where)))
