"""Analyse a set of captures with one worker and with two: the time, and the memory of the largest process.

Beside it is the gain of two processes that only count: processors that share a core, or have other guests, limit any
program to that.

``python benchmarks/campaign.py`` uses 100 files of 100 MB; ``--files 8 --megabytes 5`` is a check of a minute.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_ETHERNET, concatenate
from mxwire.words import count_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "captures" / "mxoe-burst.pcap"
SPEED_GOAL = 1.7
MEMORY_GOAL = 300
"""MB per process."""
_COUNTING = "for number in range(50_000_000): pass"


def write_captures(folder: Path, files: int, megabytes: float) -> None:
    """Write captures that repeat the frames of a recording, each with later times."""
    with open_capture(SOURCE) as reader:
        frames = concatenate(list(reader))
    duration = int(frames.timestamp_ns[-1] - frames.timestamp_ns[0]) + 10**9
    rounds = max(1, round(megabytes * 1e6 / SOURCE.stat().st_size))
    first = folder / "0.pcap"
    with create_capture(str(first)) as capture:
        capture.begin(LINKTYPE_ETHERNET)
        for number in range(rounds):
            capture.write(replace(frames, timestamp_ns=frames.timestamp_ns + number * duration))
    for number in range(1, files):
        # Hard links, because the files are read one by one anyway and so need the disk space of only one.
        os.link(first, folder / f"{number}.pcap")


def peak_memory(group: int) -> int:
    """Return the largest peak of resident memory of the processes of a group, in bytes."""
    peak = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                lines = (folder / "status").read_text().splitlines()
                peak = max([peak, *(int(each.split()[1]) * 1024 for each in lines if each.startswith("VmHWM"))])
        except OSError:
            continue  # the process has ended
    return peak


def measure(folder: Path, target: Path, jobs: int) -> tuple[float, float]:
    """Return the seconds that the set takes with ``jobs`` workers, and the memory of the largest process in MB."""
    command = [sys.executable, str(ROOT / "cli.py"), "messages", "--on", "local", "--jobs", str(jobs)]
    start, peak = time.perf_counter(), 0
    run = subprocess.Popen(
        [*command, "--to", str(target), str(folder / "*.pcap")], start_new_session=True, stderr=subprocess.DEVNULL
    )
    while run.poll() is None:
        peak = max(peak, peak_memory(run.pid))
        time.sleep(0.1)
    if run.returncode:
        raise SystemExit(f"the command ended with exit code {run.returncode}")
    return time.perf_counter() - start, peak / 1e6


def counting_gain() -> float:
    """Return the work of two processes that only count, in the time of one process."""
    command = [sys.executable, "-c", _COUNTING]
    seconds = []
    for processes in (1, 2):
        start = time.perf_counter()
        for run in [subprocess.Popen(command) for _ in range(processes)]:
            run.wait()
        seconds.append(time.perf_counter() - start)
    return 2 * seconds[0] / seconds[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--folder", help="folder for the captures and tables; by default a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder = Path(place)
        write_captures(folder, given.files, given.megabytes)
        results, limits = [], [counting_gain()]
        for jobs in (1, 2):
            seconds, memory = measure(folder, folder / f"tables-{jobs}", jobs)
            print(f"{count_of(jobs, 'worker')}: {seconds:.1f} s, largest process {memory:.0f} MB", flush=True)
            results.append((seconds, memory))
            limits.append(counting_gain())
    gain, memory = results[0][0] / results[1][0], max(each[1] for each in results)
    shown = ", ".join(f"{each:.2f}" for each in limits)
    print(f"two workers: {gain:.2f} times one (goal {SPEED_GOAL}); memory {memory:.0f} MB (goal {MEMORY_GOAL})")
    print(f"two processes that only count, before, between and after: {shown} times one")
    return 0 if gain >= SPEED_GOAL and memory <= MEMORY_GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
