"""Timing statistics as JSON and as tables, of one capture or of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Self

import numpy as np

from mxwire.analysis.message_counter import SIZE_CLASSES
from mxwire.analysis.timing import DurationEstimate, DurationSketch, GapHistogram, Samples, Timing
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Table, number_columns, tabulate
from mxwire.report.messages import COOKED
from mxwire.report.result import Result, result
from mxwire.report.times import duration_text, seconds_text
from mxwire.words import count_of

LENGTHS_SHOWN: Final = 40
"""Maximum number of message lengths with a row each; beyond it, rows are length classes."""
_ITERATION: Final = "Half round trips: half the ping-to-ping interval"
_ANSWER: Final = "Half round trips: half of the time from the first frame of a ping to the last byte of its pong"
_TRANSFER: Final = "Transfers: from the first frame of a message to its last byte"
_GAP_SHARES: Final = (0.01, 0.1, 0.5, 0.9, 0.99)


# Results


@result("capture")
class CaptureTotals(Result):
    """The totals of a capture."""

    frames: int
    start_ns: int | None
    end_ns: int | None
    messages: int
    kinds: dict[str, int]
    message_bytes: int
    """Bytes of the messages that were received."""
    repeated_frames: int
    """Retransmissions and re-requests."""
    duplicate_frames: int
    most_outstanding: int
    """Maximum number of unacknowledged numbered packets in one direction at a time."""
    dialect: str | None


@result()
class DurationStatistics(Result):
    """Statistics of durations; they follow the key length, size_class or what."""

    count: int
    least_ns: float
    p10_ns: float | None
    """Null with fewer than 10 durations, as is ``p90_ns``."""
    median_ns: float
    median_low_ns: float | None
    """Lower bound of the 95% confidence interval of the median; null with fewer than 6 durations."""
    median_high_ns: float | None
    mean_ns: float
    p90_ns: float | None
    p99_ns: float | None
    """Null with fewer than 100 durations."""
    most_ns: float

    @classmethod
    def of(cls, found: DurationEstimate) -> DurationStatistics:
        """Round the statistics."""
        values = {name if name == "count" else f"{name}_ns": value for name, value in asdict(found).items()}
        rounded: dict[str, Any] = {
            name: round(each, 3) if isinstance(each, float) else each for name, each in values.items()
        }
        return cls(**rounded)


@result()
class DurationSummary(Result):
    """Durations of one kind."""

    kind: str
    """The value of ``record``."""
    field: str
    """The field of the record that has the ``key``."""
    key: int | str
    """Length, size class or name of a delay."""
    statistics: DurationStatistics
    sketch: dict[str, Any] | None
    """The durations for merging, as values of a :class:`~mxwire.analysis.timing.DurationSketch`."""

    @classmethod
    def of(
        cls, kind: str, field: str, key: int | str, samples: Samples | DurationSketch, sketched: bool = False
    ) -> DurationSummary:
        """Describe some samples, for merging if they are ``sketched``."""
        estimate = samples.estimate()
        assert estimate is not None
        # Sketches are large, and only the merging of captures needs them.
        sketch = samples.sketch().values() if sketched and isinstance(samples, Samples) else None
        return cls(kind, field, key, DurationStatistics.of(estimate), sketch)

    def record(self) -> dict[str, Any]:
        """Return an object with the ``key`` and the statistics, and the rate for messages of one length."""
        entry = {"record": self.kind, self.field: self.key} | self.statistics.record()
        if isinstance(self.key, int):
            median = self.statistics.median_ns
            entry["megabytes_per_second"] = round(self.key / median * 1e3, 6) if median else None
        return entry


@result("gaps")
class GapCounts(Result):
    """The gaps between frames of one sender, by size."""

    count: int
    edges_ns: list[float]
    """Bounds of the steps, one more than there are steps."""
    counts: list[int]
    """Number of gaps per step."""

    @classmethod
    def of(cls, gaps: GapHistogram) -> Self:
        """Describe a histogram."""
        return cls(gaps.total, [round(each, 3) for each in gaps.edges_ns.tolist()], gaps.counts.tolist())


@result("merged_gaps")
class MergedGapCounts(GapCounts):
    """The gaps of many captures."""


@result("in_flight")
class InFlight(Result):
    """Bytes and frames in flight, and repeats, per step of time."""

    start_ns: int
    width_ns: int
    bytes: list[float]
    """Bytes in flight, on average over each step."""
    frames: list[float]
    """Frames in flight, on average over each step."""
    repeats: list[int]
    """Number of retransmissions or re-requests in each step."""


@result()
class TimedCapture(Result):
    """The measurements of a capture."""

    name: str
    totals: CaptureTotals
    durations: list[DurationSummary]
    gaps: GapCounts
    in_flight: InFlight
    cooked: bool

    @classmethod
    def of(cls, name: str, timing: Timing, sketched: bool = False) -> TimedCapture:
        """Describe all measurements, for merging if durations are ``sketched``."""
        totals = CaptureTotals.copied(
            timing,
            start_ns=timing.first_ns,
            end_ns=timing.last_ns if timing.frames else None,
            kinds=dict(sorted(timing.kinds.items())),
            dialect=timing.dialect.name if timing.dialect else None,
        )
        line = timing.line.line()
        in_flight = InFlight(
            line.start_ns,
            line.width_ns,
            [round(each, 3) for each in line.in_flight.tolist()],
            [round(each, 3) for each in line.frames.tolist()],
            line.repeats.tolist(),
        )
        durations = [DurationSummary.of(*each, sketched) for each in durations_of(timing)]
        return cls(name, totals, durations, GapCounts.of(timing.gaps), in_flight, timing.follower.cooked)

    def results(self) -> Iterator[Result]:
        """Yield the results that are reported as JSON."""
        yield self.totals
        yield from self.durations
        yield self.gaps
        yield self.in_flight


def durations_of(timing: Timing) -> Iterator[tuple[str, str, int | str, Samples]]:
    """Yield the durations of a capture that have samples, with the parameters of their summary."""
    for record, lengths in (
        ("half_iteration", timing.iterations),
        ("half_answer", timing.answers),
        ("transfer", timing.transfers),
    ):
        for length, samples in sorted(lengths.by_length.items()):
            yield record, "length", length, samples
        for name, _ in SIZE_CLASSES:
            if name in lengths.by_class:
                yield f"{record}_class", "size_class", name, lengths.by_class[name]
    for name, samples_of in _DELAYS.items():
        if samples_of(timing).count:
            yield "delay", "what", name, samples_of(timing)


_DELAYS: Final[dict[str, Callable[[Timing], Samples]]] = {
    "last byte to ack with data": lambda timing: timing.ack_delays["piggyback"],
    "last byte to ack alone": lambda timing: timing.ack_delays["liback"],
    "last byte to NOTIFY": lambda timing: timing.notify_delay,
    "message retransmitted": lambda timing: timing.resend_delay,
    "block re-requested early": lambda timing: timing.re_request_delays["early"],
    "block re-requested by timer": lambda timing: timing.re_request_delays["timer"],
    "block re-requested": lambda timing: timing.re_request_delays["unknown"],
}
"""Delays other than round trips, by name."""


class MergedTiming:
    """Accumulator of the durations and gaps of many captures."""

    def __init__(self) -> None:
        self._sketches: dict[tuple[str, str, int | str], DurationSketch] = {}
        self._gaps = GapHistogram()

    def add(self, timed: TimedCapture) -> None:
        """Add the measurements of a capture."""
        for each in timed.durations:
            if each.sketch is not None:
                key = each.kind, each.field, each.key
                self._sketches[key] = self._sketches.get(key, DurationSketch()) + DurationSketch.of(each.sketch)
        # All histograms have the same edges, so that counts can be added.
        self._gaps.merge(np.array(timed.gaps.counts, np.int64))

    def durations(self) -> list[DurationSummary]:
        """Return a summary per series, sorted by its kind and key."""
        ordered = sorted(self._sketches.items(), key=lambda each: (each[0][0], _place(each[0][2])))
        return [DurationSummary.of(f"merged_{kind}", field, key, sketch) for (kind, field, key), sketch in ordered]

    def gaps(self) -> MergedGapCounts:
        """Return the gaps of all captures."""
        return MergedGapCounts.of(self._gaps)


def _place(key: int | str) -> tuple[int, str]:
    """Return a value by which lengths are sorted as numbers, and names as texts."""
    return (key, "") if isinstance(key, int) else (0, key)


# Blocks


def timing_blocks(timed: TimedCapture, pairs: Sequence[Block] = ()) -> list[Block]:
    """All measurements of a capture; measurements of ``pairs`` follow the totals."""
    shown: list[Block] = [Heading(timed.name), Listing(tuple(_facts(timed.totals, timed.in_flight))), *pairs]
    shown += duration_blocks(timed.durations, timed.gaps)
    if timed.cooked:
        shown.append(Paragraph(COOKED))
    return shown


def duration_blocks(durations: Sequence[DurationSummary], gaps: GapCounts) -> list[Block]:
    """Durations and gaps of one capture, or of many."""
    series: dict[str, dict[int | str, DurationStatistics]] = {}
    for each in durations:
        series.setdefault(each.kind.removeprefix("merged_"), {})[each.key] = each.statistics
    shown: list[Block] = []
    for title, kind in ((_ITERATION, "half_iteration"), (_ANSWER, "half_answer"), (_TRANSFER, "transfer")):
        if kind in series:
            shown += [Heading(title, 3), _lengths(series[kind], series[f"{kind}_class"])]
    if "delay" in series:
        delays = [(name, series["delay"][name]) for name in _DELAYS if name in series["delay"]]
        shown += [Heading("Delays in ms", 3), _delays(delays)]
    if gaps.count:
        shown += [Heading("Gaps between frames of one sender", 3), _gaps(gaps)]
    return shown


def _facts(totals: CaptureTotals, line: InFlight) -> Iterator[str]:
    duration = (totals.end_ns or 0) - (totals.start_ns or 0)
    kinds = ", ".join(f"{count} {kind}" for kind, count in totals.kinds.items())
    yield f"{count_of(totals.frames, 'frame')} in {seconds_text(duration).strip()} s"
    yield f"{count_of(totals.messages, 'message')}" + (
        f": {kinds}; {count_of(totals.message_bytes, 'byte')} received" if kinds else ""
    )
    if totals.frames:
        share = totals.repeated_frames / totals.frames
        repeated = f"{count_of(totals.repeated_frames, 'frame')} retransmitted or re-requested ({share:.1%})"
        yield f"{repeated}, {count_of(totals.duplicate_frames, 'duplicate')}"
        packets = count_of(totals.most_outstanding, "numbered packet")
        yield f"at most {packets} unacknowledged per direction"
        # The bytes at the peak of frames, not their own peak: both numbers describe the same moment.
        frames, size = max(zip(line.frames, line.bytes, strict=True), key=lambda each: each[0])
        if frames:
            flying = f"{frames:.1f} frames, {count_of(round(size), 'byte')}"
            yield f"peak in flight, averaged over {duration_text(line.width_ns)}: {flying}"


_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
"""Units of time and their nanoseconds, the largest first."""
_SPREAD: Final = ("95% CI", "min", "p10", "p90", "p99", "max")
_COLUMNS: Final = number_columns("length", "n", "median µs", *_SPREAD, "MB/s")


def _lengths(
    by_length: Mapping[int | str, DurationStatistics], by_class: Mapping[int | str, DurationStatistics]
) -> Table:
    # Applications with messages of any length would otherwise fill the screen with rows of one sample.
    if len(by_length) <= LENGTHS_SHOWN:
        rows = [_row(length, found) for length, found in by_length.items()]
    else:
        rows = [_row(name, by_class[name]) for name, _ in SIZE_CLASSES if name in by_class]
    return tabulate(_COLUMNS, rows)


def _row(key: int | str, found: DurationStatistics) -> tuple[object, ...]:
    rate = _figures(key / found.median_ns * 1e3, 3) if isinstance(key, int) and key and found.median_ns else "-"
    return key, *_cells(found, 1e3, 1), rate


def _cells(found: DurationStatistics, unit: float, digits: int) -> list[str]:
    """The number of samples, and their durations in multiples of ``unit`` nanoseconds."""
    spread = (found.least_ns, found.p10_ns, found.p90_ns, found.p99_ns, found.most_ns)
    median, *others = (scaled(each, unit, digits) for each in (found.median_ns, *spread))
    return [str(found.count), median, _interval(found, unit, digits), *others]


def _interval(found: DurationStatistics, unit: float, digits: int) -> str:
    if found.median_low_ns is None or found.median_high_ns is None:
        return "-"
    return f"{scaled(found.median_low_ns, unit, digits)} to {scaled(found.median_high_ns, unit, digits)}"


def scaled(nanoseconds: float | None, unit: float, digits: int = 1) -> str:
    """Format a duration in multiples of ``unit`` nanoseconds with up to ``digits`` decimals; ``-`` for None."""
    return "-" if nanoseconds is None else _figures(nanoseconds / unit, digits)


def _figures(value: float, digits: int) -> str:
    """A number with ``digits`` decimals, or fewer so that four significant figures remain."""
    # More figures than the clock and the spread support would suggest a precision that is not there.
    before = len(str(int(value)))
    return f"{value:.{min(digits, max(4 - before, 0))}f}"


def _delays(delays: list[tuple[str, DurationStatistics]]) -> Table:
    columns = (Column("from … to"), *number_columns("n", "median", *_SPREAD))
    return tabulate(columns, ((name, *_cells(found, 1e6, 3)) for name, found in delays))


def _gaps(counted: GapCounts) -> Table:
    gaps = GapHistogram()
    gaps.merge(np.array(counted.counts, np.int64))
    percentiles = [(share, gaps.percentile(share)) for share in _GAP_SHARES]
    # Gaps span many orders of magnitude: one unit for all columns would print zeros.
    units = [next(each for each in _UNITS if below >= each[1] or each is _UNITS[-1]) for _, below in percentiles]
    headings = [f"p{share * 100:.0f} {unit}" for (share, _), (unit, _) in zip(percentiles, units, strict=True)]
    durations = (scaled(below, size, 3) for (_, below), (_, size) in zip(percentiles, units, strict=True))
    return tabulate(number_columns("n", *headings), [(gaps.total, *durations)])
