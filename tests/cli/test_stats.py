"""``mxwire stats`` as a user runs it."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from tests.cli.support import CAPTURES, mxwire

PINGPONG = CAPTURES / "mxoe-pingpong-small-medium.pcap"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
drawn = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")


def test_rates_add_up_to_the_bytes():
    (pair,) = [each for each in mxwire("stats", "--json", LOSSY).objects if each["record"] == "host_pair"]
    rates = pair["rates"]
    carried = sum(sum(each) for each in rates["bytes_per_second"]) * rates["width_ns"] / 1e9
    assert carried == pytest.approx(sum(each["bytes"] for each in pair["directions"]), rel=1e-6)


def test_the_seed_decides():
    one = mxwire("stats", "--json", "--seed", "5", PINGPONG).out
    assert one == mxwire("stats", "--json", "--seed", "5", PINGPONG).out


@drawn
def test_a_figure_as_svg(tmp_path):
    target = tmp_path / "figure.svg"
    run = mxwire("stats", "--plot", target, PINGPONG)
    assert run.code == 0 and re.fullmatch(
        rf"mxwire: wrote plots of [\d,]+ frames to {re.escape(str(target))}\n", run.err
    )
    texts = {text.strip() for each in ElementTree.parse(target).iter() for text in [each.text or ""] if text.strip()}
    assert {"half a round trip, µs", "bandwidth, MB/s", "KiB in flight", "retransmitted or re-requested"} <= texts
    assert "fragments of 4,096" in texts and "to 128" in texts
    again = tmp_path / "again.svg"
    mxwire("stats", "--plot", again, PINGPONG)
    # Matplotlib names a clipping region by a hash of its coordinates, whose last bits depend on the order of a set.
    first, second = (re.sub(rb"\bp[0-9a-f]{10}\b", b"p", each.read_bytes()) for each in (target, again))
    assert second == first


@drawn
def test_the_time_sequence_graph_of_a_transfer_is_drawn(tmp_path):
    target = tmp_path / "figure.svg"
    assert mxwire("stats", "--plot", target, "--message", "2", LOSSY).code == 0
    texts = {text.strip() for each in ElementTree.parse(target).iter() for text in [each.text or ""] if text.strip()}
    assert {"MB/s on the wire", "requested up to", "acknowledged", "missing", "re-request", "retransmission"} <= texts
    assert any(each.startswith("message 2, 1048576 bytes: 52:54:00:0a:00:02 ep 3") for each in texts)
    assert not any("message 1," in each for each in texts)


def test_files_for_xplot(tmp_path):
    run = mxwire("stats", "--xplot", tmp_path / "new" / "graphs", LOSSY)
    names = ["a2b_tsg.xpl", "b2a_tsg.xpl", "a2b_tput.xpl", "b2a_tput.xpl"]
    assert run.code == 0 and [line.rpartition("/")[2] for line in run.err.splitlines()] == names
    commands = {"line", "darrow", "uarrow", "utick", "dtick", "diamond", "box", "x", "dot"}
    colours = {"white", "green", "red", "blue", "yellow", "purple", "orange", "magenta", "pink"}
    for name in names:
        lines = (tmp_path / "new" / "graphs" / name).read_text().splitlines()
        assert lines[0] == "timeval unsigned" and lines[-1] == "go"
        assert (lines[1], lines[3], lines[5]) == ("title", "xlabel", "ylabel")
        for line in lines[7:-1]:
            command, *numbers = line.split()
            if command in colours:
                assert not numbers
            else:
                assert command in commands and len(numbers) == (4 if command == "line" else 2)
                assert all(float(each) >= 0 for each in numbers)
        assert any(line.startswith("line ") for line in lines)


@drawn
def test_a_figure_as_png_and_a_page(tmp_path):
    assert mxwire("stats", "--plot", tmp_path / "figure.png", LOSSY).code == 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert mxwire("stats", "--plot", tmp_path / "page.html", LOSSY).code == 0
    page = (tmp_path / "page.html").read_text()
    HTMLParser().feed(page)
    assert "<svg" in page and "block re-requested early" in page and "http-equiv" not in page
    assert "<script" not in page


@drawn
def test_a_capture_without_messages_can_be_drawn(tmp_path):
    target = tmp_path / "figure.svg"
    assert mxwire("stats", "--plot", target, CAPTURES / "mxoe-driver-load.pcap").code == 0
    assert ElementTree.parse(target).getroot().tag.endswith("svg")
