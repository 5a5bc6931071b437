"""Snapshots of observed traffic as tables and as JSON: pairs of hosts, hosts, findings and conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from mxwire.analysis.snapshot import DirectionRates, HostRates, OpenFinding, PairRates, TrafficSnapshot
from mxwire.ethernet import BROADCAST, mac_text
from mxwire.report.ascii_text import cut, spelled
from mxwire.report.document import (
    Block,
    Column,
    Heading,
    Listing,
    Paragraph,
    columns_of,
    number_columns,
    tabulate,
)
from mxwire.units import MILLISECOND, SECOND
from mxwire.words import count_of, printable

_SUFFIXES: Final = ("", "k", "M", "G", "T")
_BROADCAST: Final = int.from_bytes(BROADCAST, "big")
_NAME_SHOWN: Final = 24
"""Maximum number of characters of a host name shown in a table; announced names have up to 79 characters."""


# Values as text


def amount_text(value: float | None) -> str:
    """A number with three significant digits and a suffix: ``0``, ``1.2``, ``12.3k``; ``-`` for None."""
    if value is None:
        return "-"
    for suffix in _SUFFIXES:
        if value < 999.5 or suffix == _SUFFIXES[-1]:
            break
        value /= 1000
    digits = 0 if value >= 99.95 or value == round(value) else 1
    return f"{value:.{digits}f}{suffix}"


def age_text(nanoseconds: int | None) -> str:
    """A duration of any length in at most 7 characters; ``-`` for None."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 999_500_000:  # less than 1 s when rounded
        milliseconds = nanoseconds / MILLISECOND
        return f"{milliseconds:.1f} ms" if milliseconds < 99.95 else f"{milliseconds:.0f} ms"
    seconds = nanoseconds / SECOND
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


class HostLabels:
    """Labels of hosts: their names, or their addresses, of which only the last three bytes are shown if ``short``.

    Addresses with the same last bytes are shown completely.
    """

    def __init__(self, addresses: Iterable[int], names: Mapping[int, str], *, short: bool) -> None:
        self._names = names
        ends: dict[int, int] = {}
        if short:
            for each in set(addresses):
                ends[each & 0xFFFFFF] = ends.get(each & 0xFFFFFF, 0) + 1
        self._unique = {end for end, count in ends.items() if count == 1}

    def label(self, address: int) -> str:
        """The label of a host, printable and not longer than an address, or a name of 24 characters."""
        if address == _BROADCAST:
            return "broadcast"
        name = self._names.get(address)
        if name:
            return cut(printable(name), _NAME_SHOWN)
        text = mac_text(address)
        return f"{spelled('…')}{text[9:]}" if address & 0xFFFFFF in self._unique else text


def labels_of(snapshot: TrafficSnapshot, *, short: bool = False) -> HostLabels:
    """Labels of all hosts of a snapshot."""
    return HostLabels((each.address for each in snapshot.hosts), snapshot.names, short=short)


# Columns that users may sort by


class PairColumn(NamedTuple):
    """A column of the table of pairs."""

    heading: str
    short: str
    """The heading in narrow terminals."""
    text: Callable[[PairRates], str]
    key: Callable[[PairRates], float]
    """Sort key, the greatest first."""


def _unknown_last(value: float | None) -> float:
    return -1 if value is None else value


PAIR_COLUMNS: Final[dict[str, PairColumn]] = {
    "frames": PairColumn("frames/s", "frm/s", lambda x: amount_text(x.both.frame_rate), lambda x: x.both.frame_rate),
    "bytes": PairColumn("bytes/s", "B/s", lambda x: amount_text(x.both.byte_rate), lambda x: x.both.byte_rate),
    "messages": PairColumn(
        "messages/s", "msg/s", lambda x: amount_text(x.message_rate), lambda x: _unknown_last(x.message_rate)
    ),
    "retransmits": PairColumn(
        "retransmits/s", "rtx/s", lambda x: amount_text(x.retransmit_rate), lambda x: _unknown_last(x.retransmit_rate)
    ),
    "flight": PairColumn(
        "in flight", "flight", lambda x: amount_text(x.in_flight), lambda x: _unknown_last(x.in_flight)
    ),
    "oldest": PairColumn("oldest", "oldest", lambda x: age_text(x.oldest_ns), lambda x: _unknown_last(x.oldest_ns)),
    "dialect": PairColumn("dialect", "dialect", lambda x: x.dialect or "-", lambda x: -x.last_ns),
}
"""Columns of the table of pairs, by the name by which to sort."""


def sorted_pairs(snapshot: TrafficSnapshot, sort: str, *, reverse: bool = False) -> list[PairRates]:
    """The pairs of a snapshot in descending order of a column; pairs with equal values have the most recent first."""
    key = PAIR_COLUMNS[sort].key
    return sorted(snapshot.pairs, key=lambda each: (key(each), each.last_ns), reverse=not reverse)


def matches(text: str, addresses: Sequence[int], snapshot: TrafficSnapshot, *more: str | None) -> bool:
    """Return whether a filter text is part of the name or address of a host, or of one of ``more``."""
    word = text.strip().lower()
    found = [mac_text(each) for each in addresses]
    found += [snapshot.names.get(each, "") for each in addresses]
    found += [each for each in more if each]
    return any(word in each.lower() for each in found)


# Blocks, for a single report


def summary_text(snapshot: TrafficSnapshot) -> str:
    """The totals of a snapshot in one line."""
    rates = sum((each.both for each in snapshot.pairs), DirectionRates())
    text = f"{amount_text(rates.frame_rate)} frames/s, {amount_text(rates.byte_rate)} bytes/s"
    known = [each.message_rate for each in snapshot.pairs if each.message_rate is not None]
    text += f", {amount_text(sum(known))} messages/s"
    return text + sampling_text(snapshot)


def sampling_text(snapshot: TrafficSnapshot) -> str:
    """The end of a line: the share of frames whose messages are followed, the frames lost, and the time without the
    processor.
    """
    text = ""
    if snapshot.is_sampled:
        text += f"; sampled {snapshot.followed_share:.1%}"
    if snapshot.dropped:
        text += f"; {amount_text(snapshot.dropped)} lost"
    if snapshot.starved_ns:
        text += f"; starved {snapshot.starved_ns / SECOND:.1f} s"
    return text


_PAIRS: Final = (Column("hosts"), *number_columns(*(f"{each.heading}|{each.short}" for each in PAIR_COLUMNS.values())))
_HOSTS: Final = columns_of("host, #sent/s, #bytes/s|B/s, #received/s|recv/s, #bytes/s|B/s, #peers, #flight, dialect")


def host_cells(host: HostRates, labels: HostLabels) -> tuple[str, ...]:
    """The cells of a host."""
    return (
        labels.label(host.address),
        amount_text(host.sent.frame_rate),
        amount_text(host.sent.byte_rate),
        amount_text(host.received.frame_rate),
        amount_text(host.received.byte_rate),
        str(host.peers),
        str(host.in_flight),
        ", ".join(sorted(host.dialects)) or "-",
    )


def pair_label(pair: PairRates, labels: HostLabels) -> str:
    """The two hosts of a pair."""
    one, other = map(labels.label, pair.hosts)
    return f"{one} ↔ {other}"


def finding_text(found: OpenFinding, labels: HostLabels) -> str:
    """A finding in one line, with the labels of hosts instead of their addresses."""
    text = found.finding.summary
    for party in found.finding.concerns:
        text = text.replace(mac_text(party.address), labels.label(party.address))
    return f"{found.finding.id} ({found.finding.severity}, {found.finding.confidence}): {printable(text)}"


def traffic_blocks(snapshot: TrafficSnapshot, sort: str) -> list[Block]:
    """A snapshot as a report: totals, pairs, hosts and findings."""
    labels = labels_of(snapshot)
    pairs = sorted_pairs(snapshot, sort)
    blocks: list[Block] = [
        Paragraph(f"{count_of(snapshot.frames, 'frame', grouped=True)}: {summary_text(snapshot)}"),
        tabulate(
            _PAIRS,
            ((pair_label(each, labels), *(column.text(each) for column in PAIR_COLUMNS.values())) for each in pairs),
        ),
        tabulate(_HOSTS, (host_cells(each, labels) for each in snapshot.hosts)),
    ]
    if snapshot.findings:
        blocks.append(Heading("Findings", 3))
        blocks.append(Listing(tuple(finding_text(each, labels) for each in snapshot.findings)))
    return blocks


# JSON


def traffic_record(snapshot: TrafficSnapshot, sort: str) -> dict[str, Any]:
    """A snapshot as a JSON object, with sorted pairs."""
    names = snapshot.names
    pairs = sorted_pairs(snapshot, sort)
    return {
        "time_ns": snapshot.time_ns,
        "window_ns": int(snapshot.window_s * SECOND),
        "frames": snapshot.frames,
        "bytes": snapshot.bytes,
        "frames_lost": snapshot.dropped,
        "starved_ns": snapshot.starved_ns,
        "frames_other_pairs": snapshot.others,
        "followed_share": round(snapshot.followed_share, 4),
        "types": {name: {"frames": frames, "bytes": octets} for name, (frames, octets) in snapshot.types.items()},
        "pairs": [_pair_record(each, names) for each in pairs],
        "hosts": [_host_record(each, names) for each in snapshot.hosts],
        "findings": [finding_record(each, names) for each in snapshot.findings],
    }


def _pair_record(pair: PairRates, names: Mapping[int, str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "hosts": [_host(each, names) for each in pair.hosts],
        "forward": _direction(pair.forward),
        "back": _direction(pair.back),
    }
    rest = asdict(pair)
    for name in ("hosts", "forward", "back"):
        del rest[name]
    for name in ("message_rate", "retransmit_rate"):
        rest[name] = None if rest[name] is None else round(rest[name], 3)
    rest["oldest_age_ns"] = rest.pop("oldest_ns")
    return record | rest


def _host_record(host: HostRates, names: Mapping[int, str]) -> dict[str, Any]:
    return {
        **_host(host.address, names),
        "sent": _direction(host.sent),
        "received": _direction(host.received),
        "peers": host.peers,
        "in_flight": host.in_flight,
        "dialects": sorted(host.dialects),
        "last_ns": host.last_ns,
    }


def _host(address: int, names: Mapping[int, str]) -> dict[str, Any]:
    return {"address": mac_text(address), "name": names.get(address)}


def _direction(direction: DirectionRates) -> dict[str, Any]:
    return {name: round(value, 3) for name, value in asdict(direction).items()}


def finding_record(found: OpenFinding, names: Mapping[int, str]) -> dict[str, Any]:
    """An open finding as a JSON object."""
    finding = found.finding
    return {
        "id": finding.id,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "concerns": [_host(each.address, names) | {"endpoint": each.endpoint} for each in finding.concerns],
        "summary": finding.summary,
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
    }
