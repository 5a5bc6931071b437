"""A wire in memory for layers: seeded faults, links that stop, virtual time, and a watch for layers that wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from random import Random
from typing import Final

from mxwire.bench.models.header import packed, unpacked
from mxwire.bench.models.layer import BROADCAST, CallError, ModelLayer

RESET: Final = 50_000_000
"""Time in ns after which a stopped link is reset, and loses the frames in it (Myrinet)."""
DELAY: Final = 1_000
IN_LINK: Final = 4
"""Frames that a link holds: if it stops, all others are still in the sender's adapter."""
LATE: Final = 20_000
"""Additional delay of a reordered frame in ns."""
Stop = Callable[[], bool]


class AdapterInlet:
    """Frames at an adapter: handed to the processes of its node, or waiting because one of them takes none."""

    def __init__(self) -> None:
        self.processes: dict[int, ModelLayer] = {}
        self._frames: deque[tuple[int, bytes | memoryview]] = deque()
        self.stopped_at: int | None = None
        self.resets = self.unknown = 0

    def attach(self, layer: ModelLayer) -> None:
        """Add a process. Raises :class:`~mxwire.bench.models.layer.CallError` if its library admits one per node."""
        others = list(self.processes.values())
        if layer.port in self.processes:
            raise CallError(f"port {layer.port} of node {layer.node} is in use")
        if others and not all(each.shares_node for each in (layer, *others)):
            raise CallError(f"{layer.name}: one process per node, and node {layer.node} has it")
        self.processes[layer.port] = layer

    def arrive(self, node: int, raw: bytes | memoryview, now: int) -> None:
        """Append a frame of a node."""
        self._frames.append((node, raw))
        self.advance(now)

    def advance(self, now: int) -> None:
        """Hand over frames in order, until one is not taken; drop all after :data:`RESET`."""
        if self.stopped_at is not None and now - self.stopped_at >= RESET:
            self._reset()
        while self._frames:
            node, raw = self._frames[0]
            view = memoryview(raw)
            found = unpacked(view)
            layer = None if found is None else self.processes.get(found[1].target_port)
            if layer is None or found is None:
                # A library with one process per node does not look at the port.
                layer = next((each for each in self.processes.values() if not each.shares_node), None)
            if layer is None or found is None:
                self.unknown += 1
            elif not layer.ready(found[1]):
                self.stopped_at = now if self.stopped_at is None else self.stopped_at
                return
            else:
                layer.accept(node, view, now)
            self._frames.popleft()
        self.stopped_at = None

    def _reset(self) -> None:
        self.resets += 1
        self.stopped_at = None
        for node, raw in self._frames:
            found = unpacked(memoryview(raw))
            layer = None if found is None else self.processes.get(found[1].target_port)
            if found is not None and layer is not None:
                layer.reset((node, found[1].source_port), found[1])
        self._frames.clear()


class ModelWire:
    """Nodes joined by links with seeded faults. ``loss``, ``duplicate`` and ``reorder`` are probabilities per frame."""

    def __init__(
        self,
        layers: Iterable[ModelLayer],
        seed: int = 0,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        reorder: float = 0.0,
    ) -> None:
        self.layers: list[ModelLayer] = []
        self.inlets: dict[int, AdapterInlet] = {}
        self.now = 0
        self.lost = 0
        self.log: list[tuple[int, int, int]] = []
        """Source, target and kind of the transmitted frames."""
        self._random = Random(seed)
        self._faults = loss, duplicate, reorder
        self._flying: list[tuple[int, int, int, int, bytes]] = []
        self._in_link: Counter[int] = Counter()
        self._number = 0
        for each in layers:
            self.attach(each)

    def attach(self, layer: ModelLayer) -> None:
        """Add a process to its node."""
        self.inlets.setdefault(layer.node, AdapterInlet()).attach(layer)
        self.layers.append(layer)

    def move(self) -> bool:
        """Transmit all frames, and hand over those that have arrived by the next time something happens.

        Return False if nothing happened, and nothing is due.
        """
        for each in self.inlets.values():
            # The program may have posted a receive since the link stopped.
            each.advance(self.now)
        moved = self._transmit()
        due = [at for layer in self.layers if not layer.catastrophe and (at := layer.deadline()) is not None]
        due += [each.stopped_at + RESET for each in self.inlets.values() if each.stopped_at is not None]
        if self._flying:
            due.append(self._flying[0][0])
        if not due:
            return moved
        self.now = max(self.now, min(due))
        while self._flying and self._flying[0][0] <= self.now:
            _, _, source, target, raw = heappop(self._flying)
            self._in_link[target] -= 1
            self.inlets[target].arrive(source, raw, self.now)
        for each in self.inlets.values():
            each.advance(self.now)
        for layer in self.layers:
            layer.expire(self.now)
        return True

    def _transmit(self) -> bool:
        moved = False
        for layer in self.layers:
            while layer.outgoing and self._takes(layer.outgoing[0][0]):
                node, frame = layer.outgoing.popleft()
                moved = True
                raw = packed(layer.number, frame)
                for target in self.inlets if node == BROADCAST else (node,):
                    if target in self.inlets and (target != layer.node or node != BROADCAST):
                        self.log.append((layer.node, target, frame.kind))
                        self._fly(layer.node, target, raw)
        return moved

    def _takes(self, node: int) -> bool:
        """Return whether the link to a node takes a frame: it holds few, and none more while the receiver stops it."""
        inlet = self.inlets.get(node)
        return inlet is None or (inlet.stopped_at is None and self._in_link[node] < IN_LINK)

    def _fly(self, source: int, target: int, raw: bytes) -> None:
        loss, duplicate, reorder = self._faults
        if self._random.random() < loss:
            self.lost += 1
            return
        for _ in range(2 if self._random.random() < duplicate else 1):
            late = LATE if self._random.random() < reorder else 0
            self._number += 1
            self._in_link[target] += 1
            heappush(self._flying, (self.now + DELAY + late, self._number, source, target, raw))

    def run(self, step: Stop = lambda: False, until: Stop = lambda: False) -> None:
        """Let the program make its calls (``step``, which returns True if it did something) and frames move, until
        ``until`` returns True or nothing happens any more.

        In the latter case every layer with work left fails: the frame for which it waits has been lost.
        """
        while not until():
            done = step()
            if not self.move() and not done:
                self._watch()
                return

    def _watch(self) -> None:
        for layer in self.layers:
            left = layer.work()
            if left:
                layer.fail(f"stalled: {left}, and no event is due")
