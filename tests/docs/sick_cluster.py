"""Writes the captures of the tutorial: ``python -m tests.docs.sick_cluster``.

A head node sends messages to four nodes at one switch, which return them, and records what passes its own interface.
While the cluster is sick, the cable of node2 loses frames, the switch port of node3 has the MTU of an ordinary
Ethernet, and the program of node4 has opened another endpoint than the expected one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from mxwire.ethernet import BROADCAST, DESTINATION
from mxwire.interop.cell_player import casting_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.programs import ECHO_ENDPOINT, ServerProgram
from mxwire.interop.recorded_frames import batch_of
from mxwire.interop.roles import UnexpectedResult
from mxwire.interop.simulated_testbed import SimulatedTestbed, address_of
from mxwire.interop.testbed import RecordedFrame
from mxwire.rules import LOST
from mxwire.simulation.network import Incident
from mxwire.simulation.schedule import FOREVER
from mxwire.units import SECOND
from tests.captures import write_capture

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAMES = ("head", "node1", "node2", "node3", "node4")
LENGTHS = (16, 3000, 100_000)
_PATIENCE = 3.0
_BEGAN = 1_763_992_800_000_000_000
_SNAP_LENGTH = 128


@dataclass(slots=True)
class BadCable(Incident):
    """Loses a share of the frames."""

    draws: Random = field(default_factory=lambda: Random(16))

    def hits(self, now: int, source: int, target: int, frame: bytes) -> bool:
        """Return whether a frame is lost."""
        return Incident.hits(self, now, source, target, frame) and self.draws.random() < 0.06


class Cluster(SimulatedTestbed):
    """The head node and the others, with their faults if they are ``sick``."""

    def __init__(self, *, sick: bool) -> None:
        implementation = implementation_by_name("open-mx-1.5")
        head, first, *others = (casting_of(implementation, name) for name in NAMES)
        super().__init__(
            *(head, first, treatment_by_name("none"), 1),
            introduction="announcements",
            patience=_PATIENCE,
            others=tuple(others),
        )
        if sick:
            self.network.incidents += [
                BadCable(SECOND, FOREVER, source=2),
                Incident(0, FOREVER, source=3, longest=1514),
                Incident(0, FOREVER, target=3, longest=1514),
            ]
        for number, side in enumerate(self.sides[1:], 1):
            program = ServerProgram(side, 3 if sick and number == 4 else ECHO_ENDPOINT, echo=True)
            self.applications.append(program)

    def run(self) -> None:
        """Exchange messages with one node after another."""
        self.sleep(1.0)
        for number in range(1, len(NAMES)):
            end = self.left.open(number)
            try:
                partner = end.connect(replace(self.sides[number].applications[0].where, endpoint=ECHO_ENDPOINT))
                for length in LENGTHS:
                    answer = end.receive(length)
                    end.send(partner, bytes(length))
                    end.wait(answer)
                self.settle()
            except UnexpectedResult:
                pass
            end.close()
            self.sleep(0.2)

    def at_head(self) -> list[RecordedFrame]:
        """Return the frames that pass the interface of the head node."""
        own = address_of(0)
        sent = [each for each in self.frames if each.frame[6:12] == own]
        received = [
            replace(each, time_ns=each.arrival_ns)
            for each in self.frames
            if each.frame[DESTINATION] in (own, BROADCAST) and each.frame[6:12] != own and each.arrival_ns != LOST
        ]
        return [
            replace(each, time_ns=each.time_ns + _BEGAN)
            for each in sorted(received + sent, key=lambda each: each.time_ns)
        ]


def saved(folder: Path) -> list[Path]:
    """Save both captures in a folder."""
    made = []
    for name in ("sick", "mended"):
        cluster = Cluster(sick=name == "sick")
        cluster.run()
        path = write_capture(
            folder / f"{name}-cluster.pcapng",
            batch_of(cluster.at_head()),
            interface_name="eth0",
            snap_length=_SNAP_LENGTH,
        )
        made.append(path)
    return made


if __name__ == "__main__":
    for each in saved(EXAMPLES):
        print(each.name, each.stat().st_size)
