"""``mxwire merge``, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.capture import open_capture
from tests.analysis.merging.splitting import Way, split
from tests.captures import CAPTURES, batch_of, records_of, write_capture

from .support import ROOT, mxwire

LOSSY = "mxoe-lossy-1M.pcap"


def written(ends: tuple[Path, Path], name: str, way: Way) -> tuple[Path, Path]:
    """A capture as both ends of a way saw it."""
    for path, frames in zip(ends, split(records_of(name), way), strict=True):
        write_capture(path, batch_of(frames))
    return ends


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both ends of a way that loses some frames, the second's clock 1.5 s ahead."""
    folder = tmp_path_factory.mktemp("ends")
    made = folder / "alpha.pcap", folder / "beta.pcapng.gz"
    way = Way(offset=1_500_000_000, delay=(12_000, 12_000), jitter=3_000, loss=0.03)
    return written(made, LOSSY, way)


def test_the_written_file_has_the_frames_of_the_network(ends, tmp_path):
    both = tmp_path / "both.pcapng"
    run = mxwire("merge", *ends, "-w", both)
    assert run.code == 0 and run.err == ""
    ahead = re.search(r"B's clock is (\d\.\d+) s ahead", run.out)
    assert "wrote 840 frames to" in run.out and ahead and abs(float(ahead[1]) - 1.5) < 0.000_013
    with open_capture(both) as capture:
        times = [time for batch in capture for time in batch.timestamp_ns.tolist()]
        assert [each.name for each in capture.interfaces] == ["A: alpha.pcap", "B: beta.pcapng.gz"]
    assert len(times) == len(records_of(LOSSY)) and times == sorted(times)
    kept = ("message", "kind", "length", "match", "frames", "sender", "receiver")
    one, other = (
        [[each[key] for key in kept] for each in mxwire("messages", "--json=full", path).objects]
        for path in (CAPTURES / LOSSY, both)
    )
    assert one == other
    assert mxwire("verify", both).code == 0


def test_the_capture_can_go_into_a_pipe(ends, tmp_path):
    script = f"{sys.executable} {ROOT / 'cli.py'} merge {ends[0]} {ends[1]} -w - --json"
    done = subprocess.run(["sh", "-c", f"{script} > {tmp_path / 'piped.pcapng'}"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stderr)["written"] == 840
    assert len(mxwire("messages", tmp_path / "piped.pcapng").lines) > 1


def test_json_has_all_values(ends):
    (found,) = mxwire("merge", *ends, "--json").objects
    assert found["offset_ns"] == pytest.approx(1_500_000_000, abs=found["offset_uncertainty_ns"])
    assert found["both"] + sum(each["only"] for each in found["captures"]) == 840
    assert set(found["hosts"].values()) == {"A", "B"} and found["written"] is None


def test_both_copies_can_be_kept(ends, tmp_path):
    both = tmp_path / "both.pcapng"
    (found,) = mxwire("merge", *ends, "-w", both, "--keep-both", "--json").objects
    assert found["written"] == sum(each["frames"] for each in found["captures"])


@pytest.mark.parametrize(("drift", "output"), [(4e-5, "gains 39.99"), (-4e-5, "loses 40.00")])
def test_drift_is_reported_where_there_is_one(tmp_path, drift, output):
    ends = written(
        (tmp_path / "a.pcap", tmp_path / "b.pcap"), "mxoe-every-type.pcap", Way(drift=drift, delay=(9999, 9999))
    )
    assert output in mxwire("merge", *ends).out
