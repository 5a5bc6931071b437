"""Several processes per host: engines joined by local channels, judged like all others (R-LOC-02)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol.local_channel import RecordKind
from mxwire.simulation import Scenario, Simulation, draw_scenario, shrink
from mxwire.simulation.local_path import SimulatedChannel
from mxwire.simulation.world import SimulatedProcess
from mxwire.units import MICROSECOND
from mxwire.wire.dialect import omx

LOCAL = ("one-copy", "two-copies")


@pytest.mark.parametrize("local", LOCAL)
@pytest.mark.parametrize("seed", range(6))
def test_the_invariants_hold(seed, local):
    """With the faults and incidents of campaigns; the engines of a host are those of its processes."""
    simulation = Simulation(draw_scenario(seed, local=local))
    outcome = simulation.run()
    assert outcome.held, outcome.breaches
    assert len(simulation.world.hosts) == len(simulation.world.applications)
    assert all(isinstance(each, SimulatedProcess) for each in simulation.world.hosts)


def test_a_process_need_not_know_an_index_that_another_learns_at_the_same_moment():
    """A restarted host: one process hears its index and answers, while another refuses a frame without an index."""
    scenario = Scenario(
        840012250,
        messages=6,
        dialect=omx(1500),
        processes=2,
        local="two-copies",
        largest=128,
        resend_maximum=16,
        gap=0,
        corrupt=0.025,
        delay=100 * MICROSECOND,
        held=200 * MICROSECOND,
        coalescing=50 * MICROSECOND,
        crash=1,
        partition=1,
    )
    outcome = Simulation(scenario).run()
    assert outcome.held, outcome.breaches[0]


@pytest.mark.parametrize("local", LOCAL)
def test_messages_within_a_host_are_not_on_the_wire(local):
    """Of all lengths, on several interfaces."""
    scenario = Scenario(3, processes=3, interfaces=2, local=local, workload="same-host", messages=60)
    outcome = Simulation(scenario).run()
    assert outcome.held and outcome.counts["delivered"] == 60
    # At most, connects that must fail are on the wire.
    assert outcome.counts["frames"] < 30


def test_a_run_is_the_same_again():
    scenario = Scenario(7, hosts=3, processes=2, local="one-copy", messages=40, loss=0.05, kill=2, crash=1)
    one, other = Simulation(scenario).run(), Simulation(scenario).run()
    assert one.held and one.digest == other.digest
    assert one.digest != Simulation(replace(scenario, local="shared")).run().digest


def test_a_killed_process_is_another_one_when_it_starts_again():
    """Its engine is gone, and the processes beside it continue."""
    simulation = Simulation(Scenario(2, processes=3, local="one-copy", messages=60, kill=3))
    outcome = simulation.run()
    assert outcome.held and outcome.unchecked.keys() == {"W-5"}
    boots = sorted(each.boots for each in simulation.world.hosts)
    assert boots[0] == 1 and sum(boots) == 6 + 3


def losing(channel):
    def put(head, data=b""):
        if len(head) + len(data) > 500:
            return True
        return channel(head, data)

    return put


def repeating(channel):
    def put(head, data=b""):
        return channel(head, data) and (head[0] != RecordKind.MESSAGE or channel(head, data))

    return put


def changing(channel):
    def put(head, data=b""):
        return channel(head, bytes(data)[:-1] + b"\x00" if len(data) > 100 else data)

    return put


@pytest.mark.parametrize(("defect", "invariant"), [(losing, "delivery"), (repeating, "once"), (changing, "content")])
def test_defects_of_a_channel_are_detected_and_shrink(monkeypatch: pytest.MonkeyPatch, defect, invariant):
    """The reduced run still has several processes per host, since a shared engine has no channels."""
    original = SimulatedChannel.put

    def put(self, head, data=b""):
        return defect(lambda *record: original(self, *record))(head, data)

    monkeypatch.setattr(SimulatedChannel, "put", put)
    scenario = Scenario(1, hosts=3, processes=3, local="two-copies", messages=30, workload="same-host")
    outcome = Simulation(scenario).run()
    assert invariant in {each.invariant for each in outcome.breaches}
    found = shrink(outcome, trials=40)
    assert not found.held and found.scenario.local != "shared"
    assert found.scenario.messages <= 8 and found.scenario.processes > 1


def test_a_frame_of_a_host_to_itself_is_detected():
    """R-LOC-02."""
    simulation = Simulation(Scenario(1, processes=2, local="one-copy", messages=5, judged=False))
    world = simulation.world
    own, other = bytes(world.hosts[0].addresses[0]), bytes(world.hosts[1].addresses[0])
    for target in (other, own):
        assert not world.ledger.breaches
        world.sent(0, 0, FrameBatch.from_frames([target + own + b"\x86\xdf" + bytes(46)], [0]))
    assert [each.rule for each in world.ledger.breaches] == ["R-LOC-02"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"local": "none"}, "no local path 'none': use one of shared, one-copy, two-copies"),
        ({"workload": "same-host"}, "needs several applications per host"),
    ],
)
def test_impossible_scenarios_are_refused(options, text):
    with pytest.raises(MxwireError, match=text):
        Scenario(**options)
