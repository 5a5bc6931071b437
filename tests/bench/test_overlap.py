"""Overlap in virtual time: who must be in the library for a message to move."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from dataclasses import replace
from functools import cache
from ipaddress import ip_address
from unittest.mock import Mock

import pytest

from mxwire.bench.claims.claim import ClaimEvidence
from mxwire.bench.claims.page import selected
from mxwire.bench.cost.processor import APPLICATION, SYSTEM_KINDS, ModelCore
from mxwire.bench.cost.progress import NAP, PROGRESS
from mxwire.bench.cost.tables import CLOVERTOWN
from mxwire.bench.imb.carriers import RankSetup, StreamCommunicator
from mxwire.bench.imb.signals import HostSignals
from mxwire.bench.overlap import (
    AVAILABILITY,
    HANDED_OVER,
    LONGEST_WORK,
    OVERLAP,
    POLLED,
    RATE,
    SOCKET_BUFFERS,
    TIMELINES,
    ModelledOverlap,
    OverlapStudy,
    buffered_rate,
    network_rate,
    overlaps_of,
    run_overlap,
    summed_rate,
    work_of,
)
from mxwire.bench.overlap_programs import BUFFERS, double_buffering, polling, single_message
from mxwire.bench.overlap_report import cases, overlap_blocks, overlap_figures
from mxwire.bench.processors import BurntWork
from mxwire.bench.record import VARIED, Conditions, Recording
from mxwire.bench.report import write_page
from mxwire.bench.study import StudyOptions
from mxwire.errors import MxwireError
from mxwire.report.plot import rendered
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD
from tests.cli.support import mxwire

MIB = 1 << 20
LARGE = (RENDEZVOUS_THRESHOLD + 1, 65536, 262144, MIB)
JUMBO = as_dialect("omx:9000")
RANKS = ModelledOverlap(CLOVERTOWN, JUMBO)
SAME = ModelledOverlap(CLOVERTOWN, JUMBO, same=True)


@cache
def network() -> float:
    return network_rate(RANKS, MIB)


@cache
def rate(way: str, size: int, bound: str, same: bool = False) -> float:
    return buffered_rate(SAME if same else RANKS, way, size, work_of(size, network(), bound))[0]


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
    assert least <= overlaps_of(RANKS, way, MIB, busy)[""][0] <= most


def test_an_agent_on_the_core_of_the_application_steals_its_time():
    elsewhere, same = rate("match", MIB, "consumer-bound"), rate("match", MIB, "consumer-bound", True)
    assert same < 0.75 * elsewhere
    # The producer's side of a pull copies nothing: there is little to steal.
    assert rate("match", MIB, "producer-bound", True) > 0.9 * rate("match", MIB, "producer-bound")


def test_a_thread_gives_overlap_only_to_work_longer_than_its_nap():
    def total(way: str, work: int) -> int:
        phases = RANKS.fabric(way).run(single_message(MIB, 1, work, 1))[1]
        return sum(sum(phases[each]) for each in ("post", "work", "wait"))

    short, long = NAP // 2, 3 * NAP
    assert total("thread", short) == total("library", short)
    assert total("thread", long) < total("library", long) + 200_000
    idle = total("library", 0)
    assert total("library", long) >= long + 0.95 * idle


# The study.


@cache
def quick() -> Recording:
    return run_overlap(OverlapStudy(), RANKS, StudyOptions.of(None, True))


def test_a_quick_study_has_all_series_of_all_ways():
    recording = quick()
    assert recording.complete and recording.conditions.virtual
    assert [each.name for each in recording.series] == [RATE, OVERLAP, AVAILABILITY, POLLED, HANDED_OVER]
    for series in recording.series[:-1]:
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
    assert "rate, random and sum" in rendered(figures[0].figure, "svg").decode()


def test_the_key_of_a_timeline_is_text_of_the_page(tmp_path):
    """In the drawing, a narrow page would cut it."""
    figures = list(overlap_figures(quick()))
    text = write_page(tmp_path, quick(), "Overlap", [], figures[-1:]).read_text(encoding="utf-8")
    names = ("fill", "sum", "wait", "frame with data", "other frame")
    assert [each for each in names if f"</svg> {each}</li>" not in text or f"-- {each} --" in text] == []


def test_a_series_is_shown_by_case_with_its_ways_of_progress():
    rates = cases(quick().named(RATE))
    assert [each.name.partition(", ")[2] for each in rates] == [
        "network",
        "producer-bound",
        "consumer-bound",
        "random and sum",
    ]
    assert all(each.contestants() == list(PROGRESS) for each in rates)


def test_no_experiment_begins_after_the_limit_of_the_study(monkeypatch):
    """Each was played once: a result is better than none."""
    played = []

    class Counted(ModelledOverlap):
        @property
        def conditions(self) -> Conditions:
            """Those of a live study, which has several rounds."""
            return Conditions(testbed="namespaces")

        def play(self, way, busy, work, program, /, **parameters):
            played.append(program)
            monkeypatch.setattr("mxwire.bench.overlap.LIMIT", -1)
            return super().play(way, busy, work, program, **parameters)

    study = OverlapStudy(("card",), ("post-work-wait", "polling"), sizes=(1024,), sides=("sender",))
    recording = run_overlap(study, Counted(CLOVERTOWN, JUMBO), StudyOptions.of(3, False))
    assert set(played) == {"single message", "polling"}
    assert {len(each.samples) for series in recording.series for each in series.measurements} == {1}
    assert "card: left out after 1 round: the study has taken more than -1 s" in recording.remarks
    assert not recording.complete


def test_tcp_hands_over_as_much_as_both_socket_buffers_hold():
    study = OverlapStudy(("kernel", "card"), ("socket-buffers",))
    found = run_overlap(study, ModelledOverlap(CLOVERTOWN, JUMBO), StudyOptions()).named(HANDED_OVER)
    assert found.contestants() == ["kernel"]
    assert {each.parameters["buffer"]: each.median for each in found.measurements} == {
        buffer: 2 * buffer for buffer in SOCKET_BUFFERS
    }


def test_the_study_without_costs_of_tcp_leaves_the_kernel_out():
    table = replace(CLOVERTOWN, name="own", tcp_send=0.0)
    study = OverlapStudy(("card", "kernel"), ("post-work-wait",))
    recording = run_overlap(study, ModelledOverlap(table, JUMBO), StudyOptions.of(None, True))
    assert recording.named(OVERLAP).contestants() == ["card, sender works", "card, receiver works"]
    assert "kernel: not applicable: the cost table own has no costs of TCP" in recording.remarks


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"progress": ("agent",)}, "no way of progress 'agent'"),
        ({"progress": ("cards",)}, r"no way of progress 'cards' \(did you mean card"),
        ({"experiments": ("buffering",)}, "no experiment 'buffering'"),
        ({"sides": ("senders",)}, r"no side 'senders' \(did you mean sender"),
    ],
)
def test_unknown_names_are_refused(changes, text):
    with pytest.raises(MxwireError, match=text):
        OverlapStudy(**changes)


def test_the_kinds_of_the_system_are_all_but_the_applications():
    assert APPLICATION not in SYSTEM_KINDS


def test_the_rate_has_those_of_producer_and_consumer_alone_and_during_the_run():
    """An agent on the producer's core takes its time, one elsewhere does not."""
    work = work_of(MIB, network(), "producer-bound")
    for ranks, least, most in ((RANKS, 0.99, 1.0), (SAME, 0.8, 0.98)):
        details = buffered_rate(ranks, "match", MIB, work)[1]
        assert details["producer alone"] == pytest.approx(0.5 * network(), rel=0.01)
        assert least <= details["producer"] / details["producer alone"] <= most


@pytest.mark.parametrize("way", PROGRESS)
def test_the_consumer_adds_up_the_numbers_of_the_producer(way):
    rate, details = summed_rate(RANKS, way, RENDEZVOUS_THRESHOLD + 1)
    assert 0 < rate < details["producer alone"]


def test_other_numbers_than_those_that_were_sent_are_an_error():
    ranks = Mock(works=("",))
    answer = {"time": 1, "alone": 1, "phases": [], "sum": 1.0}
    ranks.play.return_value = [answer, answer | {"sum": 2.0}]
    with pytest.raises(MxwireError, match="card: the consumer has received other numbers"):
        summed_rate(ranks, "card", 4096)


def test_a_signal_that_costs_nothing_steals_only_the_time_of_the_library():
    free = ModelledOverlap(replace(CLOVERTOWN, signal=0.0), JUMBO)
    assert overlaps_of(free, "signal", MIB, 1)[""][0] > overlaps_of(RANKS, "signal", MIB, 1)[""][0] + 0.2


def test_a_piece_of_work_is_bounded_since_the_other_rank_waits_for_its_end():
    assert work_of(MIB, 1.0, "producer-bound") == (LONGEST_WORK, LONGEST_WORK)
    slow = Mock(repetitions=1, works=("slept", "burnt"))
    slow.play.return_value = [{each: [10 * LONGEST_WORK] for each in ("alone", "post", "work", "wait")}]
    overlaps_of(slow, "library", MIB, 0)
    # The idle message is the same for both kinds of work.
    assert [each.kwargs["work"] for each in slow.play.call_args_list] == [0, LONGEST_WORK, LONGEST_WORK]


@pytest.mark.parametrize(
    ("used", "time"),
    [
        ({}, 50),
        ({"sender": (20, 0), "receiver": (30, 1)}, 49),
        ({"sender": (20, 10), "receiver": (12, 15)}, 25),
        ({"sender": (20, 40), "receiver": (32, 30)}, 32),
    ],
)
def test_the_network_is_not_slower_on_a_busy_machine(used, time):
    """Work that is chosen by a rate under load would take longer by the load once more."""
    live = Mock(reference="library", works=("slept", "burnt"), used=used)
    times = iter([10, 50, 90])
    live.play.side_effect = lambda *_, **__: [{"time": 10}, {"time": next(times)}]
    if used:
        times = iter([50, 50, 50])
    assert network_rate(live, MIB) == BUFFERS * MIB / time * 1e3


# Verdicts and guesses.


@cache
def offload() -> Recording:
    """A recording whose varied points are those of a table with a guess 25% larger."""
    recording = run_overlap(OverlapStudy(("signal",), sizes=(MIB,), timelines=False), RANKS, StudyOptions())
    table = ModelledOverlap(replace(CLOVERTOWN, signal=CLOVERTOWN.signal * 1.25), JUMBO)
    varied = run_overlap(OverlapStudy(("signal",), ("post-work-wait",), (MIB,)), table, StudyOptions())
    recording.facts[VARIED] = [{"guess": "signal +25%", "points": varied.values()}]
    return recording


def test_the_costs_of_a_signal_are_a_guess_with_which_verdicts_vary():
    assert CLOVERTOWN.sources["signal"] == "guess"
    [(guess, evidence)] = ClaimEvidence([offload()]).varied
    [claim] = selected(["S4-D-c"])
    receiver, sender = claim.checks
    assert guess == "signal +25%"
    assert receiver.term(evidence).value < receiver.term(ClaimEvidence([offload()])).value - 0.02
    assert sender.term(evidence).value > 0.5


# Live programs.


def communicators() -> list[StreamCommunicator]:
    """Two ranks in this process that are connected by TCP over loopback, at an address of this process alone, at which
    no other process uses their ports."""
    address = str(ip_address("127.0.0.0") + os.getpid())
    places = (("", address, 0), ("", address, 1))
    made = [StreamCommunicator(RankSetup(rank, places, "", over="tcp", spin=False)) for rank in (0, 1)]
    connecting = threading.Thread(target=made[0].connect, daemon=True)
    connecting.start()
    made[1].connect()
    connecting.join(20)
    return made


@pytest.mark.parametrize("slept", [False, True])
@pytest.mark.parametrize(
    ("make", "check"),
    [
        (
            lambda: double_buffering(40_000, 50_000, 50_000),
            lambda ours, theirs: (
                [kind for kind, _, _ in ours["phases"]].count("fill") == BUFFERS
                and [kind for kind, _, _ in theirs["phases"]].count("sum") == BUFFERS
                and all(begin <= end for _, begin, end in ours["phases"] + theirs["phases"])
            ),
        ),
        (lambda: double_buffering(40_000, None, None), lambda ours, theirs: ours["sum"] == theirs["sum"] > 0),
        (
            lambda: single_message(40_000, 0, 50_000, 2),
            lambda ours, theirs: not theirs and all(len(ours[each]) == 2 for each in ours) and len(ours) == 4,
        ),
        (lambda: polling(40_000, 50_000, 20), lambda ours, theirs: not ours and theirs["time"] > 0),
    ],
)
def test_the_programs_of_virtual_time_run_live(make, check, slept):
    made, answers = communicators(), {}

    def play(rank: int) -> None:
        made[rank].slept = slept
        answers[rank] = made[rank].run(make()(made[rank]))

    threads = [threading.Thread(target=play, args=(rank,), daemon=True) for rank in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    for each in made:
        each.close()
    assert set(answers) == {0, 1} and check(answers[0], answers[1])


def test_burnt_work_is_proportional_to_its_duration(monkeypatch):
    burnt, loops = BurntWork(), []
    monkeypatch.setattr(BurntWork, "_burn", staticmethod(loops.append))
    for duration in (0, 1_000_000, 3_000_000):
        burnt.work(duration)
    assert loops[0] == 1 and loops[2] == pytest.approx(3 * loops[1], rel=0.01) and loops[1] > 1000


def test_signals_poll_a_host_while_its_application_works():
    here, there = socket.socketpair()
    before = signal.getsignal(signal.SIGIO)
    host = Mock()
    host.core.descriptors.return_value = [here.fileno()]
    host.poll.side_effect = lambda: here.recv(1, socket.MSG_DONTWAIT) if host.poll.call_count > 1 else None
    try:
        signals = HostSignals(host)
        there.send(b"x")
        with signals:
            # The frame that arrived before has raised no signal.
            assert signals.raised == 0 and host.poll.call_count == 1
            there.send(b"y")
            end = time.monotonic() + 20
            while not signals.raised and time.monotonic() < end:
                time.sleep(0.001)
        assert signals.raised >= 1 and host.poll.call_count >= 2
        raised = signals.raised
        there.send(b"z")
        time.sleep(0.01)
        assert signals.raised == raised and os.get_blocking(here.fileno()) is not False
    finally:
        signal.signal(signal.SIGIO, before)
        here.close()
        there.close()


def test_a_signal_within_a_poll_has_the_host_polled_once_more():
    """A poll is not reentrant: the engine would be entered in the middle of a step."""
    host, depth, deepest = Mock(), 0, 0
    host.core.descriptors.return_value = []
    signals = HostSignals(host)

    def poll() -> None:
        nonlocal depth, deepest
        depth, deepest = depth + 1, max(deepest, depth + 1)
        if host.poll.call_count == 1:
            signals._handle(signal.SIGIO, None)
        depth -= 1

    host.poll.side_effect = poll
    signals._handle(signal.SIGIO, None)
    assert (host.poll.call_count, deepest, signals.raised) == (2, 1, 2)


def test_a_way_of_progress_that_does_not_exist_is_refused_before_the_study_begins():
    run = mxwire("bench", "overlap", "--progress", "cart")
    assert run.code == 2 and "no way of progress 'cart' (did you mean card" in run.err
