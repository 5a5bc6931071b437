"""Damaged captures: the frames before the damage are analysed first, then the error; --skip-damage continues."""

from __future__ import annotations

import gzip
import struct

import pytest

from tests.cli.support import EVERY_TYPE, mxwire

WHOLE = EVERY_TYPE.read_bytes()
BEFORE = 60
"""Number of frames before the damage."""


@pytest.fixture
def damaged(tmp_path):
    at = 24
    for _ in range(BEFORE):
        at += 16 + struct.unpack_from("<I", WHOLE, at + 8)[0]
    file = tmp_path / "damaged.pcap"
    file.write_bytes(WHOLE[: at + 8] + b"\xff" * 4 + WHOLE[at + 12 :])
    return file


def test_frames_before_damage_are_decoded_then_the_error_is_printed(damaged):
    run = mxwire("decode", damaged)
    assert run.code == 2
    assert len(run.lines) == BEFORE
    assert f"frame {BEFORE + 1} claims" in run.err.splitlines()[-1]


def test_frames_of_a_cut_gzip_file_are_decoded_then_the_error_is_printed(tmp_path):
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(WHOLE)[:-2000])
    run = mxwire("decode", cut)
    assert run.code == 2
    assert run.lines == mxwire("decode", EVERY_TYPE).lines[: len(run.lines)]
    assert f"cut off after {len(run.lines)} whole frames" in run.err


def test_a_file_that_ends_within_a_frame_is_damaged_unless_it_is_being_written(tmp_path):
    cut = tmp_path / "cut.pcap"
    with cut.open("wb") as writer:
        writer.write(WHOLE[:-20])
        writer.flush()
        run = mxwire("decode", cut)
        assert (run.code, len(run.lines)) == (0, 86)
        assert "cut off in the middle of frame 87" in run.err and "it is still being written" in run.err
    run = mxwire("decode", cut)
    assert (run.code, len(run.lines)) == (2, 86)
    assert "cut off in the middle of frame 87" in run.err and "written" not in run.err
    run = mxwire("decode", "--skip-damage", cut)
    assert (run.code, len(run.lines)) == (0, 86)
    assert "skipped 1 damaged place" in run.err


def test_a_pipe_that_ends_within_a_frame_is_damaged():
    run = mxwire("decode", "-", stdin=WHOLE[:-20])
    assert (run.code, len(run.lines)) == (2, 86)


def test_decoding_continues_behind_skipped_damage(damaged):
    whole = mxwire("decode", EVERY_TYPE)
    run = mxwire("decode", "--skip-damage", damaged)
    assert run.code == 0
    assert len(run.lines) == len(whole.lines) - 1
    assert "skipped 1 damaged place" in run.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["verify"],
        ["verify", "--on", "local"],
        ["diagnose"],
        ["messages"],
        ["stats"],
        ["messages", "--by", "conversation"],
        ["follow", "1"],
        ["compat"],
        ["top", "--once"],
        ["merge", EVERY_TYPE],
        ["replay", "--dry-run"],
    ],
    ids=lambda words: " ".join(map(str, words[:2])).split("/")[0],
)
def test_commands_analyse_the_frames_before_damage_and_exit_with_2(damaged, arguments):
    run = mxwire(*arguments, damaged)
    assert run.code == 2
    assert run.out
    assert sum("damaged at byte" in line for line in run.err.splitlines()) == 1
    skipped = mxwire(*arguments, "--skip-damage", damaged)
    assert skipped.code in (0, 1)
    assert skipped.out
