"""Plots of line-rate tests; matplotlib is an optional extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mxwire.errors import write_file
from mxwire.report.plot import BANDWIDTH, LATENCY, MARK, panels, rendered

_LABELS: Final = {
    "throughput": ("length of frames, bytes", "throughput, Gbit/s"),
    "burst": ("length of frames, bytes", "longest burst without loss, frames"),
    "loss": ("offered rate, frames/s", "loss, %"),
    "latency": ("load, % of the throughput", "latency, µs"),
    "incast": ("senders at once", "frames of the largest answer without loss"),
    "messages": ("length of messages, bytes", "messages/s"),
}


def draw(path: Path, test: str, results: Sequence[Mapping[str, Any]], machine: Mapping[str, Any]) -> None:
    """Draw the results of one test into the file ``path``; its suffix selects the format.

    Raises :class:`~mxwire.errors.MxwireError` if matplotlib is not installed, or the file cannot be written.
    """
    title = f"{test} on {machine['interface']} ({machine['driver'] or 'unknown driver'}), via {machine['via']}"

    def figure(pyplot: Any) -> Any:
        drawing, (axes,) = panels(pyplot, title, (9, 5))
        _CURVES[test](axes, results)
        below, left = _LABELS[test]
        axes.set_xlabel(below)
        axes.set_ylabel(left)
        axes.set_ylim(bottom=0)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False)
        return drawing

    write_file(path, rendered(figure, path.suffix[1:]))


def _throughput(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    sizes = [each["size"] for each in results]
    limits = [each["tester"]["frames_per_second"] * 8 * each["size"] / 1e9 for each in results]
    axes.plot(sizes, limits, color=MARK, linestyle=":", marker=".", label="limit of the tester")
    rates = [each["bits_per_second"] / 1e9 for each in results]
    axes.plot(sizes, rates, color=BANDWIDTH, marker="o", label="throughput")


def _burst(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    sizes, means = [each["size"] for each in results], [each["count"] for each in results]
    spread = [
        [each["count"] - each["shortest"] for each in results],
        [each["longest"] - each["count"] for each in results],
    ]
    axes.errorbar(sizes, means, yerr=spread, color=BANDWIDTH, marker="o", capsize=3)


def _loss(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    for each in results:
        rates = [step["rate"] for step in each["steps"]]
        axes.plot(rates, [100 * step["loss"] for step in each["steps"]], marker="o", label=f"{each['size']} bytes")


def _latency(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    for size in dict.fromkeys(each["size"] for each in results):
        measured = [each for each in results if each["size"] == size and each["latency"].get("count")]
        loads = [each["load_percent"] for each in measured]
        low = [0 if each["common_clocks"] else each["latency"]["min_ns"] for each in measured]
        for name, style in (("median_ns", "-"), ("p99_ns", "--")):
            times = [(each["latency"][name] - base) / 1000 for each, base in zip(measured, low, strict=True)]
            label = f"{size} bytes, {name.removesuffix('_ns')}"
            axes.plot(loads, times, linestyle=style, marker="o", label=label, color=None if size else LATENCY)


def _incast(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    senders = [each["senders"] for each in results]
    axes.plot(senders, [each["count"] for each in results], color=BANDWIDTH, marker="o")
    axes.set_xticks(senders)


def _messages(axes: Any, results: Sequence[Mapping[str, Any]]) -> None:
    sizes = [each["size"] for each in results]
    rates = [each["messages_per_second"] for each in results]
    axes.plot(sizes, rates, color=BANDWIDTH, marker="o", label="without retransmissions")
    lossy = [(each["size"], each["retransmits_from"]) for each in results if each["retransmits_from"] is not None]
    if lossy:
        axes.plot(*zip(*lossy, strict=True), color=MARK, linestyle="", marker="x", label="retransmissions from")
    # Lengths span six orders of magnitude, and may be 0.
    axes.set_xscale("symlog", base=2)


_CURVES: Final = {
    "throughput": _throughput,
    "burst": _burst,
    "loss": _loss,
    "latency": _latency,
    "incast": _incast,
    "messages": _messages,
}
