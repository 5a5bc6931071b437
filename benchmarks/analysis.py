"""Measure the speed of analysis: messages, timing, verification, diagnosis and a table, compared with tshark.

``python benchmarks/analysis.py`` makes a capture of tiny and one of large messages, analyses each in turn, and prints
medians, peak memory for captures of different lengths, and which goals of the project are met. tshark uses the plugin.
The table is that of ``mxwire decode --to``, with the start of the process, as a user waits for it. ``--help`` lists the
options. The captures contain no faults: a finding invalidates the measurement.
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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contest import Capture, Contestant, Result, measure, timed
from conversing import write_capture

from mxwire.analysis.conversations import Follower
from mxwire.analysis.diagnosis.examination import Examination
from mxwire.analysis.timing import Timing
from mxwire.analysis.verification import Verification
from mxwire.capture import open_capture
from mxwire.wire.decoder import DecodedBatch, Decoder

MESSAGES = "messages"
TIMING = "timing"
VERIFICATION = "verification"
DIAGNOSIS = "diagnosis"
TABLE = "decode --to parquet"
TSHARK = "tshark with the plugin"
PLUGIN = Path(__file__).parents[1] / "dissectors" / "wireshark" / "mxoe.lua"
GOALS = {
    ("tiny", MESSAGES): 100_000,
    ("large", MESSAGES): 300_000,
    ("tiny", VERIFICATION): 100_000,
    ("large", VERIFICATION): 300_000,
    ("tiny", TABLE): 400_000,
}
"""Frames per second."""
LONGER = 2
"""Ratio of the lengths of the two captures for which memory is compared."""
PARTS = (("tiny", 1), ("large", 10))
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
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of each (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="mxwire-benchmark-") as folder:
        captures = [_capture(Path(folder), kind, getattr(options, kind)) for kind in ("tiny", "large")]
        results = {each.name: measure(each, contestants(), options.rounds) for each in captures}
        memory = [each for kind, part in PARTS for each in _memory(Path(folder), kind, options.memory // part)]
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
            capture = _capture(folder, kind, length)
            tracemalloc.start()
            made = analysis()
            with open_capture(capture.path) as reader:
                for decoded in Decoder().decode_all(reader, settle_bytes=0):
                    for _ in made.observe(decoded):
                        pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        yield Memory(kind, name, *peaks)


def _capture(folder: Path, kind: str, frames: int) -> Capture:
    path = folder / f"{kind}-{frames}.pcap"
    write_capture(path, kind, frames)
    return Capture(kind, path, frames)


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
