"""The studies ``imb`` and ``mtu``, quick: their shapes and counts, in virtual time and live; never their times."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from functools import cache
from unittest.mock import Mock

import pytest

from mxwire.bench.cost.calibration import FITTED, PREDICTED, TCP_FITTED, calibrate, half_round_trip, tcp_half_round_trip
from mxwire.bench.cost.tables import CLOVERTOWN, MX_FIRMWARE, Costs, own_table_file, table_by_name, write_own_table
from mxwire.bench.imb.columns import imb_row
from mxwire.bench.imb.patterns import BENCHMARKS, as_osu, benchmark_by_name, measured
from mxwire.bench.imb.rank_testbed import LiveRanks, ModelRanks, RankOptions, RankProcesses, RankSurroundings
from mxwire.bench.imb.study import ImbStudy, carriers_of, imb_row_of, run_imb
from mxwire.bench.mtu import MtuStudy, run_mtu
from mxwire.bench.path import CALL, SIGNAL, TRIP, write_costs
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.bench.remote import RANK, StudyServer
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import ProcessSide, TestbedError
from mxwire.errors import MxwireError

QUICK = StudyOptions.of(None, True)
needs_root = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip")


def study(over: tuple[str, ...], ranks: int, costs: Costs | None, names: tuple[str, ...] = ()) -> ImbStudy:
    chosen = tuple(benchmark_by_name(each) for each in names) or tuple(BENCHMARKS.values())
    return ImbStudy(
        chosen,
        carriers_of(over, ranks, "mxoe", False, None),
        sizes=(0, 4096, 40_000),
        surroundings=RankSurroundings(costs),
    )


def half_trip(ranks: ModelRanks, length: int) -> float:
    times = ranks.measure(benchmark_by_name("PingPong"), length, 1, 2).times[0]
    return sum(times) / len(times) / 2000


def test_every_benchmark_runs_over_both_carriers_in_virtual_time():
    recording = run_imb(study(("mx", "tcp"), 4, CLOVERTOWN), QUICK)
    assert recording.complete
    assert [each.name for each in recording.series] == [each.name for each in BENCHMARKS.values()]
    for series in recording.series:
        assert series.contestants() == ["mxoe", "tcp"]
        for point in series.measurements:
            assert point.median > 0
            assert point.marks == ("modelled",)
            benchmark = benchmark_by_name(series.name)
            assert len(imb_row(benchmark, imb_row_of(benchmark, point)).split()) >= 4
    assert {point.parameters.get("algorithm") for point in recording.named("Allreduce").measurements} == {
        "recursive-doubling",
        "rabenseifner",
    }


QUEUES = ("ProducerConsumer", "ProducerConsumerCopied", "CentralQueue", "CentralQueueCopied")


def test_a_copy_costs_each_side_its_time_in_virtual_time():
    recording = run_imb(study(("mx", "tcp"), 4, CLOVERTOWN, QUEUES), QUICK)
    assert recording.complete and len(recording.series) == 4
    for carrier in ("mxoe", "tcp"):
        times = {name: recording.named(name).point(carrier, 40_000).median for name in QUEUES}
        copy = 40_000 * CLOVERTOWN.local_copy / 1e3
        # The copies of a producer may overlap the flight of the message before; a server copies for three clients.
        assert times["ProducerConsumerCopied"] - times["ProducerConsumer"] > 8 * copy
        assert times["CentralQueueCopied"] - times["CentralQueue"] > 2.5 * copy


def test_the_server_of_a_queue_needs_longer_for_more_clients():
    times = []
    for ranks in (2, 4, 8):
        recording = run_imb(study(("tcp",), ranks, CLOVERTOWN, ("CentralQueue",)), QUICK)
        times.append(recording.named("CentralQueue").point("tcp", 4096).median)
    assert times[0] < times[1] < times[2]


def test_virtual_time_gives_the_same_recording_twice():
    first, second = (run_imb(study(("mx", "tcp"), 3, CLOVERTOWN, ("Alltoall",)), QUICK) for _ in range(2))
    assert first.series == second.series


@needs_root
@pytest.mark.parametrize(("over", "ranks"), [(("mx",), 3), (("tcp",), 3), (("mx", "tcp"), 2)])
def test_benchmarks_run_live(forked_sides, over, ranks):
    queues = QUEUES if ranks == 3 else ()
    recording = run_imb(study(over, ranks, None, ("PingPong", "Allreduce", "Barrier", *queues)), QUICK)
    assert recording.complete and len(recording.series) == 3 + len(queues), recording.remarks
    for series in recording.series:
        lengths = [0] if series.name == "Barrier" else [0, 4096, 40_000]
        for name in series.contestants():
            assert [each.parameters["size"] for each in series.curve(name)] == lengths
            assert all(len(each.samples) == QUICK.rounds for each in series.curve(name))
    if "mx" in over:
        assert recording.named("PingPong").curve("mxoe")[2].counts["frames sent"] > 20


@needs_root
def test_a_rank_that_is_killed_leaves_the_measurements_before_it_and_a_partial_study(forked_sides, monkeypatch):
    begun: list[LiveRanks] = []
    begin = LiveRanks._begin
    monkeypatch.setattr(LiveRanks, "_begin", lambda ranks: (begun.append(ranks), begin(ranks)))

    def kill(step: str) -> None:
        if step.startswith("Barrier") and begun:
            os.kill(begun.pop().sides[0].pid, signal.SIGKILL)

    recording = run_imb(study(("mx",), 3, None, ("PingPong", "Barrier", "Bcast")), StudyOptions(1, True, kill))
    assert not recording.complete and not begun
    assert [each.name for each in recording.series] == ["PingPong"] and len(recording.series[0].measurements) == 3
    assert recording.remarks[-1] == "ended early: rank 0's side has ended"


class StalledRanks(RankProcesses):
    """Ranks of which one reports that it has no progress, and the other one that it later has; then new ones."""

    def __init__(self) -> None:
        super().__init__(RankOptions())
        self.begun = 0

    def _begin(self) -> None:
        self.begun += 1
        self._ranks = [Mock(), Mock()]
        answer = {"times": [1000], "frames": {}, "use": {"wall": 1.0, "cpu": 1.0}}
        for each in self._ranks:
            each.result.return_value = answer
        if self.begun == 1:
            self.first = list(self._ranks)
            self.first[0].result.side_effect = TestbedError("rank 0's side: rank 0: no progress for 20 s")


def test_a_rank_without_progress_takes_nothing_into_the_next_measurement():
    ranks, benchmark = StalledRanks(), benchmark_by_name("Barrier")
    with pytest.raises(TestbedError, match="no progress"):
        ranks.measure(benchmark, 0, 1, 1, "dissemination")
    assert all(each.close.called for each in ranks.first)
    assert ranks.measure(benchmark, 0, 1, 1, "dissemination").times == [[1000], [1000]]
    assert ranks.begun == 2


def test_the_error_of_a_rank_that_has_failed_is_that_of_the_measurement():
    """The one that waits for it finds no progress later, and answers first in the order of ranks."""
    ranks = StalledRanks()
    ranks._begin()
    failed = Mock(spec=ProcessSide, busy=True, pending=False)
    failed.result.side_effect = TestbedError("rank 1's side: no agent: it has ended")
    ranks._ranks[1] = failed
    with pytest.raises(TestbedError, match="rank 1's side: no agent"):
        ranks.measure(benchmark_by_name("Barrier"), 0, 1, 1, "dissemination")
    assert failed.close.called


def test_another_machine_cannot_have_a_rank_open_an_interface_again():
    server = Mock(_study=(b"source", 1), _sides={}, roles=0)
    fields = {"study": 1, "process": {"kind": RANK}, "role": "open", "parameters": {"interface": "lo", "agent": True}}
    with pytest.raises(TestbedError, match="no role 'open' for a rank of another machine: use connect, measure"):
        StudyServer._answer(server, b"source", "start", fields)
    assert not server._opened.called


def test_collectives_of_osu_have_root_0_and_a_barrier_that_is_not_timed():
    numbers = []

    def make(_):
        def step(number):
            numbers.append(number)
            yield from ()

        return step

    ranks = ModelRanks(RankOptions(ranks=3), CLOVERTOWN).ranks
    assert ranks.run(lambda comm: measured(comm, make, 1, 2, apart=True)) == [[0, 0]] * 3
    assert numbers == [0] * 9 and ranks.schedule.now > 0
    assert as_osu(benchmark_by_name("Bcast")).apart and not as_osu(benchmark_by_name("PingPong")).apart
    assert as_osu(benchmark_by_name("Sendrecv")).name == "Sendrecv"


def test_live_ranks_without_root_are_refused(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TestbedError, match="needs root"):
        LiveRanks(RankOptions())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"over": "udp"}, "no carrier 'udp'"),
        ({"ranks": 1}, "1 ranks: at least 2"),
        ({"dialect": "omx:9000", "mtu": 1500}, "omx:9000 needs an MTU of 8986, not 1500"),
    ],
)
def test_impossible_ranks_are_refused(changes, error):
    with pytest.raises(MxwireError, match=error):
        RankOptions(**changes)


def test_ctrl_c_keeps_the_measurements_until_then():
    def progress(text: str) -> None:
        if "Exchange" in text:
            raise KeyboardInterrupt

    kept: list[Recording] = []
    with pytest.raises(KeyboardInterrupt):
        options = replace(QUICK, progress=progress, on_start=kept.append)
        run_imb(study(("mx",), 2, CLOVERTOWN, ("PingPong", "Exchange")), options)
    assert not kept[0].complete
    assert [each.name for each in kept[0].series] == ["PingPong"]


def test_the_mtu_study_has_all_its_series_in_virtual_time():
    recording = run_mtu(MtuStudy(mtus=(1500, 9000), surroundings=RankSurroundings(CLOVERTOWN)), QUICK)
    assert recording.complete
    assert [each.name for each in recording.series] == [
        "rate by frame limit",
        "half round trip by frame limit",
        "rate by delay",
        "rate by coalescing",
        "mixed pairs",
    ]
    assert recording.named("rate by frame limit").contestants() == ["omx", "tcp", "mxoe"]
    by_delay = recording.named("rate by delay")
    for name in [each for each in by_delay.contestants() if not each.startswith("bound")]:
        for point in by_delay.curve(name):
            bound = by_delay.point(f"bound: {name}", point.parameters["delay"])
            assert bound is not None
            assert point.median <= bound.median
    assert not [each for each in by_delay.contestants() if "mxoe, 32" in each], "a PULL of mxoe cannot request them"


@needs_root
def test_the_mtu_study_runs_live(forked_sides):
    recording = run_mtu(MtuStudy(mtus=(9000,), blocks=(8,), delays=(100.0,)), QUICK)
    assert recording.complete, recording.remarks
    assert "tcp, no segmentation offload" in recording.named("rate by frame limit").contestants()
    delayed = recording.named("rate by delay").point("mxoe, 8 frames per block", 100.0)
    assert delayed is not None
    # 1 round trip of 200 µs at least for 256 KiB in blocks of 32 KiB, 4 in flight: counted by the clock, never faster.
    assert delayed.median <= 4 * 32 * 1024 / 2**20 / 200e-6


# The tables.


def test_the_table_of_the_paper_gives_its_latencies():
    """7.3 and 13.2 µs, 2 µs of native MX: these were fitted."""
    assert half_trip(ModelRanks(RankOptions(), CLOVERTOWN), 0) == pytest.approx(7.3, abs=0.05)
    assert half_trip(ModelRanks(RankOptions("tcp"), CLOVERTOWN), 0) == pytest.approx(13.2, abs=0.1)
    assert half_trip(ModelRanks(RankOptions(profiles=("native-mx",)), MX_FIRMWARE), 0) == pytest.approx(2.0, abs=0.05)


def test_every_cost_has_a_source():
    for table in (CLOVERTOWN, MX_FIRMWARE):
        for name, value in table.record().items():
            if isinstance(value, float) and value:
                assert name in table.sources, name


def test_the_copy_engine_relieves_the_bottom_half():
    busy = {}
    for engine in (False, True):
        ranks = ModelRanks(RankOptions(dialect="omx:9000", copy_engine=engine), CLOVERTOWN)
        half_trip(ranks, 1 << 20)
        busy[engine] = ranks.cores[1][0].busy["bottom half"]
    assert busy[True] < 0.6 * busy[False]


def test_calibration_predicts_lengths_that_it_did_not_use():
    truth = Costs(
        "x", line=1e12, cores=1, call=9000, event=6000, frame_send=800, frame_receive=1500, copy_cold=0.25,
        copy_warm=0.15, pin=2000,
    )  # fmt: skip
    fitted = calibrate({each: half_round_trip(truth, each) for each in FITTED})
    for length in PREDICTED[1:4]:
        assert half_round_trip(fitted, length) == pytest.approx(half_round_trip(truth, length), rel=0.2)


REAL = dict(zip(FITTED, (30.6, 80.2, 196.8, 405.4, 2530.9), strict=True))
"""Measured in µs with a compiled mxwire: the step from SMALL to MEDIUM is larger than all that a byte costs."""


@cache
def real_table() -> Costs:
    return calibrate(REAL)


def test_calibration_predicts_half_round_trips_of_a_real_machine():
    for length, took in zip(PREDICTED, (31.5, 82.0, 153.7, 821.3, 9658.4), strict=True):
        assert half_round_trip(real_table(), length) == pytest.approx(took, rel=0.2), length


def test_calibration_fits_tcp_too():
    """Measured in µs on another machine."""
    tcp = {64: 24.0, 4096: 24.8, 65536: 48.7, 1 << 20: 1110.8}
    fitted = calibrate(REAL, tcp_us=tcp)
    for length in TCP_FITTED:
        assert tcp_half_round_trip(fitted, length) == pytest.approx(tcp[length], rel=0.01)
    assert {(each.name, each.x) for each in fitted.fitted_to} >= {("tcp, spinning", each) for each in TCP_FITTED}
    assert half_round_trip(fitted, 4096) == half_round_trip(real_table(), 4096)


def test_a_table_without_costs_of_tcp_has_no_tcp():
    """Without them TCP would be infinitely fast."""
    table = replace(CLOVERTOWN, name="own", tcp_send=0.0, tcp_receive=0.0, tcp_copy=0.0)
    with pytest.raises(TestbedError, match="tcp: the cost table own has no costs of TCP"):
        ModelRanks(RankOptions("tcp"), table)
    study = MtuStudy(mtus=(9000,), blocks=(8,), delays=(), surroundings=RankSurroundings(table))
    recording = run_mtu(study, StudyOptions.of(None, True))
    assert recording.complete
    assert "tcp" not in {each.name for series in recording.series for each in series.measurements}
    assert recording.remarks == ["tcp: not applicable: the cost table own has no costs of TCP"]


def test_calibration_needs_all_its_lengths():
    with pytest.raises(MxwireError, match="half round trips of 1024 bytes are missing"):
        calibrate({each: 10.0 for each in FITTED if each != 1024})


def test_the_table_of_this_machine_is_kept_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MxwireError, match="measure it first: sudo mxwire bench path"):
        table_by_name("here")
    costs = Costs("here", call=1.5)
    assert write_own_table(costs) == own_table_file()
    assert table_by_name("here") == costs


def test_a_measured_signal_is_a_cost_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    trips = [Measurement("mxoe, spinning", "µs", (time,), {"size": size}) for size, time in REAL.items()]
    signal = Measurement(SIGNAL, "ns", (2000.0,), {"size": 0})
    series = [Series(TRIP, "µs", measurements=trips), Series(CALL, "ns", measurements=[signal])]
    assert write_costs(Recording("path", Conditions(testbed="namespaces"), series)) == own_table_file()
    costs = table_by_name("here")
    assert (costs.signal, costs.sources["signal"]) == (2000.0, "measured")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", "it has no name"),
        ('{"name": "x", "cal": 1}', "there is no cost 'cal' \\(did you mean call"),
        ('{"name": "x", "call": -1}', "call is -1, not a number from 0"),
        ('{"name": "x", "call": true}', "call is True, not a number"),
        ('{"name": "x", "line": 0}', "line and cores cannot be 0"),
        ("{", "cannot be read"),
    ],
)
def test_files_without_a_table_are_refused(tmp_path, text, error):
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(MxwireError, match=error):
        table_by_name(str(path))


def test_unknown_tables_are_refused():
    with pytest.raises(MxwireError, match="no cost table 'clovertown' \\(did you mean clovertown-2010"):
        table_by_name("clovertown")
