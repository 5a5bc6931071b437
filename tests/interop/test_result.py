"""Reports survive being written and read."""

from __future__ import annotations

import json

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.result import Case, Cell, Impairment, Implementation, InteropReport
from mxwire.rules import Violation

BREACH = Violation("R-SEQ-05", "violation", (3, 7), 1_000_000, bytes(5) + b"\x01", "number 1", "number 2")


def a_report() -> InteropReport:
    return InteropReport(
        "a matrix",
        "0.1",
        "2026-11-21T19:00:00Z",
        complete=False,
        implementations=[Implementation("left", "Left", "mxoe", "open-mx-1.5")],
        cases=[Case("tiny", "Tiny", "sizes", "32 bytes", ("R-SND-01",))],
        impairments=[Impairment("none", "None", "nothing is lost")],
        cells=[
            Cell("left", "left", "tiny", "none", 7, "fail", "it did not work", findings=(BREACH,), events=("1 ms: x",)),
            Cell("left", "left", "tiny", "loss", 7, "missing", "was not run"),
        ],
    )


def test_a_report_is_the_same_when_it_is_read_again(tmp_path):
    report = a_report()
    assert InteropReport.from_json_lines(report.to_json_lines()) == report
    assert report.write(tmp_path / "folder") == tmp_path / "folder" / "report.jsonl"
    assert InteropReport.read(tmp_path / "folder") == report == InteropReport.read(tmp_path / "folder" / "report.jsonl")


def test_each_line_names_its_kind():
    lines = [json.loads(line) for line in a_report().to_json_lines()]
    assert [each["record"] for each in lines] == ["report", "implementation", "case", "impairment", "cell", "cell"]
    assert lines[0]["counts"] == {"pass": 0, "non-strict": 0, "fail": 1, "info": 0, "missing": 1}
    assert lines[4]["findings"][0]["host"] == "00:00:00:00:00:01"


def test_a_report_with_a_failed_cell_is_not_as_expected():
    report = a_report()
    assert not report.as_expected
    del report.cells[0]
    assert report.as_expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("nonsense\n", "line 1"),
        ('{"record":"cell"}\n', "line 1: the first record is not of kind report"),
        ('{"record":"report","title":"","version":"","started":""}\n{"record":"odd"}\n', "line 2: 'odd'"),
        ('{"record":"report","title":"","version":"","started":""}\n[]\n', "line 2"),
    ],
)
def test_a_file_that_is_not_a_report_is_refused_with_the_line(tmp_path, text, why):
    (tmp_path / "report.jsonl").write_text(text)
    with pytest.raises(MxwireError, match=f"not a report of mxwire interop: {why}"):
        InteropReport.read(tmp_path)


def test_a_missing_report_is_reported(tmp_path):
    with pytest.raises(MxwireError, match="the report cannot be read: No such file"):
        InteropReport.read(tmp_path)
