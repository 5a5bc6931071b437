"""``bench logp``: L, o_s, o_r, g and G of channels by two methods, and their three bandwidths.

Theory of operation
-------------------
The first method is that of the paper (Culler, Liu, Martin and Yoshikawa, as extended by Araki and others), three
fragments of two programs. Half a round trip is that of a ping-pong. The interval g is that of a flood in the steady
state. The overhead of the sender follows from floods in which the sender works for D after each message: the interval
is then o_s + D as soon as this exceeds g, so o_s is the mean of interval - D. The overhead of the receiver follows
likewise from work at the receiver. L is half a round trip less both overheads; a negative L means that the send
overlaps the flight, as it does on a virtual cable, where the sender also does the receiver's work in the kernel.

The second method (Hoefler and others; netgauge) needs round trips only: n messages d apart and one answer take PRTT(n,
d) = PRTT(1, 0) + (n - 1) max(o_s + d, g). The overhead of the receiver is the time of a receive whose message has
arrived. If the methods differ by more than 15% in nearly all rounds, the point is marked ``methods differ``; if the
rounds disagree, ``undecided``.

Floods have a window: the receiver returns credit for half of it at a time, for all carriers alike.

Names in the recording
----------------------
Series ``RTT/2``, ``g``, ``o_s``, ``o_r`` and ``L`` (µs, over ``size``): one name per carrier (``mxoe``, ``omx:M``,
``tcp``, ``udp``, ``frames``, ``ring``, ``xdp``), and ``<carrier>, round trips`` for the second method. Series
``bandwidth`` (MB/s of 10^6 bytes): ``<carrier>, unidirectional``, ``<carrier>, ping-pong``, ``<carrier>, simultaneous``
(both directions together) and ``<carrier>, simultaneous, each way``. Facts: ``gap per byte`` (G by carrier and
segment), ``agreement`` (by carrier: number of points on which the methods agree, differ, and are undecided),
``spin error``, ``round trips``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import Any, Final

import numpy as np

from mxwire.bench.channels.carriers import check_carrier, is_host
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.report import PageFigure, figure_of, marks_legend, numbers_table, points_table, shared_marks, spread
from mxwire.bench.rounds import Agreement, agreement, agreement_counts, within
from mxwire.bench.study import LEAST_OPERATIONS, StudyOptions, TestbedStudy, kept, round_marks
from mxwire.bench.testbed import StudyTestbed
from mxwire.errors import MxwireError
from mxwire.report.document import Block, Heading, Paragraph, Table
from mxwire.report.plot import number_text
from mxwire.wire.dialect import MXOE
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM

SIZES: Final = (4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1 << 20)
_QUICK_SIZES: Final = (4, 1024)
CARRIERS: Final = ("mx", "tcp", "udp", "frames")
DIALECTS: Final = ("mxoe", "omx:9000")
"""The carriers that ``mx`` stands for."""
PARAMETERS: Final = ("RTT/2", "g", "o_s", "o_r", "L")
_COLUMNS: Final = ("RTT/2", "L", "o_s", "o_r", "g")
COMPARED: Final = ("g", "o_s", "o_r")
"""Parameters that both methods measure."""
BANDWIDTH: Final = "bandwidth"
BANDWIDTHS: Final = ("unidirectional", "ping-pong", "simultaneous", "simultaneous, each way")
_MULTIPLES: Final = (150, 250)
"""Work of the loaded floods, in hundredths of the interval without work: above it, as the method requires."""
_CLEARLY: Final = 1.1
"""Factor by which an interval must exceed that without work to count as above it."""
BURST: Final = 16
"""Messages of a parametrised round trip."""
_FLIGHT_BYTES: Final = 1 << 20
_WINDOW: Final = 256
"""Messages in flight of a flood: credit returns for half of them, and costs the sender a receive."""
_VIRTUAL_WINDOW: Final = 64
_SECTION_NS: Final = 10_000_000
"""Duration of each part of a point in a round."""
_FEWEST: Final = 8
"""Operations of a large message, and of any in the warm-up, in a round."""
_FEWEST_BURSTS: Final = 3
_MOST_BURSTS: Final = 20
_SPINS: Final = (1_000, 10_000, 100_000)
_LARGE: Final = 16384
_LEAST_RISE: Final = 1e-3
"""Share of the gap by which it must rise over a segment to have a slope; less is rounding or noise."""
TOLERANCE: Final = 0.15
ROUND_TRIPS: Final = ", round trips"
"""Appended to a carrier: the parameter by the second method."""


def expanded(carriers: Sequence[str]) -> list[str]:
    """The carriers of a list in which ``mx`` stands for both dialects.

    Raises :class:`~mxwire.errors.MxwireError` for unknown names and an empty list.
    """
    names = [name for each in carriers for name in (DIALECTS if each == "mx" else (each,)) if name]
    for each in names:
        check_carrier(each)
        if each == "shared memory":
            raise MxwireError("shared memory carries one message at a time: it has no g")
    if not names:
        raise MxwireError(f"no carrier is given: use some of {', '.join(CARRIERS)}")
    return list(dict.fromkeys(names))


def measure_logp(
    testbed: StudyTestbed, options: StudyOptions, carriers: Sequence[str] = CARRIERS, sizes: Sequence[int] | None = None
) -> Recording:
    """Measure messages of ``sizes`` bytes over carriers on a testbed, and return the recording."""
    recording = options.begin("logp", testbed.conditions)
    sizes = tuple(sizes or (_QUICK_SIZES if options.quick else SIZES))
    LogpStudy(testbed, recording, options, sizes).run(expanded(carriers))
    return recording


def rates_of(size: int, gap: float, trip: float, both: float) -> Iterator[tuple[str, float]]:
    """The :data:`BANDWIDTHS` in MB/s, from the gap, half a round trip, and the time of an exchange in ns."""
    # Bytes per ns are 1000 MB/s.
    rates = (size / gap, size / trip, 2 * size / both, size / both)
    return zip(BANDWIDTHS, (each * 1e3 for each in rates), strict=True)


def window_of(size: int) -> int:
    """Messages in flight of a flood: fewer if they are large, because all must fit into the buffers on the path."""
    return max(min(_WINDOW, _FLIGHT_BYTES // max(size, 1)), 2)


class LogpStudy(TestbedStudy):
    """One run of the study. Floods have at most ``window`` messages in flight, if that is given."""

    def __init__(
        self,
        testbed: StudyTestbed,
        recording: Recording,
        options: StudyOptions,
        sizes: tuple[int, ...],
        window: int | None = None,
    ) -> None:
        super().__init__(testbed, recording, options)
        self._sizes = sizes
        self._window = window or (8 if options.quick else _VIRTUAL_WINDOW if testbed.virtual else _WINDOW)
        self._points.declare("µs", *PARAMETERS)
        self._points.declare("MB/s", BANDWIDTH)
        self._counts: dict[tuple[str, int], int] = {}
        self._repetitions: dict[tuple[str, int], int] = {}
        self._round_trips: dict[str, dict[int, dict[str, list[float]]]] = {}

    def run(self, carriers: Sequence[str]) -> None:
        """Measure, and fill the recording."""
        possible = [each for each in carriers if self._usable(each)]
        if not possible:
            raise MxwireError(f"no carrier can be used: {self._recording.remarks[0]}")
        with kept(self._recording, self._points):
            if self._testbed.spins and not self._testbed.virtual:
                self._spin_error(possible[0])
            self._take_turns({each: partial(self._round, each) for each in possible})
        self._conclude(possible)

    def _spin_error(self, carrier: str) -> None:
        found, _ = self._testbed.run("spin error", carrier=carrier, spin=True, durations=list(_SPINS))
        self._recording.facts["spin error"] = {str(each): found[str(each)] for each in _SPINS}

    def _round(self, carrier: str, number: int) -> None:
        # A quick run does not judge times, and polling sides would disturb other programs on a test machine.
        spin = self._testbed.spins and not self._options.quick
        windows = {size: min(window_of(size), self._window) for size in self._sizes}
        points: dict[str, Any] = {}
        # Hosts post receives of the largest size for a whole window: large messages have a role of their own.
        for sizes in ([s for s in self._sizes if s < _LARGE], [s for s in self._sizes if s >= _LARGE]):
            if not sizes:
                continue
            active, passive = self._testbed.run(
                "fragments",
                carrier=carrier,
                spin=spin,
                sizes=sizes,
                counts=[self._counts.get((carrier, size), _FEWEST) for size in sizes],
                windows=[windows[size] for size in sizes],
                depth=max(*(windows[size] for size in sizes), BURST),
                multiples=list(_MULTIPLES),
                number=BURST,
                repetitions=[self._repetitions.get((carrier, size), _FEWEST_BURSTS) for size in sizes],
            )
            points |= active["points"]
            polls = spin and self._testbed.passive_polls(carrier)
            marks = [*self._testbed.marks, *round_marks(active, spinning=spin), *round_marks(passive, spinning=polls)]
            for size in sizes if number >= 0 else ():
                self._add(carrier, size, active["points"][str(size)], tuple(dict.fromkeys(marks)))
        if number < 0:
            self._plan(carrier, points)

    def _plan(self, carrier: str, points: dict[str, Any]) -> None:
        trips = {int(size): each["round trip"]["median"] for size, each in points.items()}
        for size, trip in trips.items():
            few = max(_FEWEST, min(int(_SECTION_NS / trip), LEAST_OPERATIONS))
            self._counts[carrier, size] = few if size >= _LARGE else self._options.operations(trip, _SECTION_NS)
            # A burst takes the time of its messages plus a gap of one round trip.
            bursts = int(_SECTION_NS / (BURST * trip))
            self._repetitions[carrier, size] = max(_FEWEST_BURSTS, min(bursts, _MOST_BURSTS))

    def _add(self, carrier: str, size: int, found: dict[str, Any], marks: tuple[str, ...]) -> None:
        trip, send, receive = found["round trip"], found["send"], found["receive"]
        one, burst, apart = trip["median"], found["burst"]["median"], found["apart"]["median"]
        values = {"RTT/2": one / 2, "g": send["interval"], "o_s": overhead(send), "o_r": overhead(receive)}
        others = {
            "g": (burst - one) / (BURST - 1),
            # Messages were a round trip apart, in whole ns: longer than g, so that o_s + d decides.
            "o_s": (apart - one) / (BURST - 1) - int(one),
            "o_r": found["arrived"]["median"],
        }
        values["L"] = values["RTT/2"] - values["o_s"] - values["o_r"]
        add = partial(self._points.add, size=size, marks=marks)
        for name, value in values.items():
            details = {"p99": trip["p99"] / 2e3} if name == "RTT/2" else {}
            add(name, carrier, value / 1e3, details=details)
        for name, value in others.items():
            add(name, carrier + ROUND_TRIPS, value / 1e3)
        for name, rate in rates_of(size, values["g"], values["RTT/2"], found["both"]):
            add(BANDWIDTH, f"{carrier}, {name}", rate)
        kept_trips = self._round_trips.setdefault(carrier, {}).setdefault(size, {"one": [], "burst": [], "apart": []})
        for name, value in (("one", one), ("burst", burst), ("apart", apart)):
            kept_trips[name].append(value / 1e3)

    def _conclude(self, carriers: Sequence[str]) -> None:
        recording = self._recording
        recording.facts["agreement"] = {each: found for each in carriers if (found := self._agreement(each))}
        recording.facts["round trips"] = {
            carrier: {str(size): {name: median(values) for name, values in each.items()} for size, each in by.items()}
            for carrier, by in self._round_trips.items()
        }
        recording.facts["gap per byte"] = {each: list(gaps_per_byte(recording, each)) for each in carriers}
        self._mark("L", lambda each: each.median <= 0, "overlap")

    def _agreement(self, carrier: str) -> dict[str, Any]:
        """Compare both methods at all points of a carrier; empty if it has none."""
        by = {
            name: [each for size in self._sizes if (each := self._compare(carrier, name, size)) is not None]
            for name in COMPARED
        }
        found = [each for verdicts in by.values() for each in verdicts]
        if not found:
            return {}
        counts = {name: agreement_counts(verdicts) for name, verdicts in by.items()}
        return {"within": TOLERANCE} | agreement_counts(found) | {"by": counts}

    def _compare(self, carrier: str, name: str, size: int) -> Agreement | None:
        """Compare both methods; mark the point unless they agree. None if one of them has no result."""
        series = self._recording.named(name)
        one, other = series.point(carrier, size), series.point(carrier + ROUND_TRIPS, size)
        if one is None or other is None:
            return None
        found: Agreement
        # Rounds are for noise, which virtual time does not have: there is only one.
        if self._testbed.virtual:
            found = "agree" if within(one.median, other.median, TOLERANCE) else "differ"
        else:
            found = agreement(one.samples, other.samples, TOLERANCE)
        if found != "agree":
            self._mark(name, lambda each: each is one, "methods differ" if found == "differ" else "undecided")
        return found

    def _mark(self, name: str, chosen: Callable[[Measurement], bool], mark: str) -> None:
        measurements = self._recording.named(name).measurements
        measurements[:] = [replace(each, marks=(*each.marks, mark)) if chosen(each) else each for each in measurements]


def overhead(found: dict[str, Any]) -> float:
    """The overhead of a side from floods with work there: the mean of interval - work, where work decides the interval.

    If no work was long enough, the longest one is used.
    """
    loaded = [(work, interval) for work, interval in found["loaded"]]
    clear = [interval - work for work, interval in loaded if interval > _CLEARLY * found["interval"]]
    work, interval = loaded[-1]
    return fmean(clear) if clear else float(interval - work)


def segments(carrier: str) -> list[tuple[int, int]]:
    """Ranges of sizes within which a carrier's protocol does not change."""
    last = 1 << 62
    if is_host(carrier):
        return [(0, SMALL_MAXIMUM), (SMALL_MAXIMUM + 1, RENDEZVOUS_THRESHOLD), (RENDEZVOUS_THRESHOLD + 1, last)]
    return [(0, last)]


def gaps_per_byte(recording: Recording, carrier: str) -> Iterator[dict[str, Any]]:
    """G by segment: the slope of g over size by least squares, in ns per byte; no rate for a segment without slope."""
    curve = recording.named("g").curve(carrier)
    for low, high in segments(carrier):
        points = [(each.parameters["size"], each.median) for each in curve if low <= each.parameters["size"] <= high]
        if len(points) < 2:
            continue
        slope, intercept = np.polyfit([size for size, _ in points], [gap for _, gap in points], 1)
        # Equal gaps have a slope of some 1e-19, by rounding; its inverse would be no rate.
        rises = slope * (points[-1][0] - points[0][0]) > _LEAST_RISE * max(gap for _, gap in points)
        rate = 1 / float(slope) if rises else None
        yield {
            "from": points[0][0],
            "to": points[-1][0],
            "ns_per_byte": float(slope) * 1e3,
            "MB/s": rate,
            "intercept_us": float(intercept),
        }


# Report


def logp_blocks(recording: Recording) -> Iterator[Block]:
    """The parameters by carrier and size, both methods side by side, G, and the bandwidths."""
    yield Heading("LogP")
    known = shared_marks([each for series in recording.series for each in series.measurements])
    for carrier in recording.named("RTT/2").contestants():
        yield Heading(", ".join([carrier, "µs", *known]), 3)
        yield _parameters(recording, carrier, known)
    yield from marks_legend([each for name in PARAMETERS for each in recording.named(name).measurements])
    yield from _gap_blocks(recording)
    agreed = recording.facts.get("agreement", {})
    if agreed:
        yield Heading(f"Agreement: points on which both methods agree within {TOLERANCE:.0%}", 3)
        rows = ((carrier, *map(_agreed, (*found["by"].values(), found))) for carrier, found in agreed.items())
        yield numbers_table("carrier", (*COMPARED, "all"), rows)
    errors = recording.facts.get("spin error", {})
    if errors:
        shown = ", ".join(f"{float(error):+.1%} of {int(ns) / 1e3:g} µs" for ns, error in errors.items())
        yield Paragraph(f"Error of the calibrated work: {shown}.")
    bandwidth = recording.named(BANDWIDTH)
    if bandwidth:
        for carrier in recording.named("RTT/2").contestants():
            yield Heading(", ".join([f"Bandwidth of {carrier}", bandwidth.unit, *known]), 3)
            yield _bandwidths(bandwidth, carrier)


def _agreed(found: dict[str, Any]) -> str:
    """The number of points that agree, and of those that are undecided."""
    return f"{found['agree']} of {found['points']}" + (f", {found['undecided']} ?" if found["undecided"] else "")


def _parameters(recording: Recording, carrier: str, known: tuple[str, ...]) -> Table:
    columns = [
        (recording.named(name), kind)
        for kind in ("", ROUND_TRIPS)
        for name in _COLUMNS
        if carrier + kind in recording.named(name).contestants()
    ]
    sizes = sorted({each.parameters["size"] for each in recording.named("RTT/2").curve(carrier)})
    lines = ((f"{size:,}", [series.point(carrier + kind, size) for series, kind in columns]) for size in sizes)
    headings = [series.name + (" (PRTT)" if kind else "") for series, kind in columns]
    return points_table("size, bytes", headings, lines, partial(spread, known=known, short=True), right=True)


def _bandwidths(series: Series, carrier: str) -> Table:
    sizes = series.places()
    lines = ((f"{size:,}", [series.point(f"{carrier}, {kind}", size) for kind in BANDWIDTHS]) for size in sizes)
    return points_table("size, bytes", BANDWIDTHS, lines, right=True)


def _gap_blocks(recording: Recording) -> Iterator[Block]:
    rows = []
    for carrier, found in recording.facts.get("gap per byte", {}).items():
        for each in found:
            rate = "" if each["MB/s"] is None else number_text(each["MB/s"])
            rows.append((carrier, f"{each['from']:,}-{each['to']:,}", f"{each['ns_per_byte']:.3f}", rate))
    if rows:
        yield Heading("G: gap per byte", 3)
        yield numbers_table("carrier", ("sizes", "ns per byte", "1/G, MB/s"), rows)


def logp_figures(recording: Recording) -> Iterator[PageFigure]:
    """Half round trips and bandwidths, and the other parameters, over size."""
    rates = recording.named(BANDWIDTH)
    # A carrier has one curve in all panels. The bandwidth of each direction is half of both.
    kinds = [rates.part(f", {kind}", f"{rates.name}, {kind}") for kind in BANDWIDTHS[:-1]]
    yield from figure_of((recording.named("RTT/2"), *kinds), "Latency and bandwidth", dialect=MXOE)
    others = map(recording.named, COMPARED)
    yield from figure_of(others, "Parameters of LogP, by both methods", "L is in the tables.")


def netgauge_text(recording: Recording) -> str:
    """The recording in the file format of netgauge's LogGP pattern; times in µs.

    L is half of PRTT(1, 0) of the smallest size, as netgauge computes it, from which no overhead is subtracted.
    Raises :class:`~mxwire.errors.MxwireError` unless there is one carrier.
    """
    trips = recording.facts.get("round trips", {})
    if len(trips) != 1:
        raise MxwireError("the format of netgauge describes one network: measure one carrier (--over mxoe)")
    (carrier, by_size), by = next(iter(trips.items())), {series.name: series for series in recording.series}
    sizes = sorted(map(int, by_size))
    gaps = {size: (by_size[str(size)]["burst"] - by_size[str(size)]["one"]) / (BURST - 1) for size in sizes}
    lines = [
        f"# mxwire bench logp, {carrier}, {recording.conditions.time}",
        "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)",
    ]
    latency = by_size[str(sizes[0])]["one"] / 2
    for place, size in enumerate(sizes):
        known = sizes[: place + 1]
        slope, intercept, error = _line(known, [gaps[each] for each in known])
        found = by_size[str(size)]
        overheads = [by[name].point(carrier + ROUND_TRIPS, size) for name in ("o_s", "o_r")]
        values = [found["one"], found["burst"], found["apart"], latency]
        values += [0.0 if each is None else each.median for each in overheads]
        lines.append(" ".join([str(size), str(BURST), *(f"{each:f}" for each in (*values, intercept, slope, error))]))
    return "\n".join(lines) + "\n"


def _line(sizes: list[int], gaps: list[float]) -> tuple[float, float, float]:
    """Slope, intercept and root mean square error of the least-squares line through points."""
    if len(sizes) < 2:
        return 0.0, gaps[0], 0.0
    slope, intercept = np.polyfit(sizes, gaps, 1)
    error = np.sqrt(np.mean((np.polyval([slope, intercept], sizes) - np.array(gaps)) ** 2))
    return float(slope), float(intercept), float(error)
