"""Snapshots of observed traffic as metrics for Prometheus.

The collector reads the newest snapshot at each scrape, so that metrics cost nothing per frame. The number of label sets
is bounded by the observer: pairs of hosts, findings, and names; all other labels have few values. Announced names pass
through ``printable``, and prometheus_client escapes quotes and backslashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mxwire.analysis.snapshot import DirectionRates, MessageHistogram, PairRates, TrafficSnapshot
from mxwire.ethernet import mac_text
from mxwire.units import SECOND
from mxwire.words import printable

Labels = tuple[str, ...]


class TrafficCollector(Collector):
    """Metrics of a snapshot."""

    def __init__(self) -> None:
        self.snapshot: TrafficSnapshot | None = None
        """The newest snapshot; if it is None, there are no metrics."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        snapshot = self.snapshot
        return (
            [] if snapshot is None else [*_totals(snapshot), *_messages(snapshot), *_pairs(snapshot), *_facts(snapshot)]
        )


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str] = (),
    values: Iterable[tuple[Labels, float]] = (),
) -> Metric:
    family = kind(f"mxwire_{name}", text, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


_counter = partial(_family, CounterMetricFamily)
_gauge = partial(_family, GaugeMetricFamily)


def _totals(snapshot: TrafficSnapshot) -> Iterator[Metric]:
    types, faults = snapshot.types.items(), snapshot.faults.items()
    yield _counter("frames", "MXoE frames by packet type.", ["type"], (((name,), each[0]) for name, each in types))
    yield _counter("bytes", "Bytes on the wire by packet type.", ["type"], (((name,), each[1]) for name, each in types))
    reasons = (((reason,), count) for reason, count in faults)
    yield _counter("malformed_frames", "Frames that a receiver drops, by reason.", ["reason"], reasons)
    yield _counter("nacks", "Nacks by packet type and reason.", ["type", "reason"], snapshot.nacks.items())
    starved = "Time in which frames waited because this process lacked the processor."
    followed = "Share of the recent frames whose messages were followed; below 1 the metrics of messages are sampled."
    for family, name, text, value in (
        (_counter, "lost_frames", "Frames that were not captured, as this process was late.", snapshot.dropped),
        (_counter, "starved_seconds", starved, snapshot.starved_ns / SECOND),
        (_counter, "uncounted_pair_frames", "Frames of pairs of hosts beyond the limit of pairs.", snapshot.others),
        (_gauge, "followed_share", followed, snapshot.followed_share),
    ):
        yield family(name, text, values=[((), value)])


def _messages(snapshot: TrafficSnapshot) -> Iterator[Metric]:
    yield _counter("messages", "Finished messages by kind and outcome.", ["kind", "outcome"], snapshot.outcomes.items())
    for name, text, histograms, unit in (
        ("message_duration_seconds", "Time until the sender knew the outcome.", snapshot.durations, SECOND),
        ("message_length_bytes", "Lengths of messages.", snapshot.lengths, 1),
    ):
        family = HistogramMetricFamily(f"mxwire_{name}", text, labels=["kind"])
        for kind, each in histograms.items():
            family.add_metric([kind], _buckets(each, unit), each.sum / unit)
        yield family


def _buckets(histogram: MessageHistogram, unit: int) -> list[tuple[str, float]]:
    # Buckets of Prometheus are cumulative, and the last one has no bound.
    bounds = [*(f"{each / unit:g}" for each in histogram.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))


_PAIR_COUNTERS: dict[str, tuple[str, Callable[[PairRates], float]]] = {
    "pair_followed_frames": ("Frames whose messages were followed.", lambda each: each.followed),
    "pair_messages": ("Finished messages, of the followed frames.", lambda each: each.messages),
    "pair_message_bytes": ("Bytes of these messages.", lambda each: each.message_bytes),
    "pair_failed_messages": ("Messages that failed, were nacked, truncated or abandoned.", lambda each: each.failed),
    "pair_retransmissions": ("Retransmitted frames, of the followed ones.", lambda each: each.retransmissions),
    "pair_re_requests": ("Re-requests of blocks, of the followed frames.", lambda each: each.re_requests),
    "pair_duplicates": ("Duplicates made by the network, of the followed frames.", lambda each: each.duplicates),
}
_PAIR = ("host", "peer")


def _pairs(snapshot: TrafficSnapshot) -> Iterator[Metric]:
    keys: list[tuple[PairRates, tuple[str, str]]] = [
        (each, (mac_text(each.hosts[0]), mac_text(each.hosts[1]))) for each in snapshot.pairs
    ]
    directions: dict[str, tuple[str, Callable[[DirectionRates], int]]] = {
        "pair_frames": ("MXoE frames from one host to another.", lambda each: each.frames),
        "pair_bytes": ("Bytes on the wire from one host to another.", lambda each: each.bytes),
    }
    for name, (text, of) in directions.items():
        values = [(key, of(pair.forward)) for pair, key in keys]
        values += [(key[::-1], of(pair.back)) for pair, key in keys]
        yield _counter(name, text, ["source", "destination"], values)
    for name, (text, value) in _PAIR_COUNTERS.items():
        yield _counter(name, text, _PAIR, [(key, value(pair)) for pair, key in keys])
    # Unknown is not zero: a pair whose messages are not followed has no such metric.
    in_flight = [(key, pair) for pair, key in keys if pair.in_flight is not None]
    counts = [(key, pair.in_flight or 0) for key, pair in in_flight]
    yield _gauge("pair_messages_in_flight", "Messages that are not finished.", _PAIR, counts)
    ages = [(key, (pair.oldest_ns or 0) / SECOND) for key, pair in in_flight]
    yield _gauge("pair_oldest_message_seconds", "Age of the oldest message that is not finished.", _PAIR, ages)
    dialects = InfoMetricFamily("mxwire_pair", "Dialect of a pair of hosts.", labels=_PAIR)
    for pair, key in keys:
        if pair.dialect is not None:
            dialects.add_metric(key, {"dialect": pair.dialect})
    yield dialects


def _facts(snapshot: TrafficSnapshot) -> Iterator[Metric]:
    names = InfoMetricFamily("mxwire_host", "Name of a host.", labels=["address"])
    for host in snapshot.hosts:
        name = snapshot.names.get(host.address)
        if name:
            names.add_metric([mac_text(host.address)], {"name": printable(name)})
    yield names
    facts: dict[Labels, float] = {}
    for each in snapshot.findings:
        finding = each.finding
        hosts = ", ".join(dict.fromkeys(mac_text(party.address) for party in finding.concerns))
        key = finding.id, finding.severity, hosts
        # Prometheus rejects a scrape with the same labels twice.
        facts[key] = facts.get(key, 0) + 1
    text = "Open findings of mxwire diagnose, by the hosts concerned."
    yield _gauge("findings", text, ["id", "severity", "hosts"], facts.items())
