"""The link of the model: frames leave one after another, pass two adapters, and wait for a coalesced interrupt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxwire.bench.cost.tables import Costs
from mxwire.simulation.schedule import Schedule

Handler = Callable[[list[Any]], None]


class WirePort:
    """One host's side of a full-duplex link through a switch."""

    def __init__(self, schedule: Schedule, costs: Costs, coalescing: float, deliver: Handler) -> None:
        self.costs = costs
        self._schedule = schedule
        self._coalescing = round(coalescing)
        self._deliver = deliver
        self._free_at = 0
        self._arrived: list[Any] = []
        self._interrupt = False

    def send(self, target: WirePort, what: Any, length: int, frames: int, leave: int, delay: float) -> None:
        """Send ``frames`` frames of ``length`` bytes in total, which are ready at time ``leave``.

        Both adapters and the link work on different frames at the same time: the slowest of them limits the rate, and
        a frame takes the time of all three.
        """
        costs, other = self.costs, target.costs
        stations = (
            (length + frames * costs.line_overhead) * 8e9 / min(costs.line, other.line),
            frames * (costs.firmware + costs.dma_start) + length * costs.to_adapter,
            frames * (other.firmware + other.dma_start) + length * other.from_adapter,
        )
        slowest = max(stations)
        self._free_at = max(self._free_at, leave) + round(slowest)
        others = (sum(stations) - slowest) / frames
        arrival = self._free_at + round(others + costs.adapter_send + delay + other.adapter_receive)
        self._schedule.at(arrival, target._arrive, what)

    def _arrive(self, what: Any) -> None:
        self._arrived.append(what)
        if not self._interrupt:
            self._interrupt = True
            self._schedule.after(self._coalescing, self._handle)

    def _handle(self) -> None:
        self._interrupt = False
        arrived, self._arrived = self._arrived, []
        self._deliver(arrived)
