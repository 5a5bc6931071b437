"""``bench path``: where the time goes, as a ladder from a memory copy to TCP and mxwire, and a budget of its parts.

Theory of operation
-------------------
Each rung is a ping-pong between the same two pinned processes over the same cable; the difference between two rungs is
the cost of the layers that the upper rung adds. The difference between a polling and a blocking run of one rung is the
cost of the wake-up.

The budget of a half round trip of mxwire is a sum of parts that are measured without it: bare frames through the same
kind of ring (the hand-over between two processors, system calls, and the kernel's path of a frame), the engines of both
sides driven in one process, and the hosts around them, likewise in one process and without a wire. Code is slower after
a system call, because the kernel has replaced the contents of caches and branch predictors. The hosts in one process
are therefore also measured with a round trip of a bare frame before each receipt, whose time is subtracted. The sum is
compared with the measured half round trip, from which none of the parts is derived.

Names in the recording
----------------------
Series ``half round trip`` (µs, over ``size``): ``<rung>, spinning`` and ``<rung>, blocking`` with the parameters
``over`` (the rung) and ``mode``; rungs are ``shared memory`` (spinning only), ``xdp``, ``ring``, ``frames``, ``udp``,
``tcp``, ``mxoe``, ``omx:9000``, ``mxoe over xdp``, ``frames in C`` (64 B) and ``mxoe over local``, also with ``(1
copy)`` (1 MiB), out of the sender's memory, and ``(copied)``, with one copy more; and ``mxoe interpreted`` beside a
compiled ``mxoe``. With ``not steered`` at the end of a name, the sender's processor did the receive processing. The
counts of a point are per round trip and side. Series ``alone`` (µs, over
``size``): ``memory copy, warm``, ``memory copy, cold``, ``engine``, ``hosts``, ``hosts among frames, spinning`` and
``blocking``, the latter four also with ``interpreted`` before the comma. Series ``call`` (ns): ``system call``,
``clock`` and ``signal of a frame``. Series ``frame interval`` (µs): ``ring`` and ``frames``. Facts: ``budgets``,
``steps``, ``wake-up``, ``predictions``, ``agreement``, and ``libmyriexpress``, the counts of a program in C by size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from mxwire.bench.channels.hosts import COPIED, LOCAL, ONE_COPY, OVER_XDP
from mxwire.bench.errors import SilenceError
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.roles.program import library_refusal
from mxwire.bench.rounds import Agreement, agreement, agreement_counts, within
from mxwire.bench.study import StudyOptions, TestbedStudy, kept, round_marks
from mxwire.bench.testbed import Found, NamespaceTestbed, ProcessSide, StudyTestbed, TestbedError, play_on
from mxwire.bench.worker import SideSetup
from mxwire.lab import machine
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM, TINY_MAXIMUM

TRIP: Final = "half round trip"
ALONE: Final = "alone"
AMONG: Final = "hosts among frames"
CALL: Final = "call"
SIGNAL: Final = "signal of a frame"
"""A signal with a handler in Python, beyond the datagram that raises it."""
FRAME: Final = "frame interval"
RUNGS: Final = ("shared memory", "xdp", "ring", "frames", "udp", "tcp", "mxoe", "omx:9000", f"mxoe{OVER_XDP}")
"""The ladder, from the least to the most."""
FRAMES_IN_C: Final = "frames in C"
"""The null model: bare frames, without a protocol or an interpreter."""
NOT_STEERED: Final = "not steered"
_PLAIN: Final = ("xdp", FRAMES_IN_C, "frames", "udp", "tcp", "mxoe")
"""Rungs that are also measured with frames processed by the sender's processor, whose hand-over is cheaper."""
SIZES: Final = (64, 4096, 65536, 1 << 20)
_KINDS: Final = (TINY_MAXIMUM, SMALL_MAXIMUM, RENDEZVOUS_THRESHOLD)
"""Last lengths of the kinds of messages."""
EDGES: Final = tuple(length for each in _KINDS for length in (each, each + 1))
"""The lengths on both sides of each step between kinds."""
HOST_SIZES: Final = tuple(sorted({0, 64, 1024, 4096, 16384, *EDGES, 65536, 262144, 1 << 20, 4 << 20}))
"""Sizes of mxoe, which the cost table of this machine is fitted to and compared with, and both sides of each step."""
_QUICK_SIZES: Final = (64, 4096)
BUDGET_SIZES: Final = (64, 4096)
FRAME_SIZE: Final = 1486
"""Content of a frame of 1500 bytes, the size that the papers' table assumes."""
_WINDOW: Final = 64
_PILOT: Final = 20
LIBRARY: Final = "libmyriexpress"
_TRACED: Final = 20
_TRACED_LARGE: Final = 5
"""Traced round trips of messages above 4 KiB, which stop at many copies."""
_SECTION_NS: Final = 15_000_000
_COLDER: Final = "colder caches, after the kernel"
PREDICTION_TOLERANCE: Final = 0.2
"""Largest share by which the table of costs may differ from a half round trip to which it was not fitted."""
TOLERANCE: Final = 0.15
"""Largest share by which the parts of a budget may differ from the measured whole."""


@dataclass(frozen=True)
class Budget:
    """The parts of a half round trip, in µs."""

    name: str
    size: int
    parts: tuple[tuple[str, float], ...]
    measured: float
    verdict: Agreement = "undecided"
    """``agree`` if it closes in nearly all rounds, ``differ`` if it does not in nearly all."""

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return sum(part for _, part in self.parts)

    @property
    def closes(self) -> bool:
        """True if the sum is close enough to the measured whole."""
        return within(self.total, self.measured, TOLERANCE)

    def record(self) -> dict[str, Any]:
        """The budget as an object for JSON."""
        derived = {"sum": self.total, "ratio": self.total / self.measured, "closes": self.closes}
        return asdict(self) | derived


def measure_path(
    opener: Callable[[Path | None], AbstractContextManager[StudyTestbed]],
    options: StudyOptions,
    *,
    compiled: bool = True,
) -> Recording:
    """Measure the ladder on the testbeds of ``opener``, and return the recording.

    ``opener`` opens a testbed whose sides run the mxwire of a folder. With ``compiled`` they run a compiled mxwire if
    there is an up-to-date one, and the interpreted one is measured beside it. Raises
    :class:`~mxwire.bench.testbed.TestbedError` if there cannot be a testbed.
    """
    folder = machine.compiled_folder() if compiled else None
    with ExitStack() as stack:
        testbed = stack.enter_context(opener(folder))
        recording = options.begin("path", testbed.conditions)
        study = PathStudy(testbed, recording, options)
        if folder is not None:
            study.interpreted = stack.enter_context(opener(machine.own_folder()))
        elif not recording.conditions.compiled:
            recording.remarks.append("mxwire is interpreted, and there is no compiled one beside it (make compiled)")
        study.run()
    return recording


_BothFound = tuple[Found, Found]


class PathStudy(TestbedStudy):
    """One run of the study on a testbed; :attr:`interpreted` is a second testbed for the interpreted mxwire."""

    def __init__(self, testbed: StudyTestbed, recording: Recording, options: StudyOptions) -> None:
        super().__init__(testbed, recording, options)
        self.interpreted: StudyTestbed | None = None
        self._points.declare("µs", TRIP, ALONE)
        self._points.declare("ns", CALL)
        self._points.declare("µs", FRAME)
        self._counts: dict[str, list[int]] = {}
        self._neighbour: ProcessSide | None = None
        """A process beside the active side, for the local path."""

    def run(self) -> None:
        """Measure, and fill the recording."""
        try:
            with kept(self._recording, self._points):
                self._trace(self._take_turns(dict(self.contestants())).out)
        finally:
            if self._neighbour is not None:
                self._neighbour.close()
        self._conclude()

    # Contestants

    def contestants(self) -> Iterator[tuple[str, Callable[[int], None]]]:
        """The contestants that the testbed permits, by name; each is called with the number of a round."""
        testbed, other = self._testbed, self.interpreted
        for rung in RUNGS:
            modes = ("spinning",) if rung == "shared memory" else ("spinning", "blocking")
            for mode in modes if self._usable(rung) else ():
                # If two polling sides share a processor, each waits for the end of the other's time slice.
                if mode == "blocking" or testbed.spins:
                    yield self._trips(testbed, rung, rung, mode)
        if isinstance(testbed, NamespaceTestbed) and testbed.spins:
            yield from self._within_namespaces(testbed)
        for heat in ("warm", "cold"):
            yield self._single(testbed, "memory copy", f"memory copy, {heat}", cold=heat == "cold")
        yield "system call", self._calls
        yield from self._alone(testbed, "")
        for carrier in ("ring", "frames"):
            yield f"frame interval, {carrier}", partial(self._frame_interval, carrier)
        if other is not None:
            for mode in ("spinning", "blocking") if testbed.spins else ("blocking",):
                yield self._trips(other, "mxoe", "mxoe interpreted", mode)
            if testbed.spins:
                yield self._trips(other, "ring", "ring interpreted", "spinning")
            yield from self._alone(other, " interpreted")
        if not testbed.spins:
            self._recording.remarks.append("spinning: not applicable: there is one processor")

    def _contestant(
        self, series: str, name: str, sizes: Sequence[int], run: Callable[..., _BothFound], **more: Any
    ) -> tuple[str, Callable[[int], None]]:
        return name, partial(self._measure, series, name, sizes, run, **more)

    def _measure(
        self,
        series: str,
        name: str,
        sizes: Sequence[int],
        run: Callable[..., _BothFound],
        number: int,
        *,
        spin: bool = False,
        counted: bool = False,
        **more: Any,
    ) -> None:
        """Add the times of a round to their points, or plan the next rounds by those of the warm-up.

        ``run`` plays a role with the sizes and operations per size: few in the warm-up. ``more`` are parameters of the
        points; if ``counted``, the waits and frames of the active side are counted.
        """
        counts = [_PILOT if number < 0 else self._options.operations(1e9)] * len(sizes)
        counts = counts if number < 0 else self._counts.get(name) or counts
        active, passive = run(sizes=list(sizes), counts=counts)
        if number < 0:
            self._counts[name] = [
                # Medians are of half round trips, and an operation is a whole one.
                self._options.operations(2 * each["median"], _SECTION_NS if int(size) > 4096 else 2 * _SECTION_NS)
                for size, each in active["points"].items()
            ]
            return
        marks = dict.fromkeys([*round_marks(active, spinning=spin), *round_marks(passive, spinning=spin)])
        for size, found in active["points"].items():
            self._add(series, name, int(size), found, tuple(marks), **more)
        if counted:
            frames = active["frames"].get("sent", 0) + active["frames"].get("received", 0)
            uses = {"waits, all sizes": active["use"]["waits"], "frames, all sizes": frames}
            per_trip = {each: value / active["trips"] for each, value in uses.items()}
            self._points.count(series, name, per_trip, size=sizes[0])

    def _trips(self, testbed: StudyTestbed, carrier: str, rung: str, mode: str) -> tuple[str, Callable[[int], None]]:
        spin, sizes = mode == "spinning", self._sizes(rung, mode)
        run = partial(testbed.run, "trips", carrier=carrier, spin=spin)
        return self._contestant(TRIP, f"{rung}, {mode}", sizes, run, spin=spin, counted=True, over=rung, mode=mode)

    def _within_namespaces(self, testbed: NamespaceTestbed) -> Iterator[tuple[str, Callable[[int], None]]]:
        """The null model, the local path, and rungs without steering."""
        in_c = partial(self._frames_in_c, testbed)
        polled = partial(self._contestant, TRIP, spin=True, mode="spinning")
        yield polled(f"{FRAMES_IN_C}, spinning", SIZES[:1], in_c, over=FRAMES_IN_C)
        for rung in (LOCAL, ONE_COPY, COPIED):
            run: Callable[..., _BothFound] = partial(self._within, testbed, "trips", carrier=rung, spin=True)
            yield polled(f"{rung}, spinning", self._sizes(rung, "spinning"), run, over=rung)
        for rung in _PLAIN if testbed.options.steered else ():
            if testbed.can_use(rung) is None:
                play = in_c if rung == FRAMES_IN_C else partial(testbed.run, "trips", carrier=rung, spin=True)
                run, sizes = partial(self._not_steered, testbed, play), EDGES if rung == "mxoe" else SIZES[:1]
                yield polled(f"{rung}, spinning, {NOT_STEERED}", sizes, run, over=rung)

    def _not_steered(self, testbed: NamespaceTestbed, play: Callable[..., _BothFound], **parameters: Any) -> _BothFound:
        testbed.steer(False)
        try:
            return play(**parameters)
        finally:
            testbed.steer(True)

    def _frames_in_c(self, testbed: NamespaceTestbed, sizes: list[int], counts: list[int]) -> _BothFound:
        places = []
        # The passive side first, so that it is open when the first frame arrives.
        for place, side in reversed(list(enumerate(testbed.sides))):
            own, other = (each.replace(":", "") for each in (testbed.addresses[place], testbed.addresses[1 - place]))
            where = {"interface": testbed.ports[place].interface, "own": own, "other": other, "active": place == 0}
            side.start("frames in c", {**where, "size": sizes[0], "count": counts[0]})
            side.ready()
            places.append(side)
        passive, active = (each.result() for each in places)
        return {"points": active["points"]}, passive

    def _within(self, testbed: NamespaceTestbed, role: str, **parameters: Any) -> _BothFound:
        """Play a role on two processes that are on one interface."""
        if self._neighbour is None:
            port = testbed.ports[0]
            setup = SideSetup(
                port.interface, False, port.namespace.name, testbed.placement[1], own=testbed.addresses[0]
            )
            self._neighbour = ProcessSide(setup, testbed.options.package)
        return play_on((testbed.sides[0], self._neighbour), role, parameters)

    def _alone(self, testbed: StudyTestbed, kind: str) -> Iterator[tuple[str, Callable[[int], None]]]:
        for role in ("engine", "hosts"):
            yield self._single(testbed, role, f"{role}{kind}", dialect="mxoe")
        for mode in ("spinning", "blocking") if testbed.spins else ("blocking",):
            run = partial(testbed.run, AMONG, carrier="ring", dialect="mxoe", spin=mode == "spinning")
            yield self._contestant(ALONE, f"{AMONG}{kind}, {mode}", BUDGET_SIZES, run)

    def _single(self, testbed: StudyTestbed, role: str, name: str, **more: Any) -> tuple[str, Callable[[int], None]]:
        def run(**parameters: Any) -> _BothFound:
            return testbed.run_alone(role, **parameters, **more), {}

        return self._contestant(ALONE, name, self._sizes(role, "alone"), run)

    def _sizes(self, rung: str, mode: str) -> tuple[int, ...]:
        if rung == ONE_COPY:
            # Up to 256 KiB the sender passes the data on, before it knows that the receiver copies it.
            return SIZES[-1:]
        if self._options.quick:
            return _QUICK_SIZES
        return HOST_SIZES if (rung, mode) == ("mxoe", "spinning") else SIZES

    def _add(
        self, series: str, name: str, size: int, found: dict[str, float], marks: tuple[str, ...] = (), **more: Any
    ) -> None:
        scale = 1.0 if series == CALL else 1e3
        details = {key: value / scale for key, value in found.items() if key != "count"}
        self._points.add(
            series,
            name,
            details.pop("median"),
            details=details,
            marks=marks,
            counts={"operations per round": found["count"]},
            size=size,
            **more,
        )

    def _calls(self, number: int) -> None:
        points = self._testbed.run_alone("system call", count=10_000 if self._options.quick else 100_000)["points"]
        if number >= 0:
            for name, found in {"system call": "call", "clock": "clock", SIGNAL: "signal"}.items():
                if found in points:
                    self._add(CALL, name, 0, points[found])

    def _frame_interval(self, carrier: str, number: int) -> None:
        count = 4 * _WINDOW if self._options.quick or number < 0 else 40 * _WINDOW
        spin = self._testbed.spins
        parameters = {"size": FRAME_SIZE, "count": count, "window": _WINDOW, "depth": _WINDOW}
        active, _ = self._testbed.run("flood", carrier=carrier, spin=spin, **parameters)
        if number >= 0:
            found = {"median": active["interval"], "count": count}
            self._add(FRAME, carrier, FRAME_SIZE, found, round_marks(active, spinning=spin))

    def _trace(self, out: set[str]) -> None:
        """Count the system calls and copied bytes of a round trip, in a run that is not timed."""
        sizes = _QUICK_SIZES if self._options.quick else SIZES[:3]
        plays = {
            rung: partial(self._testbed.run, "traced trips", carrier=rung)
            for rung in RUNGS[1:]
            if self._testbed.can_use(rung) is None
        }
        if isinstance(self._testbed, NamespaceTestbed):
            plays[ONE_COPY] = partial(self._within, self._testbed, "traced trips", carrier=ONE_COPY)
        for rung, play in plays.items():
            name = f"{rung}, {'spinning' if rung == ONE_COPY else 'blocking'}"
            if name in out:
                continue
            for size in SIZES[-1:] if rung == ONE_COPY else sizes:
                self._options.progress(f"counting: {rung}, {size} bytes")
                try:
                    active, _ = play(spin=False, size=size, count=_traced(size), traced_active=True)
                except (TestbedError, SilenceError) as error:
                    self._recording.remarks.append(f"{rung}: system calls are not counted: {error}")
                    break
                # Repetitions of the testbed, not a count of the side.
                active.pop("lost", None)
                if "xdp" in rung:
                    # The kernel writes to memory of the process, which tracing copies does not show.
                    active = {key: value for key, value in active.items() if not key.startswith("bytes copied")}
                self._points.count(TRIP, name, active, size=size)
        for size in sizes:
            self._options.progress(f"counting: engine, {size} bytes")
            try:
                counts = self._testbed.run_alone("traced engine", dialect="mxoe", size=size, count=_traced(size))
            except TestbedError as error:
                self._recording.remarks.append(f"engine: copies are not counted: {error}")
                break
            self._points.count(ALONE, "engine", counts, size=size)
        self._trace_library(sizes)

    def _trace_library(self, sizes: Sequence[int]) -> None:
        """Count the same of a program in C with libmyriexpress, whose partner is a host of mxwire."""
        refusal = library_refusal()
        if refusal is not None or not isinstance(self._testbed, NamespaceTestbed):
            self._recording.remarks.append(f"{LIBRARY} is not counted: {refusal or 'it needs two namespaces'}")
            return
        active, passive = self._testbed.sides
        counted = self._recording.facts.setdefault(LIBRARY, {})
        for size in sizes:
            self._options.progress(f"counting: {LIBRARY}, {size} bytes")
            common = {"size": size, "count": _traced(size)}
            where = {"interface": self._testbed.ports[0].interface, "other": self._testbed.addresses[1]}
            try:
                passive.start("traced trips", {"carrier": "mxoe", "spin": False, "traced_active": True, **common})
                passive.ready()
                active.start("traced library", {**where, **common})
                counted[str(size)] = active.result()
                passive.result()
            except (TestbedError, SilenceError) as error:
                self._recording.remarks.append(f"{LIBRARY} is not counted: {error}")
                return

    # Conclusions

    def _conclude(self) -> None:
        facts = self._recording.facts
        trips, alone = self._recording.named(TRIP), self._recording.named(ALONE)
        if not trips or not alone:
            return
        facts["budgets"] = [each.record() for each in budgets(self._recording)]
        facts["steps"] = [
            {"rung": name, "size": size, "median": value, "more": more} for size, name, value, more in steps(trips)
        ]
        facts["wake-up"] = {
            f"{rung}, {size}": after.median - before.median
            for rung in RUNGS[1:]
            for size in SIZES
            if (before := trips.point(f"{rung}, spinning", size)) and (after := trips.point(f"{rung}, blocking", size))
        }
        copies = [alone.point("memory copy, warm", size) for size in self._sizes("memory copy", "alone")]
        if copies[0] is not None and copies[-1] is not None and len(copies) > 1:
            sizes = self._sizes("memory copy", "alone")
            # The slope between two sizes, which leaves out the cost of the call.
            facts["copied byte, ns"] = (copies[-1].median - copies[0].median) * 1e3 / (sizes[-1] - sizes[0])


def _traced(size: int) -> int:
    """Traced round trips of a size."""
    return _TRACED if size <= SIZES[1] else _TRACED_LARGE


def steps(trips: Series) -> Iterator[tuple[int, str, float, float | None]]:
    """Size, rung, median and difference to the rung above it, of the rungs that poll."""
    for size in [each for each in trips.places() if each in SIZES]:
        before: float | None = None
        for rung in RUNGS:
            point = trips.point(f"{rung}, spinning", size)
            if point is None:
                continue
            yield size, rung, point.median, None if before is None else point.median - before
            before = point.median


def budgets(recording: Recording) -> Iterator[Budget]:
    """The budgets of mxoe whose parts were measured: polling and blocking, of each kind of mxwire.

    The parts of the network add up to the half round trip of the ring, and the others to that of the hosts among
    frames: with these, each round is judged.
    """
    trips, alone = recording.named(TRIP), recording.named(ALONE)
    calls = recording.named(CALL).median("system call", 0)
    for kind in ("", " interpreted"):
        for size in BUDGET_SIZES:
            hand_over = trips.median("shared memory, spinning", size)
            ring = trips.median(f"ring{kind}, spinning", size)
            engine, hosts = alone.median(f"engine{kind}", size), alone.median(f"hosts{kind}", size)
            if None in (ring, engine, hosts, calls):
                continue
            assert ring and engine and hosts and calls
            # One call sends the frame; the ring is polled without any.
            call = calls / 1e3
            # Two machines share no memory, so the hand-over is part of the network.
            between = 0.0 if hand_over is None else min(hand_over, ring)
            parts = (
                *(() if hand_over is None else (("hand-over between processors", between),)),
                ("system call", call),
                ("kernel and driver, per frame", max(ring - between - call, 0.0)),
                ("engines", engine),
                ("hosts: calls, loop, events", hosts - engine),
            )
            for mode in ("spinning", "blocking"):
                frames = trips.point(f"ring{kind}, {mode}", size)
                whole = trips.point(f"mxoe{kind}, {mode}", size)
                among = alone.point(f"{AMONG}{kind}, {mode}", size)
                if frames is None or whole is None or among is None:
                    continue
                more = [(_COLDER, max(among.median - hosts, 0.0))]
                if mode == "blocking":
                    more.append(("wake-up", frames.median - ring))
                sums = [one + other for one, other in zip(frames.samples, among.samples, strict=False)]
                verdict = agreement(sums, whole.samples, TOLERANCE)
                yield Budget(f"mxoe{kind}, {mode}", size, (*parts, *more), whole.median, verdict)


# The table of costs of this machine


def write_costs(recording: Recording) -> Path | None:
    """Fit the table ``here`` to half round trips of mxoe, write it, and compare it with lengths it was not fitted to.

    Return the file; None if not all lengths were measured.
    """
    from mxwire.bench.cost.calibration import FITTED, PREDICTED, calibrate, half_round_trip
    from mxwire.bench.cost.tables import own_table_file, write_own_table

    trips = recording.named(TRIP)
    curve = trips.curve("mxoe, spinning")

    def points(sizes: Sequence[int]) -> list[Measurement]:
        return [each for each in curve if each.parameters["size"] in sizes]

    measured = {each.parameters["size"]: each.median for each in points(FITTED)}
    if recording.conditions.testbed != "namespaces":
        recording.remarks.append("the table of costs is that of this machine alone: it is not written")
        return None
    if not set(FITTED) <= set(measured):
        recording.remarks.append("the table of costs is not written: not all of its lengths were measured")
        return None
    conditions = recording.conditions
    kind = "compiled" if conditions.compiled else "interpreted"
    tcp = {each.parameters["size"]: each.median for each in trips.curve("tcp, spinning")}
    costs = calibrate(measured, f"{conditions.processor}, {kind}, {conditions.time}", tcp)
    raised = recording.named(CALL).median(SIGNAL, 0)
    if raised is not None and raised > 0:
        costs = replace(costs, signal=raised, sources=costs.sources | {"signal": "measured"})
    write_own_table(costs)
    predictions = [_prediction(each, half_round_trip(costs, each.parameters["size"])) for each in points(PREDICTED)]
    recording.facts["predictions"] = predictions
    verdicts = [each["verdict"] for each in predictions]
    recording.facts["agreement"] = {"within": PREDICTION_TOLERANCE} | agreement_counts(verdicts)
    return own_table_file()


def _prediction(point: Measurement, predicted: float) -> dict[str, Any]:
    """A half round trip of the model, compared with the measured one round by round."""
    verdict = agreement([predicted] * len(point.samples), point.samples, PREDICTION_TOLERANCE)
    return {
        "size": point.parameters["size"],
        "predicted": predicted,
        "measured": point.median,
        "difference": predicted / point.median - 1,
        "verdict": verdict,
    }
