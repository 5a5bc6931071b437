"""Measure the speed and evenness of replay: mxwire replay, tcpreplay and a plain loop, in one run.

    sudo python benchmarks/replay.py [OPTIONS]

All send through one end of a veth pair of MTU 9000, from one CPU. At top speed there is no receiver, and each
contestant reports its own time from the first frame to the last, with the capture in memory (tcpreplay -K -t). At
50,000 frames per second, the other end records arrivals: the error of a frame is the difference between its time of
arrival and the first frame's time plus equal intervals. tcpreplay takes part if it is installed. Needs root, for the
namespaces.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from contest import COMMAND, PATIENCE, Benchmark, BenchmarkError, Run, Sample, cable, run_benchmark
from traffic import MIXED, SMALL, write_capture

from mxwire.lab.machine import placement
from mxwire.lab.namespaces import NamespacePort
from mxwire.link import Tap

OURS, OTHERS, PLAIN = "mxwire replay", "tcpreplay -K", "a Python loop of send"
RATE = 50_000
PACED_FRAMES = 10_000
Ports = tuple[NamespacePort, NamespacePort]
LOOP = """
import socket, sys, time
from mxwire.capture import open_capture
frames = [batch.frame(place) for batch in open_capture(sys.argv[1]) for place in range(len(batch))]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
out.bind((sys.argv[2], 0x86DF))
send, begin = out.send, time.perf_counter()
for _ in range(int(sys.argv[3])):
    for frame in frames:
        send(frame)
print(len(frames) * int(sys.argv[3]) / (time.perf_counter() - begin))
"""


def pinned(port: NamespacePort, *words: str) -> list[str]:
    """Return a command line that runs a command on the first CPU, at one end of the cable."""
    return port.namespace.command("taskset", "-c", str(placement()[0]), *words)


def run(port: NamespacePort, *words: str) -> str:
    """Return the output of a command."""
    done = subprocess.run(pinned(port, *words), capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout


def tcpreplay_rate(output: str) -> float:
    """Return the frames per second that tcpreplay reports."""
    found = re.search(r"Rated:.*?([\d.]+) pps", output)
    if found is None:
        raise BenchmarkError(f"tcpreplay reported no rate: {output}")
    return float(found[1])


def top_speed(who: str, ports: Ports, capture: Path, loops: int, series: str) -> Iterator[Sample]:
    """Measure frames per second without a receiver."""
    port = ports[0]
    if who == OURS:
        words = ("replay", str(capture), "-i", port.interface, "--loop", str(loops), "--linger", "0", "--json")
        rate = float(json.loads(run(port, *COMMAND, *words, "--top-speed"))["frames_per_second"])
    elif who == OTHERS:
        rate = tcpreplay_rate(run(port, "tcpreplay", "-K", "-t", f"--loop={loops}", "-i", port.interface, str(capture)))
    else:
        rate = float(run(port, sys.executable, "-P", "-c", LOOP, str(capture), port.interface, str(loops)))
    yield Sample(series, "frames/s", rate)


def arrival_error(ports: Ports, *words: str) -> float:
    """Return the 99th percentile of the error of arrival times, in µs, of the frames that a command sends at RATE.

    This process runs on another CPU than the sender, which it would interrupt at each frame that it receives. Raises
    :class:`BenchmarkError` if the command fails, or frames were not seen.
    """
    with ports[1].namespace.inside():
        tap = Tap.open(ports[1].interface, ring_bytes=64 << 20)
    times: list[Any] = []
    with tap, subprocess.Popen(pinned(ports[0], *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            times.append(tap.receive(0.05).timestamp_ns.copy())
        while len(batch := tap.receive(0.2)):
            times.append(batch.timestamp_ns.copy())
        lost = tap.statistics().dropped
        complaint = process.stderr.read().decode().strip() if process.stderr is not None else ""
    seen = np.concatenate(times)
    if process.returncode or lost or not len(seen):
        raise BenchmarkError(f"{words[0]} failed, or {lost} frames were not seen: {complaint[-200:]}")
    wanted = seen[0] + np.arange(len(seen)) * (10**9 // RATE)
    return float(np.percentile(np.abs(seen - wanted), 99)) / 1e3


def paced(ports: Ports, series: str, *words: str) -> Iterator[Sample]:
    """Measure the error of a paced contestant."""
    yield Sample(series, "µs", arrival_error(ports, *words))


def paced_tcpreplay(ports: Ports, capture: Path) -> list[str]:
    """Return the command of tcpreplay, whose options must precede the file."""
    return ["tcpreplay", "-K", f"--pps={RATE}", "-i", ports[0].interface, str(capture)]


def measure(benchmark: Benchmark) -> None:
    frames, loops = (1_000, 1) if benchmark.quick else (20_000, 3)
    absent = "" if shutil.which("tcpreplay") else "it is not installed (package tcpreplay)"
    with TemporaryDirectory() as name, cable() as ports:
        folder = Path(name)
        for traffic in (SMALL, MIXED):
            capture = folder / f"{traffic.name}.pcap"
            write_capture(capture, traffic, frames)
            series = f"replay of {traffic.name} frames at top speed"
            runs: dict[str, Run | str] = {
                who: (absent if who == OTHERS else "") or partial(top_speed, who, ports, capture, loops, series)
                for who in (OURS, OTHERS, PLAIN)
            }
            benchmark.play(series, runs, share=0.4)
        capture = folder / "paced.pcap"
        write_capture(capture, SMALL, frames // 20 if benchmark.quick else PACED_FRAMES)
        series = f"error of arrival times at {RATE:,} frames/s, 99th percentile"
        words = ("replay", str(capture), "--rate", f"{RATE}/s", "-i", ports[0].interface, "--linger", "0")
        runs = {OURS: partial(paced, ports, series, *COMMAND, *words)}
        runs[OTHERS] = absent or partial(paced, ports, series, *paced_tcpreplay(ports, capture))
        benchmark.play("paced", runs, share=0.2)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=9, minutes=2, network=True)
