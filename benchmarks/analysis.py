"""Measure the speed of analysis: messages, timing, verification, diagnosis and tables, beside tshark with the plugin.

    python benchmarks/analysis.py [OPTIONS]

Calls are timed in a process that has started, in wall time. Commands, and tshark, are timed by the processor time of
the whole process without that of its start (of the same command with 12 frames, which is measured first); their output
is dropped.
Captures: tiny messages of 2, 100 and 10,000 hosts, large and mixed ones, and traffic with duplicates and
retransmissions. Beside it are the length of the JSON per frame, the peak memory for a capture and for one twice as
long, and that of commands for ten million frames of 10,000 hosts. All captures but the faulty one have no fault: a
finding makes the measurement fail.
"""

from __future__ import annotations

import shutil
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from contest import (
    COMMAND,
    PATIENCE,
    ROOT,
    Benchmark,
    BenchmarkError,
    Run,
    Sample,
    processor_seconds,
    run_benchmark,
    time_and_memory,
)
from conversing import write_capture, write_many

from mxwire.analysis.conversations import Follower
from mxwire.analysis.diagnosis.examination import Examination
from mxwire.analysis.timing import Timing
from mxwire.analysis.verification import Verification
from mxwire.capture import open_capture
from mxwire.wire.decoder import DecodedBatch, Decoder

PLUGIN = ROOT / "dissectors" / "wireshark" / "mxoe.lua"
TSHARK = "tshark with the plugin"
_TSHARK = ("tshark", "-X", f"lua_script:{PLUGIN}", "-T", "fields", "-e", "frame.number", "-e", "mxoe.ptype", "-r")
STARTS = "start of a command, processor time"
COMMANDS = ("messages", "verify", "messages --json", "decode --json", "decode", "stats", "decode --to parquet")
CAPTURES = (
    ("tiny messages", "tiny", 2, 200_000),
    ("tiny messages, 100 hosts", "tiny", 100, 200_000),
    ("tiny messages, 10,000 hosts", "tiny", 10_000, 200_000),
    ("large messages", "large", 2, 50_000),
    ("mixed messages", "mixed", 2, 50_000),
    ("faulty traffic", "faulty", 2, 50_000),
)
"""Captures, each with the kind of its messages, and the numbers of hosts and of frames."""
QUICK_CAPTURES = ("tiny messages", "tiny messages, 100 hosts", "large messages")
"""Captures of ``--quick``: the commands analyse the second one only, as each takes a quarter of a second to start."""
CALLED = ("tiny messages", "large messages")
"""Captures that are analysed by calls, too."""
MEMORY = {"tiny": 90_000, "large": 9_000}
"""Frames of the shorter capture for the measurement of memory; all have several batches."""
HOSTS, MANY, QUICK_MANY = 10_000, 10_000_000, 100_000
"""Hosts and frames of the capture whose analysis by commands is to need little memory."""
QUICK = 900
START = 12


def _decoded(path: Path) -> Iterator[DecodedBatch]:
    with open_capture(path) as reader:
        yield from Decoder().decode_all(reader)


def messages(path: Path) -> None:
    follower = Follower()
    for decoded in _decoded(path):
        follower.observe(decoded)
    follower.finish()


def timing(path: Path) -> None:
    made = Timing()
    for decoded in _decoded(path):
        made.observe(decoded)
    made.finish()


def verification(path: Path) -> None:
    made = Verification()
    for decoded in _decoded(path):
        for found in made.observe(decoded):
            raise BenchmarkError(f"the capture was to be without fault: {found}")
    made.finish()


def diagnosis(path: Path) -> None:
    decoder = Decoder()
    made = Examination(decoder)
    with open_capture(path) as reader:
        for decoded in decoder.decode_all(made.watch(reader)):
            made.observe(decoded)
    made.finish()
    made.findings()


CALLS: dict[str, Callable[[Path], None]] = {
    "messages": messages,
    "timing": timing,
    "verification": verification,
    "diagnosis": diagnosis,
}


def called(call: Callable[[Path], None], title: str, path: Path, frames: int) -> Iterator[Sample]:
    """Measure one call."""
    start = perf_counter()
    call(path)
    yield Sample(f"{title}, calls", "frames/s", frames / (perf_counter() - start))


def processor_time(command: str, path: Path) -> float:
    """Return the processor time of a command, or of tshark."""
    words = (*COMMAND, *command.split()) if command != TSHARK else _TSHARK
    target = ("--to", str(path.with_suffix(".parquet"))) if "--to" in words else ()
    return processor_seconds([*(each for each in words if each not in ("--to", "parquet")), *target, str(path)])


def started(command: str, path: Path) -> Iterator[Sample]:
    """Measure the start of a command, with a capture of some frames."""
    yield Sample(STARTS, "s", processor_time(command, path))


def commanded(command: str, title: str, path: Path, start: float, frames: int) -> Iterator[Sample]:
    """Measure a command, without its start."""
    yield Sample(f"{title}, commands", "frames/s", frames / max(processor_time(command, path) - start, 1e-3))


def json_length(command: str, path: Path, frames: int) -> Iterator[Sample]:
    """Measure the length of the JSON of a command."""
    words = [*COMMAND, *command.split(), str(path)]
    made = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=True).stdout
    yield Sample("JSON per frame, tiny messages", "bytes", len(made) / frames)


def memory(analysis: type[Follower] | type[Verification], kind: str, frames: int, folder: Path) -> Iterator[Sample]:
    """Measure peak memory for a capture and for one that is twice as long, each read batch by batch."""
    for length, times in ((frames, "once"), (2 * frames, "twice")):
        path = folder / f"memory-{kind}-{length}.pcap"
        write_capture(path, kind, length)
        tracemalloc.start()
        made = analysis()
        with open_capture(path) as reader:
            for decoded in Decoder().decode_all(reader, settle_bytes=0):
                for _ in made.observe(decoded):
                    pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        path.unlink()
        yield Sample(f"peak memory, {kind} messages, {times}", "MB", peak / 1e6)


def command_memory(command: str, path: Path) -> Iterator[Sample]:
    """Measure the peak memory of a command."""
    _, peak = time_and_memory([*COMMAND, command, str(path)])
    yield Sample("peak memory of a command, tiny messages, 10,000 hosts", "MB", peak / 1e6)


def measure(benchmark: Benchmark) -> None:
    with TemporaryDirectory(prefix="mxwire-benchmark-") as name:
        folder = Path(name)
        start = folder / "start.pcap"
        write_capture(start, "tiny", START)
        taking_part = [*COMMANDS, *([TSHARK] if shutil.which("tshark") else [])]
        benchmark.play("start", {each: partial(started, each, start) for each in taking_part}, share=0.1)
        starts = {each: benchmark.median(STARTS, each) or 0.0 for each in taking_part}
        share = 0.8 / len(CAPTURES)
        for title, kind, hosts, many in CAPTURES:
            if benchmark.quick and title not in QUICK_CAPTURES:
                continue
            frames = QUICK if benchmark.quick else many
            path = folder / "capture.pcap"
            write_capture(path, kind, frames, hosts)
            runs: dict[str, Run | str] = {
                f"{name}, call": partial(called, call, title, path, frames)
                for name, call in CALLS.items()
                if title in CALLED
            }
            runs |= {
                each: partial(commanded, each, title, path, starts[each], frames)
                for each in taking_part
                if (title not in CALLED if benchmark.quick else each != TSHARK or title in CALLED)
            }
            benchmark.play(title, runs, share)
        path = folder / "json.pcap"
        write_capture(path, "tiny", QUICK)
        benchmark.play("JSON", {each: partial(json_length, each, path, QUICK) for each in COMMANDS[2:4]}, share=0.0)
        for kind, many in MEMORY.items():
            frames = QUICK if benchmark.quick else many
            runs = {
                "messages": partial(memory, Follower, kind, frames, folder),
                "verification": partial(memory, Verification, kind, frames, folder),
            }
            benchmark.play("memory", runs, share=0.0)
        path = folder / "many.pcap"
        write_many(path, QUICK_MANY if benchmark.quick else MANY, HOSTS)
        runs = {each: partial(command_memory, each, path) for each in COMMANDS[:2]}
        benchmark.play("memory of many hosts", runs, share=0.0)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=3, minutes=4)
