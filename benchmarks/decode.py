"""Measure the speed of decoding: mxwire, other tools, and loops in C, over captures of small and of mixed frames.

    python benchmarks/decode.py [OPTIONS]

The contestants with ``call`` are calls in a process that has started, which read every field of every frame into
arrays, typed frames or a sum. Those with ``command`` are timed as a whole, with their start, as a user waits for them.
They, and tables, take seconds, and therefore read a shorter capture of the same traffic.
Memory is retained between batches, as by commands (``mxwire.capture.retain_freed_memory``).
The limit is a loop in C over a mapped file that writes every field into an array; that over libpcap adds the fields.
"""

from __future__ import annotations

import gc
import io
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import peers
from contest import COMMAND, PATIENCE, Benchmark, Run, Sample, run_benchmark
from traffic import MIXED, SMALL, write_capture

from mxwire.capture import open_capture, retain_freed_memory
from mxwire.cli.main import cli
from mxwire.wire.codec import codec_of
from mxwire.wire.columns import Columns, decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.encapsulation import locate

FRAMES, TABLE_FRAMES, QUICK = 200_000, 100_000, 500
"""Frames in each capture, and in the shorter one of commands and tables."""
TYPED_FRAMES = 50_000
"""Maximum number of typed frames per round."""
Decode = Callable[[Path], int | tuple[int, float]]
"""Decodes a capture; returns the number of frames, and the time if the contestant measures it."""


def _columns(path: Path, *, numba: bool) -> Iterator[Columns]:
    with open_capture(path, numba=numba) as reader:
        for batch in reader:
            yield decode_columns(locate(batch), MXOE)


def _materialised(every: Iterator[Columns]) -> int:
    """Read every field of every frame, and both addresses, into arrays of integers in host order."""
    frames = 0
    for columns in every:
        for block in columns.blocks:
            for name in block.names:
                _ = block[name]
        _ = columns.located.source, columns.located.destination
        frames += len(columns)
    return frames


def columns_of(path: Path, *, numba: bool) -> int:
    return _materialised(_columns(path, numba=numba))


def columns_detected(path: Path) -> int:
    """Detect the dialect, too."""
    decoder = Decoder()
    with open_capture(path, numba=True) as reader:
        return _materialised(decoder.decode(batch).columns for batch in reader)


def typed_frames(path: Path) -> int:
    parse = codec_of(MXOE).parse
    frames = 0
    with open_capture(path, numba=False) as reader:
        for batch in reader:
            taken = min(len(batch), TYPED_FRAMES - frames)
            for index in range(taken):
                parse(batch.frame(index), int(batch.wire_length[index]))
            frames += taken
    return frames


def parquet(path: Path) -> int:
    """Run the command in this process, without a progress bar."""
    with redirect_stderr(io.StringIO()):
        cli.main(["decode", "--to", str(path.with_suffix(".parquet")), str(path)], standalone_mode=False)
    return _frames_of(path)


def parquet_command(path: Path) -> int:
    words = [*COMMAND, "decode", "--to", str(path.with_suffix(".parquet")), str(path)]
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
    return _frames_of(path)


def _frames_of(path: Path) -> int:
    """Return the number of frames, which is in the name of the file."""
    return int(path.stem.partition("-")[2])


def contestants(folder: Path) -> dict[str, Decode | str]:
    """Return mxwire's interfaces, from the fastest to the most convenient one, and other tools."""
    absent = "" if find_spec("numba") else "numba is not installed"
    return {
        "mxwire columns, numba, call": absent or partial(columns_of, numba=True),
        "mxwire columns, call": partial(columns_of, numba=False),
        "mxwire columns, numba, dialect detected, call": absent or columns_detected,
        "mxwire typed frames, call": typed_frames,
        "mxwire decode --to parquet, call": parquet,
        "mxwire decode --to parquet, command": parquet_command,
        **peers.contestants(folder),
    }


def timed(decode: Decode, series: str, path: Path) -> Iterator[Sample]:
    """Measure one round of a contestant."""
    # Otherwise the next contestant would also pay for the objects that this process has not freed since the last one.
    gc.collect()
    start = perf_counter()
    found = decode(path)
    frames, seconds = found if isinstance(found, tuple) else (found, perf_counter() - start)
    yield Sample(series, "frames/s", frames / seconds)


def measure(benchmark: Benchmark) -> None:
    retain_freed_memory()
    frames = QUICK if benchmark.quick else FRAMES
    with TemporaryDirectory(prefix="mxwire-benchmark-") as name:
        folder = Path(name)
        taking_part = contestants(folder)
        for traffic in (SMALL, MIXED):
            path, shorter = (folder / f"{traffic.name}-{each}.pcap" for each in (frames, min(frames, TABLE_FRAMES)))
            write_capture(path, traffic, frames)
            if shorter != path:
                write_capture(shorter, traffic, TABLE_FRAMES)
            series = f"decoding of {traffic.name} frames"
            runs: dict[str, Run | str] = {
                each: decode
                if isinstance(decode, str)
                else partial(timed, decode, series, shorter if "command" in each or "--to" in each else path)
                for each, decode in taking_part.items()
            }
            benchmark.play(series, runs, share=0.5, warm_up=1)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, minutes=3)
