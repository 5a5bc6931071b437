"""The captures of the tutorial show the faults that it finds, and their repair."""

from __future__ import annotations

from pathlib import Path

from mxwire.capture import open_capture
from tests.analysis.diagnosis.scene import examine, ids
from tests.docs.sick_cluster import EXAMPLES, saved


def test_the_captures_are_those_of_the_script(tmp_path: Path) -> None:
    for each in saved(tmp_path):
        assert (EXAMPLES / each.name).read_bytes() == each.read_bytes(), "python -m tests.docs.sick_cluster"


def test_the_faults_are_found_and_gone_after_the_repair() -> None:
    found = []
    for name in ("sick", "mended"):
        with open_capture(EXAMPLES / f"{name}-cluster.pcapng") as reader:
            found.append(set(ids(examine(*reader).findings())))
    sick, mended = found
    assert sick - mended == {"mtu-too-small", "frames-lost", "endpoint-closed"}
    assert mended == {"capture-frames-cut"}
