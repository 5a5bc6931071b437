"""``bench overlap``: whether messages move while an application computes, by the way in which they progress.

Theory of operation
-------------------
The experiments are those of Maccabe and others (about 2002) and of COMB. *Double buffering* is the paper's program: a
producer fills two buffers in turn, a consumer sums them up, and the consumer announces each receive before the producer
sends, so that no message waits for a receive. All of it can overlap; the rate is at best that of the slowest of
producer, network and consumer. It runs with a slow producer (half of the network's rate) and a fast consumer (twice its
rate), and the other way around. *Post-work-wait* posts a message, computes for twice the time of an idle message, and
waits: its overlap is (idle + work - total) / min(idle, work). *Polling* computes in slices with a look at the library
between them, while messages arrive: availability is the time of the work alone over that with messages.

Work is time of a core in virtual time, and a copy or a reduction costs the time of the table.

Names in the recording
----------------------
Series ``rate`` (MB/s over ``size``): ``<progress>, producer-bound`` and ``consumer-bound``, and ``network``, the rate
without work. Series ``overlap`` (over ``size``): ``<progress>, sender works`` and ``receiver works``, with the times of
the phases as details. Series ``availability`` and ``rate while polling`` (over ``slice``, in µs): ``<progress>``. Fact
``timelines``: by progress, the phases of both sides and their frames in a producer-bound run of a long message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.progress import PROGRESS, ProgressHost, progress_fabric
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.stage import MODELLED, VirtualStage
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import Costs
from mxwire.bench.imb.communicator import Communicator, Operation, Program
from mxwire.bench.record import Recording
from mxwire.bench.study import Points, StudyOptions, kept
from mxwire.errors import MxwireError
from mxwire.units import MICROSECOND
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD
from mxwire.words import suggestion

STUDY: Final = "overlap"
RATE: Final = "rate"
OVERLAP: Final = "overlap"
AVAILABILITY: Final = "availability"
POLLED: Final = "rate while polling"
NETWORK: Final = "network"
TIMELINES: Final = "timelines"
EXPERIMENTS: Final = ("double-buffering", "post-work-wait", "polling")
SIZES: Final = (1024, 4096, 16384, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 65536, 262144, 1 << 20, 4 << 20)
_QUICK_SIZES: Final = (4096, RENDEZVOUS_THRESHOLD + 1)
SLICES_US: Final = (10, 100, 1000)
_POLLED_SIZE: Final = 65536
_WORK: Final = 20 * 1000 * MICROSECOND
"""Work of an application that polls, in ns."""
_BUFFERS: Final = 24
"""Buffers of a run of double buffering, filled in turn into two."""
_DRAWN: Final = 1 << 20
"""Longest message of a timeline."""
_REPETITIONS: Final = 3
_READY, _CREDIT = 10, 20
"""Tags of the announcement of a receive, and of the credit of a polling receiver."""
BOUNDS: Final = {"producer-bound": (0.5, 2.0), "consumer-bound": (2.0, 0.5)}
"""Rates of producer and consumer, as multiples of the network's."""
_FREE: Final = (0, 0)
"""Work of no time."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a side, in ns of virtual time."""

    rank: int
    kind: str
    """``fill``, ``sum`` or ``wait``."""
    begin: int
    end: int


@dataclass(frozen=True)
class OverlapStudy:
    """The measurements of a study."""

    costs: Costs
    dialect: Dialect
    progress: tuple[str, ...] = PROGRESS
    experiments: tuple[str, ...] = EXPERIMENTS
    sizes: tuple[int, ...] = SIZES
    same: bool = False
    """True if whatever runs outside of calls shares the application's core."""

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for given, known, what in (
            (self.progress, PROGRESS, "way of progress"),
            (self.experiments, EXPERIMENTS, "experiment"),
        ):
            for each in given:
                if each not in known:
                    raise MxwireError(f"no {what} {each!r}{suggestion(each, known)}: use {', '.join(known)}")

    def fabric(self, progress: str) -> ModelFabric:
        """Two new ranks with a way of progress."""
        if progress == "kernel":
            return StreamFabric(self.costs, 2)
        return progress_fabric(ModelHostOptions(self.costs, self.dialect, progress=progress, same=self.same))


def run_overlap(
    study: OverlapStudy,
    options: StudyOptions,
) -> Recording:
    """Run the study; ``started`` is called with its recording, which Ctrl-C leaves partial."""
    recording = options.begin(STUDY, VirtualStage(study.costs).conditions)
    recording.facts["fitted"] = [asdict(each) for each in study.costs.fitted_to]
    recording.remarks.append(f"placement: {'the application shares its core' if study.same else 'elsewhere'}")
    ways = list(study.progress)
    if "kernel" in ways and not study.costs.models_tcp:
        ways.remove("kernel")
        recording.remarks.append(f"kernel: not applicable: the cost table {study.costs.name} has no costs of TCP")
    points = Points(recording)
    points.declare("MB/s", RATE)
    points.declare("of the shorter", OVERLAP)
    points.declare("of the time", AVAILABILITY, x="slice", x_unit="µs")
    points.declare("MB/s", POLLED, x="slice", x_unit="µs")
    sizes = _QUICK_SIZES if options.quick else study.sizes
    with kept(recording, points):
        for way in ways:
            for experiment in study.experiments:
                options.progress(f"{experiment}, {way}")
                _EXPERIMENTS[experiment](study, way, sizes, points)
            if "double-buffering" in study.experiments:
                longest = max((each for each in sizes if each <= _DRAWN), default=_DRAWN)
                recording.facts.setdefault(TIMELINES, {})[way] = _timeline(study, way, longest)
    return recording


# Double buffering


def double_buffering(
    length: int, work: tuple[int, int], phases: list[Phase] | None = None
) -> Callable[[Communicator], Program[int]]:
    """The paper's program; ``work`` is the time in ns to fill and to sum a buffer. The result is the rank's time."""

    def timed(comm: Communicator, kind: str, run: Program[None]) -> Program[None]:
        begin = comm.now()
        yield from run
        if phases is not None:
            phases.append(Phase(comm.rank, kind, begin, comm.now()))

    def compute(comm: Communicator, duration: int) -> Program[None]:
        comm.work_for(duration)
        yield []

    def wait(*operations: Operation) -> Program[None]:
        yield operations

    def produce(comm: Communicator) -> Program[int]:
        buffers, ready = _buffers(length), _buffers(4)
        begin, sends = comm.now(), list[Operation | None]([None, None])
        for place in (number % 2 for number in range(_BUFFERS)):
            before = sends[place]
            if before is not None:
                yield from timed(comm, "wait", wait(before))
            yield from timed(comm, "fill", compute(comm, work[0]))
            yield from timed(comm, "wait", wait(comm.irecv(1, ready[place], _READY + place)))
            sends[place] = comm.isend(1, buffers[place], place)
        yield [each for each in sends if each is not None]
        return comm.now() - begin

    def consume(comm: Communicator) -> Program[int]:
        buffers, ready = _buffers(length), _buffers(4)
        begin, receives = comm.now(), []
        for place in (0, 1):
            receives.append(comm.irecv(0, buffers[place], place))
            yield [comm.isend(0, ready[place], _READY + place)]
        for number in range(_BUFFERS):
            place = number % 2
            yield from timed(comm, "wait", wait(receives[place]))
            yield from timed(comm, "sum", compute(comm, work[1]))
            if number + 2 < _BUFFERS:
                receives[place] = comm.irecv(0, buffers[place], place)
                yield [comm.isend(0, ready[place], _READY + place)]
        return comm.now() - begin

    return lambda comm: consume(comm) if comm.rank else produce(comm)


def _buffers(length: int) -> list[Any]:
    return [np.zeros(length, np.uint8) for _ in range(2)]


def buffered_rate(study: OverlapStudy, way: str, length: int, work: tuple[int, int] = _FREE) -> float:
    """The rate of double buffering in MB/s."""
    times = study.fabric(way).run(double_buffering(length, work))
    return _BUFFERS * length / max(times) * 1e3


def work_of(length: int, network: float, bound: str) -> tuple[int, int]:
    """The time in ns to fill and to sum a buffer if the network's rate is ``network`` MB/s."""
    fill, add = (round(length / (factor * network) * 1e3) for factor in BOUNDS[bound])
    return fill, add


def network_rate(study: OverlapStudy, length: int) -> float:
    """The rate of double buffering without work in MB/s, with card and library elsewhere."""
    return buffered_rate(study, "match", length)


def _double_buffering(study: OverlapStudy, way: str, sizes: Sequence[int], points: Points) -> None:
    network = network_rate(study, max(sizes))
    for size in sizes:
        points.add(RATE, f"{way}, {NETWORK}", buffered_rate(study, way, size), marks=(MODELLED,), size=size)
        for bound in BOUNDS:
            rate = buffered_rate(study, way, size, work_of(size, network, bound))
            best = min(*(factor * network for factor in BOUNDS[bound]), network)
            details = {"best possible": best, "efficiency": rate / best}
            points.add(RATE, f"{way}, {bound}", rate, details=details, marks=(MODELLED,), size=size)


def _timeline(study: OverlapStudy, way: str, length: int) -> dict[str, Any]:
    """The phases of a producer-bound run, and the frames of both sides."""
    phases: list[Phase] = []
    fabric = study.fabric(way)
    fabric.run(double_buffering(length, work_of(length, network_rate(study, length), "producer-bound"), phases))
    hosts = fabric.hosts if isinstance(fabric, EndpointFabric) else []
    frames = [each for host in hosts if isinstance(host, ProgressHost) for each in host.sent]
    # Four buffers of the steady state are enough for a figure.
    begin, end = (phases[place * len(phases) // _BUFFERS].begin for place in (10, 14))
    return {
        "size": length,
        "begin": begin,
        "end": end,
        "phases": [asdict(each) for each in phases if each.end > begin and each.begin < end],
        "frames": [asdict(each) for each in frames if begin <= each.time < end],
    }


# Post-work-wait


def single_message(length: int, busy: int, work: int) -> Callable[[Communicator], Program[list[int]]]:
    """A message that rank ``busy`` posts, computes for ``work`` ns, and waits for; the other rank only waits.

    The result is the time in ns of the phases post, work and wait; that of the other rank is meaningless.
    """

    def program(comm: Communicator) -> Program[list[int]]:
        data, ready = np.zeros(length, np.uint8), np.zeros(4, np.uint8)
        phases: list[int] = []
        for _ in range(_REPETITIONS):
            if comm.rank != busy:
                yield [comm.irecv(busy, ready, _READY)]
                yield [comm.irecv(0, data) if comm.rank else comm.isend(1, data)]
                continue
            times = [comm.now()]
            message = comm.irecv(0, data) if comm.rank else comm.isend(1, data)
            yield [comm.isend(1 - busy, ready, _READY)]
            times.append(comm.now())
            if work:
                comm.work_for(work)
                yield []
            times.append(comm.now())
            yield [message]
            times.append(comm.now())
            phases = [later - earlier for earlier, later in pairwise(times)]
        return phases

    return program


def overlap_of(study: OverlapStudy, way: str, length: int, busy: int) -> tuple[float, dict[str, float]]:
    """The share of the shorter of message and work that both have in common, and the phases in µs."""

    def phases(work: int) -> list[int]:
        return study.fabric(way).run(single_message(length, busy, work))[busy]

    idle = sum(phases(0))
    work = 2 * idle
    found = phases(work)
    details = {name: value / 1e3 for name, value in zip(("post", "work", "wait"), found, strict=True)}
    return (idle + work - sum(found)) / min(idle, work), {"idle": idle / 1e3, **details}


def _post_work_wait(study: OverlapStudy, way: str, sizes: Sequence[int], points: Points) -> None:
    for size in sizes:
        for busy, name in ((0, "sender works"), (1, "receiver works")):
            found, details = overlap_of(study, way, size, busy)
            points.add(OVERLAP, f"{way}, {name}", found, details=details, marks=(MODELLED,), size=size)


# Polling


def polling(length: int, slice_ns: int) -> Callable[[Communicator], Program[tuple[int, int]]]:
    """Rank 1 works in slices and looks for messages in between, two of which rank 0 keeps on their way.

    The result of rank 1 is its time in ns and the number of messages that arrived in it.
    """

    def send(comm: Communicator) -> Program[tuple[int, int]]:
        data, credit = _buffers(length), np.ones(1, np.uint8)
        yield [comm.isend(1, each, place) for place, each in enumerate(data)]
        number = 0
        while True:
            yield [comm.irecv(1, credit, _CREDIT)]
            if not credit[0]:
                return 0, 0
            yield [comm.isend(1, data[number % 2], number % 2)]
            number += 1

    def work(comm: Communicator) -> Program[tuple[int, int]]:
        data, credits_ = _buffers(length), (np.zeros(1, np.uint8), np.ones(1, np.uint8))
        receives = [comm.irecv(0, each, place) for place, each in enumerate(data)]
        yield []
        begin, arrived = comm.now(), 0
        for _ in range(_WORK // slice_ns):
            comm.work_for(slice_ns)
            yield []
            comm.look()
            yield []
            while receives[arrived % 2].done:
                place = arrived % 2
                receives[place] = comm.irecv(0, data[place], place)
                yield [comm.isend(0, credits_[1], _CREDIT)]
                arrived += 1
        took = comm.now() - begin
        yield receives
        yield [comm.isend(0, credits_[0], _CREDIT)]
        return took, arrived

    return lambda comm: work(comm) if comm.rank else send(comm)


def _polling(study: OverlapStudy, way: str, _: Sequence[int], points: Points) -> None:
    for slice_us in SLICES_US:
        took, arrived = study.fabric(way).run(polling(_POLLED_SIZE, slice_us * MICROSECOND))[1]
        add = partial(points.add, marks=(MODELLED,), slice=slice_us)
        add(AVAILABILITY, way, _WORK // (slice_us * MICROSECOND) * slice_us * MICROSECOND / took)
        add(POLLED, way, arrived * _POLLED_SIZE / took * 1e3)


_EXPERIMENTS: Final[dict[str, Callable[[OverlapStudy, str, Sequence[int], Points], None]]] = {
    "double-buffering": _double_buffering,
    "post-work-wait": _post_work_wait,
    "polling": _polling,
}


def shown_phases(timeline: dict[str, Any]) -> Iterator[Phase]:
    """The phases of a recorded timeline."""
    for each in timeline["phases"]:
        yield Phase(**each)
