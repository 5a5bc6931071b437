"""What two captures of one way have in common, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.analysis.merging import Alignment, Counts, Plan
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Row, Table
from mxwire.report.times import seconds_text
from mxwire.words import count_of

_COLUMNS: Final = (
    Column("frames"),
    Column("A", right=True),
    Column("B", right=True),
)
_ROWS: Final = (
    ("captured", "frames"),
    ("not in the other", "only"),
    ("  while the other was not recording", "outside"),
    ("  the same again within 1 ms", "copies"),
    ("  sent here, and not seen to arrive", "sent"),
    ("  arrived here, not seen to be sent", "arrived"),
    ("  from elsewhere", "unknown"),
)


def merge_blocks(first: str, second: str, made: Plan, target: str | None, written: int | None) -> list[Block]:
    """Everything that was found, for people."""
    rows = tuple(
        Row((text, str(getattr(made.first, name)), str(getattr(made.second, name))))
        for text, name in _ROWS
        if name in ("frames", "only") or getattr(made.first, name) or getattr(made.second, name)
    )
    blocks: list[Block] = [
        Heading(f"A {first}, B {second}"),
        Listing(tuple(_facts(made))),
        Table(_COLUMNS, rows),
    ]
    if target is not None:
        where = "standard output" if target == "-" else target
        blocks.append(Listing((f"{count_of(written or 0, 'frame')} written to {where}",)))
    return blocks


def _facts(made: Plan) -> Iterator[str]:
    yield f"{count_of(made.both, 'frame')} in both; {made.alignment.compared} of them compare the clocks"
    yield from _clock(made.alignment)
    ends = {"first": "A", "second": "B"}
    for side, delay in made.delays.items():
        way = "A to B" if side == "first" else "B to A"
        hosts = ", ".join(mac_text(each) for each, where in sorted(made.alignment.sides.items()) if where == side)
        yield (
            f"from {way}: at least {_microseconds(delay.least_ns)}, median {_microseconds(delay.median_ns)} "
            f"({count_of(delay.frames, 'frame')}; hosts at {ends[side]}: {hosts})"
        )
    if not made.alignment.sides:
        yield "no frame is later in one than in the other: both were captured at the same place"
    if made.alignment.acausal:
        yield (
            f"{count_of(made.alignment.acausal, 'frame')} received before being sent, by any steady clock: one of the "
            "clocks was "
            "set meanwhile, or times were not taken when frames passed; the order of frames is not sure"
        )


def _clock(alignment: Alignment) -> Iterator[str]:
    clock, wrong = alignment.clock, alignment.uncertainty_ns
    direction = "behind" if clock.offset_ns < 0 else "ahead of"
    offset = seconds_text(abs(clock.offset_ns)).strip()
    sure = f"wrong by at most {_microseconds(wrong)}" if wrong is not None else "with the delay of the way in it"
    yield (
        f"B's clock is {offset} s {direction} A's, {sure}" if clock.offset_ns else f"B's clock agrees with A's, {sure}"
    )
    if wrong is None:
        yield "frames of one direction only are in both: the delay cannot be told from the offset"
    if not alignment.drift_seen:
        yield "no drift is seen in so short a time"
        return
    drift, within = f"{abs(clock.drift) * 1e6:.3f}", f"{alignment.drift_uncertainty * 1e6:.3f}"
    if float(drift):
        yield f"it {'gains' if clock.drift > 0 else 'loses'} {drift} us a second on A's, within {within}"
    else:
        yield f"no drift is seen, within {within} us a second"


def _microseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.3f} us"


def merge_record(first: str, second: str, made: Plan, target: str | None, written: int | None) -> dict[str, Any]:
    """The same for programs; times in nanoseconds, drift as a proportion."""
    alignment = made.alignment
    return {
        "record": "merge",
        "files": [first, second],
        "both": made.both,
        "compared": alignment.compared,
        "offset_ns": alignment.clock.offset_ns,
        "offset_at_ns": alignment.clock.base_ns,
        "offset_uncertainty_ns": alignment.uncertainty_ns,
        "drift": alignment.clock.drift,
        "drift_uncertainty": alignment.drift_uncertainty,
        "drift_seen": alignment.drift_seen,
        "acausal": alignment.acausal,
        "captures": [_counts(made.first), _counts(made.second)],
        "hosts": {mac_text(each): "A" if side == "first" else "B" for each, side in sorted(alignment.sides.items())},
        "delays": {
            "A to B" if side == "first" else "B to A": {
                "frames": each.frames,
                "least_ns": each.least_ns,
                "median_ns": each.median_ns,
            }
            for side, each in made.delays.items()
        },
        "written": written,
        "target": target,
    }


def _counts(counts: Counts) -> dict[str, int]:
    return {
        "frames": counts.frames,
        "only": counts.only,
        "outside": counts.outside,
        "copies": counts.copies,
        "sent": counts.sent,
        "arrived": counts.arrived,
        "unknown": counts.unknown,
    }
