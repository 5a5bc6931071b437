"""``mxwire report``: the files of a report, its bounds, and errors."""

from __future__ import annotations

import json
import re
import sys
import zlib
from base64 import b64decode
from pathlib import Path

import pytest

from mxwire.analysis.capture_overview import CaptureOverview
from mxwire.analysis.selection import Selection
from mxwire.errors import MxwireError
from mxwire.report.site import capture_site
from mxwire.report.site.capture_site import CaptureSource
from mxwire.report.site.pages import library_scripts
from mxwire.wire.decoder import Decoder
from tests.analysis.conversations.support import CAPTURES as RECORDINGS
from tests.analysis.conversations.support import read_capture, split
from tests.cli.support import CAPTURES, mxwire

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
MANY = CAPTURES / "mxoe-many.pcap"


def unpacked(path: Path) -> dict:
    (text,) = re.findall(r'"([A-Za-z0-9+/=]*)"', path.read_text())
    return json.loads(zlib.decompress(b64decode(text)))


def messages_of(folder: Path) -> list[dict]:
    found = unpacked(folder / "data" / "page.js")["messages"]
    return [dict(zip(found["columns"], row, strict=True)) for row in zip(*found["columns"].values(), strict=True)]


def test_the_page_has_the_messages_and_findings_of_the_commands(lossy):
    listed = mxwire("messages", "--json=full", LOSSY).objects
    rows = messages_of(lossy)
    assert [each["number"] for each in rows] == [each["message"] for each in listed]
    assert [each["length"] for each in rows] == [each["length"] for each in listed]
    assert [each["frames"] for each in rows] == [each["frame_count"] for each in listed]
    page = (lossy / "index.html").read_text()
    findings = [each for each in mxwire("diagnose", "--json", LOSSY).objects if each["record"] == "finding"]
    titles = list(dict.fromkeys(each["title"] for each in findings))
    assert re.findall(r"<b>([^<]+)</b>", page.partition('id="pairs"')[0]) == titles
    assert all(each["summary"] in page for each in findings)


def test_every_message_has_its_ladder_with_marks(lossy):
    files = unpacked(lossy / "data" / "page.js")["files"]
    for number in (1, 2):
        text = unpacked(lossy / "data" / f"{files[str(number)]}.js")[str(number)]
        steps = mxwire("follow", str(number), LOSSY, "--json").objects
        assert f"Message {number}: RNDV" in text and text.count("<svg") > 1
        for mark in ("retransmission", "out of order", "gap"):
            assert f"[{mark}]" in text
        shown = {int(each) for each in re.findall(r'<tr id="f(\d+)"', text)}
        first_and_last = {steps[0]["frame"], steps[-1]["last_frame"]}
        assert (
            first_and_last <= shown <= {each for step in steps for each in range(step["frame"], step["last_frame"] + 1)}
        )


def test_nothing_comes_from_elsewhere(lossy):
    page = (lossy / "index.html").read_text()
    assert "default-src 'none'" in page and not re.findall(r"https?:", page)
    for reference in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert reference == "data:," or (lossy / reference).is_file()


def test_a_bounded_report_keeps_the_ladders_of_remarkable_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(capture_site, "FRAMES", 150)
    monkeypatch.setattr(capture_site, "FRAMES_OF_A_MESSAGE", 60)
    name = "mxoe-pingpong-small-medium"
    overview = overview_of(name)
    source = CaptureSource(name, overview, lambda: Decoder().decode_all([read_capture(name)]))
    written = capture_site.write_report(tmp_path / "out", [source])
    assert written.ladders < written.messages
    rows = {each["number"]: each for each in messages_of(tmp_path / "out")}
    files = unpacked(tmp_path / "out" / "data" / "page.js")["files"]
    assert len(files) == written.ladders
    if not all(rows[int(each)]["notable"] for each in files):
        assert all(str(number) in files for number, each in rows.items() if each["notable"])
    assert f"{written.ladders} of them have a ladder here" in (tmp_path / "out" / "index.html").read_text()
    size = sum(each.stat().st_size for each in (tmp_path / "out").rglob("*") if each.is_file())
    assert written.bytes == size


def test_a_filter_limits_messages_pairs_and_findings(tmp_path):
    run = mxwire("report", "--message", "2", LOSSY, "--html", tmp_path / "out", "--json")
    assert run.objects[0]["messages"] == 1
    assert [each["number"] for each in messages_of(tmp_path / "out")] == [2]
    conversations = unpacked(tmp_path / "out" / "data" / "page.js")["conversations"]
    assert [each["title"].split(",")[0] for each in conversations[0]["graphs"]] == ["message 2"]
    assert mxwire("report", "--where", "nonsense ==", LOSSY, "--html", tmp_path / "no").code == 2
    assert not (tmp_path / "no").exists()


def test_doubts_stand_beside_the_evidence(tmp_path):
    sick = CAPTURES.parent / "docs" / "examples" / "sick-cluster.pcapng"
    doubts = [doubt for each in mxwire("diagnose", "--json", sick).objects for doubt in each.get("doubts", ())]
    assert mxwire("report", sick, "--html", tmp_path / "out").code == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert doubts and all(f"less certain: {each}" in page for each in doubts)


def test_hosts_have_the_names_of_peers(tmp_path):
    (tmp_path / "peers").write_text("52:54:00:0a:00:01 alpha\n52:54:00:0a:00:02 beta\n")
    assert mxwire("report", LOSSY, "--peers", tmp_path / "peers", "--html", tmp_path / "out").code == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert ">alpha:0</a>" in page and "52:54:00:0a:00:01</a>" not in page
    assert "alpha:0 ep 5" in unpacked(tmp_path / "out" / "data" / "page.js")["messages"]["texts"]


def test_several_captures_have_a_page_each(tmp_path):
    assert mxwire("report", LOSSY, MANY, LOSSY, "--html", tmp_path / "out").code == 0
    page = (tmp_path / "out" / "index.html").read_text()
    links = re.findall(r'href="([^"]+/index.html)"', page)
    assert links == [f"mxoe-{each}/index.html" for each in ("lossy-1M.pcap", "many.pcap", "lossy-1M.pcap-2")]
    for link in links:
        text = (tmp_path / "out" / link).read_text()
        for reference in re.findall(r'(?:src|href)="([^"#]+)"', text):
            assert reference == "data:," or ((tmp_path / "out" / link).parent / reference).is_file()


def overview_of(capture: str, selection: Selection | None = None) -> CaptureOverview:
    overview = CaptureOverview(Decoder(), selection)
    batches = overview.watch(split(read_capture(capture), 50))
    for decoded in overview.examination.facts.decoder.decode_all(batches):
        overview.observe(decoded)
    overview.finish()
    return overview


@pytest.mark.parametrize("capture", RECORDINGS)
def test_an_overview_of_every_capture(capture):
    overview = overview_of(capture)
    assert [each.number for each in overview.messages] == sorted(each.number for each in overview.messages)
    for pair in overview.pair_states():
        for each in pair.classes:
            assert each.state in ("works", "partly", "fails", "unknown") and each.why


def test_the_findings_of_a_selection_are_those_of_its_frames():
    whole, first = overview_of("mxoe-lossy-1M"), overview_of("mxoe-lossy-1M", Selection.of(frames=[(1, 2)]))
    found, selected = whole.findings(), first.findings()
    assert len(selected) < len(found) == len(selected) + first.left_out and not whole.left_out


def test_the_classes_of_a_pair_are_those_that_arrived():
    (pair,) = overview_of("mxoe-many").pair_states()
    assert [(each.name, each.state) for each in pair.classes] == [
        (name, "works") for name in ("connect", "tiny", "small", "medium", "large")
    ]
    assert pair.classes[4].why == "4 of 4 messages were received"


def test_only_a_report_is_replaced(tmp_path, lossy):
    target = tmp_path / "out"
    target.mkdir()
    (target / "precious").write_text("data")
    for options, output in (([], "--force replaces"), (["--force"], "contains no report")):
        run = mxwire("report", MANY, "--html", target, *options)
        assert run.code == 2 and output in run.err
    other = tmp_path / "report"
    assert mxwire("report", LOSSY, "--html", other).code == 0
    assert mxwire("report", MANY, "--html", other).code == 2
    assert mxwire("report", MANY, "--html", other, "--force").code == 0
    assert "mxoe-many.pcap" in (other / "index.html").read_text()
    assert len(messages_of(other)) == 12


def test_without_bokeh_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    with pytest.raises(MxwireError, match=r"--html needs bokeh, .*-m pip install 'bokeh>="):
        library_scripts()
