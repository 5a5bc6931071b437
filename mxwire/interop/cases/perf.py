"""The exchange of omx_perf, which every Open-MX host has."""

from __future__ import annotations

from collections.abc import Callable

from mxwire.host.perf.parameters import MATCH, PerfParameters
from mxwire.interop.cases.definition import CaseGroup, data, of
from mxwire.interop.roles import EndpointAddress
from mxwire.interop.testbed import CaseEndpoint, Testbed
from mxwire.protocol import Partner

CASES = CaseGroup("measuring")
_START, _END, _FACTOR = 1, 300_000, 8


def _parameters(*, unidirectional: bool = False) -> PerfParameters:
    return PerfParameters(
        iterations=2, warmup=1, start=_START, end=_END, multiplier=_FACTOR, unidirectional=unidirectional
    )


AGREEMENT = of(44, 0)
"""Messages sent synchronously before a measurement: the parameters, and their acknowledgement."""
_LENGTHS = of(*_parameters().lengths())


def _measure(testbed: Testbed, parameters: PerfParameters) -> None:
    where = testbed.program("perf")
    end = testbed.left.open(7)
    partner = _agree(end, where, parameters)
    for length in parameters.lengths():
        for number in range(parameters.warmup + parameters.iterations):
            answer = end.receive(parameters.answer_length(length), MATCH)
            content = data(number, length)
            sent = end.send(partner, content, MATCH, synchronous=parameters.synchronous)
            end.wait(sent)
            end.took(answer, content[: parameters.answer_length(length)])
    testbed.settle()


def round_trips(testbed: Testbed, length: int, count: int, cut: Callable[[], None]) -> None:
    """Send ``count`` messages of one length to omx_perf at once, and receive the answers.

    ``cut`` is called between agreement and messages. A final message follows once all answers have arrived, because a
    slave forgets its master half a second after its last answer, even if that answer was lost.
    """
    where = testbed.program("perf")
    end = testbed.left.open(7)
    partner = _agree(end, where, PerfParameters(iterations=count + 1, warmup=0, start=length, end=length + 1))
    cut()
    for together in (count, 1):
        answers = [end.receive(length, MATCH) for _ in range(together)]
        for request in [end.send(partner, data(number, length), MATCH) for number in range(together)]:
            end.wait(request)
        for number, answer in enumerate(answers):
            end.took(answer, data(number, length))
    testbed.settle()


def _agree(end: CaseEndpoint, where: EndpointAddress, parameters: PerfParameters) -> Partner:
    partner = end.connect(where)
    answer = end.receive(64, 0, 0)
    sent = end.send(partner, parameters.pack(), MATCH, synchronous=True)
    end.wait(sent)
    end.took(answer, b"", match_info=0)
    return partner


@CASES.case(
    "omx_perf: both directions", "R-SND-01 R-CON-12 R-NOT-01", lengths=_LENGTHS, answered=True,
    synchronous=AGREEMENT, role="perf", impaired=True,
)  # fmt: skip
def perf(testbed: Testbed) -> None:
    """Parameters, their acknowledgement, and messages of growing length that are returned."""
    _measure(testbed, _parameters())


@CASES.case(
    "omx_perf: one direction", "R-SND-01 R-CON-12 R-NOT-01", lengths=_LENGTHS,
    synchronous=AGREEMENT, role="perf",
)  # fmt: skip
def perf_one_way(testbed: Testbed) -> None:
    """The same with empty answers."""
    _measure(testbed, _parameters(unidirectional=True))
