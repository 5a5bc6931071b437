"""Analyse a set of captures with one worker and with two: the time, and the memory of the largest process.

    python benchmarks/campaign.py [OPTIONS]

Beside it is the gain of two processes that only count: processors that share a core, or have other guests, limit any
program to that. The command is timed as a whole, with its start and the tables that it writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from contest import COMMAND, PATIENCE, ROOT, Benchmark, BenchmarkError, Run, Sample, run_benchmark

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_ETHERNET, concatenate
from mxwire.words import count_of

SOURCE = ROOT / "captures" / "mxoe-burst.pcap"
FILES, QUICK_FILES = 16, 2
MEGABYTES, QUICK_MEGABYTES = 20.0, 0.5
WORKERS = (1, 2)
_COUNTING = "for number in range({}): pass"


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


def analysed(folder: Path, jobs: int) -> Iterator[Sample]:
    """Measure the set with ``jobs`` workers."""
    with TemporaryDirectory() as target:
        words = [*COMMAND, "messages", "--on", "local", "--jobs", str(jobs), "--to", f"{target}/table"]
        start, peak = time.perf_counter(), 0
        run = subprocess.Popen([*words, str(folder / "*.pcap")], start_new_session=True, stderr=subprocess.DEVNULL)
        try:
            while run.poll() is None:
                peak = max(peak, peak_memory(run.pid))
                time.sleep(0.1)
                if time.perf_counter() - start > 5 * PATIENCE:
                    raise BenchmarkError(f"not completed in {5 * PATIENCE:g} s")
        finally:
            run.kill()
        if run.wait():
            raise BenchmarkError(f"the command ended with exit code {run.returncode}")
        yield Sample("set of captures", "s", time.perf_counter() - start)
        yield Sample("memory of the largest process", "MB", max(peak, 1) / 1e6)


def counted(processes: int, numbers: int) -> Iterator[Sample]:
    """Measure the work of processes that only count, per process."""
    words = [sys.executable, "-c", _COUNTING.format(numbers)]
    start = time.perf_counter()
    for run in [subprocess.Popen(words) for _ in range(processes)]:
        run.wait(PATIENCE)
    yield Sample("counting alone, per process", "s", (time.perf_counter() - start) / processes)


def measure(benchmark: Benchmark) -> None:
    quick = benchmark.quick
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_captures(folder, QUICK_FILES if quick else FILES, QUICK_MEGABYTES if quick else MEGABYTES)
        runs: dict[str, Run | str] = {count_of(jobs, "worker"): partial(analysed, folder, jobs) for jobs in WORKERS}
        for processes in WORKERS:
            runs[count_of(processes, "process", "processes")] = partial(
                counted, processes, 10**5 if quick else 30_000_000
            )
        benchmark.play("set", runs)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=3, minutes=2)
