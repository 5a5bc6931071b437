"""Results of line-rate tests as blocks of a report, from their JSON records."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mxwire.report.document import Block, Table, Verbatim, columns_of, number_columns, tabulate
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


def span_text(nanoseconds: float | None) -> str:
    """A duration in the unit that fits: ``4.2 us``, ``1.3 ms``; ``-`` for None."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 999_950:
        return f"{nanoseconds / 1000:.1f} us"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 999.95e6 else f"{nanoseconds / 1e9:.2f} s"


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
        f"via {machine['via']}" + (f" ({machine['mode']})" if machine["mode"] else ""),
        *(f"not in {refusal}" for refusal in machine["refusals"]),
    ]
    return "; ".join(parts)


def sink_text(sink: Mapping[str, Any]) -> str:
    """One line about the sink of a measurement."""
    mode = f" ({sink['mode']})" if sink.get("mode") else ""
    place = f"interface {sink.get('interface', '?')}, via {sink.get('via', '?')}{mode}"
    return f"sink: {sink.get('host', '?')} ({sink['address']}), {place}"


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
            f"latency above the smallest: median {span_text(latency['median_ns'] - low)}, "
            f"p99 {span_text(latency['p99_ns'] - low)}, p99.9 {span_text(latency['p999_ns'] - low)} "
            f"(the clocks of both sides differ){left_out}"
        )
    return (
        f"latency: min {span_text(latency['min_ns'])}, median {span_text(latency['median_ns'])}, "
        f"p99 {span_text(latency['p99_ns'])}, p99.9 {span_text(latency['p999_ns'])}, "
        f"max {span_text(latency['max_ns'])}{left_out}"
    )


def loss_text(record: Mapping[str, Any]) -> str:
    """One line about the frames that did not arrive once and in order."""
    depth = f" (depth up to {record['depth']:,})" if record["reordered"] else ""
    parts = [
        f"lost {record['lost']:,}",
        f"duplicated {record['duplicates']:,}",
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


_STREAMS: Final = number_columns("stream", "received", "lost", "duplicates", "reordered", "depth")


def _streams_table(records: Sequence[Mapping[str, Any]]) -> Table:
    return tabulate(_STREAMS, ((f"{record[each.heading]:,}" for each in _STREAMS) for record in records))


def generator_lines(record: Mapping[str, Any]) -> list[str]:
    """The report of a generator about one run."""
    sent, sink = record["generator"], record["sink"]
    forgone = f"; {sent['forgone']:,} not sent in time" if sent["forgone"] else ""
    frames, duration = count_of(sent["frames"], "frame", grouped=True), span_text(sent["duration_ns"])
    lines = [f"sent {frames} in {duration}: {rates_text(sent)}{forgone}"]
    late = sent["lateness"]
    if late is not None and late["count"]:
        lines.append(
            f"  pace: late by median {span_text(late['median_ns'])}, p99 {span_text(late['p99_ns'])}, "
            f"max {span_text(late['max_ns'])}"
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


# Tests


_COMMON: Final = columns_of("#bytes, frame, #frames/s")
_END: Final = columns_of("#line, #tester's limit, remark")


def result_blocks(test: str, results: Sequence[Mapping[str, Any]]) -> list[Block]:
    """The table of the results of one test."""
    if test == "incast":
        return [_incast_table(results)]
    if test == "messages":
        return [_messages_table(results)]
    tables: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], tuple[str, ...]]]] = {
        "throughput": (("bit/s",), lambda each: (rate_text(each["bits_per_second"], "bit/s"),)),
        "latency": (("load", "min", "median", "p99", "p99.9", "variation", "lost"), _latency_cells),
        "loss": (("loss at 100% of that", "no loss from"), _loss_cells),
        "burst": (("burst", "shortest", "longest", "buffer"), _burst_cells),
    }
    columns, cells = tables[test]
    rows = ((*_common_cells(each), *cells(each), *_end_cells(each)) for each in results)
    blocks: list[Block] = [tabulate((*_COMMON, *number_columns(*columns), *_END), rows)]
    if any(each["tester_limited"] for each in results):
        blocks.append(
            Verbatim(
                "tester-limited: the generator or the sink reached its own limit, so the network may carry more;\n"
                "try --via xdp or kernel, two machines, or a CPU of its own for each side (--cpu)"
            )
        )
    return blocks


def _common_cells(result: Mapping[str, Any]) -> tuple[str, ...]:
    return str(result["size"]), result["frame"], f"{result['frames_per_second']:,.0f}"


def _end_cells(result: Mapping[str, Any]) -> tuple[str, ...]:
    remarks = [f"tester-limited: {result['limited_by']}"] if result["tester_limited"] else []
    if not result.get("settled", True):
        remarks.append("not settled: trials at one rate passed and failed")
    line = result["line_frames_per_second"]
    share = "-" if not line else f"{100 * result['frames_per_second'] / line:.1f}%"
    return share, f"{result['tester']['frames_per_second']:,.0f}", "; ".join(remarks)


def _latency_cells(result: Mapping[str, Any]) -> tuple[str, ...]:
    latency = result["latency"]
    load = f"{result['load_percent']}%"
    if not latency.get("count"):
        return (load, *"-----", f"{result['lost']:,}")
    names = ("min_ns", "median_ns", "p99_ns", "p999_ns")
    # Without common clocks only the differences from the smallest latency are known.
    low = 0 if result["common_clocks"] else latency["min_ns"]
    times = [span_text(latency[each] - low) for each in names]
    return (load, *times, span_text(latency["variation_ns"]), f"{result['lost']:,}")


def _loss_cells(result: Mapping[str, Any]) -> tuple[str, ...]:
    steps = result["steps"]
    clean = [each["rate"] for each in steps if not each["loss"]]
    highest = f"{max(clean):,.0f}/s" if clean else "no rate"
    return f"{100 * steps[0]['loss']:.4f}%", highest


def _burst_cells(result: Mapping[str, Any]) -> tuple[str, ...]:
    buffer = result["buffer_frames"]
    more = " or more" if result["no_loss"] else ""
    return (
        f"{result['count']:,.0f}{more}",
        f"{result['shortest']:,}",
        f"{result['longest']:,}",
        "-" if buffer is None else f"{buffer:,.0f}",
    )


_CSV: Final = (
    *("test", "size", "frame", "frames_per_second", "bits_per_second", "percent", "line_frames_per_second"),
    *("tester_limited", "limited_by", "load_percent", "lost", "p99_ns", "count", "shortest", "longest"),
    *("buffer_frames", "senders", "blocks", "bytes", "messages_per_second", "retransmits_from"),
)


def csv_text(results: Sequence[Mapping[str, Any]]) -> str:
    """The results as CSV, one line per result, or per step of a loss test."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow((*_CSV, "rate", "loss"))
    for each in results:
        cells = [each.get(name) for name in _CSV]
        for step in each.get("steps") or [{}]:
            writer.writerow((*cells, step.get("rate"), step.get("loss")))
    return out.getvalue()


def _incast_table(results: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for each in results:
        lost = sum(one["lost"] for one in each["rounds"])
        spreads = [one["spread_ns"] for one in each["rounds"] if one["spread_ns"] is not None]
        remark = (
            "no loss: the limit may be higher"
            if each["no_loss"]
            else f"loss from {count_of(each['lossy_blocks'], 'block')} on"
        )
        if each["limited_by"] == "requester's ring":
            remark += "; tester-limited: requester's ring"
        numbers = (each["senders"], each["size"], each["blocks"], f"{each['count']:,}", f"{lost:,}")
        rows.append((*numbers, span_text(max(spreads)) if spreads else "-", remark))
    return tabulate("#senders, #bytes, #blocks, #frames at once, #lost, #spread, remark", rows)


_MESSAGES: Final = (
    "#bytes, #messages/s, #payload, #retransmits from, #round trip at 10%, #at 50%, #at 90%, #p99 at 90%, limit"
)


def _messages_table(results: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for each in results:
        trips = [load["round_trip"] for load in each["loads"]]
        times = [span_text(trip["median_ns"]) if trip else "-" for trip in trips] or ["-"] * 3
        late = span_text(trips[-1]["p99_ns"]) if trips and trips[-1] else "-"
        start = each["retransmits_from"]
        cells = (
            f"{each['size']:,}",
            f"{each['messages_per_second']:,.0f}",
            rate_text(each["bits_per_second"], "bit/s"),
        )
        rows.append((*cells, "-" if start is None else f"{start:,.0f}/s", *times, late, each["limited_by"]))
    return tabulate(_MESSAGES, rows)
