"""Measure the time of the Wireshark plugin per frame, in addition to that of tshark without a dissector.

    python benchmarks/dissector.py [--frames N] [--rounds N]

All contestants read the same file in turn, several times. Times are CPU times (user and system) of the
whole process; the cost of the plugin is the difference from tshark without it, per frame.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from contest import add_options

from mxwire.dissector import plugin_path

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
FRAMES = 100_000
ROUNDS = 5
SECOND = 10**9
PLAIN = "tshark without the plugin"
ANALYSIS_OFF = "plugin, analysis off"
ANALYSIS_ON = "plugin, everything on"
SCAPY = "scapy"
GOALS = {ANALYSIS_OFF: 20.0, ANALYSIS_ON: 40.0}
"""Limit in microseconds per frame, in addition to tshark's own time."""


@dataclass(frozen=True)
class Contestant:
    """A command that reads the whole capture."""

    name: str
    command: list[str]


def write_traffic(path: Path, frames: int) -> int:
    """Write the included captures one after the other, repeatedly, each time between other hosts."""
    written, copy, start = 0, 0, 0
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        while written < frames:
            for capture in sorted(CAPTURES.glob("*.pcap")):
                start, count = _append(out, capture.read_bytes(), copy, start)
                written += count
                copy += 1
    return written


def _append(out: object, data: bytes, copy: int, start: int) -> tuple[int, int]:
    """Write one capture with hosts numbered by the copy; return its last time and its number of frames."""
    at, count, first, now = 24, 0, None, start
    while at < len(data):
        seconds, nanoseconds, captured, length = struct.unpack_from("<4I", data, at)
        time = seconds * SECOND + nanoseconds
        first = time if first is None else first
        now = start + time - first
        frame = bytearray(data[at + 16 : at + 16 + captured])
        for place in (0, 6):
            if frame[place] != 0xFF:
                frame[place + 2 : place + 4] = copy.to_bytes(2, "big")
        out.write(struct.pack("<4I", now // SECOND, now % SECOND, captured, length) + frame)  # type: ignore[attr-defined]
        at += 16 + captured
        count += 1
    return now + SECOND, count


def contestants(path: Path) -> list[Contestant]:
    """Return the contestants, in the order of the report."""
    tshark = ["tshark", "-n", "-r", str(path)]
    plugin = [*tshark, "-X", f"lua_script:{plugin_path()}"]
    return [
        Contestant(PLAIN, tshark),
        Contestant(ANALYSIS_OFF, [*plugin, "-o", "mxoe.analysis:FALSE"]),
        Contestant(ANALYSIS_ON, [*plugin, "-o", "mxoe.checksum:FALSE"]),
        Contestant(f"{PLAIN}, trees", [*tshark, "-V"]),
        Contestant(f"{ANALYSIS_OFF}, trees", [*plugin, "-o", "mxoe.analysis:FALSE", "-V"]),
        Contestant(f"{ANALYSIS_ON}, trees", [*plugin, "-V"]),
        Contestant(SCAPY, [sys.executable, "-c", _SCAPY, str(path)]),
    ]


_SCAPY = """
import sys
from scapy.utils import PcapReader
import scapy.layers.l2
try:
    import mxwire.scapy
except ImportError:
    pass
for packet in PcapReader(sys.argv[1]):
    packet.summary()
"""


def processor_seconds(command: list[str]) -> float:
    """Return user plus system time of one run."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"HOME": home, "WIRESHARK_CONFIG_DIR": home}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(taking_part: list[Contestant], rounds: int, minutes: float = 20) -> dict[str, float]:
    """Run all contestants in turn; return the median of each, in seconds."""
    times: dict[str, list[float]] = {each.name: [] for each in taking_part}
    end = monotonic() + 60 * minutes
    for number in range(rounds):
        if number and monotonic() > end:
            break
        for each in taking_part:
            times[each.name].append(processor_seconds(each.command))
            print(f"{each.name}: {times[each.name][-1]:.2f} s (round {number + 1} of {rounds})", file=sys.stderr)
    return {name: median(measured) for name, measured in times.items()}


def report(seconds: dict[str, float], frames: int, as_json: bool) -> bool:
    """Print the table, or one object; return True if the goals are reached."""
    if as_json:
        print(json.dumps({"frames": frames, "seconds": seconds, "goals_us": GOALS}))
        return all((seconds[name] - seconds[PLAIN]) / frames * 1e6 <= goal for name, goal in GOALS.items())
    print(f"{'':36} {'s':>8} {'µs/frame':>10} {'over plain':>11} {'ratio':>7}")
    reached = True
    for name, measured in seconds.items():
        base = seconds[f"{PLAIN}, trees" if name.endswith(", trees") else PLAIN]
        over = (measured - base) / frames * 1e6
        line = f"{name:36} {measured:8.2f} {measured / frames * 1e6:10.1f} {over:11.1f} {measured / base:7.1f}"
        goal = GOALS.get(name)
        if goal is not None:
            reached &= over <= goal
            line += f"   goal: at most {goal:g}: {'reached' if over <= goal else 'MISSED'}"
        print(line)
    print(f"scapy takes {seconds[SCAPY] / seconds[ANALYSIS_ON]:.1f} times as long as the plugin with everything on")
    return reached


def main() -> int:
    """Measure and report; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=FRAMES, help="minimum number of frames  [%(default)s]")
    add_options(parser, ROUNDS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.frames, arguments.rounds = 5_000, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traffic.pcap"
        frames = write_traffic(path, arguments.frames)
        if not arguments.json:
            print(f"{frames:,} frames, {path.stat().st_size / 1e6:.0f} MB, median of {arguments.rounds} rounds\n")
        seconds = measure(contestants(path), arguments.rounds, arguments.minutes)
        return 0 if report(seconds, frames, arguments.json) else 1


if __name__ == "__main__":
    raise SystemExit(main())
