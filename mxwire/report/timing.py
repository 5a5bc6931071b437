"""Timing statistics as tables and JSON records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mxwire.analysis.message_counter import SIZE_CLASSES
from mxwire.analysis.timing import DurationEstimate, DurationSketch, GapHistogram, Samples, Timing
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, number_columns
from mxwire.report.messages import COOKED
from mxwire.report.times import duration_text, seconds_text
from mxwire.words import count_of

LENGTHS_SHOWN: Final = 40
"""Maximum number of message lengths with a row each; beyond it, rows are length classes."""
_ITERATION: Final = "Half round trips: half the ping-to-ping interval"
_ANSWER: Final = "Half round trips: half of the time from the first frame of a ping to the last byte of its pong"
_TRANSFER: Final = "Transfers: from the first frame of a message to its last byte"
_GAP_SHARES: Final = (0.01, 0.1, 0.5, 0.9, 0.99)


def timing_blocks(path: str, timing: Timing, pairs: Sequence[Block] = ()) -> list[Block]:
    """All measurements as blocks of a report; measurements of ``pairs`` follow the totals."""
    shown: list[Block] = [Heading(path), Listing(tuple(_facts(timing))), *pairs]
    shown += duration_blocks({(each.record, each.key): each.samples for each in series_of(timing)}, timing.gaps)
    if timing.follower.cooked:
        shown.append(Paragraph(COOKED))
    return shown


def duration_blocks(series: Mapping[tuple[str, Any], Samples | DurationSketch], gaps: GapHistogram) -> list[Block]:
    """Durations and gaps as blocks; ``series`` by the record and the key of :class:`DurationSeries`."""
    shown: list[Block] = []
    for title, record in ((_ITERATION, "half_iteration"), (_ANSWER, "half_answer"), (_TRANSFER, "transfer")):
        by_length = {key: samples for (name, key), samples in series.items() if name == record}
        by_class = {key: samples for (name, key), samples in series.items() if name == f"{record}_class"}
        if by_length:
            shown += [Heading(title, 3), _lengths(by_length, by_class)]
    delays = [(name, series["delay", name]) for name in _DELAYS if ("delay", name) in series]
    if delays:
        shown += [Heading("Delays in ms", 3), _delays(delays)]
    if gaps.total:
        shown += [Heading("Gaps between frames of one sender", 3), _gaps(gaps)]
    return shown


@dataclass(frozen=True, slots=True)
class DurationSeries:
    """Durations of one kind in a capture, and the record that describes them."""

    record: str
    field: str
    """The field of the record that has the ``key``."""
    key: int | str
    """Length, size class or name of a delay."""
    samples: Samples


def series_of(timing: Timing) -> Iterator[DurationSeries]:
    """Yield the durations of a capture that have samples, in the order of the records."""
    for record, lengths in (
        ("half_iteration", timing.iterations),
        ("half_answer", timing.answers),
        ("transfer", timing.transfers),
    ):
        for length, samples in sorted(lengths.by_length.items()):
            yield DurationSeries(record, "length", length, samples)
        for name, _ in SIZE_CLASSES:
            if name in lengths.by_class:
                yield DurationSeries(f"{record}_class", "size_class", name, lengths.by_class[name])
    for name, samples in delays_of(timing).items():
        if samples.count:
            yield DurationSeries("delay", "what", name, samples)


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


def delays_of(timing: Timing) -> Mapping[str, Samples]:
    """Delays other than round trips, by name."""
    return {name: samples(timing) for name, samples in _DELAYS.items()}


def _facts(timing: Timing) -> Iterator[str]:
    duration = timing.last_ns - (timing.first_ns or 0) if timing.frames else 0
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(timing.kinds.items()))
    yield f"{count_of(timing.frames, 'frame')} in {seconds_text(duration).strip()} s"
    yield f"{count_of(timing.messages, 'message')}" + (
        f": {kinds}; {count_of(timing.message_bytes, 'byte')} received" if kinds else ""
    )
    if timing.frames:
        share = timing.repeated_frames / timing.frames
        repeated = f"{count_of(timing.repeated_frames, 'frame')} retransmitted or re-requested ({share:.1%})"
        yield f"{repeated}, {count_of(timing.duplicate_frames, 'duplicate')}"
        packets = count_of(timing.most_outstanding, "numbered packet")
        yield f"at most {packets} unacknowledged per direction"
        line = timing.line.line()
        busiest = int(line.frames.argmax())
        frames, size = line.frames[busiest], line.in_flight[busiest]
        if frames:
            flying = f"{frames:.1f} frames, {count_of(round(size), 'byte')}"
            yield f"peak in flight, averaged over {duration_text(line.width_ns)}: {flying}"


_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
"""Units of time and their nanoseconds, the largest first."""
_SPREAD: Final = ("95% CI", "min", "p10", "p90", "p99", "max")
_COLUMNS: Final = number_columns("length", "n", "median µs", *_SPREAD, "MB/s")


def _lengths(
    by_length: Mapping[int, Samples | DurationSketch], by_class: Mapping[str, Samples | DurationSketch]
) -> Table:
    if len(by_length) <= LENGTHS_SHOWN:
        rows = [_row(str(length), samples, length) for length, samples in sorted(by_length.items())]
    else:
        rows = [_row(name, by_class[name], None) for name, _ in SIZE_CLASSES if name in by_class]
    return Table(_COLUMNS, tuple(rows))


def _row(name: str, samples: Samples | DurationSketch, length: int | None) -> Row:
    estimate = _known(samples)
    rate = "-" if not length or not estimate.median else _figures(length / estimate.median * 1e3, 3)
    return Row((name, *_cells(estimate, 1e3, 1), rate))


def _known(samples: Samples | DurationSketch) -> DurationEstimate:
    estimate = samples.estimate()
    assert estimate is not None
    return estimate


def _cells(found: DurationEstimate, unit: float, digits: int) -> list[str]:
    """The number of samples, and their durations in multiples of ``unit`` nanoseconds."""
    spread = (found.least, found.p10, found.p90, found.p99, found.most)
    median, *others = (scaled(each, unit, digits) for each in (found.median, *spread))
    return [str(found.count), median, _interval(found, unit, digits), *others]


def _interval(found: DurationEstimate, unit: float, digits: int) -> str:
    if found.median_low is None or found.median_high is None:
        return "-"
    return f"{scaled(found.median_low, unit, digits)} to {scaled(found.median_high, unit, digits)}"


def scaled(nanoseconds: float | None, unit: float, digits: int = 1) -> str:
    """Format a duration in multiples of ``unit`` nanoseconds with up to ``digits`` decimals; ``-`` for None."""
    return "-" if nanoseconds is None else _figures(nanoseconds / unit, digits)


def _figures(value: float, digits: int) -> str:
    """A number with ``digits`` decimals, or fewer so that four significant figures remain."""
    before = len(str(int(value)))
    return f"{value:.{min(digits, max(4 - before, 0))}f}"


def _delays(delays: list[tuple[str, Samples | DurationSketch]]) -> Table:
    columns = (Column("from … to"), *number_columns("n", "median", *_SPREAD))
    return Table(columns, tuple(Row((name, *_cells(_known(samples), 1e6, 3))) for name, samples in delays))


def _gaps(gaps: GapHistogram) -> Table:
    percentiles = [(share, gaps.percentile(share)) for share in _GAP_SHARES]
    units = [next(each for each in _UNITS if below >= each[1] or each is _UNITS[-1]) for _, below in percentiles]
    headings = [f"p{share * 100:.0f} {unit}" for (share, _), (unit, _) in zip(percentiles, units, strict=True)]
    columns = number_columns("n", *headings)
    durations = (scaled(below, size, 3) for (_, below), (_, size) in zip(percentiles, units, strict=True))
    cells = (str(gaps.total), *durations)
    return Table(columns, (Row(cells),))


# Records


def timing_records(timing: Timing) -> Iterator[dict[str, Any]]:
    """All measurements as records with stable keys; durations in nanoseconds."""
    yield {
        "record": "capture",
        "frames": timing.frames,
        "start_ns": timing.first_ns,
        "end_ns": timing.last_ns if timing.frames else None,
        "messages": timing.messages,
        "kinds": dict(sorted(timing.kinds.items())),
        "message_bytes": timing.message_bytes,
        "repeated_frames": timing.repeated_frames,
        "duplicate_frames": timing.duplicate_frames,
        "most_outstanding": timing.most_outstanding,
        "dialect": timing.dialect.name if timing.dialect else None,
    }
    for each in series_of(timing):
        length = each.key if isinstance(each.key, int) else None
        yield {"record": each.record, each.field: each.key} | length_estimate(each.samples, length)
    gaps = timing.gaps
    yield {
        "record": "gaps",
        "count": gaps.total,
        "edges_ns": [round(each, 3) for each in gaps.edges_ns.tolist()],
        "counts": gaps.counts.tolist(),
    }
    line = timing.line.line()
    yield {
        "record": "in_flight",
        "start_ns": line.start_ns,
        "width_ns": line.width_ns,
        "bytes": [round(each, 3) for each in line.in_flight.tolist()],
        "frames": [round(each, 3) for each in line.frames.tolist()],
        "repeats": line.repeats.tolist(),
    }


def estimate_fields(found: DurationEstimate) -> dict[str, Any]:
    """The statistics of durations as fields of a record, in nanoseconds."""
    return {
        (name if name == "count" else f"{name}_ns"): round(value, 3) if isinstance(value, float) else value
        for name, value in asdict(found).items()
    }


def length_estimate(samples: Samples | DurationSketch, length: int | None) -> dict[str, Any]:
    """The statistics of durations as fields of a record, with the rate for messages of a ``length``."""
    estimate = _known(samples)
    record = estimate_fields(estimate)
    if length is not None:
        record["megabytes_per_second"] = round(length / estimate.median * 1e3, 6) if estimate.median else None
    return record
