"""The simulated Ethernet applies the faults of the scenario to frames, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from mxwire.ethernet import BROADCAST
from mxwire.frames import FrameBatch
from mxwire.simulation.network import LOST, Incident, Network, Port
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.units import MICROSECOND
from mxwire.wire.enums import PacketType

FRAMES = 2000
ADDRESSES = {bytes((2, 0, 0, 0, host, 0)): (host, 0) for host in range(3)}
A, B, C = ADDRESSES


def frame(number: int, size: int = 100, *, target: bytes = B, kind: PacketType = PacketType.TINY) -> bytes:
    """A frame with its number at the end, and the packet type where it belongs."""
    return target + A + b"\x86\xdf" + b"\0\0" + bytes([kind]) + bytes(size - 21) + number.to_bytes(4, "big")


@dataclass
class Wire:
    """A network whose hosts only write down what reaches them."""

    scenario: Scenario
    schedule: Schedule = field(default_factory=Schedule)
    arrived: list[tuple[Port, int, bytes]] = field(default_factory=list)
    """Port, time and bytes of each frame."""
    reports: list[tuple[bytes, int, int]] = field(default_factory=list)
    """Arguments of the calls to the observer."""

    def __post_init__(self) -> None:
        self.network = Network(self.scenario, self.schedule, ADDRESSES, self._take)

    def _take(self, port: Port, what: list[Any]) -> None:
        for each in what:
            frames = [each] if isinstance(each, bytes) else [each.frame(index) for index in range(len(each))]
            self.arrived += [(port, self.schedule.now, one) for one in frames]

    def send(self, *frames: bytes) -> None:
        self.network.send((0, 0), FrameBatch.from_frames(frames))

    def run(self) -> list[int]:
        """Until nothing is under way; the numbers of the frames that arrived, in order."""
        while len(self.schedule):
            self.schedule.step()
        assert self.network.in_flight == 0
        return [int.from_bytes(data[-4:], "big") for _, _, data in self.arrived]


def wire(*, observed: bool = False, count: int = FRAMES, **changes: Any) -> Wire:
    """Return a network that has forwarded ``count`` frames, one per microsecond."""
    made = Wire(Scenario(**changes))
    if observed:
        made.network.observers.append(lambda *reports: made.reports.append(reports))
    for number in range(count):
        made.schedule.at(number * MICROSECOND, made.send, frame(number))
    return made


@pytest.mark.parametrize("observed", [False, True])
def test_without_faults_every_frame_arrives_once_in_order(observed: bool) -> None:
    made = wire(observed=observed)
    assert made.run() == list(range(FRAMES))
    assert {port for port, _, _ in made.arrived} == {(1, 0)}
    assert (made.network.frames, made.network.lost) == (FRAMES, 0)
    assert all(copies == 1 for _, _, copies in made.reports)


def test_links_carry_ten_gigabits_a_second() -> None:
    made = Wire(Scenario(delay=10 * MICROSECOND))
    made.send(frame(0, 1000), frame(1, 1000))
    made.send(frame(2, 500))
    made.run()
    times = [time - 10 * MICROSECOND for _, time, _ in made.arrived]
    assert times[-2:] == [1600, 2000]


@pytest.mark.parametrize("name", ["loss", "corrupt"])
def test_lost_and_damaged_frames_do_not_arrive(name: str) -> None:
    made = wire(observed=True, **{name: 0.2})
    numbers = made.run()
    assert 0.15 < 1 - len(numbers) / FRAMES < 0.25
    assert numbers == sorted(set(numbers))
    assert made.network.lost == FRAMES - len(numbers)
    assert [int.from_bytes(data[-4:], "big") for data, time, _ in made.reports if time != LOST] == numbers


def test_duplicates_arrive_twice() -> None:
    made = wire(duplicate=0.2, observed=True)
    numbers = made.run()
    assert set(numbers) == set(range(FRAMES))
    assert 0.15 < len(numbers) / FRAMES - 1 < 0.25
    assert sum(copies for _, _, copies in made.reports) == len(numbers)


def test_held_back_frames_arrive_late_but_not_too_late() -> None:
    made = wire(reorder=0.2, held=50 * MICROSECOND)
    numbers = made.run()
    assert sorted(numbers) == list(range(FRAMES)) != numbers
    late = [time - number * MICROSECOND for number, (_, time, _) in zip(numbers, made.arrived, strict=True)]
    assert max(late) <= made.scenario.slowest + MICROSECOND


def test_jitter_moves_every_frame() -> None:
    made = wire(jitter=50 * MICROSECOND)
    numbers = made.run()
    assert sorted(numbers) == list(range(FRAMES)) != numbers


def test_changed_bytes_lie_behind_the_ethernet_header() -> None:
    made = wire(tamper=0.5, observed=True)
    made.run()
    blank = frame(0)[:-4]
    changed = [data for _, _, data in made.arrived if data[:-4] != blank]
    assert 0.3 < len(changed) / FRAMES < 0.6
    assert {data[:16] for data in changed} == {blank[:16]}
    assert any(copies == 0 for _, _, copies in made.reports), "what was changed has not arrived as it was sent"


def test_frames_of_an_interval_arrive_together() -> None:
    made = wire(coalescing=50 * MICROSECOND)
    made.run()
    assert {time % (50 * MICROSECOND) for _, time, _ in made.arrived} == {0}


def test_faults_stop() -> None:
    made = Wire(Scenario(loss=0.5))
    made.network.faults_until = 1000
    made.schedule.at(1000, made.send, *(frame(number) for number in range(FRAMES)))
    assert made.run() == list(range(FRAMES))


def test_broadcasts_reach_all_ports_and_unknown_addresses_none() -> None:
    made = Wire(Scenario())
    made.send(frame(1, target=BROADCAST), frame(2, target=b"\2\0\0\0\7\7"), frame(3, target=A), frame(4, target=C))
    made.run()
    assert [(port, int.from_bytes(data[-4:], "big")) for port, _, data in made.arrived] == [
        ((1, 0), 1),
        ((2, 0), 1),
        ((2, 0), 4),
    ]


def test_one_batch_to_one_target_is_handed_on_as_it_is() -> None:
    made = Wire(Scenario())
    batch = FrameBatch.from_frames([frame(0), frame(1)])
    seen: list[Any] = []
    made.network._deliver = lambda port, what: seen.extend(what)
    made.network.send((0, 0), batch)
    made.run()
    assert len(seen) == 1 and seen[0] is batch


@pytest.mark.parametrize(
    ("incident", "lost"),
    [
        (Incident(0, 100), {1, 2, 3, 4}),
        (Incident(0, 100, source=1), set()),
        (Incident(0, 100, source=0, target=1), {1, 2, 3}),
        (Incident(0, 100, packet_type=PacketType.PULL), {2}),
        (Incident(0, 100, longest=576), {3}),
        (Incident(1, 100), set()),
    ],
    ids=["all", "other host", "one way", "type", "mtu", "later"],
)
def test_incidents_drop_only_the_frames_that_they_describe(incident: Incident, lost: set[int]) -> None:
    made = Wire(Scenario())
    made.network.incidents.append(incident)
    made.send(frame(1), frame(2, kind=PacketType.PULL), frame(3, 1000), frame(4, target=C))
    assert {1, 2, 3, 4} - set(made.run()) == lost
    made.schedule.now = 100
    made.send(frame(5))
    assert 5 in made.run() and not made.network.incidents


def test_a_host_that_is_down_gets_nothing() -> None:
    made = wire(count=100)
    made.network.down[1] = (30 * MICROSECOND, 60 * MICROSECOND)
    arrived = made.run()
    assert 0 in arrived and 99 in arrived and 40 not in arrived and 25 < made.network.lost < 35


def test_one_fault_does_not_change_the_draws_of_another() -> None:
    plain, both = wire(loss=0.2), wire(loss=0.2, duplicate=0.3)
    assert set(plain.run()) == set(both.run())
