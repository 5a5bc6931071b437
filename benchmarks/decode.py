"""Measure the speed of decoding: mxwire and other tools, in one run.

``python benchmarks/decode.py`` makes two captures, lets all contestants decode them in turn, and prints medians,
ratios, and which goals of the project are reached. ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ours
import peers
from contest import Capture, Contestant, Result, add_options, measure, positive
from goals import GOALS, Verdict, judge
from traffic import MIXED, SMALL, Traffic, write_capture

YARDSTICKS = {"scapy": peers.SCAPY, "tshark": peers.TSHARK, "C loop": peers.LIBPCAP}
"""Headings of the columns with ratios, each with the contestant whose rate is the divisor."""

QUICK = 5_000
"""Frames in each capture with ``--quick``."""

Results = Mapping[str, Result]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    with TemporaryDirectory(prefix="mxwire-benchmark-") as name:
        folder = Path(name)
        contestants = ours.contestants() + peers.contestants(folder)
        captures = [_capture(folder, traffic, options.frames) for traffic in (SMALL, MIXED)]
        results = {
            capture.name: {
                result.name: result for result in measure(capture, contestants, options.rounds, options.minutes / 2)
            }
            for capture in captures
        }
        verdicts = [judge(goal, results[goal.capture]) for goal in GOALS]
        if options.json:
            print(json.dumps(_as_data(captures, contestants, results, verdicts), indent=2))
        else:
            print("\n".join(_as_text(captures, contestants, results, verdicts)))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frames", type=positive, default=200_000, help="frames in each capture (%(default)s)")
    add_options(parser, rounds=5)
    options = parser.parse_args(arguments)
    if options.quick:
        options.frames, options.rounds = min(options.frames, QUICK), 1
    return options


def _capture(folder: Path, traffic: Traffic, frames: int) -> Capture:
    path = folder / f"{traffic.name}.pcap"
    write_capture(path, traffic, frames)
    return Capture(traffic.name, path, frames)


def _ratios(result: Result, results: Results) -> dict[str, float | None]:
    return {
        heading: result.rate / results[name].rate if name in results else None for heading, name in YARDSTICKS.items()
    }


def _as_text(
    captures: Sequence[Capture],
    contestants: Sequence[Contestant],
    results: Mapping[str, Results],
    verdicts: Sequence[Verdict],
) -> list[str]:
    lines: list[str] = []
    for capture in captures:
        lines += [f"{capture.name}: {capture.frames:,} frames of {capture.average_length:,.0f} bytes on average", ""]
        lines += _table([_row(each, results[capture.name]) for each in contestants])
        lines.append("")
    lines.append("goals")
    lines += [f"  {_verdict_text(each)}" for each in verdicts]
    return lines


def _row(contestant: Contestant, results: Results) -> list[str]:
    result = results.get(contestant.name)
    if result is None:
        return [contestant.name, "absent", contestant.missing]
    ratios = ("-" if ratio is None else f"{ratio:,.3g}" for ratio in _ratios(result, results).values())
    return [contestant.name, f"{result.rate:,.0f}", f"±{result.spread:.0%}", *ratios]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned columns: the first to the left, the others to the right. A reason for absence fills its line."""
    header = ["contestant", "frames/s", "spread", *(f"x {heading}" for heading in YARDSTICKS)]
    whole = [row for row in (header, *rows) if len(row) == len(header)]
    widths = [max(len(row[column]) for row in whole) for column in range(len(header))]
    widths[0] = max(len(row[0]) for row in rows)
    lines = []
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0])]
        if len(row) == len(header):
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        else:
            cells.append(": ".join(row[1:]))
        lines.append("  " + "  ".join(cells))
    return lines


def _verdict_text(verdict: Verdict) -> str:
    word = {True: "reached", False: "missed", None: "unknown"}[verdict.reached]
    measured = []
    if verdict.rate is not None:
        measured.append(f"{verdict.rate:,.0f} frames/s")
    if verdict.ratio is not None:
        measured.append(f"{verdict.ratio:,.3g} x")
    return f"{word:8}{verdict.goal.text}: {', '.join(measured) or 'not measured'}"


def _as_data(
    captures: Sequence[Capture],
    contestants: Sequence[Contestant],
    results: Mapping[str, Results],
    verdicts: Sequence[Verdict],
) -> dict[str, Any]:
    return {
        "machine": {"processor": platform.processor() or platform.machine(), "python": platform.python_version()},
        "captures": [
            {
                "name": capture.name,
                "frames": capture.frames,
                "average_length": capture.average_length,
                "results": [_result_as_data(each, results[capture.name]) for each in results[capture.name].values()],
            }
            for capture in captures
        ],
        "absent": {each.name: each.missing for each in contestants if each.run is None},
        "goals": [
            {"goal": each.goal.text, "frames_per_second": each.rate, "ratio": each.ratio, "reached": each.reached}
            for each in verdicts
        ],
    }


def _result_as_data(result: Result, results: Results) -> dict[str, Any]:
    return {
        "name": result.name,
        "frames_per_second": result.rate,
        "rounds": list(result.rates),
        "spread": result.spread,
        "ratios": _ratios(result, results),
    }


if __name__ == "__main__":
    main()
