"""The result of merging two captures of one path, as blocks of a report and as a JSON record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from mxwire.analysis.merging import Alignment, MergePlan
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Listing, tabulate
from mxwire.report.result import Result, result
from mxwire.report.times import seconds_text
from mxwire.words import count_of

_ROWS: Final = (
    ("captured", "frames"),
    ("not in the other capture", "only"),
    ("  while the other capture was not running", "outside"),
    ("  duplicates within 1 ms", "duplicates"),
    ("  sent here, arrival not captured", "sent"),
    ("  received here, transmission not captured", "arrived"),
    ("  of unknown origin", "unknown"),
)


@result("merge")
class MergedCaptures(Result):
    """The alignment of two captures, the delays and the numbers of frames."""

    files: list[str]
    both: int
    """Frames that are in both captures."""
    compared: int
    """Frames used to align the clocks."""
    offset_ns: int
    """Lead of the second clock at ``offset_at_ns``."""
    offset_at_ns: int
    offset_uncertainty_ns: float | None
    """Null if the delay of the path is part of the offset."""
    drift: float
    """Seconds per second."""
    drift_uncertainty: float
    drift_seen: bool
    acausal: int
    """Frames received before being sent, by any steady clock."""
    captures: list[dict[str, int]]
    """Numbers of frames in each capture."""
    hosts: dict[str, str]
    """The capture, A or B, that was taken at each host."""
    delays: dict[str, dict[str, int]]
    """Frames, least and median delay by direction."""
    written: int | None
    target: str | None

    @classmethod
    def of(cls, first: str, second: str, made: MergePlan, target: str | None, written: int | None) -> MergedCaptures:
        """Describe a merge of two files."""
        alignment = made.alignment
        return cls(
            [first, second],
            made.both,
            alignment.compared,
            alignment.clock.offset_ns,
            alignment.clock.base_ns,
            alignment.uncertainty_ns,
            alignment.clock.drift,
            alignment.drift_uncertainty,
            alignment.drift_seen,
            alignment.acausal,
            [asdict(counts) | {"unknown": counts.unknown} for counts in (made.first, made.second)],
            {mac_text(each): "A" if side == "first" else "B" for each, side in sorted(alignment.sides.items())},
            {"A to B" if side == "first" else "B to A": asdict(each) for side, each in made.delays.items()},
            written,
            target,
        )


def merge_blocks(first: str, second: str, made: MergePlan, target: str | None, written: int | None) -> list[Block]:
    """The alignment of the clocks, the delays and the frame counts as blocks of a report."""
    counted = ((text, name, getattr(made.first, name), getattr(made.second, name)) for text, name in _ROWS)
    rows = ((text, one, other) for text, name, one, other in counted if name in ("frames", "only") or one or other)
    counts = tabulate("frames, #A, #B", rows)
    blocks: list[Block] = [Heading(f"A {first}, B {second}"), Listing(tuple(_facts(made))), counts]
    if target is not None:
        where = "standard output" if target == "-" else target
        blocks.append(Listing((f"wrote {count_of(written or 0, 'frame')} to {where}",)))
    return blocks


def _facts(made: MergePlan) -> Iterator[str]:
    yield f"{count_of(made.both, 'frame')} in both; {made.alignment.compared} of them used to align the clocks"
    yield from _clock(made.alignment)
    letters = {"first": "A", "second": "B"}
    for side, delay in made.delays.items():
        direction = "A to B" if side == "first" else "B to A"
        hosts = ", ".join(mac_text(each) for each, where in sorted(made.alignment.sides.items()) if where == side)
        yield (
            f"delay from {direction}: minimum {_microseconds(delay.least_ns)}, median {_microseconds(delay.median_ns)} "
            f"({count_of(delay.frames, 'frame')}; hosts at {letters[side]}: {hosts})"
        )
    if not made.alignment.sides:
        yield "no delay between the captures: both were taken at the same place"
    if made.alignment.acausal:
        yield (
            f"{count_of(made.alignment.acausal, 'frame')} received before being sent, by any steady clock: a clock was "
            "adjusted during the capture, or timestamps were not taken when frames passed; the order of frames is "
            "uncertain"
        )


def _clock(alignment: Alignment) -> Iterator[str]:
    clock, wrong = alignment.clock, alignment.uncertainty_ns
    direction = "behind" if clock.offset_ns < 0 else "ahead of"
    offset = seconds_text(abs(clock.offset_ns)).strip()
    error = f"within {_microseconds(wrong)}" if wrong is not None else "including the delay of the path"
    yield (
        f"B's clock is {offset} s {direction} A's, {error}"
        if clock.offset_ns
        else f"B's clock agrees with A's, {error}"
    )
    if wrong is None:
        yield "only frames of one direction are in both: the delay cannot be separated from the offset"
    if not alignment.drift_seen:
        yield "the capture is too short to measure drift"
        return
    drift, within = f"{abs(clock.drift) * 1e6:.3f}", f"{alignment.drift_uncertainty * 1e6:.3f}"
    if float(drift):
        yield f"drift: B's clock {'gains' if clock.drift > 0 else 'loses'} {drift} us per second, within {within}"
    else:
        yield f"drift: none, within {within} us per second"


def _microseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.3f} us"
