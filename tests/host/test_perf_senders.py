"""Senders of measurements that vanish in the middle, and those that come after them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mxwire.errors import MxwireError
from mxwire.host import Endpoint, Host, HostError, Message
from mxwire.host.perf import MATCH, PerfParameters, PerfReceiver, PerfSender
from mxwire.host.perf.roles import PerfWaiter
from mxwire.host.stall import SLICE
from mxwire.link import MemoryNetwork
from mxwire.protocol import Partner
from mxwire.wire.numbers import DEFAULT_KEY
from tests.waiting import until

from .conftest import PATIENCE

FOR_EVER = 1_000_000
"""More iterations than can ever end."""


class Slave(threading.Thread):
    """Serves one sender after the other, as ``mxwire perf -s`` does, until its host is closed."""

    def __init__(self, host: Host, silence: float | None, yielding: bool = False) -> None:
        super().__init__(daemon=True)
        self._host = host
        self._endpoint = host.open_endpoint(0, DEFAULT_KEY)
        self.receiver = PerfReceiver(PerfWaiter(self._endpoint, silence=silence, yielding=yielding))
        self.reasons: list[str] = []
        self.errors: list[Exception] = []
        self.start()

    def run(self) -> None:
        while not self._endpoint.closed:
            try:
                wish = self.receiver.wait()
            except MxwireError as error:
                self.reasons.append(str(error))
                continue
            except Exception as error:
                self.errors.append(error)
                return
            try:
                list(self.receiver.serve(wish))
            except MxwireError as error:
                self.reasons.append(str(error))
            except Exception as error:
                self.errors.append(error)
                return
            if not self._endpoint.closed:
                self.receiver.forget(wish)


class Testbed:
    """A slave, and senders on hosts that come and go without a word."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._network = MemoryNetwork()
        self._addresses: dict[str, bytes] = {}
        link = self._network.attach("beta")
        self._known = {link.address: "beta:0"}
        self._beta = stack.enter_context(Host(link, name="beta"))

    def slave(self, silence: float | None = None, *, yielding: bool = False) -> Slave:
        """It is gone, and must not have failed, at the end of the test."""
        slave = Slave(self._beta, silence, yielding)

        def end() -> None:
            self._beta.close()
            slave.join(PATIENCE)
            assert not slave.is_alive() and not slave.errors, slave.errors

        self._stack.callback(end)
        return slave

    def host(self, name: str, *, background: bool = True) -> Host:
        """A host that has the address of the one of that name before it."""
        link = self._network.attach(name, self._addresses.get(name))
        self._addresses[name] = link.address
        return self._stack.enter_context(Host(link, name=name, peers=self._known, background=background))

    @property
    def slaves_endpoint(self) -> Endpoint:
        """The endpoint at which a test plays the receiver by hand."""
        return self._beta.open_endpoint(0, DEFAULT_KEY)


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    with ExitStack() as stack:
        yield Testbed(stack)


class Hands:
    """A sender that acts as in the table, and checks every answer itself."""

    def __init__(self, endpoint: Endpoint, parameters: PerfParameters) -> None:
        self._endpoint = endpoint
        self.partner: Partner = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        ready = endpoint.ireceive(maximum=100)
        endpoint.ssend(self.partner, parameters.pack(), MATCH, timeout=PATIENCE)
        answer = endpoint.wait(ready, PATIENCE)
        assert (answer.length, answer.match_info) == (0, 0)

    def round(self, length: int) -> Message:
        answer = self._endpoint.ireceive(MATCH, maximum=length + 100)
        self._endpoint.isend(self.partner, bytes(length), MATCH)
        return self._endpoint.wait(answer, PATIENCE)


def measured(endpoint: Endpoint, parameters: PerfParameters) -> list[int]:
    """The lengths of the answers that a whole measurement was given."""
    hands = Hands(endpoint, parameters)
    rounds = parameters.warmup + parameters.iterations
    return [hands.round(length).length for length in parameters.lengths() for _ in range(rounds)]


AFTERWARDS = PerfParameters(3, 0, 1000, 3000)
EXPECTED = [1000] * 3 + [2000] * 3


@pytest.mark.parametrize(("before", "yielding"), [(0, False), (44, False), (1000, True), (100_000, False)])
def test_the_next_sender_from_the_same_endpoint_gets_its_own_answers(testbed, before, yielding):
    """The slave waits for the next message of a measurement whose sender has gone."""
    slave = testbed.slave(yielding=yielding)
    with testbed.host("alpha") as first:
        hands = Hands(first.open_endpoint(0, DEFAULT_KEY), PerfParameters(FOR_EVER, 0, before, before + 1))
        assert [hands.round(before).length for _ in range(2)] == [before] * 2
    with testbed.host("alpha") as second:
        assert measured(second.open_endpoint(0, DEFAULT_KEY), AFTERWARDS) == EXPECTED
    assert any("has restarted" in each or "has sent 44 bytes" in each for each in slave.reasons), slave.reasons


def test_parameters_that_are_being_pulled_when_a_measurement_ends_are_served(testbed):
    """The receive that the slave posted for the gone sender has taken them, and its pull is not answered yet."""
    slave = testbed.slave()
    with testbed.host("alpha") as first:
        Hands(first.open_endpoint(0, DEFAULT_KEY), PerfParameters(FOR_EVER, 0, 5, 6)).round(5)
    with testbed.host("alpha", background=False) as second:
        endpoint = second.open_endpoint(0, DEFAULT_KEY)
        partner = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        ready = endpoint.ireceive(maximum=100)
        endpoint.issend(partner, AFTERWARDS.pack(), MATCH)
        # No call runs this host, as on a busy machine, until the slave has noticed that the sender was replaced.
        time.sleep(4 * SLICE)
        assert endpoint.wait(ready, PATIENCE).length == 0
    assert "has restarted" in slave.reasons[0]


def test_a_large_message_that_is_cut_off_does_not_starve_the_next_sender(testbed):
    """The rest of it will never be pulled."""
    testbed.slave()
    length = 4 << 20
    with testbed.host("alpha") as first:
        endpoint = first.open_endpoint(0, DEFAULT_KEY)
        hands = Hands(endpoint, PerfParameters(FOR_EVER, 0, length, length + 1))
        hands.round(length)
        endpoint.isend(hands.partner, bytes(length), MATCH)
    with testbed.host("alpha") as second:
        assert measured(second.open_endpoint(0, DEFAULT_KEY), AFTERWARDS) == EXPECTED


def test_the_slave_notices_in_its_own_time_that_a_sender_was_replaced(testbed):
    """Its conclusion a quarter of a second later must not end the connection of the new one."""
    slave = testbed.slave()
    with testbed.host("alpha") as first:
        Hands(first.open_endpoint(0, DEFAULT_KEY), PerfParameters(FOR_EVER, 0, 5, 6)).round(5)
    with testbed.host("alpha") as second:
        endpoint = second.open_endpoint(0, DEFAULT_KEY)
        endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        assert "endpoint 0 has restarted" in until(lambda: slave.reasons)[0]
        assert measured(endpoint, AFTERWARDS) == EXPECTED


def test_a_waiting_sender_is_served_when_the_one_before_has_vanished(testbed):
    """Long before the sender would abandon it."""
    slave = testbed.slave(4.0)
    with testbed.host("alpha") as first, testbed.host("gamma") as other:
        Hands(first.open_endpoint(0, DEFAULT_KEY), PerfParameters(FOR_EVER, 0, 5, 6)).round(5)
        first.close()
        endpoint = other.open_endpoint(2, DEFAULT_KEY)
        sender = PerfSender(
            PerfWaiter(endpoint, silence=4.0), endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE), AFTERWARDS
        )
        sender.agree()
        assert [each.length for each in sender.measure(0.0)] == [1000, 2000]
    assert "no progress with" in slave.reasons[0]


def test_a_sender_waits_for_one_turn_however_often_it_asks(testbed):
    """Another one cannot fill the memory of the receiver with requests."""
    slave = testbed.slave()
    with testbed.host("alpha") as alpha, testbed.host("gamma") as gamma:
        hands = Hands(alpha.open_endpoint(0, DEFAULT_KEY), AFTERWARDS)
        endpoint = gamma.open_endpoint(0, DEFAULT_KEY)
        away = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        ready = endpoint.ireceive(maximum=100)
        endpoint.wait_all([endpoint.isend(away, AFTERWARDS.pack(), MATCH) for _ in range(50)], PATIENCE)
        endpoint.flush(PATIENCE)
        assert [hands.round(length).length for length in EXPECTED] == EXPECTED
        assert slave.receiver.ignored == 49
        assert endpoint.wait(ready, PATIENCE).length == 0


def test_a_vanishing_stranger_does_not_end_a_measurement(testbed):
    """Its large message has been taken by the receive that was posted for the sender."""
    slave = testbed.slave()
    with testbed.host("alpha") as alpha, testbed.host("gamma") as gamma:
        hands = Hands(alpha.open_endpoint(0, DEFAULT_KEY), AFTERWARDS)
        endpoint = gamma.open_endpoint(0, DEFAULT_KEY)
        away = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        with gamma.core.section:
            endpoint.isend(away, bytes(4 << 20), MATCH)
            endpoint.close()
        assert [hands.round(length).length for length in EXPECTED] == EXPECTED
    assert slave.receiver.ignored == 1


@pytest.mark.parametrize("wrong", [b"", b"123456", b"1234"])
def test_a_sender_believes_no_answer_of_another_length(testbed, wrong):
    with testbed.host("alpha") as alpha:
        receiver, endpoint = testbed.slaves_endpoint, alpha.open_endpoint(0, DEFAULT_KEY)
        sender = PerfSender(
            PerfWaiter(endpoint, silence=PATIENCE),
            endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE),
            PerfParameters(1, 0, 5, 6),
        )
        results = _answered(receiver, [(b"", 0), (wrong, MATCH)], lambda: list(sender.measure(0.0)), sender)
    assert results == [
        f"beta:0 endpoint 0 has answered 5 bytes with {len(wrong)} instead of 5: it measures something else, or is not "
        "an omx_perf receiver"
    ]


@pytest.mark.parametrize("answer", [(b"x" * 44, MATCH), (b"", MATCH), (b"x", 0)])
def test_a_sender_does_not_begin_without_an_acknowledgement(testbed, answer):
    with testbed.host("alpha") as alpha:
        receiver, endpoint = testbed.slaves_endpoint, alpha.open_endpoint(0, DEFAULT_KEY)
        partner = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        sender = PerfSender(PerfWaiter(endpoint, silence=PATIENCE), partner, PerfParameters(1, 0, 5, 6))
        results = _answered(receiver, [answer], lambda: None, sender)
    assert len(results) == 1 and "has answered the parameters with" in results[0]


def test_messages_of_strangers_are_not_answers(testbed):
    with testbed.host("alpha") as alpha, testbed.host("gamma") as gamma:
        receiver, endpoint = testbed.slaves_endpoint, alpha.open_endpoint(0, DEFAULT_KEY)
        stranger = gamma.open_endpoint(0, DEFAULT_KEY)
        away = stranger.connect("alpha", 0, DEFAULT_KEY, timeout=PATIENCE)
        partner = endpoint.connect("beta", 0, DEFAULT_KEY, timeout=PATIENCE)
        sender = PerfSender(PerfWaiter(endpoint, silence=PATIENCE), partner, PerfParameters(1, 0, 5, 6))
        for match in (0, MATCH):
            stranger.send(away, b"nothing", match, timeout=PATIENCE)
        stranger.flush(PATIENCE)
        results = _answered(receiver, [(b"", 0), (b"12345", MATCH)], lambda: list(sender.measure(0.0)), sender)
    assert [each.length for each in results[0]] == [5]


def _answered(receiver: Endpoint, answers: list[tuple[bytes, int]], measure, sender: PerfSender) -> list[object]:
    """A sender's output for these answers: its measurements or its complaint."""

    def serve() -> None:
        for data, match in answers:
            source = receiver.receive(timeout=PATIENCE).partner
            receiver.connect(source.peer, source.number, DEFAULT_KEY, timeout=PATIENCE)
            receiver.send(source, data, match, timeout=PATIENCE)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        sender.agree()
        return [measure()]
    except HostError as error:
        return [str(error)]
    finally:
        thread.join(PATIENCE)
