"""The simulated Ethernet: a switch that knows all addresses, with faults on its ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from mxwire.ethernet import ADDRESS_SIZE, BROADCAST
from mxwire.frames import FrameBatch
from mxwire.simulation.randomness import stream
from mxwire.simulation.scenario import RATES, Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.units import MICROSECOND
from mxwire.wire.layout import TYPE_OFFSET

SWAPPED: Final = 8 * MICROSECOND
"""Delay in ns of a frame that the rest of its burst overtakes: more than the longest frame takes at 10 Gb/s."""
LOST: Final = -1
"""Time of arrival of a frame that never arrives."""
_HEAD: Final = 16
_NEVER: Final = (0, 0)

Port = tuple[int, int]
"""A host's number and the number of its interface."""
Deliver = Callable[[Port, list[FrameBatch | bytes]], None]
Observe = Callable[[bytes, int, int], None]
"""Called for each frame with its bytes, its first time of arrival or :data:`LOST`, and its number of arrivals."""


@dataclass(slots=True)
class Incident:
    """A time span in which certain frames do not arrive."""

    start: int
    end: int
    source: int | None = None
    target: int | None = None
    packet_type: int | None = None
    longest: int | None = None
    """Longer frames do not pass."""

    def hits(self, now: int, source: int, target: int, frame: bytes) -> bool:
        """Return whether a frame is dropped."""
        return (
            self.start <= now < self.end
            and (self.source is None or self.source == source)
            and (self.target is None or self.target == target)
            and (self.packet_type is None or frame[TYPE_OFFSET] == self.packet_type)
            and (self.longest is None or len(frame) > self.longest)
        )


class Network:
    """A switch between the interfaces of all hosts."""

    def __init__(self, scenario: Scenario, schedule: Schedule, addresses: dict[bytes, Port], deliver: Deliver) -> None:
        self.scenario = scenario
        self.addresses = addresses
        self.incidents: list[Incident] = []
        self.down: dict[int, tuple[int, int]] = {}
        """Times at which hosts are switched off: start and end."""
        self.observers: list[Observe] = []
        self.frames = 0
        """Frames that were sent."""
        self.lost = 0
        """Frames, or duplicates of them, that did not arrive."""
        self.faults_until = scenario.faults_end
        self._schedule = schedule
        self._deliver = deliver
        self._free_at: dict[Port, int] = {}
        self._waiting: dict[tuple[Port, int], list[FrameBatch | bytes]] = {}
        self._planned = {each.place: each.kind for each in scenario.faults if each.victim is None}
        """Planned faults by the number of their frame."""
        self._faulty = scenario.faulty
        self._rates: dict[str, float] = {name: getattr(scenario, name) for name in RATES}
        # A stream for each fault, so that removing one kind leaves the others as they are.
        self._draws = {
            name: stream(scenario.seed, "network", name) for name in (*RATES, "jitter") if getattr(scenario, name)
        }

    def send(self, source: Port, frames: Sequence[bytes] | FrameBatch) -> None:
        """Take frames from an interface and decide the fate of each."""
        now = self._schedule.now
        first = self.frames + 1
        self.frames += len(frames)
        # Incidents of the past would otherwise be checked for every frame of a long run.
        if self.incidents:
            self.incidents = [each for each in self.incidents if each.end > now]
        faulty = self._faulty and now < self.faults_until
        # Most frames of a campaign take this way: a whole batch at a time, without looking at its frames.
        if not (faulty or self.incidents or self.down or self.observers or self._planned):
            self._pass(source, frames if isinstance(frames, FrameBatch) else FrameBatch.from_frames(frames))
            return
        for number, frame in enumerate(frames, first):
            arrival = self._arrival(source, len(frame))
            reached: list[int] = []
            for target in self._targets(source, frame):
                reached += self._frame(source, target, frame, arrival, faulty, self._planned.get(number))
            for observe in self.observers:
                observe(frame, min(reached) if reached else LOST, len(reached))

    # Without faults.

    def _pass(self, source: Port, batch: FrameBatch) -> None:
        """Forward a batch unchanged, split only by destination."""
        rows = batch.buffer[batch.offset[:, None] + np.arange(ADDRESS_SIZE)]
        if not (rows == rows[0]).all():
            for index in range(len(batch)):
                frame = batch.frame(index)
                arrival = self._arrival(source, len(frame))
                for target in self._targets(source, frame):
                    self._put(target, arrival, frame)
            return
        arrival = self._arrival(source, int(batch.length.sum()))
        for target in self._targets(source, rows[0].tobytes()):
            self._put(target, arrival, batch)

    def _arrival(self, source: Port, length: int) -> int:
        """Return the time at which the last byte of a frame leaves the switch: links carry 10 Gb/s, frame after
        frame."""
        start = max(self._schedule.now, self._free_at.get(source, 0))
        # 0.8 ns per byte at 10 Gb/s, in integers: runs must be the same on all machines.
        free = self._free_at[source] = start + (length * 4 + 4) // 5
        return free + self.scenario.delay

    def _targets(self, source: Port, frame: bytes) -> list[Port]:
        destination = frame[:ADDRESS_SIZE]
        if destination == BROADCAST:
            return [each for each in self.addresses.values() if each != source]
        port = self.addresses.get(destination)
        return [] if port is None or port == source else [port]

    def _put(self, target: Port, arrival: int, what: FrameBatch | bytes) -> int:
        """Deliver frames together with others that arrive in the same coalescing interval; return the time of
        arrival."""
        grain = self.scenario.coalescing
        if grain:
            # Rounded up: a frame must not arrive before its last byte.
            arrival = -(-arrival // grain) * grain
        key = target, arrival
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [what]
            self._schedule.at(arrival, self._arrive, target, arrival)
        else:
            waiting.append(what)
        return arrival

    def _arrive(self, target: Port, arrival: int) -> None:
        self._deliver(target, self._waiting.pop((target, arrival)))

    @property
    def in_flight(self) -> int:
        """Return the number of pending deliveries."""
        return len(self._waiting)

    # With faults.

    def _frame(
        self, source: Port, target: Port, frame: bytes, arrival: int, faulty: bool, planned: str | None
    ) -> list[int]:
        """Decide the fate of one frame to one port; return the times at which it arrives unharmed."""
        now = self._schedule.now
        if self.incidents and any(each.hits(now, source[0], target[0], frame) for each in self.incidents):
            self.lost += 1
            return []
        if planned == "lose":
            self.lost += 1
            return []
        times = [arrival] if planned is None else self._planned_times(planned, arrival)
        harmed = False
        if faulty:
            scenario = self.scenario
            # A corrupted frame fails the check sequence of Ethernet, so that no host sees it.
            if self._happens("loss") or self._happens("corrupt"):
                self.lost += 1
                return []
            if scenario.jitter:
                times[0] += self._draws["jitter"].randrange(scenario.jitter + 1)
            if self._happens("reorder"):
                # At least 1 ns, or the frame would not be overtaken.
                times[0] += self._draws["reorder"].randrange(1, scenario.held + 2)
            if self._happens("duplicate"):
                times.append(times[0] + self._draws["duplicate"].randrange(scenario.held + 1))
            if self._happens("tamper"):
                frame, harmed = self._tampered(frame), True
        reached: list[int] = []
        for time in times:
            start, end = self.down.get(target[0], _NEVER)
            if start <= time < end:
                self.lost += 1
                continue
            there = self._put(target, time, frame)
            if not harmed:
                reached.append(there)
        return reached

    def _planned_times(self, kind: str, arrival: int) -> list[int]:
        """Return the times of arrival of a frame with a planned fault that does not lose it."""
        if kind == "double":
            return [arrival, arrival]
        if kind == "swap":
            return [arrival + SWAPPED]
        if kind == "delay":
            return [arrival + self.scenario.held]
        return [arrival, arrival + self.scenario.held] if kind == "echo" else [arrival]

    def _happens(self, name: str) -> bool:
        rate = self._rates[name]
        return rate > 0 and self._draws[name].random() < rate

    def _tampered(self, frame: bytes) -> bytes:
        """Return a frame with one to three changed bytes behind its Ethernet header."""
        rng = self._draws["tamper"]
        changed = bytearray(frame)
        for _ in range(rng.randrange(1, 4)):
            # Changed addresses would only send the frame elsewhere, which is a loss.
            place = rng.randrange(min(_HEAD, len(changed) - 1), len(changed))
            # Never 0, which would leave the byte as it is.
            changed[place] ^= rng.randrange(1, 256)
        return bytes(changed)
