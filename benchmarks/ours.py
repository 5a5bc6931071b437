"""The contestants that are mxwire itself, from the fastest interface to the most convenient one."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from importlib.util import find_spec
from pathlib import Path

from contest import Capture, Contestant, timed

from mxwire.capture import open_capture
from mxwire.cli.main import cli
from mxwire.wire.codec import codec_of
from mxwire.wire.columns import Columns, decode_columns
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.encapsulation import locate

COLUMNS_NUMBA = "mxwire columns, numba"
COLUMNS = "mxwire columns"
DETECTED_NUMBA = "mxwire columns, numba, dialect detected"
TYPED_FRAMES = "mxwire typed frames"
PARQUET = "mxwire to Parquet, in process"
PARQUET_PROCESS = "mxwire to Parquet, whole process"

TYPED_FRAMES_A_ROUND = 50_000


def contestants() -> list[Contestant]:
    """Return mxwire's interfaces; those with numba only if it is installed."""
    missing = "" if find_spec("numba") else "numba is not installed"
    return [
        Contestant(COLUMNS_NUMBA, None if missing else columns_with_numba, missing),
        Contestant(COLUMNS, columns_without_numba),
        Contestant(DETECTED_NUMBA, None if missing else columns_detected, missing),
        Contestant(TYPED_FRAMES, typed_frames),
        Contestant(PARQUET, parquet_in_process),
        Contestant(PARQUET_PROCESS, parquet_process),
    ]


@timed
def columns_with_numba(capture: Capture) -> int:
    return _materialise(_columns(capture, numba=True))


@timed
def columns_without_numba(capture: Capture) -> int:
    return _materialise(_columns(capture, numba=False))


@timed
def columns_detected(capture: Capture) -> int:
    decoder = Decoder()
    with open_capture(capture.path, numba=True) as reader:
        return _materialise(decoder.decode(batch).columns for batch in reader)


def _columns(capture: Capture, *, numba: bool) -> Iterator[Columns]:
    with open_capture(capture.path, numba=numba) as reader:
        for batch in reader:
            yield decode_columns(locate(batch), MXOE)


def _materialise(every: Iterator[Columns]) -> int:
    """Read every field of every frame, and both addresses, into arrays of integers in host order."""
    frames = 0
    for columns in every:
        for block in columns.blocks:
            for name in block.names:
                _ = block[name]
        _ = columns.located.source, columns.located.destination
        frames += len(columns)
    return frames


@timed
def typed_frames(capture: Capture) -> int:
    parse = codec_of(MXOE).parse
    frames = 0
    with open_capture(capture.path, numba=False) as reader:
        for batch in reader:
            taken = min(len(batch), TYPED_FRAMES_A_ROUND - frames)
            for index in range(taken):
                parse(batch.frame(index), int(batch.wire_length[index]))
            frames += taken
            if frames == TYPED_FRAMES_A_ROUND:
                break
    return frames


@timed
def parquet_in_process(capture: Capture) -> int:
    """Run the command itself, without a progress bar."""
    with redirect_stderr(io.StringIO()):
        cli.main(["decode", "--to", str(_target(capture)), str(capture.path)], standalone_mode=False)
    return capture.frames


@timed
def parquet_process(capture: Capture) -> int:
    """Run it as above, including the start of Python and all imports."""
    command = [sys.executable, "-m", "mxwire", "decode", "--to", str(_target(capture)), str(capture.path)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return capture.frames


def _target(capture: Capture) -> Path:
    return capture.path.with_suffix(".parquet")
