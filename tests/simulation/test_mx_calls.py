"""Applications that receive inside of their unexpected handler and take completed requests from the queue, on a
network with faults: the same invariants hold, and the queue has the order of the events."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from mxwire.protocol import Event, EventKind, Node, Request
from mxwire.protocol.library.inbound import Unexpected
from mxwire.simulation import Simulation, application, draw_scenario
from mxwire.simulation.application import SimulatedApplication
from mxwire.simulation.receiver import SimulatedReceiver
from mxwire.units import MILLISECOND


class HandlerReceiver(SimulatedReceiver):
    """Posts the receive for an unexpected message from the handler, more often than not."""

    posted_inside = 0

    def start(self) -> None:
        # None is posted at once, and others late, so that most messages are unexpected.
        self._endpoint.handle_unexpected(self._handle)
        self._continue()

    def _continue(self) -> None:
        if self._wanted:
            self.application.after(2 * MILLISECOND, self._next)

    def _handle(self, unexpected: Unexpected) -> bool:
        if super()._handle(unexpected):
            return True
        info = unexpected.match_info
        if Random(info).random() < 0.7:
            for wanted in reversed(self._wanted):
                if info & wanted.mask == wanted.value:
                    self._wanted.remove(wanted)
                    self._post(wanted)
                    HandlerReceiver.posted_inside += 1
                    break
        return False


class QueueUser(SimulatedApplication):
    """Compares the events with the queue, which may be ahead of them, and takes requests late and out of order."""

    taken = 0

    def hear(self, event: Event) -> None:
        if event.kind is EventKind.COMPLETED and event.request is not None:
            self._compare(event.request)
        super().hear(event)

    def _compare(self, request: Request) -> None:
        queue: list[Request] = self.__dict__.setdefault("queue", [])
        endpoint: Any = request.endpoint
        queue[:] = [each for each in queue if each.endpoint is endpoint]
        if request.forgotten:
            return
        queue.append(request)
        assert endpoint.completions.first() is queue[0]
        assert len(endpoint.completions) >= len(queue)
        if len(queue) > 5:
            # Out of order, by match information: the oldest of its kind.
            info = queue[3].match_info
            oldest = next(each for each in queue if each.match_info == info)
            assert endpoint.completed(info, (1 << 64) - 1) is oldest
            endpoint.forget(oldest)
            queue.remove(oldest)
            QueueUser.taken += 1


@pytest.mark.parametrize("seeds", [range(12), range(12, 24)], ids=str)
def test_invariants_hold_with_calls_in_the_handler(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    monkeypatch.setattr(application, "SimulatedReceiver", HandlerReceiver)
    monkeypatch.setattr("mxwire.simulation.world.SimulatedApplication", QueueUser)
    monkeypatch.setattr(Node, "open_endpoint", _queued(Node.open_endpoint))
    HandlerReceiver.posted_inside = QueueUser.taken = 0
    for seed in seeds:
        outcome = Simulation(draw_scenario(seed)).run()
        assert outcome.held, f"seed {seed}: {outcome.breaches[0]}"
    assert HandlerReceiver.posted_inside > 20
    assert QueueUser.taken > 100


def _queued(original: Any) -> Any:
    return lambda self, *arguments, **options: partial(original, self, completions=True)(*arguments, **options)
