"""``bench overlap``: whether messages move while an application computes, by the way in which they progress.

Theory of operation
-------------------
The experiments are those of Maccabe and others (about 2002) and of COMB. *Double buffering* is the paper's program: a
producer fills two buffers in turn, a consumer sums them up, and the consumer announces each receive before the producer
sends, so that no message waits for a receive. All of it can overlap; the rate is at best that of the slowest of
producer, network and consumer. It runs with a slow producer (half of the network's rate) and a fast consumer (twice its
rate), the other way around, and with random numbers that are added up. *Post-work-wait* posts a message, works for
twice the time of an idle message, and waits: its overlap is (idle + work - total) / min(idle, work). *Polling* works in
slices with a poll between them, while messages arrive: availability is the time of the work alone over that with
messages. *Socket buffers* are those of TCP: the longest message that leaves while its receiver makes no call.

All are programs over a communicator (``overlap_programs.py``), which run on modelled hosts (:class:`ModelledOverlap`)
and on live ones (``overlap_live.py``); :class:`OverlapRanks` is the face of both. In virtual time work is time of a
core, and random numbers cost the time of a reduction. Live it is *slept*, so that other processes get the processor, or
*burnt*, a fixed number of loops, so that time that others take from it shows.

Names in the recording
----------------------
Series ``rate`` (MB/s over ``size``): ``<way>, network`` without work, ``<way>, producer-bound``, ``consumer-bound`` and
``random and sum``; the details are the rates of producer and consumer alone and during the run, the best possible rate
and the share of it, and live the µs per buffer for which each party has run, and has waited for a processor. Series
``overlap`` (over ``size``): ``<way>, sender works`` and ``receiver works``, with the times of the phases in µs. Series
``availability`` and ``rate while polling`` (over ``slice``, in µs): ``<way>``. Series ``handed over while the receiver
works`` (bytes, over ``buffer``, of which a connection has two): ``kernel``. Live, the kind of work is a part of the
name (``sender sleeps``, ``producer-bound, burnt``). Facts: ``timelines``, by way the phases of both sides and their
frames in a producer-bound run of a long message; ``processors`` of all parties, live.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.progress import PROGRESS, ProgressHost, progress_fabric
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import Costs
from mxwire.bench.cost.testbed import MODELLED, VirtualTestbed
from mxwire.bench.overlap_programs import BUFFERS, OVERLAP_PROGRAMS, Answer
from mxwire.bench.record import Conditions, Recording
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.bench.testbed import TestbedError
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
SUMMED: Final = "random and sum"
TIMELINES: Final = "timelines"
PROCESSORS: Final = "processors"
"""Fact of a live recording: the processors of all parties, by way of progress."""
RAN, WAITED = " ran", " waited for a processor"
"""Ends of the names of details: of a party, in µs per buffer."""
HANDED_OVER: Final = "handed over while the receiver works"
EXPERIMENTS: Final = ("double-buffering", "post-work-wait", "polling", "socket-buffers")
SIDES: Final = ("sender", "receiver")
PARTIES: Final = (*SIDES, *(f"agent of the {side}" for side in SIDES))
SIZES: Final = (1024, 4096, 16384, RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 65536, 262144, 1 << 20, 4 << 20)
_QUICK_SIZES: Final = (4096, RENDEZVOUS_THRESHOLD + 1)
SLICES_US: Final = (10, 100, 1000)
SOCKET_BUFFERS: Final = (32 << 10, 64 << 10, 128 << 10)
"""Bytes of the send buffer and of the receive buffer of each connection."""
_BUFFER_STEP: Final = 1024
_MOST_BUFFERS: Final = 8
"""Longest message, in buffers."""
_LATE: Final = 50_000_000
"""Time in ns for which a receiver makes no call."""
_TRIES: Final = 2
_POLLED_SIZE: Final = 65536
_POLLED_WORK: Final = 20_000
"""Work of an application that polls, in µs."""
_SLEPT_LONGER: Final = 60
"""Time in µs by which Linux prolongs a sleep, in general."""
_DRAWN: Final = 1 << 20
"""Longest message of a timeline."""
_REPETITIONS: Final = 3
LIMIT: Final = 600
"""Seconds after which no further experiment begins, once each has been played."""
LONGEST_WORK: Final = 200_000_000
"""Maximum time of a piece of work in ns: on a busy machine it takes many times as long, while the other rank waits."""
BOUNDS: Final = {"producer-bound": (0.5, 2.0), "consumer-bound": (2.0, 0.5)}
"""Rates of producer and consumer, as multiples of the network's."""
WORKS: Final = {"": "works", "slept": "sleeps", "burnt": "burns"}
"""Kinds of work, and their verbs; that without a name is time of a modelled core."""
_BOTH: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a side, in ns."""

    rank: int
    kind: str
    """``fill``, ``sum`` or ``wait``."""
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class DrawnFrame:
    """A frame of a timeline: when it left its host, in ns on the clock of the phases."""

    time: int
    rank: int
    length: int


@dataclass(frozen=True)
class OverlapStudy:
    """The measurements of a study. Raises :class:`~mxwire.errors.MxwireError` for unknown names."""

    progress: tuple[str, ...] = PROGRESS
    experiments: tuple[str, ...] = EXPERIMENTS
    sizes: tuple[int, ...] = SIZES
    sides: tuple[str, ...] = SIDES
    """Sides that work in post-work-wait, each by itself."""
    timelines: bool = True
    buffers: tuple[int, ...] = SOCKET_BUFFERS

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for given, known, what in (
            (self.progress, PROGRESS, "way of progress"),
            (self.experiments, EXPERIMENTS, "experiment"),
            (self.sides, SIDES, "side"),
        ):
            for each in given:
                if each not in known:
                    raise MxwireError(f"no {what} {each!r}{suggestion(each, known)}: use {', '.join(known)}")


class OverlapRanks(ABC):
    """Two ranks that play the programs of the study, with a way of progress for the ranks that work."""

    works: tuple[str, ...] = ("",)
    """Kinds of work: see :data:`WORKS`."""
    marks: tuple[str, ...] = ()
    """Marks of all measurements."""
    reference: str
    """The way of progress whose rate without work is that of the network."""
    repetitions = _REPETITIONS
    """Messages per point and round of post-work-wait."""
    buffers: int | None = None
    """Bytes of each socket buffer of TCP; None: as the system chooses."""
    used: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """The ns for which each party of the last run has run, and has waited for a processor; none in virtual time."""

    @property
    @abstractmethod
    def conditions(self) -> Conditions:
        """The circumstances, for the recording."""

    @abstractmethod
    def prepare(self, study: OverlapStudy, recording: Recording) -> tuple[str, ...]:
        """Add remarks and facts to a recording, and return the ways of progress that can be measured here."""

    @abstractmethod
    def play(self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any) -> list[Answer]:
        """Play a program of :data:`~mxwire.bench.overlap_programs.OVERLAP_PROGRAMS`, and return both answers.

        ``busy`` are the ranks that work, with this kind of ``work``.
        """

    @abstractmethod
    def watch(
        self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any
    ) -> tuple[list[Answer], list[DrawnFrame]]:
        """Play a program, and return its answers and the frames of both sides, in the order of time."""


class ModelledOverlap(OverlapRanks):
    """Ranks on modelled hosts, new ones for each run."""

    marks = (MODELLED,)
    reference = "match"

    def __init__(self, costs: Costs, dialect: Dialect, *, same: bool = False) -> None:
        self.costs = costs
        self.dialect = dialect
        self.same = same
        """True if whatever runs outside of calls shares the application's core."""

    @property
    def conditions(self) -> Conditions:
        """The circumstances, with the table of costs."""
        return VirtualTestbed(self.costs).conditions

    def prepare(self, study: OverlapStudy, recording: Recording) -> tuple[str, ...]:
        """Leave out TCP if the table has no costs of it."""
        recording.facts["fitted"] = [asdict(each) for each in self.costs.fitted_to]
        recording.remarks.append(f"placement: {'the application shares its core' if self.same else 'elsewhere'}")
        if "kernel" in study.progress and not self.costs.models_tcp:
            recording.remarks.append(f"kernel: not applicable: the cost table {self.costs.name} has no costs of TCP")
            return tuple(each for each in study.progress if each != "kernel")
        return study.progress

    def fabric(self, way: str) -> ModelFabric:
        """Two new ranks with a way of progress."""
        if way == "kernel":
            return StreamFabric(self.costs, 2, room=self.buffers)
        return progress_fabric(ModelHostOptions(self.costs, self.dialect, progress=way, same=self.same))

    def play(self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any) -> list[Answer]:
        """Play a program; all ranks have the way of progress."""
        return self.fabric(way).run(OVERLAP_PROGRAMS[program](**parameters))

    def watch(
        self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any
    ) -> tuple[list[Answer], list[DrawnFrame]]:
        """Play a program, and return its answers and the frames; there are none of TCP."""
        fabric = self.fabric(way)
        answers = fabric.run(OVERLAP_PROGRAMS[program](**parameters))
        hosts = fabric.hosts if isinstance(fabric, EndpointFabric) else []
        sent = [each for host in hosts if isinstance(host, ProgressHost) for each in host.sent]
        return answers, [DrawnFrame(each.time, each.rank, each.length) for each in sent]


def run_overlap(study: OverlapStudy, ranks: OverlapRanks, options: StudyOptions) -> Recording:
    """Run the study, in rounds in which all ways of progress take turns; one round is enough in virtual time."""
    recording = options.begin(STUDY, ranks.conditions)
    points = Points(recording)
    points.declare("MB/s", RATE)
    points.declare("share of the shorter time", OVERLAP)
    points.declare("share of the time", AVAILABILITY, x="slice", x_unit="µs")
    points.declare("MB/s", POLLED, x="slice", x_unit="µs")
    points.declare("bytes", HANDED_OVER, x="buffer")
    if recording.conditions.virtual:
        options = replace(options, rounds=1)
    if options.quick:
        study = replace(study, sizes=_QUICK_SIZES, buffers=SOCKET_BUFFERS[:1])
    with kept(recording, points):
        ways = ranks.prepare(study, recording)
        buffered = "double-buffering" in study.experiments
        network = network_rate(ranks, max(study.sizes)) if buffered else 0.0
        begun, drawn = time.monotonic(), max((each for each in study.sizes if each <= _DRAWN), default=_DRAWN)
        timelines: dict[str, Any] = {}

        def measure(way: str, number: int) -> None:
            if buffered and study.timelines and way not in timelines:
                # The first run of a way is its warm-up, too.
                options.progress(f"timeline, {way}")
                timelines[way] = _timeline(ranks, way, drawn, network)
                recording.facts[TIMELINES] = timelines
            for experiment in study.experiments:
                # On a busy machine, a round of a way takes a minute and more.
                if number and time.monotonic() > begun + LIMIT:
                    raise TestbedError(f"the study has taken more than {LIMIT} s")
                options.progress(f"{experiment}, {way}")
                _EXPERIMENTS[experiment](study, ranks, way, network, points)

        turns = Turns(recording, options.progress)
        turns.play({way: partial(measure, way) for way in ways}, options.rounds, warm_up=0)
    return recording


# Double buffering


def buffered_rate(
    ranks: OverlapRanks, way: str, length: int, work: tuple[int, int] = (0, 0), kind: str = ""
) -> tuple[float, dict[str, float]]:
    """The rate of double buffering in MB/s; with work, its details are the rates of producer and consumer.

    ``work`` is the time in ns to fill and to sum a buffer.
    """
    answers = ranks.play(way, _BOTH, kind, "double buffering", length=length, fill=work[0], add=work[1])
    return _rate(answers, length), _rates_of_work(answers, length) | _processor_times(ranks)


def summed_rate(ranks: OverlapRanks, way: str, length: int) -> tuple[float, dict[str, float]]:
    """The rate of double buffering with random numbers, which must have the same sum on both sides, and its details.

    Raises :class:`~mxwire.errors.MxwireError` if they have not.
    """
    answers = ranks.play(way, _BOTH, ranks.works[-1], "double buffering", length=length, fill=None, add=None)
    if answers[0]["sum"] != answers[1]["sum"]:
        raise MxwireError(f"{way}: the consumer has received other numbers than the producer has sent")
    return _rate(answers, length), _rates_of_work(answers, length) | _processor_times(ranks)


def _processor_times(ranks: OverlapRanks) -> dict[str, float]:
    """The µs per buffer for which each party of the last run has run, and has waited for a processor."""
    return {
        f"{party}{name}": used / BUFFERS / 1e3
        for party, both in ranks.used.items()
        for name, used in zip((RAN, WAITED), both, strict=True)
    }


def _rate(answers: list[Answer], length: int) -> float:
    return float(BUFFERS * length / max(each["time"] for each in answers) * 1e3)


def _rates_of_work(answers: list[Answer], length: int) -> dict[str, float]:
    """The rates of producer and consumer in MB/s, alone and during the run."""
    found = {}
    for name, kind, answer in zip(("producer", "consumer"), ("fill", "sum"), answers, strict=True):
        during = sum(end - begin for each, begin, end in answer["phases"] if each == kind)
        if answer["alone"] and during:
            found[f"{name} alone"] = length / answer["alone"] * 1e3
            found[name] = BUFFERS * length / during * 1e3
    return found


def work_of(length: int, network: float, bound: str) -> tuple[int, int]:
    """The time in ns to fill and to sum a buffer if the network's rate is ``network`` MB/s, at most LONGEST_WORK."""
    fill, add = (min(round(length / (factor * network) * 1e3), LONGEST_WORK) for factor in BOUNDS[bound])
    return fill, add


def network_rate(ranks: OverlapRanks, length: int) -> float:
    """The rate of double buffering without work in MB/s, which all ways of progress are compared with.

    Without the time for which a rank has waited for a processor: on a busy machine the work would otherwise be that for
    a slower network, and take longer by the load once more.
    """

    def time_of_run() -> float:
        answers = ranks.play(ranks.reference, _BOTH, ranks.works[-1], "double buffering", length=length, fill=0, add=0)
        took = max(each["time"] for each in answers)
        ran, waited = zip(*ranks.used.values(), strict=True) if ranks.used else ((0,), (0,))
        # Ranks may have waited at the same time, so that the sum is too large; neither ran for less than its own time.
        return float(max(took - sum(waited), *ran))

    # All work of the study is sized by this rate, so that a single run must not decide it.
    return BUFFERS * length / median(time_of_run() for _ in range(3)) * 1e3


def _double_buffering(study: OverlapStudy, ranks: OverlapRanks, way: str, network: float, points: Points) -> None:
    for size in study.sizes:
        add = partial(points.add, RATE, marks=ranks.marks, size=size)
        rate, used = buffered_rate(ranks, way, size, kind=ranks.works[-1])
        add(f"{way}, {NETWORK}", rate, details=used)
        measured = {}
        for bound in BOUNDS:
            for kind in ranks.works:
                name = f"{way}, {bound}" + (f", {kind}" if kind else "")
                measured[name] = buffered_rate(ranks, way, size, work_of(size, network, bound), kind)
        measured[f"{way}, {SUMMED}"] = summed_rate(ranks, way, size)
        for name, (rate, details) in measured.items():
            best = min(network, *(details[each] for each in details if each.endswith("alone")))
            add(name, rate, details=details | {"best possible": best, "efficiency": rate / best})


def _timeline(ranks: OverlapRanks, way: str, length: int, network: float) -> dict[str, Any]:
    """The phases of a producer-bound run, and the frames of both sides."""
    fill, add = work_of(length, network, "producer-bound")
    parameters = {"length": length, "fill": fill, "add": add}
    answers, frames = ranks.watch(way, _BOTH, ranks.works[-1], "double buffering", **parameters)
    phases = [Phase(rank, *each) for rank, answer in enumerate(answers) for each in answer["phases"]]
    # Four buffers of the steady state are enough for a figure.
    fills = [each for each in phases if each.kind == "fill"]
    begin, end = (fills[number].begin for number in (10, 14))
    return {
        "size": length,
        "begin": begin,
        "end": end,
        "phases": [asdict(each) for each in phases if each.end > begin and each.begin < end],
        "frames": [asdict(each) for each in frames if begin <= each.time < end],
    }


# Post-work-wait


def overlaps_of(ranks: OverlapRanks, way: str, length: int, busy: int) -> dict[str, tuple[float, dict[str, float]]]:
    """The share of the shorter of message and work that both have in common, and the phases in µs, by kind of work."""

    def phases(work: int, kind: str) -> dict[str, float]:
        parameters = {"length": length, "busy": busy, "work": work, "repetitions": ranks.repetitions}
        answer = ranks.play(way, (busy,), kind, "single message", **parameters)[busy]
        return {name: median(values) for name, values in answer.items()}

    alone = phases(0, ranks.works[0])
    idle = alone["post"] + alone["work"] + alone["wait"]
    overlaps = {}
    for kind in ranks.works:
        found = phases(min(round(2 * idle), LONGEST_WORK), kind)
        total = found["post"] + found["work"] + found["wait"]
        details = {name: value / 1e3 for name, value in ({"idle": idle} | found | {"total": total}).items()}
        overlaps[kind] = (idle + found["alone"] - total) / min(idle, found["alone"]), details
    return overlaps


def _post_work_wait(study: OverlapStudy, ranks: OverlapRanks, way: str, _: float, points: Points) -> None:
    for side in study.sides:
        for size in study.sizes:
            for kind, (found, details) in overlaps_of(ranks, way, size, SIDES.index(side)).items():
                name = f"{way}, {side} {WORKS[kind]}"
                points.add(OVERLAP, name, found, details=details, marks=ranks.marks, size=size)


# Polling


def _polling(study: OverlapStudy, ranks: OverlapRanks, way: str, _: float, points: Points) -> None:
    for slice_us in SLICES_US:
        for kind in ranks.works:
            # The number of slices makes up for their length: all lengths take about the same time.
            took = slice_us + (_SLEPT_LONGER if kind == "slept" else 0)
            parameters = {"slice_ns": slice_us * MICROSECOND, "slices": _POLLED_WORK // took}
            answer = ranks.play(way, (1,), kind, "polling", length=_POLLED_SIZE, **parameters)[1]
            add = partial(points.add, marks=ranks.marks, slice=slice_us)
            name = f"{way}, {kind}" if kind else way
            add(AVAILABILITY, name, answer["alone"] / answer["time"])
            add(POLLED, name, answer["arrived"] * _POLLED_SIZE / answer["time"] * 1e3)


# Socket buffers


def _socket_buffers(study: OverlapStudy, ranks: OverlapRanks, way: str, _: float, points: Points) -> None:
    """Find the longest message of TCP that leaves its sender's memory while the receiver makes no call."""
    for buffer in study.buffers if way == "kernel" else ():
        ranks.buffers = buffer
        try:
            most = handed_over(ranks, way, buffer)
        finally:
            ranks.buffers = None
        details = {"of both buffers": most / (2 * buffer)}
        points.add(HANDED_OVER, way, most, details=details, marks=ranks.marks, buffer=buffer)


def handed_over(ranks: OverlapRanks, way: str, buffer: int) -> int:
    """The length of the longest message that is handed over, with socket buffers of ``buffer`` bytes."""

    def leaves(length: int) -> bool:
        parameters = {"length": length, "work": _LATE}
        # On a busy machine a sender may wait for a processor.
        played = (ranks.play(way, (1,), ranks.works[0], "late receiver", **parameters) for _ in range(_TRIES))
        # A send that needs the receiver takes at least all of its absence: half of it separates both kinds.
        return any(answers[0]["sent"] < _LATE / 2 for answers in played)

    least, most = 0, _MOST_BUFFERS * buffer // _BUFFER_STEP
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if leaves(middle * _BUFFER_STEP) else (least, middle)
    return least * _BUFFER_STEP


_EXPERIMENTS: Final[dict[str, Callable[[OverlapStudy, OverlapRanks, str, float, Points], None]]] = {
    "double-buffering": _double_buffering,
    "post-work-wait": _post_work_wait,
    "polling": _polling,
    "socket-buffers": _socket_buffers,
}
