"""The conversation of omx_perf, which every Open-MX host has."""

from __future__ import annotations

from mxwire.host.perf.parameters import MATCH, Parameters
from mxwire.interop.cases.part import Group, data, of
from mxwire.interop.casting import Where
from mxwire.interop.side import End
from mxwire.interop.stage import Stage
from mxwire.protocol import Partner

CASES = Group("measuring")
_START, _END, _FACTOR = 1, 70_000, 8


def _parameters(*, unidirectional: bool = False, synchronous: bool = False) -> Parameters:
    return Parameters(
        iterations=2,
        warmup=1,
        start=_START,
        end=_END,
        multiplier=_FACTOR,
        unidirectional=unidirectional,
        synchronous=synchronous,
    )


_LENGTHS = of(*_parameters().lengths())


def _measure(stage: Stage, parameters: Parameters) -> None:
    where = stage.far("perf")
    end = stage.left.open(7)
    partner = _agree(end, where, parameters)
    for length in parameters.lengths():
        for number in range(parameters.warmup + parameters.iterations):
            answer = end.receive(parameters.answer_length(length), MATCH)
            content = data(number, length)
            sent = end.send(partner, content, MATCH, synchronous=parameters.synchronous)
            end.wait(sent)
            end.took(answer, content[: parameters.answer_length(length)])
    stage.settle()


def _agree(end: End, where: Where, parameters: Parameters) -> Partner:
    partner = end.connect(where)
    answer = end.receive(64, 0, 0)
    told = end.send(partner, parameters.pack(), MATCH, synchronous=True)
    end.wait(told)
    end.took(answer, b"")
    return partner


@CASES.case(
    "perf", "omx_perf: there and back", "R-SND-01 R-CON-12 R-NOT-01", lengths=_LENGTHS, answered=True,
    synchronous=of(44, 0), role="perf", impaired=True,
)  # fmt: skip
def perf(stage: Stage) -> None:
    """Parameters, their acknowledgement, and messages of growing length that come back."""
    _measure(stage, _parameters())


@CASES.case(
    "perf-one-way", "omx_perf: there only", "R-SND-01 R-CON-12 R-NOT-01", lengths=_LENGTHS,
    synchronous=of(44, 0), role="perf", whole=False,
)  # fmt: skip
def perf_one_way(stage: Stage) -> None:
    """The same with empty answers."""
    _measure(stage, _parameters(unidirectional=True))
