"""The picture of a measurement: its contents, and the error where it cannot be drawn."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.report import plot_linerate
from mxwire.report.plot import PlottedLength, draw
from mxwire.wire.dialect import MXOE, omx

pytest.importorskip("matplotlib")


def measured(lengths: list[int]) -> list[PlottedLength]:
    return [PlottedLength(each, 8.0 + each / 900, 7.5 + each / 1000, 20.0 + each / 500, each / 9.0) for each in lengths]


def texts(path: Path) -> str:
    found = re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(re.sub(r"<[^>]+>", "", each) for each in found)


@pytest.mark.parametrize(("dialect", "fragments", "replies"), [(MXOE, "4,096", "4,096"), (omx(9000), "8,192", "8,968")])
def test_classes_and_fragments_of_the_dialect_are_marked(tmp_path, dialect, fragments, replies):
    draw(tmp_path / "all.svg", measured([0, *(1 << each for each in range(23))]), dialect, "alpha:0")
    output = texts(tmp_path / "all.svg")
    for name in ("TINY", "SMALL", "MEDIUM, to 32,768", f"fragments of {fragments}", f"pulled in frames of {replies}"):
        assert name in output, output
    for tick in ("0", "1", "4 Ki", "4 Mi", "half a round trip, µs", "bandwidth, MB/s", str(dialect)):
        assert tick in output, output


@pytest.mark.parametrize("lengths", [[0], [4096], [0, 1], [1, 2, 3], list(range(33)), [33000, 33001]], ids=str)
def test_any_lengths_can_be_drawn(tmp_path, lengths):
    for name in ("some.png", "some.svg"):
        draw(tmp_path / name, measured(lengths), MXOE, "alpha:0", unidirectional=True)
        assert (tmp_path / name).stat().st_size > 1000
    assert "round trip, µs" in texts(tmp_path / "some.svg")
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_measurement_gives_the_same_file(tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(tmp_path / name, measured([0, 1, 2]), MXOE, "alpha:0")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


LINERATE = {
    "incast": (
        {"senders": 1, "count": 512},
        {"senders": 2, "count": 256},
        "senders at once|frames of the largest answer without loss",
    ),
    "messages": (
        {"size": 0, "messages_per_second": 90_000.0, "retransmits_from": 120_000.0},
        {"size": 1 << 20, "messages_per_second": 800.0, "retransmits_from": None},
        "length of messages, bytes|messages/s|without retransmissions|retransmissions from",
    ),
}


@pytest.mark.parametrize("test", LINERATE)
def test_results_of_line_rate_tests_are_drawn(tmp_path, test):
    *results, words = LINERATE[test]
    machine = {"interface": "eth0", "driver": "veth", "via": "packet"}
    plot_linerate.draw(tmp_path / "all.svg", test, results, machine)
    assert {*words.split("|"), f"{test} on eth0 (veth), via packet"} <= set(texts(tmp_path / "all.svg").splitlines())


def test_a_file_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(MxwireError, match=r"cannot be written: No such file or directory; create its directory first$"):
        draw(tmp_path / "nowhere" / "x.svg", measured([1]), MXOE, "alpha:0")


def test_without_matplotlib_the_error_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MxwireError, match=r"-m pip install '?matplotlib"):
        draw(tmp_path / "x.svg", measured([1]), MXOE, "alpha:0")
