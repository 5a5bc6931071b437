"""LogP: the solution of known intervals, and studies whose counts and shapes are known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mxwire.bench import logp
from mxwire.bench.logp import (
    BURST,
    PARAMETERS,
    expanded,
    gaps_per_byte,
    logp_blocks,
    measure_logp,
    netgauge_text,
    overhead,
    window_of,
)
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.bench.report import SeriesFigure
from mxwire.bench.roles.exchanges import _interval
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import MemoryTestbed
from mxwire.errors import MxwireError
from mxwire.report.document import plain


def interval(work: float, o: float, g: float) -> float:
    """The model of the paper: g(D) = o + max(idle, D), where idle is what g leaves."""
    return o + max(g - o, work)


@pytest.mark.parametrize(("o", "g"), [(3.0, 10.0), (10.0, 10.0), (1.0, 1000.0)])
def test_the_overhead_of_the_model_is_found_again(o, g):
    loaded = [[g * each / 100, interval(g * each / 100, o, g)] for each in (50, 100, 150, 300)]
    assert overhead({"interval": g, "loaded": loaded}) == pytest.approx(o)


def test_without_work_above_the_interval_the_longest_is_used():
    assert overhead({"interval": 10.0, "loaded": [[2.0, 10.0], [4.0, 10.0]]}) == 6.0


def test_a_preempted_window_does_not_move_the_interval():
    # Windows of 4 messages, 10 ns each; the first does not count, one was preempted, and the last is shorter.
    assert _interval([0, 400, 440, 4000, 4040, 4080, 4090], 4, 21) == 10.0
    assert _interval([0, 40], 4, 4) == 10.0 and _interval([0, 30], 4, 3) == 10.0


def test_mx_stands_for_both_dialects():
    assert expanded(["mx", "tcp", "mxoe"]) == ["mxoe", "omx:9000", "tcp"]
    for bad in ([], ["pigeon"], [""], ["shared memory"]):
        with pytest.raises(MxwireError):
            expanded(bad)


def test_the_window_fits_into_the_buffers():
    assert window_of(4) == 256 and window_of(1 << 20) == 2 and window_of(1 << 18) == 4 and window_of(0) == 256


@pytest.fixture(scope="module")
def measured() -> Recording:
    with MemoryTestbed() as testbed:
        return measure_logp(testbed, StudyOptions(2, True), ["mx", "ring", "tcp"], [4, 40_000])


def test_every_parameter_has_both_methods(measured):
    assert measured.complete and measured.remarks == ["tcp: not applicable: not on a network in memory"]
    carriers = {"mxoe", "omx:9000", "ring"}
    for name in PARAMETERS:
        found = set(measured.named(name).contestants())
        assert found == carriers | (
            {f"{each}, round trips" for each in carriers} if name in ("g", "o_s", "o_r") else set()
        )
        assert all(len(each.samples) == 2 for each in measured.named(name).measurements)
    for round_number in range(2):
        values = {name: measured.named(name).point("ring", 4).samples[round_number] for name in PARAMETERS}
        assert values["L"] == pytest.approx(values["RTT/2"] - values["o_s"] - values["o_r"])


def test_bandwidths_are_those_of_their_times(measured):
    bandwidth = measured.named("bandwidth")
    one = bandwidth.point("ring, unidirectional", 40_000).samples[0]
    assert one == pytest.approx(40_000 / measured.named("g").point("ring", 40_000).samples[0])
    whole = bandwidth.point("ring, simultaneous", 4).samples[0]
    assert whole == pytest.approx(2 * bandwidth.point("ring, simultaneous, each way", 4).samples[0])


def test_the_report_has_a_table_per_carrier(measured):
    text = plain(list(logp_blocks(measured)), 300)
    assert all(f"{each}, µs" in text for each in ("mxoe", "omx:9000", "ring"))
    assert "gap per byte" in text and "o_s (PRTT)" in text


def test_methods_that_differ_and_negative_latencies_are_marked():
    series = [
        Series("g", "µs", measurements=[_point("tcp", 10.0), _point("tcp, round trips", 11.0)]),
        Series("o_s", "µs", measurements=[_point("tcp", 10.0), _point("tcp, round trips", 12.0)]),
        Series("L", "µs", measurements=[_point("tcp", -1.0)]),
        Series("RTT/2", "µs", measurements=[_point("tcp", 10.0)]),
    ]
    recording = Recording("logp", Conditions(), series)
    study = logp.LogpStudy(MemoryTestbed(), recording, StudyOptions(), (4,))
    study._conclude(["tcp"])
    assert recording.named("g").measurements[0].marks == ()
    assert recording.named("o_s").measurements[0].marks == ("methods differ",)
    assert recording.named("L").measurements[0].marks == ("overlap",)
    agreement = recording.facts["agreement"]["tcp"]
    assert agreement | {"by": {}} == {"within": 0.15, "points": 2, "agree": 1, "differ": 1, "undecided": 0, "by": {}}
    assert agreement["by"]["g"] == {"points": 1, "agree": 1, "differ": 0, "undecided": 0}
    text = plain(list(logp_blocks(recording)), 80)
    assert re.search(r"^tcp +1 of 1 +0 of 1 +0 of 0 +1 of 2$", text, re.MULTILINE)


def test_rounds_that_contradict_each_other_leave_the_methods_undecided():
    one = replace(_point("tcp", 10.0), samples=(10.0,) * 5 + (20.0,) * 4)
    series = [
        Series("g", "µs", measurements=[one, _point("tcp, round trips", 10.0)]),
        Series("RTT/2", "µs", measurements=[_point("tcp", 10.0)]),
    ]
    recording = Recording("logp", Conditions(), series)
    logp.LogpStudy(MemoryTestbed(), recording, StudyOptions(), (4,))._conclude(["tcp"])
    assert recording.named("g").measurements[0].marks == ("undecided",)
    assert recording.facts["agreement"]["tcp"]["undecided"] == 1
    assert re.search(r"^tcp +0 of 1, 1 \?", plain(list(logp_blocks(recording)), 80), re.MULTILINE)


def _point(name: str, value: float, size: int = 4) -> Measurement:
    return Measurement(name, "µs", (value,) * 9, {"size": size})


def test_the_gap_per_byte_is_the_slope_within_each_kind_of_message():
    def gap(size: int) -> float:
        return 5 + size * (0.01 if size <= 128 else 0.002 if size <= 32768 else 0.0005) + (100 if size > 32768 else 0)

    points = [_point("mxoe", gap(size), size) for size in (1, 64, 128, 1024, 32768, 65536, 1 << 20)]
    recording = Recording("logp", Conditions(), [Series("g", "µs", measurements=points)])
    found = list(gaps_per_byte(recording, "mxoe"))
    assert [(each["from"], each["to"]) for each in found] == [(1, 128), (1024, 32768), (65536, 1 << 20)]
    assert [each["ns_per_byte"] for each in found] == pytest.approx([10.0, 2.0, 0.5])
    assert found[2]["MB/s"] == pytest.approx(2000)


@pytest.mark.parametrize("gaps", [(5.0, 5.0, 5.0), (0.3, 0.3, 0.1 + 0.2), (1e4, 1e4, 1e4 + 1e-6), (5.0, 4.0, 3.0)])
def test_a_segment_without_slope_has_no_rate(gaps):
    points = [_point("mxoe", gap, size) for gap, size in zip(gaps, (1, 77, 128), strict=True)]
    recording = Recording("logp", Conditions(), [Series("g", "µs", measurements=points)])
    (found,) = gaps_per_byte(recording, "mxoe")
    assert found["MB/s"] is None
    recording.facts["gap per byte"] = {"mxoe": [found]}
    text = plain(list(logp_blocks(replace(recording, series=[*recording.series, Series("RTT/2", "µs")]))), 80)
    assert re.search(r"^mxoe +1-128 +-?\d+\.\d{3}$", text, re.MULTILINE)


def test_the_format_of_netgauge():
    with MemoryTestbed() as testbed:
        recording = measure_logp(testbed, StudyOptions(1, True), ["ring"], [1, 1024, 2048])
    lines = netgauge_text(recording).splitlines()
    assert [each for each in lines if each.startswith("# size n PRTT(1,0,s)")]
    data = [each for each in lines if not each.startswith("#")]
    assert len(data) == 3
    for line, size in zip(data, (1, 1024, 2048), strict=True):
        assert re.fullmatch(r"\d+ \d+( -?\d+\.\d{6}){9}", line)
        fields = line.split()
        assert fields[:2] == [str(size), str(BURST)]
    trips = recording.facts["round trips"]["ring"]["1"]
    first = [float(each) for each in data[0].split()]
    assert first[2] == pytest.approx(trips["one"], abs=1e-6) and first[5] == pytest.approx(trips["one"] / 2, abs=1e-6)


def test_the_format_of_netgauge_describes_one_network(measured):
    with pytest.raises(MxwireError, match="one carrier"):
        netgauge_text(measured)


def test_the_curves_of_a_figure_differ_in_style_and_their_legend_covers_none():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    names = [
        f"{carrier}{how}" for carrier in ("mxoe", "tcp", "udp", "ring") for how in ("", ", spinning", ", blocking")
    ]
    points = [Measurement(name, "µs", (1.0,), {"size": size}, marks=("modelled",)) for name in names for size in (4, 8)]
    points[0] = replace(points[0], marks=("modelled", "disturbed"))
    figure = SeriesFigure([Series("RTT/2", "µs", measurements=points)], "trips")(pyplot)
    (axes,) = figure.axes
    curves = [line for line in axes.lines if line.get_label() in names]
    assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == len(names)
    colours = {line.get_label(): line.get_color() for line in curves}
    assert colours["tcp"] == colours["tcp, blocking"] != colours["udp, blocking"]
    figure.canvas.draw()
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [[4]]
    pyplot.close(figure)


def test_an_axis_with_less_than_two_powers_of_four_shows_its_lengths():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    points = [Measurement("omx", "MiB/s", (1.0,), {"mtu": mtu}) for mtu in (1500, 3000)]
    (axes,) = SeriesFigure([Series("rate", "MiB/s", "mtu", "bytes", points)], "rate")(pyplot).axes
    assert [each.get_text() for each in axes.get_xticklabels()] == ["1,500", "3,000"]
    assert axes.get_xlabel() == "MTU, bytes"
    pyplot.close()


def test_only_marks_that_occur_are_explained():
    def text(*marks):
        point = Measurement("tcp", "µs", (1.0,), {"size": 4}, marks=marks)
        made = [
            Series(name, "µs", measurements=[point if name == "RTT/2" else replace(point, marks=())])
            for name in PARAMETERS
        ]
        return plain(list(logp_blocks(Recording("logp", Conditions(), made))), 100)

    assert "Marks" not in text()
    assert "Marks: ~ disturbed." in text("disturbed")
    assert "Marks: ≠ the methods differ; < the send overlaps the flight, so L is negative." in text(
        "overlap", "methods differ"
    )


class PlacedTestbed(MemoryTestbed):
    """A testbed whose sides have the processors 0 and 1."""

    spins = True
    placement = (0, 1)


@pytest.mark.parametrize(("cards", "polls"), [((1, 1), False), ((2, 3), True), ((), True)])
def test_the_passive_side_does_not_poll_where_a_card_needs_its_processor(cards, polls):
    """Otherwise each round would count as disturbed: the side has its processor for a part of the time only."""
    with PlacedTestbed() as testbed:
        testbed.cards = cards
        assert testbed.passive_polls("pm with card copied") is polls
        assert testbed.passive_polls("pm")
