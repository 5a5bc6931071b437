"""``mxwire diagnose``, as a user runs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mxwire.analysis.diagnosis.finding import UNKNOWN_COST, evidence
from mxwire.capture import create_capture, open_capture
from mxwire.report.diagnosis import ExaminedCapture, blocks
from mxwire.report.document import Paragraph
from tests.analysis.diagnosis.scene import examine
from tests.wire.support import read_capture

from .support import CAPTURES, mxwire


def test_findings_name_the_problem_the_host_the_cause_and_the_remedy():
    run = mxwire("diagnose", CAPTURES / "mxoe-discovery-static.pcap")
    assert run.code == 1 and not run.err
    for text in (
        "6 frames and 0 messages examined: a host never answers (cost 2.6 s of 2.6 s).",
        "1. A host never answers  [mute-peer]",
        "Severity error, confidence high, cost 2.6 s of 2.6 s.",
        "52:54:00:0a:00:02 never sent a frame",
        "(frame 1 at 0.000000 s; also 2, 3, 4)",
        "What to do:",
        "mxwire diagnose --explain ID",
    ):
        assert text in " ".join(run.out.split()) or text in run.out
    assert all(len(line) <= 100 for line in run.lines)


def test_a_heading_has_the_range_of_confidences_of_its_findings():
    examination = examine(read_capture("mxoe-lossy-1M"))
    (found,) = [each for each in examination.findings() if each.id == "frames-duplicated"]
    sign = (evidence("a sign", weight="sign"),)
    same = [replace(found, evidence=sign), replace(found, evidence=sign, doubts=("a gap",), cost=UNKNOWN_COST)]
    examined = ExaminedCapture.of("", examination, same, 0, lambda frames: ("", list(frames)))
    heading, *findings = [each.text for each in blocks(examined) if isinstance(each, Paragraph)][1:4]
    assert heading.startswith("Severity warning, confidence low to medium, cost ")
    assert "(confidence medium)" in findings[0] and "(confidence low, cost unknown)" in findings[1]


def test_a_clean_capture_shows_nothing_and_ends_with_0():
    run = mxwire("diagnose", CAPTURES / "omx1500-echo-pattern.pcap")
    assert run.code == 0 and not run.err
    assert "589 frames and 44 messages examined: nothing found." in run.out


def test_json_has_findings_and_a_summary_per_file():
    files = [CAPTURES / "mxoe-every-type.pcap", CAPTURES / "mxoe-connect-cross.pcap"]
    run = mxwire("diagnose", "--json", *files)
    assert run.code == 1
    finding, first, second = run.objects
    assert (finding["record"], finding["id"], finding["confidence"]) == ("finding", "no-reverse-connect", "high")
    assert finding["concerns"] == [
        {"host": "52:54:00:0a:00:02", "name": "vm2:0", "endpoint": 3},
        {"host": "52:54:00:0a:00:01", "name": "vm1:0", "endpoint": 5},
    ]
    assert finding["evidence"][0]["frames"] == [76]
    assert set(finding) == {
        *("record", "file", "id", "title", "group", "severity", "confidence", "cost_ns", "cost_s", "cost_frames"),
        *("concerns", "summary", "evidence", "doubts", "advice"),
    }
    assert finding["evidence"][0]["weight"] == "proof" and finding["doubts"] == []
    assert [each["record"] for each in (first, second)] == ["summary", "summary"]
    assert first["ids"] == ["no-reverse-connect"] and second["ids"] == [] and second["not_judged"] == []
    assert [each["file"] for each in (first, second)] == [str(each) for each in files]


def test_findings_are_sorted_by_cost():
    """In a network that loses, copies and reorders frames: a second at the end of a message costs more than copies."""
    run = mxwire("diagnose", "--json", CAPTURES / "mxoe-lossy-1M.pcap")
    findings = [each for each in run.objects if each["record"] == "finding"]
    costs = [each["cost_ns"] or 0 for each in findings]
    assert costs == sorted(costs, reverse=True)
    assert [each["id"] for each in findings][:3] == ["frames-lost", "tail-loss", "late-reverse-connect"]
    assert 2.0 <= findings[0]["cost_s"] < 2.02, "the pull timer of 1000 ms expires twice"
    assert findings[-1]["severity"] == "note" and findings[-1]["cost_ns"] is findings[-1]["cost_frames"] is None


def test_notes_alone_are_not_a_failure():
    run = mxwire("diagnose", "--only", "pulls-out-of-order", CAPTURES / "mxoe-rndv-offset.pcap")
    assert run.code == 0 and "Severity note" in run.out


def test_the_option_only_limits_the_report_and_the_exit_code():
    capture = CAPTURES / "mxoe-nack-lib.pcap"
    run = mxwire("diagnose", "--json", "--only", "session-changed", capture)
    assert run.code == 1 and [each["id"] for each in run.objects if each["record"] == "finding"] == ["session-changed"]
    assert mxwire("diagnose", "--only", "mtu-too-small", capture).code == 0


def test_catalogue_is_listed_and_explained():
    listed = mxwire("diagnose", "--list")
    assert listed.code == 0 and "zombie-pull" in listed.out
    explained = mxwire("diagnose", "--explain", "zombie-pull")
    assert explained.code == 0
    for text in ("Symptoms:", "In the capture:", "Distinguish it from long frames that are lost:", "R-CLS-08"):
        assert text in explained.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--explain", "nonsense"], "no diagnosis 'nonsense'; mxwire diagnose --list lists them all"),
        (["--explain", "zombi-pul"], "no diagnosis 'zombi-pul' (did you mean zombie-pull?)"),
        (["--only", "nonsense", "x.pcap"], "no diagnosis 'nonsense'"),
        (["--all-protocols", "x.pcap"], "--all-protocols is for -i"),
        ([], "nothing to read"),
        (["nowhere.pcap"], "nowhere.pcap"),
    ],
)
def test_mistakes_are_reported_in_one_line(arguments, complaint):
    run = mxwire("diagnose", *arguments)
    assert run.code == 2 and complaint in run.err and len(run.err.splitlines()) == 1


def test_a_bad_file_does_not_keep_the_others_from_being_read(tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture at all")
    run = mxwire("diagnose", bad, CAPTURES / "mxoe-connect.pcap")
    assert run.code == 2 and "wrong-key" in run.out and "bad.pcap" in run.err


def test_costs_may_overlap():
    run = mxwire("diagnose", CAPTURES / "mxoe-lossy-1M.pcap")
    assert "Costs may overlap: do not add them." in " ".join(run.out.split())


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


def test_loss_per_direction_has_numerator_and_denominator():
    run = mxwire("diagnose", "--json", CAPTURES / "mxoe-lossy-1M.pcap")
    lossy, clean = run.objects[-1]["loss"]
    assert (lossy["source"], lossy["destination"]) == ("52:54:00:0a:00:02", "52:54:00:0a:00:01")
    assert lossy["lost"] == lossy["lost_before"] + lossy["lost_behind"] > 0 and clean["lost"] == 0
    assert lossy["percent"] == round(100 * lossy["lost"] / lossy["sent"], 4) > 1
    text = mxwire("diagnose", CAPTURES / "mxoe-lossy-1M.pcap").out
    assert "Loss per direction" in text and f"{lossy['percent']:.2f}%" in text
    assert f"at least {lossy['lost']} of {lossy['sent']} frames lost" in " ".join(text.split())


def test_a_capture_without_loss_has_no_table_and_zero_percent():
    run = mxwire("diagnose", "--json", CAPTURES / "omx1500-echo-pattern.pcap")
    assert [each["percent"] for each in run.objects[-1]["loss"]] == [0.0, 0.0]
    assert "Loss per direction" not in mxwire("diagnose", CAPTURES / "omx1500-echo-pattern.pcap").out


def test_the_loss_is_unknown_if_the_capture_lost_frames(tmp_path):
    path = tmp_path / "holes.pcap"
    batch = read_capture("mxoe-lossy-1M")
    with create_capture(path) as writer:
        writer.write(batch.select(np.flatnonzero(np.random.default_rng(5).random(len(batch)) > 0.04)))
    summary = mxwire("diagnose", "--json", path).objects[-1]
    assert "capture-incomplete" in summary["ids"] and summary["loss"] == []
    assert "the capture itself lost frames, so the loss per direction is unknown" in summary["not_judged"]
