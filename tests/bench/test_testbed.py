"""Testbeds: roles on two sides, in memory here; those in namespaces are tested in tests/live."""

from __future__ import annotations

import os
import signal

import pytest

from mxwire.bench.channels.carriers import check_carrier
from mxwire.bench.errors import SilenceError
from mxwire.bench.processors import SpinWork, read_use
from mxwire.bench.record import Conditions, Recording
from mxwire.bench.study import Points, StudyOptions, Turns, kept, round_marks
from mxwire.bench.testbed import MemoryTestbed, ProcessSide, SideLostError, TestbedError, open_testbed
from mxwire.bench.worker import RoleError, SideSetup, check_parameters
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.lab.machine import pin


@pytest.mark.parametrize("carrier", ["ring", "mxoe", "omx:9000"])
def test_trips_have_the_frames_that_their_messages_need(carrier):
    with MemoryTestbed() as testbed:
        active, passive = testbed.run("trips", carrier=carrier, spin=False, sizes=[0, 20000], counts=[10, 10])
    assert set(active["points"]) == {"0", "20000"}
    assert all(0 < each["least"] <= each["median"] <= each["p99"] for each in active["points"].values())
    per_message = {"ring": 3, "mxoe": 5, "omx:9000": 3}[carrier]
    # Hosts also acknowledge, and connect before.
    least = 10 + 10 * per_message
    for frames in (active["frames"], passive["frames"]):
        assert frames["sent"] >= least and frames["received"] >= least
        assert frames["sent"] == least or carrier != "ring"
        assert not frames.get("retransmitted")


@pytest.mark.parametrize("carrier", ["ring", "mxoe"])
@pytest.mark.parametrize(("count", "window"), [(5, 2), (40, 8), (41, 8), (39, 8), (30, 7), (3, 1)])
def test_floods_of_any_length_return_all_credit(carrier, count, window):
    with MemoryTestbed() as testbed:
        for active_sends in (True, False):
            parameters = {"size": 100, "count": count, "window": window, "active_sends": active_sends, "depth": window}
            active, passive = testbed.run("flood", carrier=carrier, spin=False, **parameters)
            assert active["interval"] > 0 and "interval" not in passive
            # A barrier follows on the same channel: no credit was left over.


def test_the_other_roles_measure_something():
    with MemoryTestbed() as testbed:
        shared = {"carrier": "mxoe", "spin": False, "size": 100}
        assert testbed.run("parametrised", number=5, gap=0, repetitions=3, depth=8, **shared)[0]["median"] > 0
        assert testbed.run("arrived", wait=1000, repetitions=3, **shared)[0]["median"] > 0
        assert testbed.run("simultaneous", count=3, **shared)[0]["interval"] > 0
        assert set(testbed.run("spin error", carrier="ring", spin=False, durations=[50_000])[0]) == {"50000", "lost"}


def test_lost_messages_are_repeated_and_counted(monkeypatch):
    with MemoryTestbed() as testbed:
        results = iter([SilenceError("no message"), ({"points": {}}, {})])

        def play(*_):
            found = next(results)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(testbed, "_run", play)
        assert testbed.run("trips")[0]["lost"] == 1 and testbed.lost == 1
        monkeypatch.setattr(testbed, "_run", lambda *_: (_ for _ in ()).throw(SilenceError("no message")))
        with pytest.raises(SilenceError):
            testbed.run("trips")


@pytest.mark.parametrize(
    ("role", "parameters"),
    [
        ("nothing", {"carrier": "mxoe"}),
        ("trips", {"carrier": "carrier pigeon", "sizes": [0], "counts": [1]}),
        ("trips", {"carrier": "mxoe", "sizes": [1 << 40], "counts": [1]}),
        ("flood", {"carrier": "mxoe", "size": 0, "count": "many", "window": 1}),
    ],
)
def test_impossible_requests_are_refused(role, parameters):
    with MemoryTestbed() as testbed, pytest.raises(TestbedError) as error:
        testbed.run(role, **parameters)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [{"size": -1}, {"sizes": [0, 1 << 30]}, {"work": 1 << 60}, {"spin": 2}, {"count": 1.5}])
def test_parameters_from_another_machine_are_checked(bad):
    with pytest.raises(RoleError):
        check_parameters({"carrier": "mxoe"} | bad)


def test_carriers_are_known_by_name():
    assert [check_carrier(each) for each in ("tcp", "mxoe", "omx:1500", "mxoe over xdp")]
    for bad in ("", "mx", "omx:1", "rdma"):
        with pytest.raises(MxwireError):
            check_carrier(bad)


def test_a_side_that_dies_is_reported():
    side = ProcessSide(SideSetup("", active=False))
    assert side.about["pid"] == side.pid
    os.kill(side.pid, signal.SIGKILL)
    with pytest.raises(SideLostError, match="passive side has ended"):
        side.start("trips", {"carrier": "mxoe"})
        side.ready()
    side.close()


def test_a_side_reports_errors_of_a_role_and_continues():
    side = ProcessSide(SideSetup("", active=False))
    for _ in range(2):
        side.start("trips", {"carrier": "tcp", "sizes": [0], "counts": [1]})
        with pytest.raises(TestbedError, match="tcp needs an IPv4 address"):
            side.ready()
    side.close()


def test_without_root_the_reason_is_given_beforehand(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TestbedError, match="needs root"), open_testbed():
        pass


def test_spoiling_circumstances_are_named_beforehand(monkeypatch):
    monkeypatch.setattr(machine, "available_processors", lambda: [0])
    monkeypatch.setattr(os, "getloadavg", lambda: (5.0, 5.0, 5.0))
    monkeypatch.setattr(machine, "is_virtual", lambda: False)
    assert [each.partition(":")[0] for each in machine.warnings()] == [
        "there is one processor",
        "the machine is busy (load 5.0 on 1 processor)",
    ]


def test_a_processor_that_does_not_exist_is_refused():
    with pytest.raises(MxwireError, match="cannot run on it"):
        pin(100_000)


def test_work_takes_at_least_the_requested_time():
    assert SpinWork().error(200_000, count=11) > -0.05


def recording() -> Recording:
    return Recording("test", Conditions())


@pytest.mark.parametrize(("softirq", "marks"), [(0.0, ("disturbed",)), (0.1, ())])
def test_the_kernel_disturbs_no_side_for_whose_messages_it_works(softirq, marks):
    assert round_marks({"use": {"wall": 1.0, "cpu": 0.85, "softirq": softirq}}) == marks
    assert read_use().softirq >= 0


def test_points_keep_one_sample_per_round_and_the_marks_of_rounds():
    made = recording()
    points = Points(made)
    points.declare("µs", "trip")
    for place, marks in enumerate([("disturbed",), ("lost",), (), ()]):
        points.add("trip", "tcp", float(place), size=0, marks=marks, details={"p99": float(place)})
    (measured,) = points.fill().named("trip").measurements
    assert measured.samples == (0.0, 1.0, 2.0, 3.0) and measured.details == {"p99": 1.5}
    # One disturbed round of four leaves the median as it is.
    assert measured.marks == ("lost",)
    assert measured.counts == {"rounds disturbed": 1.0, "rounds lost": 1.0}


STALLED = TestbedError("rank 1's side: no answer within 15 s")


@pytest.mark.parametrize("error", [SideLostError("the passive side has ended"), STALLED, KeyboardInterrupt()])
def test_a_study_that_ends_early_keeps_its_measurements(error):
    made = recording()
    points = Points(made)
    points.declare("µs", "trip")

    def study():
        with kept(made, points):
            points.add("trip", "tcp", 1.0, size=0)
            raise error

    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            study()
    else:
        study()
    assert not made.complete and len(made.remarks) == 1
    assert made.named("trip").measurements[0].samples == (1.0,)


def test_a_study_that_measured_nothing_reports_its_error():
    made = recording()
    points = Points(made)
    points.declare("µs", "trip")
    with pytest.raises(TestbedError, match="rank 1"), kept(made, points):
        raise STALLED
    assert not made.complete


def test_contestants_take_turns_and_one_that_loses_messages_is_left_out():
    calls = []

    def lose(number):
        calls.append(("b", number))
        if number == 1:
            raise SilenceError("no message within 2 s")

    made = recording()
    turns = Turns(made)
    turns.play({"a": lambda number: calls.append(("a", number)), "b": lose}, 3, warm_up=1)
    assert calls == [("b", -1), ("a", -1), ("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2)]
    assert turns.out == {"b"} and "left out after 1 round:" in made.remarks[0]
    assert made.complete, "lost messages are a result"


def test_a_contestant_whose_rank_stalls_is_left_out_and_leaves_the_study_partial():
    calls = []

    def stall(number):
        raise STALLED

    made = recording()
    Turns(made).play({"a": calls.append, "b": stall}, 2, warm_up=0)
    assert calls == [0, 1] and not made.complete
    assert made.remarks == [f"b: left out after 0 rounds: {STALLED}"]


def test_quick_studies_have_few_operations_and_others_enough():
    assert StudyOptions.of(None, True) == StudyOptions(2, True) and StudyOptions.of(None, False).rounds == 9
    assert StudyOptions.of(12, False).rounds == 12
    assert StudyOptions(2, True).operations(1.0) == 10
    assert StudyOptions().operations(1e6) == 100 and StudyOptions().operations(1e5) == 300
    assert StudyOptions().operations(2e6) == 15 and StudyOptions().operations(1e9) == 12
    assert StudyOptions(50).operations(1e9) == 2
