"""Statistics per pair of hosts or endpoints as JSON and as tables, of one capture or of many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from mxwire.analysis.diagnosis import Party
from mxwire.analysis.timing import SORT_KEYS, DirectionTotals, DurationSketch, PairStatistics, Timing
from mxwire.analysis.timing.line import common_rates
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Paragraph, Row, Table, columns_of
from mxwire.report.result import Result, column, internal, result, table
from mxwire.report.timing import DurationStatistics, TimedCapture, scaled
from mxwire.units import MILLISECOND, SECOND
from mxwire.words import count_of, printable

PAIRS_SHOWN: Final = 40
"""Maximum number of rows of the table."""


@dataclass(frozen=True, slots=True)
class PairOrder:
    """The pairs to list, and their order."""

    by: Literal["host", "endpoint"] = "host"
    sort: str = "bytes"
    """A key of :data:`~mxwire.analysis.timing.SORT_KEYS`; the greatest is first."""

    def pairs(self, timing: Timing) -> list[PairStatistics]:
        """Return the pairs of a capture in this order."""
        found = timing.pairs.by_hosts() if self.by == "host" else timing.pairs.by_endpoints(timing.conversations)
        return sorted(found, key=SORT_KEYS[self.sort], reverse=True)


# Results


@result()
class PairDirection(Result):
    """The totals from one end of a pair to the other."""

    host: str | None
    name: str | None
    endpoint: int | None
    frames: int
    bytes: int
    """Bytes on the wire."""
    bytes_per_second: float | None
    messages: int
    message_bytes: int
    failed: int
    """Messages that were truncated, refused or abandoned."""
    retransmissions: int
    re_requests: int
    duplicates: int
    nacks: int

    @classmethod
    def of(
        cls, end: Party, names: Mapping[int, str], totals: DirectionTotals, bytes_per_second: float | None
    ) -> PairDirection:
        """Describe the direction from ``end``."""
        return cls.copied(
            totals,
            host=mac_text(end.address) if end.address else None,
            name=names.get(end.address),
            endpoint=end.endpoint,
            bytes_per_second=None if bytes_per_second is None else round(bytes_per_second, 3),
        )

    @property
    def party(self) -> PartyName:
        """The sending end."""
        return PartyName(self.host or "?", self.endpoint)

    @property
    def label(self) -> str:
        """The name of the sending end, or else its address, with the endpoint if there is one."""
        return str(PartyName(printable(self.name) if self.name else self.host or "?", self.endpoint))


class PartyName(NamedTuple):
    """A host, or an endpoint of it, as text."""

    host: str
    endpoint: int | None

    def __str__(self) -> str:
        """Return the host, and the endpoint if there is one."""
        return self.host if self.endpoint is None else f"{self.host} ep {self.endpoint}"


@result()
class PairMeasurement(Result):
    """Two hosts, or two endpoints."""

    start_ns: int
    end_ns: int
    delivery: DurationStatistics | None
    """Times from the first frame of a message until its sender knew that it was received."""
    directions: list[PairDirection]
    rates: dict[str, Any] | None
    """Bytes per second of both directions, per step of time."""
    by: str = internal()
    sketch: dict[str, Any] | None = internal()
    """The times of delivery for merging, as values of a :class:`~mxwire.analysis.timing.DurationSketch`."""

    @classmethod
    def of(cls, pair: PairStatistics, by: str, names: Mapping[int, str], sketched: bool = False) -> PairMeasurement:
        """Describe a pair, for merging if its times of delivery are ``sketched``."""
        start, width, steps = common_rates([each.rate for each in pair.totals])
        found = pair.delivery.estimate()
        per_second = np.round(steps * (SECOND / width), 3).tolist()
        return cls(
            pair.first_ns,
            pair.last_ns,
            None if found is None else DurationStatistics.of(found),
            [
                PairDirection.of(end, names, totals, pair.bytes_per_second(side))
                for side, (end, totals) in enumerate(zip(pair.ends, pair.totals, strict=True))
            ],
            {"start_ns": start, "width_ns": width, "bytes_per_second": per_second} if steps.size else None,
            by,
            pair.delivery.sketch().values() if sketched and found is not None else None,
        )

    def record(self) -> dict[str, Any]:
        """Return an object of the kind of pair."""
        return {"record": f"{self.by}_pair"} | Result.record(self)


@result()
class MeasuredCapture(Result):
    """All measurements of a capture."""

    timed: TimedCapture
    pairs: list[PairMeasurement]
    omitted: int
    """Number of pairs after these."""
    remarks: list[str]

    @classmethod
    def of(
        cls, name: str, timing: Timing, order: PairOrder, sketched: bool = False, most: int | None = None
    ) -> MeasuredCapture:
        """Describe the measurements of a capture with the first ``most`` pairs, for merging if durations are
        ``sketched``."""
        names, remarks = timing.follower.names, []
        if timing.pairs.forgotten:
            remarks.append(f"Not counted, to limit memory: {count_of(timing.pairs.forgotten, 'frame')} of other pairs.")
        if order.by == "endpoint" and timing.follower.forgotten_conversations:
            forgotten = count_of(timing.follower.forgotten_conversations, "earlier conversation")
            remarks.append(f"Not counted, to limit memory: {forgotten}.")
        found = order.pairs(timing)
        pairs = [PairMeasurement.of(each, order.by, names, sketched) for each in found[:most]]
        return cls(TimedCapture.of(name, timing, sketched), pairs, len(found) - len(pairs), remarks)


@result("merged_pair")
class MergedPair(Result):
    """The totals of a direction in many captures; a frame that two captures show counts twice."""

    source: str
    source_endpoint: int | None
    destination: str
    destination_endpoint: int | None
    captures: int = column(right=True)
    frames: int = column(right=True)
    bytes: int = column(right=True)
    messages: int = column(right=True)
    message_bytes: int = column(right=True)
    failed: int = column(right=True)
    retransmissions: int = column(right=True)
    re_requests: int = column(right=True)
    duplicates: int = column(right=True)
    delivery: DurationStatistics | None
    sender: str = column("source", code=True, internal=True)
    receiver: str = column("destination", code=True, internal=True)


_SUMS: Final = (
    *("frames", "bytes", "messages", "message_bytes"),
    *("failed", "retransmissions", "re_requests", "duplicates"),
)
_SORTED_BY: Final = {"rate": ("bytes",), "retransmits": ("retransmissions", "re_requests")}
"""The sums that are added for an order that has another name; rates of different captures have no sum."""


class MergedPairs:
    """Accumulator of the totals per pair of hosts or endpoints in many captures."""

    def __init__(self) -> None:
        self._totals: dict[tuple[PartyName, PartyName], Counter[str]] = defaultdict(Counter)
        self._deliveries: dict[frozenset[PartyName], DurationSketch] = {}

    def add(self, pair: PairMeasurement) -> None:
        """Add a pair of a capture."""
        one, other = (each.party for each in pair.directions)
        for ends, side in zip(((one, other), (other, one)), pair.directions, strict=True):
            totals = self._totals[ends]
            totals.update({name: getattr(side, name) for name in _SUMS})
            totals["captures"] += 1
        if pair.sketch is not None:
            known = self._deliveries.get(frozenset((one, other)), DurationSketch())
            self._deliveries[frozenset((one, other))] = known + DurationSketch.of(pair.sketch)

    def pairs(self, sort: str) -> list[MergedPair]:
        """Return the directions with frames, the greatest ``sort`` first, with the deliveries in both directions."""
        made = []
        for (one, other), totals in self._totals.items():
            if totals["frames"]:
                estimate = self._deliveries.get(frozenset((one, other)), DurationSketch()).estimate()
                delivery = None if estimate is None else DurationStatistics.of(estimate)
                more: dict[str, Any] = {each: totals[each] for each in ("captures", *_SUMS)}
                more |= {"delivery": delivery, "sender": str(one), "receiver": str(other)}
                made.append(MergedPair(*one, *other, **more))

        def rank(pair: MergedPair) -> float:
            if sort == "delivery":
                return pair.delivery.median_ns if pair.delivery else 0.0
            return float(sum(getattr(pair, each) for each in _SORTED_BY.get(sort, (sort,))))

        return sorted(made, key=lambda each: (-rank(each), each.source, each.destination))


# Blocks


def merged_blocks(merged: Sequence[MergedPair]) -> list[Block]:
    """The table of directions in many captures, and the table of deliveries with a row per pair."""
    shown = merged[:PAIRS_SHOWN]
    blocks: list[Block] = [table(MergedPair, shown, "sender", "receiver", "captures", *_SUMS)]
    if len(merged) > PAIRS_SHOWN:
        blocks.append(Paragraph(f"{len(merged) - PAIRS_SHOWN} more: --json lists all."))
    rows: dict[frozenset[str], Row] = {}
    for each in shown:
        if each.delivery:
            ends = each.sender, each.receiver
            rows.setdefault(frozenset(ends), Row((*ends, *_delivery_cells(each.delivery))))
    if rows:
        columns = (*columns_of("`one, `other"), *_DELIVERY)
        blocks += [
            Heading("Times until the sender knew that a message was received", 3),
            Table(columns, tuple(rows.values())),
        ]
    return blocks


_TOTALS: Final = columns_of("#frames, #bytes, #MB/s, #messages|msg, #failed|fail, #retransmits|rtx, #duplicates|dup")
"""Columns with a line per direction."""
_DELIVERY: Final = columns_of("#n, #median ms, #p90, #p99")
_COLUMNS: Final = (*_TOTALS, *_DELIVERY)


def pair_blocks(measured: MeasuredCapture, order: PairOrder) -> list[Block]:
    """The table of the pairs of a capture with its heading and remarks."""
    pairs, remarks = measured.pairs, measured.remarks
    if not pairs:
        return []
    title = f"Pairs of {order.by}s, by {order.sort}; ms until the sender knew that a message was received"
    rows = tuple(map(_row, pairs))
    blocks: list[Block] = [Heading(title, 3), Table((*columns_of(f"`{order.by}s"), *_COLUMNS), rows)]
    if measured.omitted:
        remarks = [f"{count_of(measured.omitted, 'more pair')}: --json lists all.", *remarks]
    return [*blocks, Paragraph(" ".join(remarks))] if remarks else blocks


def party_text(party: Party, names: Mapping[int, str]) -> str:
    """Return a host by its name if ``names`` has one, otherwise by its address, with the endpoint if there is one."""
    name = names.get(party.address)
    host = printable(name) if name else mac_text(party.address) if party.address else "?"
    return str(PartyName(host, party.endpoint))


def _row(pair: PairMeasurement) -> Row:
    one, other = (each.label for each in pair.directions)
    directions = [
        (
            str(each.frames),
            str(each.bytes),
            _rate(each.bytes_per_second),
            str(each.messages),
            str(each.failed),
            str(each.retransmissions + each.re_requests),
            str(each.duplicates),
        )
        for each in pair.directions
    ]
    return Row((f"{one} →\n{other} →", *map("\n".join, zip(*directions, strict=True)), *_delivery_cells(pair.delivery)))


def _delivery_cells(found: DurationStatistics | None) -> list[str]:
    if found is None:
        return ["0", "-", "-", "-"]
    times = (found.median_ns, found.p90_ns, found.p99_ns)
    return [str(found.count), *(scaled(each, MILLISECOND, 3) for each in times)]


def _rate(bytes_per_second: float | None) -> str:
    return "-" if bytes_per_second is None else f"{bytes_per_second / 1e6:.3g}"
