"""The conversation of omx_perf: by the table of the specification, against hands that follow it, and against itself."""

from __future__ import annotations

import re
import struct
import threading
from itertools import islice

import pytest

from mxwire.errors import MxwireError
from mxwire.host import HostError, HostTimeoutError
from mxwire.host.perf import MATCH, PerfParameters, PerfReceiver, PerfResult, PerfSender
from mxwire.host.perf.roles import PerfWaiter, buffer
from mxwire.protocol import Status
from mxwire.wire.numbers import DEFAULT_KEY

from .conftest import PATIENCE, without_agent

DEFAULTS = bytes.fromhex(
    "000003e8 0000000a"  # 1000 iterations, 10 before them
    "00000000 00000000"  # from 0
    "00400001 00000000"  # to before 4194305
    "00000002 00000000"  # times 2
    "00000000 00000000"  # plus 0
    "00 00 00 00"
)


def test_default_parameters_are_the_44_bytes_of_the_table():
    assert len(DEFAULTS) == 44
    assert PerfParameters().pack() == DEFAULTS
    assert PerfParameters.unpack(DEFAULTS) == PerfParameters()


def test_every_parameter_has_its_place_and_halves_come_low_first():
    packed = PerfParameters(1, 2, 3 << 32 | 4, 5 << 32 | 6, 7 << 32 | 8, 9 << 32 | 10, True, True, True).pack()
    assert struct.unpack("!10I", packed[:40]) == (1, 2, 4, 3, 6, 5, 8, 7, 10, 9)
    assert packed[40:43] == b"\1\1\1"
    for place, name in enumerate(("aligned", "unidirectional", "synchronous")):
        flags = bytes(int(each == place) for each in range(3))
        found = PerfParameters.unpack(packed[:40] + flags + b"\xee")
        assert [found.aligned, found.unidirectional, found.synchronous] == [each == 1 for each in flags], name


@pytest.mark.parametrize("length", [0, 43, 45, 1000])
def test_a_message_of_another_length_is_not_parameters(length):
    with pytest.raises(MxwireError, match=f"{length} bytes are not parameters"):
        PerfParameters.unpack(bytes(length))


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"end": 20}, [0, 1, 2, 4, 8, 16]),
        ({"end": 4}, [0, 1, 2]),
        ({"start": 3, "end": 25}, [3, 6, 12, 24]),
        ({"end": 40, "multiplier": 1, "increment": 16}, [0, 16, 32]),
        ({"end": 40, "multiplier": 3, "increment": 5}, [0, 5, 20]),
        ({"start": 1, "end": 2}, [1]),
        ({"end": 1}, [0]),
    ],
)
def test_lengths_follow_the_formula(options, lengths):
    parameters = PerfParameters(**options)
    parameters.check()
    assert list(parameters.lengths()) == lengths


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": 5, "end": 5}, "not below the end"),
        ({"iterations": 0}, "no measured iterations"),
        ({"start": 1, "multiplier": 1}, "never reach the end"),
        ({"start": 2, "multiplier": 0, "increment": 1}, "never reach the end"),
        ({"multiplier": 0}, "never reach the end"),
        ({"end": 1 << 40}, "a message of 4294967296 bytes is too long"),
        ({"multiplier": 1, "increment": 1}, "more than 1048576 lengths"),
    ],
)
def test_impossible_measurements_are_refused(options, words):
    with pytest.raises(MxwireError, match=words):
        PerfParameters(**options).check()


def test_a_result_agrees_with_omx_perf():
    result = PerfResult.of(1048576, [2_000_000, 4_000_000], unidirectional=False)
    assert result.microseconds == 1500
    numbers = re.fullmatch(r"length +(\d+):\s+(\d+\.\d{3}) us\s+(\d+\.\d{2}) MB/s\s+(\d+\.\d{2}) MiB/s", result.line())
    assert numbers is not None
    assert numbers.groups() == ("1048576", "1500.000", "699.05", "666.67")
    assert PerfResult.of(1, [2000], unidirectional=True).microseconds == 2
    record = PerfResult.of(8, [2000 * each for each in range(1, 101)], unidirectional=False).record()
    assert (record["minimum_us"], record["median_us"], record["p99_us"], record["maximum_us"]) == (1, 50.5, 99.01, 100)


def test_aligned_memory_begins_with_a_page_and_other_does_not():
    import numpy as np

    for length in (0, 1, 5000):
        assert len(buffer(length, aligned=True)) == len(buffer(length, aligned=False)) == length
    assert np.frombuffer(buffer(8, aligned=True), np.uint8).ctypes.data % 4096 == 0
    assert np.frombuffer(buffer(8, aligned=False), np.uint8).ctypes.data % 4096 != 0


def test_missing_memory_is_reported_with_its_length():
    with pytest.raises(HostError, match=f"no memory for a message of {1 << 62} bytes") as error:
        buffer(1 << 62, aligned=True)
    assert error.value.status is Status.NO_SYSTEM_RESOURCES


class Answering(threading.Thread):
    """A receiver in a thread of its own."""

    def __init__(self, endpoint, times=1):
        super().__init__(daemon=True)
        self.receiver = PerfReceiver(PerfWaiter(endpoint, silence=PATIENCE))
        self.times = times
        self.lengths = []
        self.refused = []
        self.error = None
        self.start()

    def run(self):
        try:
            for _ in range(self.times):
                try:
                    wish = self.receiver.wait()
                except MxwireError as error:
                    self.refused.append(str(error))
                    continue
                self.lengths += list(self.receiver.serve(wish))
                self.receiver.forget(wish)
        except Exception as error:
            self.error = error

    def end(self):
        self.join(PATIENCE)
        assert not self.is_alive() and self.error is None, self.error


@pytest.mark.parametrize("yielding", [False, True])
@pytest.mark.parametrize(
    "flags", [{}, {"unidirectional": True}, {"synchronous": True}, {"aligned": True, "unidirectional": True}]
)
def test_both_roles_measure_every_kind_of_message(pair, flags, yielding):
    answering = Answering(pair.two)
    parameters = PerfParameters(3, 1, 0, 300_000, 8, 0, **flags)
    sender = PerfSender(PerfWaiter(pair.one, yielding=yielding, silence=PATIENCE), pair.partner, parameters)
    sender.agree()
    results = list(sender.measure(0.0))
    answering.end()
    assert [each.length for each in results] == answering.lengths == list(parameters.lengths())
    assert all(len(each.times) == 3 and 0 < each.times[0] <= each.microseconds for each in results)


@pytest.mark.parametrize("unidirectional", [False, True])
def test_a_window_of_messages_is_answered_message_by_message(pair, unidirectional):
    answering = Answering(pair.two)
    parameters = PerfParameters(3 * 8, 8, 0, 300_000, 8, 0, unidirectional=unidirectional)
    sender = PerfSender(PerfWaiter(pair.one, silence=PATIENCE), pair.partner, parameters, window=8)
    sender.agree()
    results = list(sender.measure(0.0))
    answering.end()
    assert [each.length for each in results] == answering.lengths
    assert all(len(each.times) == 3 for each in results)


def test_the_receiver_answers_hands_that_follow_the_table(pair):
    """Steps 2 to 7 of the specification, as the sender."""
    answering = Answering(pair.two)
    ready = pair.one.ireceive(maximum=100)
    pair.one.ssend(pair.partner, PerfParameters(2, 1, 4, 9, 2, 0).pack(), 0x1234567887654321, timeout=PATIENCE)
    acknowledgement = pair.one.wait(ready, PATIENCE)
    assert (acknowledgement.length, acknowledgement.match_info) == (0, 0)
    for length in (4, 8):
        for _ in range(3):
            pair.one.send(pair.partner, b"x" * length, 0x1234567887654321, timeout=PATIENCE)
            answer = pair.one.receive(0x1234567887654321, timeout=PATIENCE)
            assert len(answer) == length
    answering.end()


def test_the_sender_is_content_with_hands_that_follow_the_table(pair):
    """Steps 3 to 7, as the receiver in unidirectional mode."""
    found = []

    def serve():
        first = pair.two.receive(maximum=44, timeout=PATIENCE)
        found.append((first.match_info, bytes(first)))
        pair.two.connect(first.partner.peer, first.partner.number, 0x12345678, timeout=PATIENCE)
        pair.two.ssend(first.partner, b"", 0, timeout=PATIENCE)
        for length in (0, 1):
            for _ in range(2):
                message = pair.two.receive(0x1234567887654321, maximum=length, timeout=PATIENCE)
                found.append(message.length)
                pair.two.send(message.partner, b"", 0x1234567887654321, timeout=PATIENCE)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    parameters = PerfParameters(1, 1, 0, 2, unidirectional=True)
    sender = PerfSender(PerfWaiter(pair.one, silence=PATIENCE), pair.partner, parameters)
    sender.agree()
    assert [each.length for each in sender.measure(0.0)] == [0, 1]
    thread.join(PATIENCE)
    assert found == [(0x1234567887654321, parameters.pack()), 0, 0, 1, 1]


def test_a_slave_serves_senders_in_turn_and_the_second_waits(pair):
    answering = Answering(pair.two, times=2)
    other = pair.alpha.open_endpoint()
    parameters = PerfParameters(20, 1, 0, 5000, 8, 0)
    ends = {}

    def measure(name, endpoint):
        partner = endpoint.connect("beta", 3, DEFAULT_KEY, timeout=PATIENCE)
        sender = PerfSender(PerfWaiter(endpoint, silence=PATIENCE), partner, parameters)
        sender.agree()
        ends[name] = [each.length for each in sender.measure(0.0)]
        endpoint.flush(PATIENCE)

    threads = [threading.Thread(target=measure, args=each, daemon=True) for each in (("a", pair.one), ("b", other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    answering.end()
    lengths = list(parameters.lengths())
    assert ends == {"a": lengths, "b": lengths} and answering.lengths == lengths * 2


def test_a_stranger_does_not_disturb_a_measurement(pair):
    answering = Answering(pair.two)
    stranger = pair.alpha.open_endpoint()
    sender = PerfSender(PerfWaiter(pair.one, silence=PATIENCE), pair.partner, PerfParameters(5, 0, 8, 100))
    sender.agree()
    measuring = sender.measure(0.0)
    first = next(measuring)
    away = stranger.connect("beta", 3, DEFAULT_KEY, timeout=PATIENCE)
    for length in (0, 8, 500):
        stranger.send(away, bytes(length), MATCH, timeout=PATIENCE)
    assert [first.length, *(each.length for each in measuring)] == [8, 16, 32, 64]
    answering.end()
    assert answering.receiver.ignored == 3


@pytest.mark.parametrize(
    "message", [b"", b"x" * 44, PerfParameters(start=1, multiplier=1).pack(), PerfParameters().pack() + b"x"]
)
def test_senseless_parameters_are_refused_and_the_receiver_continues(pair, message):
    answering = Answering(pair.two, times=2)
    pair.one.ssend(pair.partner, message, MATCH, timeout=PATIENCE)
    sender = PerfSender(PerfWaiter(pair.one, silence=PATIENCE), pair.partner, PerfParameters(1, 0, 0, 1))
    sender.agree()
    assert len(list(sender.measure(0.0))) == 1
    answering.end()
    assert len(answering.refused) == 1


@without_agent
def test_a_receiver_that_falls_silent_is_abandoned(pair):
    sender = PerfSender(PerfWaiter(pair.one, silence=0.3), pair.partner, PerfParameters(1, 0, 0, 1))
    with pytest.raises(HostTimeoutError, match="its program does not answer: it waits for something else"):
        sender.agree()


def test_a_receiver_that_restarts_ends_the_measurement(pair):
    answering = Answering(pair.two, times=1)
    sender = PerfSender(PerfWaiter(pair.one, silence=1.0), pair.partner, PerfParameters(10_000, 0, 0, 1 << 20))
    sender.agree()
    measuring = sender.measure(0.0)
    threading.Timer(0.1, pair.two.close).start()
    with pytest.raises(HostError) as error:
        list(islice(measuring, 3))
    assert error.value.status in (Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_UNREACHABLE, Status.TIMEOUT)
    answering.join(PATIENCE)
