"""The testbed in virtual time: LogP must find the numbers of the table again, and every run is the same."""

from __future__ import annotations

import operator
import threading
from dataclasses import replace

import numpy as np
import pytest

from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import Costs
from mxwire.bench.cost.testbed import VirtualTestbed
from mxwire.bench.imb.communicator import Communicator, Program
from mxwire.bench.logp import BURST, measure_logp
from mxwire.bench.record import Recording
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import TestbedError

TABLE = Costs(
    "test",
    line=1e12,
    adapter_send=20_000.0,
    adapter_receive=10_000.0,
    call=1_000.0,
    event=3_000.0,
    system_call=500.0,
    frame_send=2_000.0,
    frame_receive=1_500.0,
    tcp_send=6_000.0,
    tcp_receive=2_500.0,
    tcp_frame=1_200.0,
    copy_warm=0.5,
    tcp_copy=2.0,
)
SIZES = (4, 4096)


def logp(costs: Costs, carriers: tuple[str, ...], sizes: tuple[int, ...] = SIZES) -> Recording:
    with VirtualTestbed(costs) as testbed:
        return measure_logp(testbed, StudyOptions(), carriers, sizes)


def value(recording: Recording, name: str, carrier: str, size: int) -> float:
    return recording.named(name).point(carrier, size).median


@pytest.mark.parametrize("size", SIZES)
def test_logp_of_tcp_is_that_of_the_table(size):
    """A send and a receive are charged to the cores of their ranks, the frame to a core of its own: between them is L.

    Credit is a message of the other direction per half a window; it is in the intervals of floods, but in no round
    trip.
    """
    found = logp(TABLE, ("tcp",))
    o_s = (TABLE.tcp_send + size * TABLE.copy_warm) / 1e3
    o_r = (TABLE.call + TABLE.tcp_receive + size * TABLE.tcp_copy) / 1e3
    latency = (TABLE.adapter_send + TABLE.adapter_receive + TABLE.tcp_frame) / 1e3
    # A receive that is posted early is charged before the message arrives.
    assert value(found, "RTT/2", "tcp", size) == pytest.approx(o_s + latency + o_r, rel=0.05)
    assert value(found, "o_s", "tcp, round trips", size) == pytest.approx(o_s, rel=0.01)
    assert value(found, "o_r", "tcp, round trips", size) == pytest.approx(o_r, rel=0.01)
    for name, wanted in (("o_s", o_s), ("o_r", o_r), ("g", max(o_s, o_r)), ("L", latency)):
        assert value(found, name, "tcp", size) == pytest.approx(wanted, rel=0.1), name
    assert value(found, "bandwidth", "tcp, unidirectional", size) == pytest.approx(size / max(o_s, o_r), rel=0.1)
    assert found.facts["agreement"]["tcp"]["agree"] == 6


def test_logp_of_mxwire_is_that_of_the_table():
    found = logp(TABLE, ("mxoe",), (4,))
    post = (TABLE.call + TABLE.system_call + TABLE.frame_send) / 1e3
    # In a flood the library acknowledges every fourth message, which is an event of the sender.
    o_s = post + TABLE.event / 4e3
    # An event, and the next receive is posted.
    o_r = (TABLE.event + TABLE.call) / 1e3
    latency = (TABLE.adapter_send + TABLE.adapter_receive + TABLE.frame_receive) / 1e3
    assert value(found, "RTT/2", "mxoe", 4) == pytest.approx(post + latency + o_r, rel=0.05)
    assert value(found, "o_s", "mxoe", 4) == pytest.approx(o_s, rel=0.05)
    assert value(found, "o_r", "mxoe, round trips", 4) == pytest.approx(o_r, rel=0.05)
    assert value(found, "L", "mxoe", 4) == pytest.approx(latency, rel=0.1)


@pytest.mark.parametrize(("name", "parameter"), [("tcp_send", "o_s"), ("tcp_receive", "o_r"), ("adapter_send", "L")])
def test_a_delay_of_one_stage_moves_one_parameter(name, parameter):
    """Claim S1-T3-a, for the model: 10 µs more in a testbed are 10 µs more of the parameter that pays for it."""
    more = replace(TABLE, **{name: getattr(TABLE, name) + 10_000})
    before, after = logp(TABLE, ("tcp",), (4,)), logp(more, ("tcp",), (4,))
    for each in ("o_s", "o_r", "L"):
        moved = value(after, each, "tcp", 4) - value(before, each, "tcp", 4)
        assert moved == pytest.approx(10 if each == parameter else 0, abs=1), each


def test_two_runs_are_equal_and_marked():
    one, two = (logp(TABLE, ("omx:9000",), (200_000,)) for _ in range(2))
    assert one.series == two.series and one.complete
    assert {each.marks[0] for series in one.series for each in series.measurements} == {"modelled"}
    assert one.conditions.testbed == "virtual time, test"


def test_a_delay_is_part_of_the_flight():
    with VirtualTestbed(TABLE) as near, VirtualTestbed(TABLE, delay=70e-6) as far:
        trips = [testbed.run("trips", carrier="mxoe", sizes=[4], counts=[5])[0] for testbed in (near, far)]
    near_trip, far_trip = (each["points"]["4"]["median"] for each in trips)
    assert far_trip - near_trip == pytest.approx(70_000, rel=0.01)


def test_carriers_without_a_model_are_refused():
    with VirtualTestbed(TABLE, mtu=1500) as testbed:
        assert testbed.can_use("tcp") is None and testbed.can_use("omx:1500") is None
        assert "MTU" in testbed.can_use("omx:9000")
        for each in ("udp", "frames", "mxoe over xdp"):
            assert testbed.can_use(each) == "not in virtual time"
        with pytest.raises(TestbedError, match="not in virtual time"):
            testbed.run_alone("engine")


def test_the_error_of_a_role_ends_both_sides():
    before = threading.active_count()
    with VirtualTestbed(TABLE) as testbed, pytest.raises(Exception, match="size must be from 0"):
        testbed.run("parametrised", carrier="mxoe", size=-1, number=BURST, gap=0, repetitions=1)
    assert threading.active_count() == before


@pytest.mark.parametrize("room", [1000, 64 << 10, 1 << 20])
def test_socket_buffers_delay_messages_and_lose_nothing(room):
    """With room for the product of rate and round trip they cost nothing."""
    sizes = (0, 1, 999, 1001, 200_000, 1 << 20)

    def program(comm: Communicator) -> Program[list[int]]:
        found, times = [np.full(size, number, np.uint8) for number, size in enumerate(sizes)], []
        if comm.rank:
            received = [np.zeros_like(each) for each in found]
            for each in received:
                yield [comm.irecv(0, each)]
                times.append(comm.now())
            assert all(map(np.array_equal, received, found))
        else:
            yield [comm.isend(1, each) for each in found]
        return times

    limited, free = (StreamFabric(TABLE, 2, room=each).run(program)[1] for each in (room, None))
    assert all(map(operator.ge, limited, free))
    assert (limited == free) == (room == 1 << 20)
