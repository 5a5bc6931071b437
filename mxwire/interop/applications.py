"""The programs that cases want on the other side, when that is a host of ours: they answer, take, or measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, Parameters
from mxwire.interop.casting import Role, Where
from mxwire.interop.side import Application, Side, Taken
from mxwire.protocol import Partner, Request, Status

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


class Measured(Application):
    """The receiver of omx_perf: takes parameters, connects back, says so, and answers each message."""

    def __init__(self, side: Side) -> None:
        self.end = side.open(PERF_ENDPOINT)
        self.where = self.end.where
        self._steps = self._conversation()
        self._waits: Request | None = None
        side.applications.append(self)
        self.turn()

    def turn(self) -> None:
        """Go on as far as possible."""
        while self._waits is None or self._waits.done:
            self._waits = next(self._steps, None)
            if self._waits is None:
                self._steps = self._conversation()

    def _conversation(self) -> Iterator[Request]:
        end = self.end
        asked = end.receive(PARAMETERS_LENGTH, 0, 0)
        yield asked.request
        partner = asked.request.partner
        if asked.request.status is not Status.SUCCESS or partner is None:
            return
        parameters = Parameters.unpack(asked.data)
        yield end.ask(Where(partner.peer.address, partner.number))
        yield end.send(partner, b"", 0, synchronous=True)
        for length in parameters.lengths():
            for _ in range(parameters.warmup + parameters.iterations):
                taken = end.receive(length, MATCH)
                yield taken.request
                yield end.send(
                    partner,
                    taken.data[: parameters.answer_length(length)],
                    MATCH,
                    synchronous=parameters.synchronous,
                )
        end.side.note("the measurement is over")


def start(side: Side, role: Role) -> Application:
    """Start a program on a host of ours."""
    if role == "perf":
        return Measured(side)
    return Answering(side, ECHO_ENDPOINT if role == "echo" else SINK_ENDPOINT, echo=role == "echo")
