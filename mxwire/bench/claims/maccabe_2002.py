"""The claims on application offload, by double buffering (Maccabe and others, about 2002).

The ways of progress are those of ``bench overlap`` in virtual time: ``push`` is MPICH over GM, ``match`` Portals with
matching outside of the application, ``card`` and ``library`` MX. The paper's Portals run in the kernel, which takes the
application's processor: ``match on the same core``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from mxwire.bench.claims.claim import (
    Check,
    ClaimEvidence,
    ClaimVerdict,
    Judge,
    Quantity,
    Term,
    computed,
    difference,
    live,
    modelled,
    ratio,
)
from mxwire.bench.cost.calibration import refit, varied_costs
from mxwire.bench.cost.hosts import EndpointFabric
from mxwire.bench.cost.progress import ProgressHost
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import CLOVERTOWN, Costs
from mxwire.bench.imb.communicator import Communicator, Program
from mxwire.bench.overlap import (
    BOUNDS,
    NETWORK,
    RATE,
    STUDY,
    ModelledOverlap,
    OverlapStudy,
    buffered_rate,
    run_overlap,
    work_of,
)
from mxwire.bench.path import CALL, FRAME, FRAME_SIZE, TRIP
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.study import StudyOptions, vary
from mxwire.units import MICROSECOND, MILLISECOND
from mxwire.wire.dialect import as_dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

_LARGE: Final = 1 << 20
_FRAME: Final = 1500
"""Length in bytes of the frames of the paper's table."""
_SOCKET_BUFFER: Final = 128 << 10
"""Bytes of each socket buffer: those of Open MPI."""
_SLICE: Final = 10 * MILLISECOND
"""Work between two looks, longer than the transfer of a message."""
_SOON: Final = 100 * MICROSECOND
"""Time after a look within which the frames that it causes leave."""
_SHARED: Final = "match on the same core"
STOLEN: Final = "rate of the consumer alone over that during the run"
_SIZES: Final = (4096, 16384, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 65536, _LARGE)
"""Sizes at which the claims are judged."""
_PRODUCER, _CONSUMER = BOUNDS
_RATED: Final = ("library", "card", "match", "push")
_OVERLAPPED: Final = ("library", "thread", "signal", "push")
"""Ways of progress whose rates, and whose overlap, the claims read."""


def run_offload(options: StudyOptions) -> Recording:
    """Run the study on the hosts of the paper on Open-MX, and what claims read also with other guesses."""
    study = OverlapStudy(sizes=_SIZES, timelines=False)
    recording = _measured(study, CLOVERTOWN, options)
    parts = (
        replace(study, progress=_RATED, experiments=("double-buffering",)),
        replace(study, progress=_OVERLAPPED, experiments=("post-work-wait",), sizes=(_LARGE,)),
    )
    tables = varied_costs(CLOVERTOWN, partial(refit, numbers=CLOVERTOWN))
    vary(recording, options, tables, lambda costs, others: [_measured(each, costs, others) for each in parts])
    return recording


def _measured(study: OverlapStudy, costs: Costs, options: StudyOptions) -> Recording:
    """A study with the agent elsewhere, and rates with an agent on the core of the application."""
    dialect = as_dialect("omx:9000")
    recording = run_overlap(study, ModelledOverlap(costs, dialect), options)
    rates = recording.named(RATE)
    network = rates.median(f"match, {NETWORK}", _LARGE)
    if network is not None:
        ranks = ModelledOverlap(costs, dialect, same=True)
        for bound in BOUNDS:
            rate, details = buffered_rate(ranks, "match", _LARGE, work_of(_LARGE, network, bound))
            name, parameters = f"{_SHARED}, {bound}", {"size": _LARGE}
            rates.measurements.append(
                Measurement(name, rates.unit, (rate,), parameters, marks=ranks.marks, details=details)
            )
        recording.series.append(_stolen(rates))
    return recording


def _stolen(rates: Series) -> Series:
    """The rates of consumers alone over those during the run: above 1, others have the time of their processor."""
    points = [
        replace(each, unit="", samples=(each.details["consumer alone"] / each.details["consumer"],), details={})
        for each in rates.measurements
        if "consumer" in each.details
    ]
    return Series(STOLEN, "", rates.x, rates.x_unit, points)


def _slowed(way: str) -> Term:
    found = modelled(STOLEN, f"{way}, {_CONSUMER}", _LARGE, STUDY)
    return computed(lambda each: each, lambda each: f"consumer alone / during the run, {each.label}:", found)


def _entries(way: str) -> int:
    """The calls of both libraries on which the data of a large message wait.

    Each side polls its library at long intervals, not at the same time as the other side. A poll counts if its side
    then sends a frame that precedes the data of the message.
    """
    fabric = ModelledOverlap(CLOVERTOWN, as_dialect("omx:9000")).fabric(way)
    assert isinstance(fabric, EndpointFabric)
    looks: list[tuple[int, int]] = []

    def program(comm: Communicator) -> Program[None]:
        data = np.zeros(_LARGE, np.uint8)
        operation = comm.irecv(0, data) if comm.rank else comm.isend(1, data)
        comm.work_for(_SLICE // 2 * comm.rank)
        yield []
        while not operation.done:
            comm.work_for(_SLICE)
            yield []
            looks.append((comm.rank, comm.now()))
            comm.look()
            yield []

    fabric.run(program)
    sent = [frame for host in fabric.hosts if isinstance(host, ProgressHost) for frame in host.sent]
    last = max(frame.time for frame in sent if frame.kind == PacketType.PULL_REPLY)
    asked = [frame for frame in sent if frame.kind != PacketType.PULL_REPLY]
    return sum(
        any(frame.rank == rank and at <= frame.time < at + _SOON for frame in asked) for rank, at in looks if at < last
    )


def calls_per_message(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the frames of both protocols whether a push needs two calls of a library, and a pull one."""
    push, pull = _entries("push"), _entries("card")
    numbers = f"calls before the data of 1 MiB have left: push {push}, pull {pull}"
    return ClaimVerdict.of((push, pull) == (2, 1), numbers)


def _handed_over(length: int) -> bool:
    """Return whether a message has left its sender while the receiver works, with sockets that have buffers."""
    fabric = StreamFabric(CLOVERTOWN, 2, room=_SOCKET_BUFFER)

    def program(comm: Communicator) -> Program[int]:
        data = np.zeros(length, np.uint8)
        if comm.rank:
            comm.work_for(_SLICE)
            yield []
            yield [comm.irecv(0, data)]
        else:
            yield [comm.isend(1, data)]
        return comm.now()

    return fabric.run(program)[0] < _SLICE


def room_of_sockets(_: ClaimEvidence) -> ClaimVerdict:
    """Judge by the model of TCP whether messages up to both socket buffers leave while the receiver works."""
    most = 2 * _SOCKET_BUFFER
    found = {length: _handed_over(length) for length in (_SOCKET_BUFFER, most, most + 1, 2 * most)}
    shown = ", ".join(f"{length:,} B {'leave' if left else 'wait'}" for length, left in found.items())
    numbers = f"buffers of {_SOCKET_BUFFER:,} B each, while the receiver works: {shown}"
    return ClaimVerdict.of(list(found.values()) == [True, True, False, False], numbers)


def _share_of_gap() -> Term:
    """The time of a frame of 1,500 bytes over the interval of such frames at 1 Gb/s."""

    def text(found: Quantity) -> str:
        gaps = ", ".join(f"{_FRAME * 8 / megabits:,.4g}" for megabits in (10, 100, 1000, 10_000))
        return f"frames every {gaps} µs at 10 Mb/s to 10 Gb/s, and {found.value:.3g} µs per frame: share at 1 Gb/s"

    return computed(lambda each: each * 1000 / (_FRAME * 8), text, live("path", FRAME, "ring", FRAME_SIZE))


CHECKS: Final[Mapping[str, Sequence[Check] | Judge]] = {
    "S4-T1-a": (Check(_share_of_gap(), least=0.83),),
    "S4-F5-a": calls_per_message,
    "S4-T1-b": (
        Check(
            ratio(
                difference(live("path", TRIP, "tcp, blocking", 64), live("path", TRIP, "tcp, spinning", 64), "wake-up"),
                computed(
                    lambda ns: ns / 1000, lambda _: "system call", live("path", CALL, "system call", 0), unit="µs"
                ),
            ),
            least=1,
        ),
    ),
    "S4-F12-b": (Check(_slowed(_SHARED), least=1.05), Check(_slowed("match"), 0.95, 1.05)),
    "S4-D-b": room_of_sockets,
}
