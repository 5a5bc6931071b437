"""The programs that cases want on the other side, when that is a host of ours: they answer, take, or measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, SETTLE, PerfParameters
from mxwire.interop.casting import ANSWERS, Role, Where
from mxwire.interop.side import Application, Side, Taken
from mxwire.protocol import Partner, Request, Status
from mxwire.units import SECOND

ECHO_ENDPOINT: Final = 1
SINK_ENDPOINT: Final = 3
PERF_ENDPOINT: Final = 0


class Answering(Application):
    """Takes whatever comes; with ``echo`` sends it back, connected to whom it came from (R-CON-12)."""

    def __init__(self, side: Side, number: int, *, echo: bool) -> None:
        self.end = side.open(number)
        self.where = self.end.where
        self._echo = echo
        self._taking: list[Taken] = []
        self._met: dict[tuple[Partner, int], Request] = {}
        """Connects back; a partner that was restarted wants another one."""
        side.applications.append(self)

    def turn(self) -> None:
        """Take what has come, and answer what is complete, in order."""
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
            self._met[epoch] = self.end.ask(Where(partner.peer.address, partner.number))

    def _answered(self, taken: Taken) -> bool:
        request = taken.request
        self.end.side.note(f"took {request.transferred} bytes: {'' if request.status is None else request.status.text}")
        if not self._echo or request.status is not Status.SUCCESS or request.partner is None:
            return True
        met = self._met.get((request.partner, request.partner.epoch))
        if met is not None and not met.done:
            return False
        self.end.send(request.partner, taken.data, request.match_info)
        return True


class PerfReceiver(Application):
    """omx_perf as a slave: takes parameters, connects back, acknowledges them, and answers each message.

    Like a real one it answers from a buffer of its own that it never fills (R-MEA-16), goes on with a measurement
    whatever comes, so that a sender which gives up leaves it in mid-run, and forgets its sender half a second after the
    last answer, in which it does not look at the network (D-12).
    """

    def __init__(self, side: Side) -> None:
        self.end = side.open(PERF_ENDPOINT)
        self.where = replace(self.end.where, answer=ANSWERS["perf"])
        self._stage = side.stage
        self._steps = self._conversation()
        self._ready: Callable[[], bool] = _at_once
        side.applications.append(self)
        self.turn()

    def turn(self) -> None:
        """Go on as far as possible."""
        while self.end.engine.open and self._ready():
            ready = next(self._steps, None)
            if ready is None:
                self._steps, ready = self._conversation(), _at_once
            self._ready = ready

    def _conversation(self) -> Iterator[Callable[[], bool]]:
        """One measurement; gives what has to hold before it can go on."""
        end = self.end
        asked = end.receive(PARAMETERS_LENGTH, 0, 0)
        yield _done(asked.request)
        partner = asked.request.partner
        if partner is None or len(asked.data) != PARAMETERS_LENGTH:
            return
        parameters = PerfParameters.unpack(asked.data)
        yield _done(end.ask(Where(partner.peer.address, partner.number)))
        yield _done(end.send(partner, b"", 0, synchronous=True))
        for length in parameters.lengths():
            answer = bytes(parameters.answer_length(length))
            for _ in range(parameters.warmup + parameters.iterations):
                yield _done(end.receive(length, MATCH).request)
                yield _done(end.send(partner, answer, MATCH, synchronous=parameters.synchronous))
        end.side.note("the measurement is over")
        yield self._asleep()
        end.engine.disconnect(partner)
        end.side.push()

    def _asleep(self) -> Callable[[], bool]:
        """Sleep as a slave does; the one look at the network that follows is made on waking."""
        stage, end = self._stage, self.end
        until = stage.clock() + round(SETTLE * SECOND)
        end.pause()
        stage.look_at(until)

        def awake() -> bool:
            if stage.clock() < until:
                return False
            end.pause(False)
            return True

        return awake


def _done(request: Request) -> Callable[[], bool]:
    return lambda: request.done


def _at_once() -> bool:
    return True


def start(side: Side, role: Role) -> Application:
    """Start a program on a host of ours."""
    if role == "perf":
        return PerfReceiver(side)
    return Answering(side, ECHO_ENDPOINT if role == "echo" else SINK_ENDPOINT, echo=role == "echo")
