"""Programs of mxwire's own hosts at the other end of a case: an echo, a sink, and a stand-in for omx_perf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, SETTLE, PerfParameters
from mxwire.interop.roles import ANSWERS, EndpointAddress, Role
from mxwire.interop.testbed import PostedReceiveBuffer, SideProgram, TestbedSide
from mxwire.protocol import Partner, Request, Status
from mxwire.units import SECOND

ECHO_ENDPOINT: Final = 1
SINK_ENDPOINT: Final = 3
PERF_ENDPOINT: Final = 0


class ServerProgram(SideProgram):
    """Receives all messages; with ``echo`` returns each to its sender, after connecting to it (R-CON-12)."""

    def __init__(self, side: TestbedSide, number: int, *, echo: bool) -> None:
        self.end = side.open(number)
        self.where = self.end.where
        self._echo = echo
        self._taking: list[PostedReceiveBuffer] = []
        self._met: dict[tuple[Partner, int], Request] = {}
        """Connects to senders; a restarted partner needs another connect."""
        side.applications.append(self)

    def turn(self) -> None:
        """Receive queued messages, and answer complete ones in order."""
        end = self.end
        if not end.engine.open:
            return
        while (found := end.engine.probe(0, 0)) is not None:
            self._meet(found.partner)
            self._taking.append(end.receive(found.length, 0, 0))
        while self._taking and self._taking[0].request.done:
            taken = self._taking[0]
            if not self._answered(taken):
                return
            del self._taking[0]

    def _meet(self, partner: Partner) -> None:
        epoch = partner, partner.epoch
        if self._echo and epoch not in self._met:
            self._met[epoch] = self.end.ask(EndpointAddress(partner.peer.address, partner.number))

    def _answered(self, taken: PostedReceiveBuffer) -> bool:
        request = taken.request
        self.end.side.note(
            f"received {request.transferred} bytes: {'' if request.status is None else request.status.text}"
        )
        if not self._echo or request.status is not Status.SUCCESS or request.partner is None:
            return True
        met = self._met.get((request.partner, request.partner.epoch))
        if met is not None and not met.done:
            return False
        self.end.send(request.partner, taken.data, request.match_info)
        return True


class PerfProgram(SideProgram):
    """omx_perf as a slave: receives parameters, connects back, acknowledges them, and answers each message.

    Like the real program it answers from a buffer of its own that it never fills (R-MEA-16), continues a measurement
    whatever it receives, so that a sender which stops leaves it in the middle of a run, and forgets its sender half a
    second after the last answer, a time in which it does not poll the network (D-12).
    """

    def __init__(self, side: TestbedSide) -> None:
        self.end = side.open(PERF_ENDPOINT)
        self.where = replace(self.end.where, answer=ANSWERS["perf"])
        self._testbed = side.testbed
        self._steps = self._conversation()
        self._ready: Callable[[], bool] = _at_once
        side.applications.append(self)
        self.turn()

    def turn(self) -> None:
        """Continue until nothing more can be done."""
        while self.end.engine.open and self._ready():
            ready = next(self._steps, None)
            if ready is None:
                self._steps, ready = self._conversation(), _at_once
            self._ready = ready

    def _conversation(self) -> Iterator[Callable[[], bool]]:
        """Run one measurement; yields the condition that must hold before it can continue."""
        end = self.end
        received = end.receive(PARAMETERS_LENGTH, 0, 0)
        yield _done(received.request)
        partner = received.request.partner
        if partner is None or len(received.data) != PARAMETERS_LENGTH:
            return
        parameters = PerfParameters.unpack(received.data)
        yield _done(end.ask(EndpointAddress(partner.peer.address, partner.number)))
        yield _done(end.send(partner, b"", 0, synchronous=True))
        for length in parameters.lengths():
            answer = bytes(parameters.answer_length(length))
            for _ in range(parameters.warmup + parameters.iterations):
                yield _done(end.receive(length, MATCH).request)
                yield _done(end.send(partner, answer, MATCH, synchronous=parameters.synchronous))
        end.side.note("end of the measurement")
        yield self._asleep()
        end.engine.disconnect(partner)
        end.side.push()

    def _asleep(self) -> Callable[[], bool]:
        """Sleep like a slave, which polls the network only once, on waking."""
        testbed, end = self._testbed, self.end
        until = testbed.clock() + round(SETTLE * SECOND)
        end.pause()
        testbed.schedule_turn(until)

        def awake() -> bool:
            if testbed.clock() < until:
                return False
            end.pause(False)
            return True

        return awake


def _done(request: Request) -> Callable[[], bool]:
    return lambda: request.done


def _at_once() -> bool:
    return True


def start(side: TestbedSide, role: Role) -> SideProgram:
    """Start a program on a host of mxwire."""
    if role == "perf":
        return PerfProgram(side)
    return ServerProgram(side, ECHO_ENDPOINT if role == "echo" else SINK_ENDPOINT, echo=role == "echo")
