"""Statistics per pair of hosts or endpoints as a table and as JSON records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from mxwire.analysis.diagnosis import Party
from mxwire.analysis.timing import SORT_KEYS, DurationEstimate, PairStatistics, Timing
from mxwire.analysis.timing.line import common_rates
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table, number_columns
from mxwire.report.timing import estimate_fields, scaled
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

    def parties(self, timing: Timing) -> Iterator[tuple[PairStatistics, list[tuple[str | None, int | None]]]]:
        """Yield the pairs with their hosts and endpoints as in records."""
        for pair in self.pairs(timing):
            yield pair, [(mac_text(end.address) if end.address else None, end.endpoint) for end in pair.ends]


_TOTALS: Final = ("frames", "bytes", "MB/s", "messages|msg", "failed|fail", "retransmits|rtx", "duplicates|dup")
"""Columns with a line per direction."""
DELIVERY_COLUMNS: Final = ("n", "median ms", "p90", "p99")
_COLUMNS: Final = number_columns(*_TOTALS, *DELIVERY_COLUMNS)


def pair_blocks(timing: Timing, order: PairOrder) -> list[Block]:
    """Return the table of pairs with its heading and remarks."""
    pairs = order.pairs(timing)
    if not pairs:
        return []
    names = timing.follower.names
    rows = tuple(_row(each, names) for each in pairs[:PAIRS_SHOWN])
    title = f"Pairs of {order.by}s, by {order.sort}; ms until the sender knew that a message was received"
    blocks: list[Block] = [Heading(title, 3), Table((Column(f"{order.by}s", code=True), *_COLUMNS), rows)]
    remarks = []
    if len(pairs) > PAIRS_SHOWN:
        remarks.append(f"{count_of(len(pairs) - PAIRS_SHOWN, 'more pair')}: --json lists all.")
    if timing.pairs.forgotten:
        remarks.append(f"Not counted, to limit memory: {count_of(timing.pairs.forgotten, 'frame')} of other pairs.")
    if order.by == "endpoint" and timing.follower.forgotten_conversations:
        forgotten = count_of(timing.follower.forgotten_conversations, "earlier conversation")
        remarks.append(f"Not counted, to limit memory: {forgotten}.")
    return [*blocks, Paragraph(" ".join(remarks))] if remarks else blocks


def party_text(party: Party, names: Mapping[int, str]) -> str:
    """Return a host by its name if ``names`` has one, otherwise by its address, with the endpoint if there is one."""
    name = names.get(party.address)
    host = printable(name) if name else mac_text(party.address) if party.address else "?"
    return host if party.endpoint is None else f"{host} ep {party.endpoint}"


def _row(pair: PairStatistics, names: Mapping[int, str]) -> Row:
    one, other = (party_text(each, names) for each in pair.ends)
    directions = [
        (
            str(each.frames),
            str(each.bytes),
            _rate(pair.bytes_per_second(side)),
            str(each.messages),
            str(each.failed),
            str(each.retransmissions + each.re_requests),
            str(each.duplicates),
        )
        for side, each in enumerate(pair.totals)
    ]
    return Row(
        (
            f"{one} →\n{other} →",
            *map("\n".join, zip(*directions, strict=True)),
            *delivery_cells(pair.delivery.estimate()),
        )
    )


def delivery_cells(found: DurationEstimate | None) -> list[str]:
    """Return the cells of :data:`DELIVERY_COLUMNS`."""
    if found is None:
        return ["0", "-", "-", "-"]
    return [str(found.count), *(scaled(each, MILLISECOND, 3) for each in (found.median, found.p90, found.p99))]


def _rate(bytes_per_second: float | None) -> str:
    return "-" if bytes_per_second is None else f"{bytes_per_second / 1e6:.3g}"


def pair_records(timing: Timing, order: PairOrder) -> Iterator[dict[str, Any]]:
    """Return the pairs as records with stable keys; durations in nanoseconds."""
    names = timing.follower.names
    for pair in order.pairs(timing):
        start, width, steps = common_rates([each.rate for each in pair.totals])
        found = pair.delivery.estimate()
        yield {
            "record": f"{order.by}_pair",
            "start_ns": pair.first_ns,
            "end_ns": pair.last_ns,
            "delivery": None if found is None else estimate_fields(found),
            "directions": [
                {
                    "host": mac_text(end.address) if end.address else None,
                    "name": names.get(end.address),
                    "endpoint": end.endpoint,
                    "frames": totals.frames,
                    "bytes": totals.bytes,
                    "bytes_per_second": None if (rate := pair.bytes_per_second(side)) is None else round(rate, 3),
                    "messages": totals.messages,
                    "message_bytes": totals.message_bytes,
                    "failed": totals.failed,
                    "retransmissions": totals.retransmissions,
                    "re_requests": totals.re_requests,
                    "duplicates": totals.duplicates,
                    "nacks": totals.nacks,
                }
                for side, (end, totals) in enumerate(zip(pair.ends, pair.totals, strict=True))
            ],
            "rates": None
            if not steps.size
            else {
                "start_ns": start,
                "width_ns": width,
                "bytes_per_second": np.round(steps * (SECOND / width), 3).tolist(),
            },
        }
