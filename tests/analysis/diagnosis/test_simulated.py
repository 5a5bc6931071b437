"""Traffic of whole hosts in simulated networks: what is done to the network is what is found, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.analysis.diagnosis import Finding
from mxwire.frames import FrameBatch
from mxwire.simulation import Scenario, Simulation, draw_scenario
from mxwire.simulation.network import Incident
from mxwire.simulation.world import SimulatedHost
from mxwire.units import SECOND
from mxwire.wire.dialect import MXOE, Dialect, omx

from .scene import diagnosed, ids

NETWORK = {"frames-lost", "tail-loss", "burst-loss", "frames-duplicated", "frames-out-of-order"}
WORKLOADS = ("ping-pong", "stream", "many-to-one", "all-to-all")
DISCOVERIES = ("static", "nameless", "announce")
DIALECTS = (MXOE, omx(9000), omx(1500))
BATCH = 200
"""Frames that are diagnosed together."""
USUAL = {"endpoint-closed", "endpoint-out-of-range"}
"""The applications of the simulation knock at endpoints that do not exist, too."""


class Recorder:
    """All frames that hosts send, at the moment when they do."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.times: list[int] = []

    def __call__(self, batch: FrameBatch) -> None:
        self.frames += batch
        self.times += batch.timestamp_ns.tolist()

    def diagnosed(self) -> list[Finding]:
        """Return the findings in a capture of the frames, which is read in several batches."""
        batch = FrameBatch.from_frames(self.frames, self.times)
        return diagnosed(*(batch.part(first, first + BATCH) for first in range(0, len(batch), BATCH)))


def scenario(seed: int, **faults: object) -> Scenario:
    return Scenario(
        seed=seed,
        hosts=2 + seed % 3,
        messages=30,
        workload=WORKLOADS[seed % 4],
        dialect=DIALECTS[seed % 3],
        discovery=DISCOVERIES[seed % 3],
        largest=1 << 17,
        judged=False,
        **faults,  # type: ignore[arg-type]
    )


def recorded(what: Scenario) -> list[Finding]:
    recorder = Recorder()
    Simulation(what, recorder).run()
    return recorder.diagnosed()


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_found_in_a_sound_network(seed):
    assert ids(recorded(scenario(seed))) <= USUAL


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", ["loss", "duplicate", "reorder"])
def test_a_bad_network_is_found_bad_and_its_hosts_are_not(seed, fault):
    assert ids(recorded(scenario(seed, **{fault: 0.05}))) <= USUAL | NETWORK


NEVER = {
    *("dialect-mismatch", "generation-mismatch", "frame-limit-mismatch", "byte-order-mismatch", "ethertype-changed"),
    *("ethertype-filtered", "mixed-discovery-daemons", "duplicate-mac", "duplicate-name"),
    *("capture-frames-doubled", "capture-frames-cut", "capture-one-direction", "interrupt-coalescing"),
}
"""Findings that nothing the simulator does to a network can cause."""


@pytest.mark.parametrize("first", range(400, 440, 8))
def test_network_faults_are_not_mistaken_for_others(first):
    for seed in range(first, first + 8):
        drawn = draw_scenario(seed)
        if not drawn.tamper:
            assert not ids(recorded(drawn)) & NEVER, seed


def at_the_receiver(seed: int, dialect: Dialect, **faults: object) -> list[Finding]:
    """Streams of long messages, as a capture on the host that receives them shows them."""
    what = Scenario(
        seed=seed,
        messages=24,
        workload="stream",
        dialect=dialect,
        largest=1 << 19,
        judged=False,
        **faults,  # type: ignore[arg-type]
    )
    simulation, recorders = Simulation(what), (Recorder(), Recorder())
    simulation.world.taps.update(enumerate(recorders))
    simulation.run()
    return [each for recorder in recorders for each in recorder.diagnosed()]


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_a_network_that_only_reorders_is_found_to_reorder_and_not_to_lose(seed, dialect):
    assert "frames-out-of-order" in ids(at_the_receiver(seed, dialect, reorder=0.1))
    assert not ids(at_the_receiver(seed, dialect)) & NETWORK


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("fault", [{"loss": 0.05}, {"loss": 0.05, "duplicate": 0.05}], ids=str)
def test_a_network_that_loses_or_copies_is_not_taken_for_one_that_reorders(seed, dialect, fault):
    assert "frames-out-of-order" not in ids(at_the_receiver(seed, dialect, held=0, **fault))


def test_loss_is_found():
    assert any({"frames-lost"} <= ids(recorded(scenario(seed, loss=0.05))) for seed in range(2))


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (MXOE, omx(9000), "dialect-mismatch"),
        (omx(9000), omx(1500), "frame-limit-mismatch"),
        (omx(9000), omx(9000, "N3"), "generation-mismatch"),
    ],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_hosts_that_were_built_differently_are_found(monkeypatch, one, other, name):
    """Two engines that do not understand each other's long messages."""
    plain = SimulatedHost.boot

    def boot(host: SimulatedHost) -> None:
        common = host.world.scenario
        host.world.scenario = replace(common, dialect=other) if host.number == 1 else common
        plain(host)
        host.world.scenario = common

    monkeypatch.setattr(SimulatedHost, "boot", boot)
    what = Scenario(seed=4, messages=16, workload="all-to-all", dialect=one, largest=1 << 17, judged=False)
    recorder = Recorder()
    world = Simulation(what, recorder).world
    world.start()
    while world.schedule.now < 6 * SECOND and len(world.schedule):
        world.schedule.step()
    found = recorder.diagnosed()
    assert ids(found) == {name} and found[0].confidence == "high"


@pytest.mark.parametrize("dialect", DIALECTS[:2])
def test_an_mtu_that_is_too_small_for_good_is_found(dialect):
    """The engine in a network that passes frames of up to 1500 bytes only."""
    recorder = Recorder()
    what = Scenario(seed=3, messages=12, workload="stream", dialect=dialect, largest=1 << 17, judged=False)
    simulation = Simulation(what, recorder)
    world = simulation.world
    world.network.incidents.append(Incident(0, 1000 * SECOND, longest=1500))
    world.start()
    while world.schedule.now < 6 * SECOND and len(world.schedule):
        world.schedule.step()
    findings = recorder.diagnosed()
    assert ids(findings) - USUAL == {"mtu-too-small"}
    assert all("pass" in each.summary for each in findings if each.id == "mtu-too-small")
