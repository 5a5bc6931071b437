"""Measure the time of the Wireshark plugin per frame, beside that of tshark without a dissector, and of scapy.

    python benchmarks/dissector.py [OPTIONS]

All contestants read the same file in turn. Times are processor times (user and system) of the whole process, per frame;
the cost of the plugin is the difference from tshark without it.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

from contest import ROOT, Benchmark, Run, Sample, processor_seconds, run_benchmark

from mxwire.dissector import plugin_path

FRAMES, QUICK = 100_000, 2_000
SECOND = 10**9


def write_traffic(path: Path, frames: int) -> int:
    """Write the included captures one after the other, repeatedly, each time between other hosts."""
    written, copy, start = 0, 0, 0
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        while written < frames:
            for capture in sorted((ROOT / "captures").glob("*.pcap")):
                start, count = _append(out, capture.read_bytes(), copy, start)
                written += count
                copy += 1
    return written


def _append(out: IO[bytes], data: bytes, copy: int, start: int) -> tuple[int, int]:
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
        out.write(struct.pack("<4I", now // SECOND, now % SECOND, captured, length) + frame)
        at += 16 + captured
        count += 1
    return now + SECOND, count


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


def commands(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the commands that read the capture, by series."""
    tshark = ["tshark", "-n", "-r", str(path)]
    plugin = [*tshark, "-X", f"lua_script:{plugin_path()}"]
    return {
        "processor time per frame, one line": {
            "tshark without the plugin": tshark,
            "plugin, analysis off": [*plugin, "-o", "mxoe.analysis:FALSE"],
            "plugin, checksums off": [*plugin, "-o", "mxoe.checksum:FALSE"],
            "scapy": [sys.executable, "-P", "-c", _SCAPY, str(path)],
        },
        "processor time per frame, trees": {
            "tshark without the plugin": [*tshark, "-V"],
            "plugin, analysis off": [*plugin, "-o", "mxoe.analysis:FALSE", "-V"],
            "plugin, everything on": [*plugin, "-V"],
        },
    }


def timed(series: str, words: list[str], frames: int) -> Iterator[Sample]:
    """Run a command with the settings of a new user."""
    with tempfile.TemporaryDirectory() as home:
        seconds = processor_seconds(words, os.environ | {"HOME": home, "WIRESHARK_CONFIG_DIR": home})
    yield Sample(series, "µs", seconds / frames * 1e6)


def measure(benchmark: Benchmark) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traffic.pcap"
        frames = write_traffic(path, QUICK if benchmark.quick else FRAMES)
        for series, contestants in commands(path).items():
            runs: dict[str, Run | str] = {
                name: partial(timed, series, words, frames)
                if shutil.which(words[0])
                else f"{words[0]} is not installed"
                for name, words in contestants.items()
            }
            benchmark.play(series, runs, share=0.5)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, rounds=3, minutes=2, compiles=False)
