"""Measure the speed of analysis: messages, timing, verification, diagnosis and a table, compared with tshark.

``python benchmarks/analysis.py`` makes a capture of tiny and one of large messages, analyses each in turn, and prints
medians, peak memory for captures of different lengths, and which goals of the project are met. tshark uses the plugin.
The table is that of ``mxwire decode --to``, with the start of the process, as a user waits for it. Commands are timed
by processor time without their start: over tiny messages of 2, 100 and 10,000 hosts, large and mixed ones, and traffic
with duplicates and retransmissions. ``--help`` lists the options. The other captures contain no faults: a finding
invalidates the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contest import Capture, Contestant, Outcome, Result, add_options, measure, processor_seconds, timed
from conversing import write_capture

from mxwire.analysis.conversations import Follower
from mxwire.analysis.diagnosis.examination import Examination
from mxwire.analysis.timing import Timing
from mxwire.analysis.verification import Verification
from mxwire.capture import open_capture
from mxwire.wire.decoder import DecodedBatch, Decoder

MESSAGES = "messages in process"
TIMING = "timing"
VERIFICATION = "verification"
DIAGNOSIS = "diagnosis"
TABLE = "decode --to parquet"
TSHARK = "tshark with the plugin"
PLUGIN = Path(__file__).parents[1] / "dissectors" / "wireshark" / "mxoe.lua"
COMMANDS = ("messages", "verify", "messages --json", "decode --json", "decode")
GOALS = {
    ("tiny", MESSAGES): 400_000,
    ("large", MESSAGES): 300_000,
    ("tiny", VERIFICATION): 300_000,
    ("large", VERIFICATION): 300_000,
    ("tiny", TABLE): 400_000,
    ("tiny", "messages"): 400_000,
    ("tiny", "verify"): 300_000,
    ("tiny", "messages --json"): 200_000,
    ("tiny", "decode --json"): 200_000,
    ("tiny", "decode"): 500_000,
}
"""Frames per second."""
CAPTURES = (
    ("tiny", "tiny", 2),
    ("100 hosts", "tiny", 100),
    ("10,000 hosts", "tiny", 10_000),
    ("large", "large", 2),
    ("mixed", "mixed", 2),
    ("faulty", "faulty", 2),
)
"""Captures, each with the kind of its messages and the number of hosts."""
SLOWER = 1.3
"""Ratio of the times for many hosts and for two, up to which they count as equal."""
MANY = ("100 hosts", "10,000 hosts")
LONGER = 2
"""Ratio of the lengths of the two captures for which memory is compared."""
QUICK = 9_000
"""Frames with ``--quick``."""
START = 12
"""Frames of the capture for which a command takes the time of its start."""
PARTS = {"tiny": 1, "large": 10}
"""Captures for the measurement of memory, each with the divisor of its number of frames; all have several batches."""
GROWTH = 1.25
"""Ratio of memory up to which it counts as constant."""


@dataclass(frozen=True)
class Memory:
    """Peak memory in bytes, for a capture and for a longer one."""

    capture: str
    contestant: str
    short: int
    long: int

    @property
    def reached(self) -> bool:
        return self.long <= self.short * GROWTH


@dataclass(frozen=True)
class Verdict:
    """Return whether the goal is reached."""

    capture: str
    contestant: str
    goal: int
    rate: float

    @property
    def reached(self) -> bool:
        return self.rate >= self.goal


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--tiny", type=int, default=200_000, help="frames in the capture of tiny messages (%(default)s)"
    )
    parser.add_argument(
        "--large", type=int, default=50_000, help="frames in the capture of large messages (%(default)s)"
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=90_000,
        help="tiny frames in captures for the measurement of memory; a tenth as many large ones (%(default)s)",
    )
    add_options(parser, rounds=5)
    options = parser.parse_args(arguments)
    if options.quick:
        options.tiny = options.large = options.memory = QUICK
        options.rounds = 1
    with TemporaryDirectory(prefix="mxwire-benchmark-") as name:
        folder = Path(name)
        start = _capture(folder, "start", "tiny", START)
        results = {}
        for title, kind, hosts in CAPTURES:
            capture = _capture(folder, title, kind, options.tiny if kind == "tiny" else options.large, hosts)
            inside = contestants() if title in PARTS else []
            minutes = options.minutes / len(CAPTURES)
            results[title] = measure(capture, [*inside, *commands(start)], options.rounds, minutes)
            capture.path.unlink()
        memory = [each for kind, part in PARTS.items() for each in _memory(folder, kind, options.memory // part)]
    verdicts = [_judge(results, *each) for each in GOALS]
    if options.json:
        print(json.dumps(_as_data(results, memory, verdicts), indent=2))
    else:
        print("\n".join(_as_text(results, memory, verdicts)))


def contestants() -> list[Contestant]:
    missing = "" if shutil.which("tshark") else "tshark is not installed"
    return [
        Contestant(MESSAGES, messages),
        Contestant(TIMING, timing),
        Contestant(VERIFICATION, verification),
        Contestant(DIAGNOSIS, diagnosis),
        Contestant(TABLE, table),
        Contestant(TSHARK, None if missing else tshark, missing),
    ]


def commands(start: Capture) -> list[Contestant]:
    """Return the commands, by processor time without that of their start, measured with the capture ``start``."""

    def run(command: str, capture: Capture) -> Outcome:
        words = [sys.executable, "-m", "mxwire", *command.split()]
        began = processor_seconds([*words, str(start.path)])
        seconds = processor_seconds([*words, str(capture.path)]) - began
        return Outcome(capture.frames, max(seconds, 1e-3))

    return [Contestant(each, partial(run, each)) for each in COMMANDS]


def _decoded(capture: Capture) -> Iterator[DecodedBatch]:
    with open_capture(capture.path) as reader:
        yield from Decoder().decode_all(reader)


@timed
def messages(capture: Capture) -> int:
    follower = Follower()
    for decoded in _decoded(capture):
        follower.observe(decoded)
    follower.finish()
    return follower.frames


@timed
def timing(capture: Capture) -> int:
    made = Timing()
    for decoded in _decoded(capture):
        made.observe(decoded)
    made.finish()
    return made.frames


@timed
def verification(capture: Capture) -> int:
    made = Verification()
    for decoded in _decoded(capture):
        for found in made.observe(decoded):
            raise AssertionError(f"the capture was to be without fault: {found}")
    return made.frames


@timed
def diagnosis(capture: Capture) -> int:
    decoder = Decoder()
    made = Examination(decoder)
    with open_capture(capture.path) as reader:
        for decoded in decoder.decode_all(made.watch(reader)):
            made.observe(decoded)
    made.finish()
    made.findings()
    return decoder.decoded


@timed
def table(capture: Capture) -> int:
    command = [sys.executable, "-m", "mxwire", "decode", "--to", str(capture.path.with_suffix(".parquet"))]
    # Installed programs have stored bytecode, so the warm-up stores it here too, even if the shell disables this.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([*command, str(capture.path)], check=True, capture_output=True, env=environment)
    return capture.frames


@timed
def tshark(capture: Capture) -> int:
    command = ["tshark", "-r", str(capture.path), "-X", f"lua_script:{PLUGIN}", "-T", "fields", "-e", "frame.number"]
    shown = subprocess.run([*command, "-e", "mxoe.ptype"], check=True, capture_output=True).stdout
    return shown.count(b"\n")


def _memory(folder: Path, kind: str, frames: int) -> Iterator[Memory]:
    """Return peak memory for a capture and for a longer one, each read batch by batch."""
    for name, analysis in ((MESSAGES, Follower), (VERIFICATION, Verification)):
        peaks = []
        for length in (frames, frames * LONGER):
            capture = _capture(folder, kind, kind, length)
            tracemalloc.start()
            made = analysis()
            with open_capture(capture.path) as reader:
                for decoded in Decoder().decode_all(reader, settle_bytes=0):
                    for _ in made.observe(decoded):
                        pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        yield Memory(kind, name, *peaks)


def _capture(folder: Path, title: str, kind: str, frames: int, hosts: int = 2) -> Capture:
    path = folder / f"{title}-{frames}.pcap"
    write_capture(path, kind, frames, hosts)
    return Capture(title, path, frames)


def _slower(results: dict[str, list[Result]]) -> Iterator[tuple[str, str, float]]:
    """Return how much slower each command is with many hosts."""
    two = {each.name: each.rate for each in results["tiny"]}
    for capture in MANY:
        for each in results[capture]:
            yield capture, each.name, two[each.name] / each.rate


def _judge(results: dict[str, list[Result]], capture: str, contestant: str) -> Verdict:
    (rate,) = [each.rate for each in results[capture] if each.name == contestant]
    return Verdict(capture, contestant, GOALS[capture, contestant], rate)


def _ratio(result: Result, results: Sequence[Result]) -> float | None:
    yardstick = next((each.rate for each in results if each.name == TSHARK), None)
    return None if yardstick is None else result.rate / yardstick


def _as_text(results: dict[str, list[Result]], memory: Sequence[Memory], verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield f"load of the machine: {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors"
    for capture, each in results.items():
        yield f"{capture} messages"
        for result in each:
            ratio = _ratio(result, each)
            beside = "" if ratio is None else f"  {ratio:6.1f} x tshark"
            yield f"  {result.name:24} {result.rate:12,.0f} frames/s ± {result.spread:4.0%}{beside}"
    yield f"memory at most, and for a capture {LONGER} times as long"
    for used in memory:
        yield f"  {used.capture:5} {used.contestant:18} {used.short / 1e6:8.1f} MB {used.long / 1e6:8.1f} MB"
    for verdict in verdicts:
        what = f"{verdict.contestant} of {verdict.capture} messages"
        yield f"{_said(verdict.reached)}  {what}: {verdict.rate:,.0f} of {verdict.goal:,} frames/s"
    for capture, name, ratio in _slower(results):
        yield f"{_said(ratio <= SLOWER)}  {name}, {capture}: {ratio:.2f} times as long as 2 hosts, at most {SLOWER}"
    for used in memory:
        yield f"{_said(used.reached)}  {used.contestant} of {used.capture} messages in constant memory"


def _said(reached: bool) -> str:
    return "MET   " if reached else "MISSED"


def _as_data(results: dict[str, list[Result]], memory: Sequence[Memory], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "results": {
            capture: {each.name: {"frames_per_second": each.rate, "spread": each.spread} for each in found}
            for capture, found in results.items()
        },
        "slower": [
            {"capture": capture, "contestant": name, "ratio": ratio, "reached": ratio <= SLOWER}
            for capture, name, ratio in _slower(results)
        ],
        "memory": [
            {
                "capture": each.capture,
                "contestant": each.contestant,
                "short": each.short,
                "long": each.long,
                "reached": each.reached,
            }
            for each in memory
        ],
        "goals": [
            {
                "capture": each.capture,
                "contestant": each.contestant,
                "goal": each.goal,
                "rate": each.rate,
                "reached": each.reached,
            }
            for each in verdicts
        ],
    }


if __name__ == "__main__":
    main()
