"""Overlap in virtual time: who must be in the library for a message to move."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from mxwire.bench.channels.carriers import check_carrier
from mxwire.bench.cost.processor import APPLICATION, SYSTEM_KINDS, ModelCore
from mxwire.bench.cost.progress import NAP, PROGRESS
from mxwire.bench.cost.tables import CLOVERTOWN
from mxwire.bench.overlap import (
    AVAILABILITY,
    OVERLAP,
    POLLED,
    RATE,
    TIMELINES,
    OverlapStudy,
    buffered_rate,
    network_rate,
    overlap_of,
    run_overlap,
    single_message,
    work_of,
)
from mxwire.bench.overlap_live import LiveOverlapStudy
from mxwire.bench.overlap_report import overlap_blocks, overlap_figures
from mxwire.bench.record import Recording
from mxwire.bench.stage import MemoryStage
from mxwire.bench.study import StudyOptions
from mxwire.errors import MxwireError
from mxwire.report.plot import rendered
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD
from tests.cli.support import mxwire

MIB = 1 << 20
LARGE = (RENDEZVOUS_THRESHOLD + 1, 65536, 262144, MIB)
JUMBO = as_dialect("omx:9000")
STUDY = OverlapStudy(CLOVERTOWN, JUMBO)
SAME = OverlapStudy(CLOVERTOWN, JUMBO, same=True)


@cache
def network() -> float:
    return network_rate(STUDY, MIB)


@cache
def rate(way: str, size: int, bound: str, same: bool = False) -> float:
    return buffered_rate(SAME if same else STUDY, way, size, work_of(size, network(), bound))


# The core.


def test_work_of_the_application_ends_later_by_its_interruptions():
    core = ModelCore(frozenset(("bottom half",)))
    assert core.run(0, 100, "library") == 100
    assert core.run(0, 1000, APPLICATION) == 1100
    # A call that runs first is not interrupted; the work is, at once and one after another.
    assert core.run(50, 10, "bottom half") == 110
    assert core.run(500, 30, "bottom half") == 530
    assert core.run(510, 30, "bottom half") == 560
    assert core.working(600) and core.free_at == 1170
    # The library does not interrupt here: it waits for the end of the work.
    assert core.begin(600, "library") == 1170 and core.run(600, 5, "library") == 1175
    assert not core.working(600)
    assert core.busy == {"library": 105, APPLICATION: 1000, "bottom half": 70}


def test_a_core_without_interrupts_is_a_queue():
    core = ModelCore()
    for kind, end in (("application", 10), ("bottom half", 20), ("application", 30), ("library", 40)):
        assert core.run(5 if end > 10 else 0, 10, kind) == end


# The paper's experiment, and its prediction for pulls.


@pytest.mark.parametrize("size", LARGE)
def test_a_pull_needs_no_library_of_a_busy_producer(size):
    assert rate("card", size, "producer-bound") == pytest.approx(rate("match", size, "producer-bound"), rel=0.03)


@pytest.mark.parametrize("size", LARGE)
def test_a_pull_needs_the_library_of_a_busy_consumer(size):
    assert rate("card", size, "consumer-bound") <= 0.75 * rate("match", size, "consumer-bound")


@pytest.mark.parametrize(("size", "share"), [(RENDEZVOUS_THRESHOLD + 1, 0.8), (65536, 0.8), (MIB, 0.83)])
def test_a_push_needs_the_library_of_a_busy_producer(size, share):
    """Of two buffers, the first waits until the second is full, and the second leaves in the wait for the first: long
    messages lose a third of a network time each, 0.82 of the rate where the network is twice as fast."""
    assert rate("push", size, "producer-bound") <= share * rate("match", size, "producer-bound")


def test_eager_messages_are_copied_by_the_producer_and_need_no_library_later():
    below, above = RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1
    assert rate("card", below, "producer-bound") < rate("card", above, "producer-bound")
    assert rate("card", below, "consumer-bound") > rate("card", above, "consumer-bound")


@pytest.mark.parametrize(
    ("way", "busy", "least", "most"),
    [
        ("card", 1, -0.05, 0.05),
        ("match", 1, 0.95, 1.0),
        ("push", 1, -0.05, 0.05),
        ("library", 1, -0.05, 0.05),
        ("kernel", 1, 0.0, 0.15),
        ("card", 0, 0.95, 1.0),
        ("match", 0, 0.95, 1.0),
        ("signal", 0, 0.85, 1.0),
        ("push", 0, -0.05, 0.05),
        ("library", 0, -0.05, 0.05),
    ],
)
def test_one_message_of_1_mib_overlaps_only_if_each_needed_library_is_idle(way, busy, least, most):
    assert least <= overlap_of(STUDY, way, MIB, busy)[0] <= most


def test_an_agent_on_the_core_of_the_application_steals_its_time():
    elsewhere, same = rate("match", MIB, "consumer-bound"), rate("match", MIB, "consumer-bound", True)
    assert same < 0.75 * elsewhere
    # The producer's side of a pull copies nothing: there is little to steal.
    assert rate("match", MIB, "producer-bound", True) > 0.9 * rate("match", MIB, "producer-bound")


def test_a_thread_gives_overlap_only_to_work_longer_than_its_nap():
    def total(way: str, work: int) -> int:
        return sum(STUDY.fabric(way).run(single_message(MIB, 1, work))[1])

    short, long = NAP // 2, 3 * NAP
    assert total("thread", short) == total("library", short)
    assert total("thread", long) < total("library", long) + 200_000
    idle = total("library", 0)
    assert total("library", long) >= long + 0.95 * idle


# The study.


@cache
def quick() -> Recording:
    return run_overlap(STUDY, StudyOptions.of(None, True))


def test_a_quick_study_has_all_series_of_all_ways():
    recording = quick()
    assert recording.complete and recording.conditions.virtual
    assert [each.name for each in recording.series] == [RATE, OVERLAP, AVAILABILITY, POLLED]
    for series in recording.series:
        assert {each.partition(",")[0] for each in series.contestants()} == set(PROGRESS)
        assert all("modelled" in each.marks for each in series.measurements)
    assert set(recording.facts[TIMELINES]) == set(PROGRESS)
    assert all(0 < each.median <= 1 for each in recording.named(AVAILABILITY).measurements)
    # A look between slices is a call: messages arrive by each way of progress.
    assert all(each.median > 0 for each in recording.named(POLLED).measurements)


def shares_during_work(way: str) -> float:
    """The share of the producer's data frames that leave while it fills a buffer."""
    timeline = quick().facts[TIMELINES][way]
    fills = [(each["begin"], each["end"]) for each in timeline["phases"] if each["kind"] == "fill"]
    times = [each["time"] for each in timeline["frames"] if each["rank"] == 0 and each["length"] > 1000]
    assert fills and times
    return sum(any(begin < time < end for begin, end in fills) for time in times) / len(times)


def test_a_timeline_shows_that_data_of_a_push_leave_after_the_next_call():
    """The paper's figure 10: buffer A leaves when B is full, and the library is called again."""
    assert shares_during_work("match") > 0.9
    assert shares_during_work("push") < 0.75


def test_the_report_draws_every_figure():
    blocks, figures = list(overlap_blocks(quick())), list(overlap_figures(quick()))
    assert blocks and len(figures) == 3 + len(PROGRESS)
    assert "progress: push" in rendered(figures[-2].figure, "svg").decode()


def test_the_study_without_costs_of_tcp_leaves_the_kernel_out():
    table = replace(CLOVERTOWN, name="own", tcp_send=0.0)
    study = OverlapStudy(table, JUMBO, ("card", "kernel"), ("post-work-wait",))
    recording = run_overlap(study, StudyOptions.of(None, True))
    assert recording.named(OVERLAP).contestants() == ["card, sender works", "card, receiver works"]
    assert "kernel: not applicable: the cost table own has no costs of TCP" in recording.remarks


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"progress": ("agent",)}, "no way of progress 'agent'"),
        ({"progress": ("cards",)}, r"no way of progress 'cards' \(did you mean card"),
        ({"experiments": ("buffering",)}, "no experiment 'buffering'"),
    ],
)
def test_unknown_names_are_refused(changes, text):
    with pytest.raises(MxwireError, match=text):
        OverlapStudy(CLOVERTOWN, JUMBO, **changes)


def test_the_kinds_of_the_system_are_all_but_the_applications():
    assert APPLICATION not in SYSTEM_KINDS


@pytest.mark.parametrize("way", ["", " with thread"])
@pytest.mark.parametrize("burnt", [0, 1])
def test_a_receiver_that_works_reports_each_time_of_each_repetition(way, burnt):
    with MemoryStage() as stage:
        found = stage.run(
            "post, work, wait", carrier=f"omx:9000{way}", spin=False, size=40_000, repetitions=2, burnt=burnt
        )[1]
    assert {name: len(found[name]) for name in ("idle", "alone", "total")} == {"idle": 2, "alone": 2, "total": 2}
    assert min(*found["idle"], *found["alone"], *found["total"]) > 0
    assert found["processors"]


def test_a_live_way_of_progress_that_does_not_exist_is_refused():
    with pytest.raises(
        MxwireError, match=r"no live way of progress 'card': use library, thread, match, kernel, or add"
    ):
        LiveOverlapStudy("omx:9000", ("card",))
    with pytest.raises(MxwireError, match="there is no way of progress 'threads': use thread, agent"):
        check_carrier("omx:9000 with threads")


def test_an_experiment_of_virtual_time_is_refused_live():
    run = mxwire("bench", "overlap", "--experiment", "polling")
    assert run.code == 2 and "polling is measured in virtual time only: add --simulated TABLE" in run.err
