"""``mxwire replay`` without an interface: what would be sent, and what is refused."""

from __future__ import annotations

from tests.cli.support import CAPTURES
from tests.replay.inside import mxwire

CONNECT = CAPTURES / "mxoe-connect.pcap"


def test_frames_that_were_cut_off_are_left_out_unless_filled_up() -> None:
    lossy = CAPTURES / "mxoe-lossy-1M.pcap"
    run = mxwire("replay", lossy, "--dry-run", "--type", "PULL_REPLY")
    assert run.code == 2 and "all its frames are cut off (--pad pads them)" in run.err
    run = mxwire("replay", lossy, "--dry-run", "--type", "PULL_REPLY", "--pad", "--json", "--top-speed")
    assert run.code == 0 and len(run.lines) == 734 and run.objects[0]["length"] > 4096


def test_a_file_that_is_not_a_capture_is_refused() -> None:
    run = mxwire("replay", __file__, "--dry-run")
    assert run.code == 2 and "not a capture" in run.err, run.err
