"""Results of line-rate tests as blocks of a report, from their JSON records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mxwire.report.document import Block, Column, Row, Table, Verbatim
from mxwire.words import count_of

_UNITS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate_text(value: float, unit: str) -> str:
    """A rate with three digits and a prefix: ``1.49 Mframes/s``, ``8.81 Gbit/s``."""
    for factor, prefix in _UNITS:
        if value >= factor:
            return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def time_text(nanoseconds: float | None) -> str:
    """A duration in the unit that fits: ``4.2 us``, ``1.3 ms``; ``-`` for None."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.1f} us"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.2f} s"


def rates_text(record: Mapping[str, Any]) -> str:
    """Both rates of a run: frames and bits per second."""
    frames = rate_text(record["frames_per_second"], "frames/s")
    return f"{frames}, {rate_text(record['bits_per_second'], 'bit/s')}"


def machine_text(machine: Mapping[str, Any]) -> str:
    """One line about the machine and the interface of a measurement."""
    speed = "unknown speed" if machine["megabits"] is None else rate_text(machine["megabits"] * 1e6, "bit/s")
    queues = machine["receive_queues"]
    parts = [
        f"{machine['host']}: Linux {machine['kernel']}",
        f"{machine['processor']}, {count_of(machine['processors'], 'CPU')}",
        f"{machine['interface']}: driver {machine['driver'] or 'unknown'}, {speed}, MTU {machine['mtu']}",
        f"{count_of(queues, 'queue')}" if queues else "queues unknown",
        f"offloads {', '.join(machine['offloads']) or 'none'}",
        f"via {machine['via']}",
    ]
    return "; ".join(parts)


def latency_text(latency: Mapping[str, Any], *, common_clocks: bool) -> str:
    """One line about the latencies of a run.

    Without common clocks only differences of latencies are meaningful.
    """
    if not latency["count"]:
        return "latency: none measured"
    impossible = count_of(latency["impossible"], "latency", "latencies", grouped=True)
    left_out = f"; {impossible} left out as impossible: a clock was set" if latency["impossible"] else ""
    if not common_clocks:
        low = latency["min_ns"]
        return (
            f"latency above the smallest: median {time_text(latency['median_ns'] - low)}, "
            f"p99 {time_text(latency['p99_ns'] - low)}, p99.9 {time_text(latency['p999_ns'] - low)} "
            f"(the clocks of both sides differ){left_out}"
        )
    return (
        f"latency: min {time_text(latency['min_ns'])}, median {time_text(latency['median_ns'])}, "
        f"p99 {time_text(latency['p99_ns'])}, p99.9 {time_text(latency['p999_ns'])}, "
        f"max {time_text(latency['max_ns'])}{left_out}"
    )


def loss_text(record: Mapping[str, Any]) -> str:
    """One line about the frames that did not arrive once and in order."""
    depth = f" (depth up to {record['depth']:,})" if record["reordered"] else ""
    parts = [
        f"lost {record['lost']:,}",
        f"duplicate {record['duplicates']:,}",
        f"reordered {record['reordered']:,}{depth}",
        f"altered {record['altered']:,}",
    ]
    if record["stale"]:
        parts.append(f"too late to classify {record['stale']:,}")
    return ", ".join(parts)


def places_text(places: Mapping[str, int]) -> str:
    """One line about the places where frames were lost; empty without any."""
    found = [f"{name} {count:,}" for name, count in places.items() if count]
    return "lost or altered by place: " + ", ".join(found) if found else ""


def sink_run_blocks(record: Mapping[str, Any]) -> list[Block]:
    """The report of a sink about one run."""
    streams = f" in {count_of(record['streams'], 'stream')}" if record["streams"] > 1 else ""
    end = "" if record["sent"] is not None else "; the generator did not announce the end"
    drops = record["drops"]
    lines = [
        f"run {record['run']} from {record['source']}: {count_of(record['frames'], 'frame', grouped=True)}{streams}, "
        f"{rates_text(record)}{end}",
        f"  {loss_text(record)}",
        f"  {latency_text(record['latency'], common_clocks=record['common_clocks'])}",
    ]
    dropped = [f"{name} {count:,}" for name, count in drops.items() if count]
    if dropped:
        lines.append("  dropped on this side: " + ", ".join(dropped))
    blocks: list[Block] = [Verbatim("\n".join(lines))]
    disturbed = [each for each in record["per_stream"] if each["lost"] or each["duplicates"] or each["reordered"]]
    if record["streams"] > 1 and disturbed:
        blocks.append(_streams_table(disturbed))
    return blocks


_STREAMS: Final = tuple(
    Column(each, right=True) for each in ("stream", "received", "lost", "duplicates", "reordered", "depth")
)


def _streams_table(records: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(Row(tuple(f"{record[each.heading]:,}" for each in _STREAMS)) for record in records)
    return Table(_STREAMS, rows)


def generator_lines(record: Mapping[str, Any]) -> list[str]:
    """The report of a generator about one run."""
    sent, sink = record["generator"], record["sink"]
    forgone = f"; {sent['forgone']:,} not sent in time" if sent["forgone"] else ""
    frames, duration = count_of(sent["frames"], "frame", grouped=True), time_text(sent["duration_ns"])
    lines = [f"sent {frames} in {duration}: {rates_text(sent)}{forgone}"]
    late = sent["lateness"]
    if late is not None and late["count"]:
        lines.append(
            f"  pace: late by median {time_text(late['median_ns'])}, p99 {time_text(late['p99_ns'])}, "
            f"max {time_text(late['max_ns'])}"
        )
    if sink is None:
        return lines
    if not sink["frames"]:
        lines.append("received none of them")
    else:
        lines.append(
            f"received {sink['received']:,}: {rates_text(sink)}; {loss_text({**sink, 'lost': record['lost']})}"
        )
        lines.append(f"  {latency_text(sink['latency'], common_clocks=record['common_clocks'])}")
    places = places_text(record["places"])
    return [*lines, f"  {places}"] if places else lines
