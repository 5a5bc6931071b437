"""Analyse a set of captures with one worker and with two: the time, and the memory of the largest process.

    python benchmarks/campaign.py [OPTIONS]

Beside it is the gain of two processes that only count: processors that share a core, or have other guests, limit any
program to that. The command is timed as a whole, with its start and the tables that it writes. A data set of many hosts
is compared with one table file of the same frames by disk space.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from contest import COMMAND, PATIENCE, ROOT, Benchmark, Run, Sample, run_benchmark, time_and_memory
from conversing import write_many

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_ETHERNET, concatenate
from mxwire.words import count_of

SOURCE = ROOT / "captures" / "mxoe-burst.pcap"
FILES, QUICK_FILES = 16, 2
MEGABYTES, QUICK_MEGABYTES = 20.0, 0.5
WORKERS = (1, 2)
HOSTS, FRAMES, QUICK_FRAMES = 10_000, 200_000, 20_000
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


def analysed(folder: Path, jobs: int) -> Iterator[Sample]:
    """Measure the set with ``jobs`` workers."""
    with TemporaryDirectory() as target:
        words = (*COMMAND, "messages", "--on", "local", "--jobs", str(jobs), "--to", f"{target}/table")
        seconds, memory = time_and_memory((*words, str(folder / "*.pcap")))
        yield Sample("set of captures", "s", seconds)
        yield Sample("memory of the largest process", "MB", memory / 1e6)


def table_size(capture: Path, *, is_set: bool) -> Iterator[Sample]:
    """Measure the disk space of all columns of a capture, in one table file or as a data set."""
    with TemporaryDirectory() as name:
        target = Path(name) / ("set" if is_set else "table.parquet")
        words = (*COMMAND, "decode", *(("--on", "local") if is_set else ()), "--to", str(target), str(capture))
        time_and_memory(words)
        files = [each for each in Path(name).rglob("*") if each.is_file()]
        yield Sample("disk space of a table, 10,000 hosts", "MB", sum(each.stat().st_size for each in files) / 1e6)


def counted(processes: int, numbers: int) -> Iterator[Sample]:
    """Measure the work of processes that only count, per process."""
    words = [sys.executable, "-c", _COUNTING.format(numbers)]
    start = perf_counter()
    for run in [subprocess.Popen(words) for _ in range(processes)]:
        run.wait(PATIENCE)
    yield Sample("counting alone, per process", "s", (perf_counter() - start) / processes)


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
        benchmark.play("set", runs, share=0.8)
        capture = folder / "many.pcap"
        write_many(capture, QUICK_FRAMES if quick else FRAMES, HOSTS)
        benchmark.play(
            "table",
            {
                "data set": partial(table_size, capture, is_set=True),
                "one file": partial(table_size, capture, is_set=False),
            },
            share=0.2,
        )


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=3, minutes=2)
