"""``mxwire diagnose``, as a user runs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mxwire.analysis.diagnosis.finding import UNKNOWN_COST, evidence
from mxwire.capture import create_capture, open_capture
from mxwire.report.diagnosis import ExaminedCapture, blocks
from mxwire.report.document import Paragraph
from tests.analysis.diagnosis.scene import examine
from tests.captures import write_capture
from tests.wire.support import read_capture

from .support import CAPTURES, mxwire


def test_a_heading_has_the_range_of_confidences_of_its_findings():
    examination = examine(read_capture("mxoe-lossy-1M"))
    (found,) = [each for each in examination.findings() if each.id == "frames-duplicated"]
    sign = (evidence("a sign", weight="sign"),)
    same = [replace(found, evidence=sign), replace(found, evidence=sign, doubts=("a gap",), cost=UNKNOWN_COST)]
    examined = ExaminedCapture.of("", examination, same, 0, lambda frames: ("", list(frames)))
    heading, *findings = [each.text for each in blocks(examined) if isinstance(each, Paragraph)][1:4]
    assert heading.startswith("Severity warning, confidence low to medium, cost ")
    assert "(confidence medium)" in findings[0] and "(confidence low, cost unknown)" in findings[1]


def test_a_bad_file_does_not_keep_the_others_from_being_read(tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture at all")
    run = mxwire("diagnose", bad, CAPTURES / "mxoe-connect.pcap")
    assert run.code == 2 and "wrong-key" in run.out and "bad.pcap" in run.err


def test_a_cut_file_is_diagnosed_as_far_as_it_goes(tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((CAPTURES / "mxoe-discovery-static.pcap").read_bytes()[:400])
    run = mxwire("diagnose", cut)
    assert run.code == 2 and "examined" in run.out and "cut off in the middle of frame 5" in run.err


def test_a_capture_in_a_pipe():
    run = mxwire("diagnose", "-", stdin=(CAPTURES / "mxoe-connect.pcap").read_bytes())
    assert run.code == 1 and "wrong-key" in run.out


def test_missing_judgements_are_reported(tmp_path):
    data = (CAPTURES / "mxoe-every-type.pcap").read_bytes()
    other = tmp_path / "other.pcap"
    other.write_bytes(data.replace(b"\x86\xdf", b"\x08\x00"))
    run = mxwire("diagnose", other)
    assert "Not judged" in run.out and "no frame of MXoE (EtherType 0x86df)" in run.out
    assert "ethertype-changed" in run.out and run.code == 1


def test_losses_recorded_in_the_capture_are_reported(tmp_path):
    path = tmp_path / "lost.pcapng"
    with open_capture(CAPTURES / "mxoe-connect-cross.pcap") as reader, create_capture(path) as writer:
        for batch in reader:
            writer.write(batch)
        writer.write_statistics(2 * 10**18, 18, 7)
    run = mxwire("diagnose", path)
    assert run.code == 1 and "capture-incomplete" in run.out
    assert "7 frames were dropped by the capturing program" in run.out


def test_the_loss_is_unknown_if_the_capture_lost_frames(tmp_path):
    path = tmp_path / "holes.pcap"
    batch = read_capture("mxoe-lossy-1M")
    write_capture(path, batch.select(np.flatnonzero(np.random.default_rng(5).random(len(batch)) > 0.04)))
    summary = mxwire("diagnose", "--json", path).objects[-1]
    assert "capture-incomplete" in summary["ids"] and summary["loss"] == []
    assert "the capture itself lost frames, so the loss per direction is unknown" in summary["not_judged"]
