"""Generator and sink on a network in memory: agreement, faults of the path, clocks, and messages under loss."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.host import Host, HostTimeoutError
from mxwire.host.service import Service
from mxwire.linerate.control import ControlMessage, SinkAddress, SinkControl, SinkUnreachableError, decode_control
from mxwire.linerate.drops import KernelDrops, drops_by_place
from mxwire.linerate.generator import ClockMonitor, FrameGenerator, GeneratorPlan
from mxwire.linerate.generator_run import GeneratorRun
from mxwire.linerate.incast import IncastOptions, IncastTester
from mxwire.linerate.line_tester import LineTester, LineTesterOptions, SizeMeasurement, TesterLimit
from mxwire.linerate.live_frames import _day_offset
from mxwire.linerate.message_tester import MessageOptions, MessageTester, frames_needed
from mxwire.linerate.sink import FrameSink
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.station import BlockResponder, SinkStation
from mxwire.linerate.template import STAMP, template_of, templates_of
from mxwire.linerate.transmitters import LinkTransmitter
from mxwire.link import Faults, FaultyLink, Link, LinkError, MemoryNetwork
from mxwire.units import SECOND
from mxwire.wire.codec import Malformed, parse
from mxwire.wire.dialect import MXOE, omx

from .frames import HERE, THERE


@contextmanager
def station(link: Link) -> Iterator[SinkStation]:
    """A sink on a link, run by a thread of its own."""
    made, stop = SinkStation(link), threading.Event()

    def run() -> None:
        while not stop.is_set():
            made.step(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


@contextmanager
def agreed(sink_link: Link, link: Link) -> Iterator[tuple[GeneratorRun, SinkStation]]:
    with station(sink_link) as made:
        control = SinkControl(link, 100)
        (found,) = control.find(10.0, 0.05)
        assert found.address == sink_link.address
        yield GeneratorRun(LinkTransmitter(link), control, found, first=255), made


# Agreement


def test_the_sink_counts_the_frames_of_the_generator():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    with agreed(two, one) as (run, made):
        for number, kind in enumerate(("TINY", "mix", "PULL_REPLY")):
            found = run.run(templates_of(kind, two.address, one.address), GeneratorPlan(count=2000), streams=3)
            assert found.sink is not None
            assert (found.sent, found.received, found.lost, found.sink["altered"]) == (2000, 2000, 0, 0)
            assert found.common_clocks and not any(found.places().values())
            assert (one.address, number) in made.sink.runs


def test_stamps_of_the_kernel_are_never_in_the_future():
    offset = _day_offset()
    assert time.monotonic_ns() + offset <= time.time_ns()


def test_a_run_without_a_single_frame_is_reported_like_any_other():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    with station(two):
        control = SinkControl(one, 1)
        unseen = control.ask(two.address, "end", 20.0, run=5, sent=100)
        FrameGenerator(
            one, FrameSlots(templates_of("TINY", two.address, one.address), run=6), GeneratorPlan(count=100)
        ).run()
        seen = control.ask(two.address, "end", 20.0, run=6, sent=100)
    assert unseen.keys() == seen.keys()
    assert (unseen["received"], unseen["lost"], unseen["altered"], unseen["frames_per_second"]) == (0, 100, 0, 0)


@pytest.mark.parametrize("streams", [1, 4])
def test_faults_of_the_path_are_counted(streams):
    """Lost and duplicate frames are those that the faulty path counted; reordering needs both directions of time."""
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    faulty = FaultyLink(two, seed=7, receiving=Faults(loss=0.05, duplicate=0.03))
    with station(faulty) as made:
        slots = FrameSlots(templates_of("TINY", two.address, one.address), streams=streams, run=5)
        generator = FrameGenerator(one, slots, GeneratorPlan(count=5000, rate=100_000))
        generator.run()
        control = SinkControl(one, 1)
        reply = control.ask(two.address, "end", 20.0, run=5, sent=5000)
        counts = faulty._receiving.counts
        control_frames = counts.frames - 5000
    assert reply["received"] + reply["lost"] == 5000
    assert 0 < reply["lost"] <= counts.lost <= reply["lost"] + control_frames
    assert 0 < reply["duplicates"] <= counts.duplicated
    assert made.sink.foreign == 0


def test_requests_are_repeated_until_they_are_answered():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    with station(FaultyLink(two, seed=3, receiving=Faults(loss=0.6))):
        control = SinkControl(one, 1)
        assert [each.address for each in control.find(30.0, 0.0)] == [two.address]
        for _ in range(5):
            assert control.ask(two.address, "begin", 30.0, run=1)["ready"] is True


def test_no_sink_and_a_refusal_are_errors():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    control = SinkControl(one, 1)
    with pytest.raises(SinkUnreachableError, match="no sink answers on memory0 within"):
        control.find(0.05)
    with pytest.raises(SinkUnreachableError, match="does not answer any more"):
        control.ask(two.address, "hello", 0.05)
    with station(two):
        for verb, fields, words in (
            ("dance", {}, "unknown request 'dance'"),
            ("begin", {}, "lacks a field"),
            ("begin", {"run": "1"}, "lacks a field"),
            ("begin", {"run": True}, "lacks a field"),
            ("end", {"run": 999, "sent": 1}, "not valid"),
            ("respond", {"run": 1, "size": 1 << 20, "frames": 8}, "not valid"),
            ("respond", {"run": 1, "size": 5, "frames": 8}, "bytes"),
        ):
            with pytest.raises(MxwireError, match=words):
                control.ask(two.address, verb, 10.0, **fields)


@pytest.mark.parametrize(
    "hostile", [ControlMessage("x" * 880, 1), ControlMessage("hello", 10**880), ControlMessage("\ud800" * 100, 1)]
)
def test_a_request_whose_reply_would_not_fit_is_foreign(hostile: ControlMessage):
    """A reply repeats verb and number, so their lengths are limited: the sink must not end."""
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    made = SinkStation(two)
    one.send(FrameBatch.from_frames([hostile.encode(two.address, one.address)]))
    made.step(10.0)
    assert made.sink.foreign == 1
    assert not len(one.receive(0.05))


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20), max_size=5), st.booleans())
def test_control_messages_survive_the_wire(fields, reply):
    message = ControlMessage("begin", 17, fields, reply)
    frame = message.encode(HERE, THERE)
    assert decode_control(frame) == message
    assert not isinstance(parse(frame, MXOE), Malformed) and frame[SOURCE] == THERE


@given(st.binary(max_size=300))
def test_other_frames_are_not_control_messages(data):
    frame = ControlMessage("hello", 1).encode(HERE, THERE)
    assert decode_control(data) is None
    for changed in (frame[:30] + data, frame[:33] + data + frame[33:]):
        found = decode_control(changed)
        assert found is None or isinstance(found.verb, str)


def test_a_control_message_fits_into_a_raw_packet_or_is_refused():
    with pytest.raises(ValueError, match="at most 1024 bytes"):
        ControlMessage("begin", 1, {"text": "x" * 1000}).encode(HERE, THERE)


# Trouble


@given(*[st.integers(0, 1000)] * 6)
def test_losses_have_places_and_no_frame_has_two(sent, received, transmitted, ring, card, backlog):
    """Counters of cards include other frames; that of the ring is exact."""
    sink = {"ring": ring, "card": card, "backlog": backlog, "altered": 3}
    places = drops_by_place(sent, received, KernelDrops(transmitted=transmitted), sink)
    missing = max(sent - received, 0)
    assert places.pop("application") == 3
    assert sum(places.values()) == missing and min(places.values()) >= 0
    assert places["receiver's ring"] == min(ring, missing)
    if missing > ring + transmitted + card + backlog:
        assert places["path"] == missing - ring - transmitted - card - backlog


def test_a_link_that_is_down_ends_the_run_with_its_results():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    clock = [0]

    def tick() -> int:
        clock[0] += 1_000_000
        one.up = clock[0] < 300_000_000
        return clock[0]

    slots = FrameSlots(templates_of("TINY", two.address, one.address))
    generator = FrameGenerator(one, slots, GeneratorPlan(rate=1000, seconds=60), clock=tick)
    with pytest.raises(LinkError, match="it is down"):
        generator.run()
    assert 100 <= generator.result.frames <= 300
    assert generator.result.duration_ns > 2 * SECOND


def test_an_interrupt_within_a_call_of_the_link_leaves_no_frame_uncounted():
    """Ctrl-C after the link has accepted a frame, and before the generator has counted it."""

    class Interrupting(FaultyLink):
        def send(self, batch: FrameBatch) -> int:
            sent = super().send(batch)
            if len(batch) > 1:
                signal.raise_signal(signal.SIGINT)
            return sent

    network = MemoryNetwork()
    here, there = network.attach("here"), network.attach("there")
    with agreed(there, Interrupting(here, seed=0)) as (run, _):
        templates = templates_of("TINY", there.address, here.address)
        found = run.run(templates, GeneratorPlan(count=10_000, batch=8))
    assert (found.generator.ended, found.sent, found.received, found.lost) == ("interrupted", 8, 8, 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_paced_run_makes_its_first_calls_before_its_clock_starts():
    """They take longer than others, and the frames behind the first would be late."""
    network = MemoryNetwork()
    one, other = network.attach("one"), network.attach("other")
    slots = FrameSlots(templates_of("TINY", other.address, one.address))
    calls: list[object] = []

    def send(first: int, end: int) -> int:
        calls.append(end - first)
        return end - first

    def clock() -> int:
        calls.append("clock")
        return 1000 * len(calls)

    plan = GeneratorPlan(count=3, rate=1_000_000)
    generator = FrameGenerator(one, slots, plan, send=send, clock=clock)
    found = generator.run(lambda result: calls.append(result.frames))
    # The run reads the clock, and sends a frame that is due at once.
    begun = next(place for place, each in enumerate(calls) if each not in (0, "clock")) - 1
    assert calls[begun] == "clock" and calls[:begun].count(0) > 2
    assert found.frames == 3 == sum(each for each in calls[begun:] if isinstance(each, int))
    assert len(found.lateness.record()) and found.duration_ns == 1000 * (len(calls) - begun - 1)


def test_frames_keep_their_intervals_from_a_first_one_that_took_long():
    network = MemoryNetwork()
    one, other = network.attach("one"), network.attach("other")
    slots = FrameSlots(templates_of("TINY", other.address, one.address))
    now, sent = [0], []

    def clock() -> int:
        now[0] += 10
        return now[0]

    def send(first: int, end: int) -> int:
        if end > first:
            now[0] += 100 if sent else 90_000
            sent.append(now[0])
        return end - first

    FrameGenerator(one, slots, GeneratorPlan(count=50, rate=50_000), send=send, clock=clock).run()
    assert all(20_000 <= sent[place + 1] - sent[0] - 20_000 * place < 21_000 for place in range(49))


def test_a_clock_that_is_set_is_noticed():
    monotonic, day = [0], [10**18]
    monitor = ClockMonitor(lambda: monotonic[0], lambda: day[0])
    for step in (0, 500_000):
        monotonic[0] += SECOND
        day[0] += SECOND + step
        assert not monitor.check()
    for step in (-3600 * SECOND, 2_000_000):
        monotonic[0] += SECOND
        day[0] += SECOND + step
        assert monitor.check()
    assert monitor.steps == 2


def test_frames_have_the_time_of_the_clock_of_day_that_is_passed_in():
    """It is set back by an hour after half a second of a run of one second."""
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    now, day = [0], 10**18

    def clock() -> int:
        now[0] += 1_000_000
        return now[0]

    def day_clock() -> int:
        return day + now[0] - (3600 * SECOND if now[0] > SECOND // 2 else 0)

    templates = templates_of("TINY", two.address, one.address)
    plan = GeneratorPlan(rate=100, seconds=1)
    found = FrameGenerator(one, FrameSlots(templates), plan, clock=clock, day_clock=day_clock).run()
    frames = two.receive(0)
    first, last = (
        np.frombuffer(frames.frame(each), STAMP, 1, templates[0].stamp_at)["time"][0] for each in (0, len(frames) - 1)
    )
    assert found.clock_steps == 1 and last < day < first


def test_a_run_without_an_answer_at_its_end_keeps_the_sent_counts():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    with station(two):
        control = SinkControl(one, 1)
        (found,) = control.find(10.0, 0.0)

    class Silent(SinkControl):
        def ask(self, sink, verb, timeout=5.0, **fields):
            return {} if verb == "begin" else super().ask(sink, verb, 0.05, **fields)

    run = GeneratorRun(LinkTransmitter(one), Silent(one, 50), SinkAddress(found.address, found.fields))
    result = run.run(templates_of("TINY", two.address, one.address), GeneratorPlan(count=100))
    assert result.sent == 100 and result.sink is None and "does not answer" in result.error
    assert not result.record()["complete"]


# Tests


def test_a_tester_measures_its_own_limit_first():
    network = MemoryNetwork(room=1 << 20)
    one, two = network.attach(), network.attach()
    with agreed(two, one) as (run, _):
        options = LineTesterOptions(trial=0.05, resolution=0.3, repetitions=1, settle=0.1, cool_down=0.0)
        tester = LineTester(run, options, megabits=1000)
        measured = tester.measure(60, templates_of("TINY", two.address, one.address, 60))
        assert measured.limit.sent > 0
        result = tester.throughput(measured)
    assert result["tester"]["frames_per_second"] > 0
    assert result["frames_per_second"] <= measured.top * 1.0001 or result["tester_limited"]
    assert result["percent"] == pytest.approx(100 * result["frames_per_second"] / 1_488_095.2, rel=0.01)


@pytest.mark.parametrize(("carried", "limited_by"), [(0.995, None), (0.98, "generator")])
def test_a_full_line_has_no_limit_by_the_tester(carried, limited_by):
    """Though the generator was late in a trial at the rate of the line."""

    class LateTester(LineTester):
        def _passes(self, measured, rate):
            measured.carried, measured.limited_by = carried * measured.top, "generator"
            return rate < 0.9 * measured.top

    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    with agreed(two, one) as (run, _):
        measured = SizeMeasurement(60, tuple(templates_of("TINY", THERE, HERE, 60)), 1000, TesterLimit(5e6, 5e6, 0))
        result = LateTester(run, LineTesterOptions(), megabits=1000).throughput(measured)
    assert result["percent"] == pytest.approx(100 * carried)
    assert (result["limited_by"], result["tester_limited"]) == (limited_by, limited_by is not None)


def test_incast_asks_all_senders_at_once():
    network = MemoryNetwork()
    requester, *others = [network.attach() for _ in range(4)]
    stations = [station(each) for each in others]
    for each in stations:
        each.__enter__()
    try:
        control = SinkControl(requester, 1)
        senders = control.find(10.0, 0.2)
        assert len(senders) == 3
        tester = IncastTester(requester, control, senders, IncastOptions(size=1000, most_blocks=8, repetitions=1))
        for count in (1, 3):
            found = tester.measure(count)
            assert (found["blocks"], found["count"], found["no_loss"]) == (8, count * 64, True)
            assert all(each["per_sender"] == [each["blocks"] * 8] * count for each in found["rounds"])
    finally:
        for each in stations:
            each.__exit__(None, None, None)


def test_incast_finds_the_room_of_the_receiver():
    network = MemoryNetwork(room=100)
    requester, other = network.attach(), network.attach()
    with station(other):
        control = SinkControl(requester, 1)
        tester = IncastTester(requester, control, control.find(10.0, 0.1), IncastOptions(size=1000, repetitions=1))
        found = tester.measure(1)
    assert found["no_loss"] is False or found["blocks"] == 64
    assert sum(each["ring"] for each in found["rounds"]) == sum(each["lost"] for each in found["rounds"])
    assert found["no_loss"] or found["limited_by"] == "requester's ring"


# Messages


@pytest.mark.parametrize(
    ("length", "dialect", "frames"),
    [
        (0, MXOE, 1),
        (128, MXOE, 1),
        (129, MXOE, 1),
        (4097, MXOE, 2),
        (32768, MXOE, 8),
        (32769, MXOE, 10),
        (9000, omx(), 2),
    ],
)
def test_frames_that_a_message_needs(length, dialect, frames):
    assert frames_needed(length, dialect) == frames


@contextmanager
def echoing(host: Host) -> Iterator[None]:
    service, stop = Service([host.open_endpoint(1)], echo=True), threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                host.driver.wait(service, 0.02)
            except HostTimeoutError:
                continue

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_retransmissions_are_counted_where_the_path_loses(loss):
    network = MemoryNetwork()
    link = FaultyLink(network.attach(), seed=1, sending=Faults(loss=loss))
    beta, alpha = Host(network.attach(), name="beta"), Host(link, name="alpha", background=False)
    with beta, alpha, echoing(beta):
        endpoint = alpha.open_endpoint()
        partner = endpoint.connect("beta", 1, timeout=60)
        options = MessageOptions(trial=0.1, resolution=0.5, window=16)
        found = MessageTester(alpha, endpoint, partner, MXOE, options).measure(64)
    assert found["top"]["messages"] > 0
    if loss:
        assert found["limited_by"] == "retransmissions" and found["top"]["retransmitted"] > 0
        assert found["retransmits_from"] is not None
    else:
        assert found["top"]["round_trip"]["count"] == found["top"]["messages"]


def test_the_sink_ignores_a_reply_and_foreign_raw_frames():
    network = MemoryNetwork()
    one, two = network.attach(), network.attach()
    made = SinkStation(two)
    reply = ControlMessage("hello", 5, {}, reply=True).encode(two.address, one.address)
    raw = two.address + one.address + bytes.fromhex("86df0000") + bytes([1]) + b"other program".ljust(43, b"\0")
    one.send(FrameBatch.from_frames([reply, raw]))
    made.step(1.0)
    assert made.sink.foreign == 1
    assert not len(one.receive(0.0))


def test_the_replies_of_an_incast_carry_the_time_of_the_given_clock():
    network = MemoryNetwork()
    requester, other = network.attach(), network.attach()
    sink = FrameSink()
    pull = FrameSlots([template_of("PULL", other.address, requester.address)], run=3, least=1)
    sink.take(pull.batch(0, 1, 5))
    (run,) = sink.runs
    responder = BlockResponder(run, other.address, size=1000, frames=2, clock=lambda: 0x0102030405060708)
    responder.respond(sink, other)
    found = requester.receive(1.0)
    assert len(found) == 2
    assert all(
        bytes(range(1, 9)) in (frame := found.frame(place)) or bytes(range(8, 0, -1)) in frame for place in (0, 1)
    )
