"""The records of many captures, merged: hosts and findings of verify, findings of diagnose, totals of stats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mxwire.analysis.diagnosis import finding as diagnosis
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, code_columns, number_columns
from mxwire.report.merged_timing import MergedTiming
from mxwire.report.pairs import DELIVERY_COLUMNS, delivery_cells
from mxwire.report.timing import estimate_fields
from mxwire.rules.finding import SEVERITIES
from mxwire.words import count_of

Record = dict[str, Any]
"""A line of ``--json``."""

SHOWN: Final = 40
"""Rows of a merged table."""


class MergedRecords(ABC):
    """The records of many captures, merged."""

    @abstractmethod
    def add(self, records: Iterable[Record]) -> None:
        """Add the records of a capture."""

    @abstractmethod
    def blocks(self, title: str) -> list[Block]:
        """Return the merged records for a report."""

    def merged(self) -> list[Record]:
        """Return the merged records, in the form of the records of single captures."""
        return []

    @property
    def problems(self) -> int:
        """Number of problems, for which the command exits with code 1."""
        return 0


# Merged findings of verify


_VERDICTS: Final = ("fail", "non-strict", "info", "pass", "missing")
EXAMPLES: Final = 5
"""Maximum number of findings shown per rule, severity and host."""


class VerifiedSet(MergedRecords):
    """Hosts and findings of many captures."""

    def __init__(self) -> None:
        self._hosts: dict[str, Counter[str]] = defaultdict(Counter)
        self._verdicts: dict[str, str] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._captures: Counter[tuple[str, str, str]] = Counter()
        self._examples: dict[tuple[str, str, str], list[str]] = defaultdict(list)

    @property
    def problems(self) -> int:
        """Number of violations of all hosts."""
        return sum(each["violations"] for each in self._hosts.values())

    def add(self, records: Iterable[Record]) -> None:
        """Add the records of a capture."""
        for each in records:
            if each["record"] == "host":
                host, verdict = each["host"], each["verdict"]
                self._hosts[host].update({key: each[key] for key in ("frames", "violations", "deviations", "notes")})
                self._hosts[host]["captures"] += 1
                known = self._verdicts.get(host, verdict)
                self._verdicts[host] = min(known, verdict, key=_VERDICTS.index)
                for rule, severity, count in each["broken"]:
                    self._counts[severity, rule, host] += count
                    self._captures[severity, rule, host] += 1
            elif each["record"] == "finding":
                key = each["severity"], each["rule"], each["host"]
                if len(self._examples[key]) < EXAMPLES:
                    frames = ", ".join(map(str, each["frames"]))
                    self._examples[key].append(f"{each['file']}, frame {frames}: {each['found']}")

    def blocks(self, title: str) -> list[Block]:
        """Return the verdicts by host, the broken rules by severity and number of findings, and examples."""
        counts = ("captures", "frames", "violations", "deviations", "notes")
        hosts = sorted(self._hosts, key=lambda host: (_VERDICTS.index(self._verdicts[host]), host))
        rows = [Row((each, self._verdicts[each], *(str(self._hosts[each][key]) for key in counts))) for each in hosts]
        columns = (*code_columns("host"), Column("verdict"), *number_columns(*counts))
        blocks: list[Block] = [Heading(title), Table(columns, tuple(rows))]
        keys = sorted(self._counts, key=lambda key: (SEVERITIES.index(key[0]), -self._counts[key], key))
        if not keys:
            return blocks
        rows = [
            Row(
                (
                    rule,
                    severity,
                    host,
                    str(self._counts[severity, rule, host]),
                    str(self._captures[severity, rule, host]),
                )
            )
            for severity, rule, host in keys
        ]
        columns = (
            Column("rule", code=True),
            Column("severity"),
            *code_columns("host"),
            *number_columns("count", "captures"),
        )
        blocks += [Heading("Rules broken", 3), Table(columns, tuple(rows)), Heading("Findings", 3)]
        for severity, rule, host in keys:
            blocks += [Paragraph(f"{rule}, {severity}, {host}"), Listing(tuple(self._examples[severity, rule, host]))]
        return blocks


# Merged findings of diagnose


class DiagnosedSet(MergedRecords):
    """Findings of many captures: findings with the same diagnosis and hosts are combined, and their costs added."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Record]] = defaultdict(list)

    def add(self, records: Iterable[Record]) -> None:
        """Add the records of a capture."""
        for each in records:
            if each["record"] == "finding":
                hosts = ", ".join(
                    (party["name"] or party["host"]) + ("" if party["endpoint"] is None else f" ep {party['endpoint']}")
                    for party in each["concerns"]
                )
                self._found[each["id"], hosts].append(each)

    @property
    def problems(self) -> int:
        """Number of findings that are errors or warnings."""
        return sum(each["severity"] != "note" for found in self._found.values() for each in found)

    def merged(self) -> list[Record]:
        """Return one record per diagnosis and group of hosts, the most costly first, then by severity."""
        found = [self._merged(same, hosts) for (_, hosts), same in self._found.items()]

        def rank(each: Record) -> tuple[object, ...]:
            severity = diagnosis.SEVERITIES.index(each["severity"])
            return -(each["cost_ns"] or 0), severity, -(each["cost_frames"] or 0), each["id"], each["hosts"]

        return sorted(found, key=rank)

    def _merged(self, same: list[Record], hosts: str) -> Record:
        worst = max(same, key=lambda each: (each["cost_ns"] or 0, each["cost_frames"] or 0))
        costs = {
            key: sum(each[key] for each in same if each[key] is not None)
            if any(each[key] is not None for each in same)
            else None
            for key in ("cost_ns", "cost_frames")
        }
        return {
            "record": "merged_finding",
            "id": worst["id"],
            "severity": min((each["severity"] for each in same), key=diagnosis.SEVERITIES.index),
            "hosts": hosts,
            "captures": len({each["file"] for each in same}),
            **costs,
            "summary": worst["summary"],
            "file": worst["file"],
            "frames": next((each["frames"] for each in worst["evidence"] if each["frames"]), []),
            "advice": worst["advice"],
        }

    def blocks(self, title: str) -> list[Block]:
        """Return the findings by cost, and the worst example of each."""
        merged = self.merged()
        if not merged:
            return [Heading(title), Paragraph("Nothing found.")]
        rows = []
        for each in merged[:SHOWN]:
            time, frames = each["cost_ns"], each["cost_frames"]
            cost = diagnosis.seconds(time) if time is not None else count_of(frames, "frame") if frames else "-"
            rows.append(Row((cost, each["severity"], each["id"], each["hosts"], str(each["captures"]))))
        columns = (
            Column("cost", right=True),
            Column("severity"),
            Column("finding", code=True),
            Column("hosts", wraps=True),
            *number_columns("captures"),
        )
        blocks: list[Block] = [Heading(title), Table(columns, tuple(rows)), Heading("The worst capture of each", 3)]
        lines = []
        for each in merged[:SHOWN]:
            frames = f", frame {each['frames'][0]}" if each["frames"] else ""
            lines.append(f"{each['id']}: {each['file']}{frames}: {each['summary']}")
        blocks.append(Listing(tuple(lines)))
        if len(merged) > SHOWN:
            blocks.append(Paragraph(f"{len(merged) - SHOWN} more: --json lists all."))
        return blocks


# Merged statistics


_SUMS: Final = (
    "frames",
    "bytes",
    "messages",
    "message_bytes",
    "failed",
    "retransmissions",
    "re_requests",
    "duplicates",
)
_SORTED_BY: Final = {"rate": ("bytes",), "retransmits": ("retransmissions", "re_requests")}
"""The sums that are added for an order that has another name; rates of different captures have no sum."""


class PairSet(MergedRecords):
    """Totals per pair of hosts or endpoints in many captures, the greatest ``sort`` first, and durations.

    A frame that two captures show counts twice.
    """

    def __init__(self, sort: str) -> None:
        self._sort = sort
        self._timing = MergedTiming()
        self._totals: dict[tuple[tuple[str, int | None], ...], Counter[str]] = defaultdict(Counter)

    def add(self, records: Iterable[Record]) -> None:
        """Add the records of a capture."""
        for each in records:
            self._timing.add(each)
            if each["record"] in ("host_pair", "endpoint_pair"):
                sides = each["directions"]
                names = [(side["host"] or "?", side["endpoint"]) for side in sides]
                for (one, other), side in zip((names, names[::-1]), sides, strict=True):
                    totals = self._totals[one, other]
                    totals.update({key: side[key] for key in _SUMS})
                    totals["captures"] += 1

    def merged(self) -> list[Record]:
        """Return a record per direction of each pair, with the deliveries in both, and those of the durations."""
        return [*self._pairs(), *self._timing.records()]

    def _pairs(self) -> list[Record]:
        pairs = []
        for (one, other), totals in self._totals.items():
            if totals["frames"]:
                estimate = self._timing.delivery(one, other).estimate()
                pairs.append(
                    {"record": "merged_pair", "source": one[0], "source_endpoint": one[1], "destination": other[0]}
                    | {"destination_endpoint": other[1], **{name: totals[name] for name in ("captures", *_SUMS)}}
                    | {"delivery": None if estimate is None else estimate_fields(estimate)}
                )
        return sorted(pairs, key=lambda each: (-self._rank(each), each["source"], each["destination"]))

    def _rank(self, pair: Record) -> float:
        """Return the value of a pair in the order."""
        if self._sort == "delivery":
            return pair["delivery"]["median_ns"] if pair["delivery"] else 0.0
        return float(sum(pair[each] for each in _SORTED_BY.get(self._sort, (self._sort,))))

    def blocks(self, title: str) -> list[Block]:
        """Return the tables of pairs and of durations."""
        shown = ("captures", *_SUMS)
        merged = self._pairs()
        rows = [
            Row((_party(each, "source"), _party(each, "destination"), *(str(each[name]) for name in shown)))
            for each in merged[:SHOWN]
        ]
        columns = (*code_columns("source", "destination"), *number_columns(*(each.replace("_", " ") for each in shown)))
        blocks: list[Block] = [Heading(title), Table(columns, tuple(rows))]
        if len(merged) > SHOWN:
            blocks.append(Paragraph(f"{len(merged) - SHOWN} more: --json lists all."))
        return [*blocks, *self._deliveries(merged[:SHOWN]), *self._timing.blocks()]

    def _deliveries(self, merged: Sequence[Record]) -> list[Block]:
        """Return the table of deliveries, with a row per pair."""
        rows: dict[tuple[str, str], Row] = {}
        for each in merged:
            parties = _party(each, "source"), _party(each, "destination")
            if each["delivery"] and parties[::-1] not in rows:
                found = self._timing.delivery(_key(each, "source"), _key(each, "destination")).estimate()
                rows[parties] = Row((*parties, *delivery_cells(found)))
        if not rows:
            return []
        columns = (*code_columns("one", "other"), *number_columns(*DELIVERY_COLUMNS))
        return [
            Heading("Times until the sender knew that a message was received", 3),
            Table(columns, (*rows.values(),)),
        ]


def _key(record: Record, side: str) -> tuple[str, int | None]:
    return record[side], record[f"{side}_endpoint"]


def _party(record: Record, side: str) -> str:
    endpoint = record[f"{side}_endpoint"]
    return str(record[side]) if endpoint is None else f"{record[side]} ep {endpoint}"
