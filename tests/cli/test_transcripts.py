"""Transcripts: what commands print, and their exit codes; ``refusals.txt`` has the errors of all commands.

A file of ``transcripts/`` has commands after ``$``, each with its output, lines of standard error after ``!``, and its
exit code after ``=`` unless that is 0; ``<`` gives a command a file as standard input. They are played in one folder
per file. To record them again, after a change of output or with a new command: ``python -m tests.cli.test_transcripts
[NAME …]``.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import struct
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mxwire.capture import create_capture
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, FrameBatch
from mxwire.wire.codec import build, codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import HostReply, Tiny, Truc
from tests.captures import read_batch, write_capture
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire
from tests.frames import make_frame

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
FILES = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))
_NUMBERS = re.compile(r"\[(?:[-+.\de]+,){32,}[-+.\de]+\]")
_INTERFACES = re.compile(r"(?<=; there are )[\w@.:, -]+$", re.MULTILINE)
"""The interfaces of this computer."""


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
    _write(folder / "later.pcap", read_batch(LOSSY).select(np.arange(200, 600)))
    _write(folder / "holes.pcap", read_batch(LOSSY).select(np.flatnonzero(np.random.default_rng(5).random(840) > 0.04)))
    (folder / "empty.pcap").write_bytes(EVERY_TYPE.read_bytes()[:24])
    (folder / "unlike.pcap").write_bytes(EVERY_TYPE.read_bytes().replace(b"\x86\xdf", b"\x08\x00"))
    single = [build(each, MXOE) for each in (make_frame(Tiny, data=b"hello", length=5), make_frame(Tiny, length=40))]
    odd = build(make_frame(HostReply, length=6, src_dst_peer_index=1, magic=1, hostname=b"a\nb\xff\0"), MXOE)
    ip, unknown = single[0][:12] + b"\x08\x00" + single[0][14:], single[0][:16] + b"\x2e" + single[0][17:]
    write_capture(folder / "single.pcap", [ip, *single, unknown, single[0][:15], odd], range(0, 6000, 1000))
    acked_nothing(folder / "acked.pcap")
    with create_capture(folder / "lost.pcapng") as writer:
        writer.write(read_batch(CAPTURES / "mxoe-connect-cross.pcap"))
        writer.write_statistics(2 * 10**18, 18, 7)
    whole = EVERY_TYPE.read_bytes()
    # Frame 61 claims to be longer than any.
    at = 24 + sum(16 + len(each) for each in list(frames)[:60])
    (folder / "damaged.pcap").write_bytes(whole[: at + 8] + b"\xff" * 4 + whole[at + 12 :])
    (folder / "wifi.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 105))
    (folder / "random.bin").write_bytes(bytes(range(128, 256)) * 9)
    (folder / "file").touch()
    for suffix in ("pcap", "csv", "svg", "bin", "jsonl", "md"):
        (folder / f"folder.{suffix}").mkdir()
    write_capture(folder / "arp.pcap", [bytes(12) + b"\x08\x06" + bytes(46)] * 1234)
    truncated = read_batch(CAPTURES / "mxoe-truncated.pcap")
    head = bytes.fromhex("00000001000652540010a001000086df")
    cooked = [head + each[14:] for each in truncated]
    write_capture(folder / "cooked.pcap", cooked, truncated.timestamp_ns.tolist(), link_type=LINKTYPE_LINUX_SLL)
    early = read_batch(CAPTURES / "mxoe-early.pcap")
    early.timestamp_ns[:] += 1_000_000
    _write(folder / "early.pcap", early.select(np.arange(2, len(early))))


def acked_nothing(path: Path) -> int:
    """Write a capture in which one ack is for a message that was never sent; returns the number of its frame."""
    batch = read_batch(CAPTURES / "mxoe-echo-checksum-debug.pcap")
    frames, codec = list(batch), codec_of(MXOE)
    place, acked = next((i, each) for i, each in enumerate(map(codec.parse, frames)) if isinstance(each, Truc))
    frames[place] = codec.build(replace(acked, liback_lib_seqnum=acked.liback_lib_seqnum + 3))
    write_capture(path, frames, batch.timestamp_ns.tolist())
    return place + 1


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
            words, _, given = line.partition(" < ")
            run = mxwire(*shlex.split(words)[2:], stdin=(folder / given).read_bytes() if given else b"", cwd=folder)
            text += [line, *_NUMBERS.sub(_digest, run.out).splitlines()]
            text += [f"! {each}" for each in _INTERFACES.sub("…", run.err).splitlines()]
            text += [f"= {run.code}"] if run.code else []
    return "\n".join(text) + "\n"


def _digest(numbers: re.Match[str]) -> str:
    """Long lists of numbers are compared by their digest."""
    return f"[{numbers[0].count(',') + 1} numbers, {hashlib.sha256(numbers[0].encode()).hexdigest()[:8]}]"


LONGEST = "refusals"
"""It has more calls than all others together."""


@pytest.mark.parametrize(
    "file", [pytest.param(each, marks=[pytest.mark.longest] * (each.stem == LONGEST), id=each.stem) for each in FILES]
)
def test_commands_print_their_transcripts(file: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert played(file, tmp_path) == file.read_text()
    if file.stem == LONGEST:
        prepare(untouched := tmp_path_factory.mktemp("untouched"))
        assert _contents(tmp_path) == _contents(untouched), "a command that refuses its options has written a file"


def _contents(folder: Path) -> dict[str, bytes]:
    return {each.name: b"" if each.is_dir() else each.read_bytes() for each in folder.iterdir()}


if __name__ == "__main__":
    for each in (each for each in FILES if each.stem in sys.argv[1:] or not sys.argv[1:]):
        with tempfile.TemporaryDirectory() as where:
            each.write_text(played(each, Path(where)))
