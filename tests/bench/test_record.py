"""Recordings: statistics of measurements, and files that are read back as written."""

from __future__ import annotations

import json
import random

import pytest

from mxwire.bench.record import Conditions, Measurement, Recording, RecordingError, Series, read_recordings
from mxwire.bench.report import estimate, spread
from mxwire.bench.rounds import LEAST_ROUNDS, chance, order, within
from mxwire.errors import OutputError


def recording() -> Recording:
    points = [
        Measurement("tcp, spinning", "µs", (6.0, 5.0, 7.0), {"size": size}, {"frames": 2.0}, ("lost",), {"p99": 9.5})
        for size in (0, 1024)
    ]
    conditions = Conditions(
        testbed="memory", processor="a processor", offloads=("gso", "tso"), placement=(0, 1), delay=7e-5
    )
    series = [Series("half round trip", "µs", measurements=points), Series("interval", "µs", "work", "ns", points[:1])]
    return Recording("path", conditions, series, ["no AF_XDP here"], facts={"budget": [["copy", 1.5]]})


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_recording_is_read_back_as_it_was_written(tmp_path, suffix):
    path = tmp_path / f"path.{suffix}"
    recording().write(path)
    (found,) = read_recordings(path)
    assert found == recording()


def test_a_file_may_hold_several_recordings_and_one_without_end_is_partial(tmp_path):
    lines = [json.dumps(each) for each in recording().records()]
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([*lines, *lines[:-1]]) + "\n")
    whole, partial = read_recordings(path)
    assert whole.complete and not partial.complete
    assert partial.series == whole.series


def test_a_condition_with_its_former_name_is_read(tmp_path):
    path = tmp_path / "path.jsonl"
    path.write_text("\n".join(json.dumps(each).replace('"testbed":', '"stage":') for each in recording().records()))
    assert read_recordings(path) == [recording()]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"record": "measurement"}', '{"record": "study", "study": "x"}', '"a"', "\xff"]
)
def test_other_files_are_refused_in_one_line(tmp_path, text):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RecordingError) as error:
        read_recordings(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_was_cut_off_names_its_line(tmp_path):
    path = tmp_path / "cut.jsonl"
    recording().write(path)
    text = path.read_text()
    path.write_text(text[: text.index("\n") + 20])
    with pytest.raises(RecordingError, match="line 2 is cut off, or not JSON"):
        read_recordings(path)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_missing_file_and_a_bad_folder_are_reported(tmp_path, suffix):
    with pytest.raises(RecordingError):
        read_recordings(tmp_path / f"none.{suffix}")
    (tmp_path / f"bad.{suffix}").write_text("no recording")
    with pytest.raises(RecordingError):
        read_recordings(tmp_path / f"bad.{suffix}")
    with pytest.raises(OutputError):
        recording().write(tmp_path / "no folder" / f"x.{suffix}")


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ((5.0, 6.0, 7.0), "6 ±1"),
        ((5.0,), "5"),
        ((-1500.0, -1400.0), "-1,450 ±50"),
        ((0.25, 0.25), "0.25"),
        ((98.0, 98.0274), "98 ±0.014"),
    ],
)
def test_estimates_have_three_digits_and_an_interval_of_two_unless_it_is_empty(samples, text):
    found = Measurement("tcp", "µs", samples, marks=("lost", "modelled"))
    assert estimate(found) == text
    assert spread(found, ("modelled",)) == f"{text} lost"


def test_a_measurement_without_samples_is_refused(tmp_path):
    records = list(recording().records())
    records[1]["samples"] = []
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(RecordingError, match="no samples"):
        read_recordings(path)


@pytest.mark.parametrize(("count", "low", "high"), [(1, 0, 0), (5, 0, 4), (6, 0, 5), (8, 0, 7), (9, 1, 7), (20, 5, 14)])
def test_the_interval_has_the_ranks_of_the_textbook(count, low, high):
    """Ranks of Conover, Practical Nonparametric Statistics, table A3, counted from 0."""
    values = [float(each) for each in range(count)]
    random.Random(1).shuffle(values)
    assert Measurement("x", "µs", tuple(values)).interval() == (low, high)


def test_the_interval_contains_the_median_as_often_as_it_claims():
    draw = random.Random(7)
    covered = 0
    for _ in range(2000):
        low, high = Measurement("x", "µs", tuple(draw.expovariate(1) for _ in range(LEAST_ROUNDS))).interval()
        covered += low <= 0.6931 <= high
    assert 0.945 < covered / 2000 < 0.98


def test_an_ordering_needs_eight_of_nine_rounds():
    low = [1.0] * 9
    assert order(low, [2.0] * 9) == "less" and order([2.0] * 9, low) == "greater"
    assert order(low, [2.0] * 8 + [0.5]) == "less"
    assert order(low, [2.0] * 7 + [0.5] * 2) == "undecided"
    assert order(low, low) == "undecided"
    assert order(low, [2.0] * 9, factor=0.4) == "greater"


def test_few_rounds_decide_nothing():
    assert order([1.0] * 5, [2.0] * 5) == "undecided" and order([1.0] * 6, [2.0] * 6) == "less"
    assert chance(8, 9) == pytest.approx(10 / 512) and chance(0, 0) == 1


def test_closeness_is_relative_to_the_larger_value():
    assert within(85, 100) and within(100, 85) and not within(84, 100) and within(0, 0)
