"""``mxwire diagnose``, as a user runs it."""

from __future__ import annotations

from dataclasses import replace

from mxwire.analysis.diagnosis.finding import UNKNOWN_COST, evidence
from mxwire.report.diagnosis import ExaminedCapture, blocks
from mxwire.report.document import Paragraph
from tests.analysis.diagnosis.scene import examine
from tests.wire.support import read_capture


def test_a_heading_has_the_range_of_confidences_of_its_findings():
    examination = examine(read_capture("mxoe-lossy-1M"))
    (found,) = [each for each in examination.findings() if each.id == "frames-duplicated"]
    sign = (evidence("a sign", weight="sign"),)
    same = [replace(found, evidence=sign), replace(found, evidence=sign, doubts=("a gap",), cost=UNKNOWN_COST)]
    examined = ExaminedCapture.of("", examination, same, 0, lambda frames: ("", list(frames)))
    heading, *findings = [each.text for each in blocks(examined) if isinstance(each, Paragraph)][1:4]
    assert heading.startswith("Severity warning, confidence low to medium, cost ")
    assert "(confidence medium)" in findings[0] and "(confidence low, cost unknown)" in findings[1]
