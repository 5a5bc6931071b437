"""Damaged captures: the frames before the damage are analysed first, then the error; --skip-damage continues."""

from __future__ import annotations

import gzip

from tests.cli.support import EVERY_TYPE, mxwire

WHOLE = EVERY_TYPE.read_bytes()


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
