"""Measure with all benchmarks, and record what may be published, or compare with what was.

    sudo python benchmarks/record.py [OPTIONS] [NAME ...]             make bench
    sudo python benchmarks/record.py --compare [OPTIONS] [NAME ...]   part of make nightly

recording.jsonl is the one source of all measured figures in the README and the documentation
(``<!-- recorded: BENCHMARK -->``, see docs/generate.py). It contains one recording per benchmark, in the format of
``mxwire bench``: the conditions (time, processor, versions, load, compiled or not) and all rounds of each contestant,
whose name includes its dialect. ``mxwire bench compare`` reads it.

A new recording replaces that of the same benchmark if it is complete and quiet (contest.py). One that is not quiet, or
``--quick``, is kept in build/recordings only, and changes no page. NAMEs choose benchmarks; without any, all are run.

With ``--interpreted`` it is recorded in recording-interpreted.jsonl, with which later versions are compared, and from
which no page is made: an interpreted mxwire must not become slower either. A round takes up to
154 s of processor time: each benchmark begins none after three minutes, which permits two or three, so that analysis,
decode, engine and live take half an hour in total.

With ``--compare`` nothing is recorded: each point is compared with the recorded one, and those are listed that have
become worse beyond the scatter of both, and by more than a tenth. A benchmark without a recording is not run: a line
names the command that records it.

The exit code is 0, or 1 if a recording was not quiet, or a point has become worse; and 2 if a benchmark has failed.
Goals decide nothing here; each benchmark prints them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from contest import ROOT, is_quiet, positive
from goals import RECORDING, TENTH, at_most, same_machine

from mxwire.bench.comparison import compare_recordings
from mxwire.bench.record import Recording, read_recordings
from mxwire.errors import MxwireError
from mxwire.report.json_line import json_line

HERE = Path(__file__).parent
INTERPRETED = RECORDING.with_name("recording-interpreted.jsonl")
INTERPRETED_MINUTES = 3.0
BENCHMARKS = (
    *("curve", "live", "live_processor", "local", "agent", "mpi", "engine"),
    *("decode", "analysis", "campaign", "dissector", "interop", "linerate", "replay"),
)
"""All benchmarks, in the order of the recording."""
KEPT = ROOT / "build" / "recordings"
"""The newest recording of each benchmark, whatever its conditions."""
_DERIVED = ("median", "least", "p99", "interval")


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks: {', '.join(BENCHMARKS)}")
    parser.add_argument("--compare", action="store_true", help="compare with the recording, and record nothing")
    parser.add_argument("--rounds", type=positive, help="measurements of each, instead of the benchmark's own number")
    parser.add_argument("--minutes", type=float, help="of each benchmark, as its option, instead of its own number")
    parser.add_argument("--quick", action="store_true", help="one short round, as a test")
    parser.add_argument("--interpreted", action="store_true", help="measure mxwire without compiling it")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {*BENCHMARKS})
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    path = INTERPRETED if options.interpreted else RECORDING
    if options.interpreted and options.minutes is None:
        options.minutes = INTERPRETED_MINUTES
    code = 0
    for name in [each for each in BENCHMARKS if each in options.names] or BENCHMARKS:
        if options.compare and recording_of(name, path) is None:
            choice = f"--interpreted {name}" if options.interpreted else name
            print(f"{name}: nothing to compare with in {path.name}: record it with make bench BENCH='{choice}'")
            continue
        print(f"--- {name}", file=sys.stderr, flush=True)
        new = measured(name, options)
        if new is None:
            code = 2
            continue
        print("\n".join(compared(new, path) if options.compare else recorded(new, path)), flush=True)
        if options.compare:
            code = max(code, int(any(worse(new, path)) and is_quiet(new.conditions)))
        else:
            code = max(code, int(not is_quiet(new.conditions)))
    return code


def measured(name: str, options: argparse.Namespace) -> Recording | None:
    """Run a benchmark, and keep its output; None if it has failed."""
    words = [sys.executable, str(HERE / f"{name}.py"), "--json"]
    given = {each: getattr(options, each) for each in ("rounds", "minutes")}
    words += [f"--{each}={value}" for each, value in given.items() if value is not None]
    words += [f"--{each}" for each in ("quick", "interpreted") if getattr(options, each)]
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}.jsonl"
    with path.open("w") as file:
        code = subprocess.run(words, stdout=file, check=False).returncode
    try:
        (found,) = read_recordings(path)
    except (MxwireError, ValueError):
        print(f"{name}: failed with exit code {code}", file=sys.stderr)
        return None
    return found if found.complete else _partial(found)


def _partial(recording: Recording) -> None:
    for each in recording.remarks:
        print(f"{recording.study}: {each}", file=sys.stderr)


def recorded(new: Recording, path: Path = RECORDING) -> Iterator[str]:
    """Put a recording into the file if it may be published, and yield what was done."""
    if not is_quiet(new.conditions):
        yield f"{new.study}: NOT QUIET, or --quick (load {new.conditions.load}): not recorded"
        return
    known = {each.study: each for each in (read_recordings(path) if path.exists() else ())} | {new.study: new}
    lines = [
        json_line({key: value for key, value in record.items() if key not in _DERIVED})
        for name in BENCHMARKS
        if name in known
        for record in known[name].records()
    ]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    yield f"{new.study}: recorded (load {new.conditions.load})"


def recording_of(name: str, path: Path = RECORDING) -> Recording | None:
    """Return what was recorded with a benchmark; None without a recording."""
    return next((each for each in (read_recordings(path) if path.exists() else ()) if each.study == name), None)


def worse(new: Recording, path: Path = RECORDING) -> Iterator[str]:
    """Yield the points that have become worse beyond the scatter, and by more than a tenth."""
    old = recording_of(new.study, path)
    if old is None or not same_machine(old, new):
        return
    # Compared by name, whatever else has changed.
    for point in compare_recordings([replace(old, conditions=new.conditions)], [new]):
        if point.outcome != "differ" or point.left is None or point.right is None:
            continue
        ratio = point.right.median / point.left.median
        if (ratio > 1 + TENTH) if at_most(point.right.unit) else (ratio < 1 - TENTH):
            values = f"{point.left.median:,.4g} to {point.right.median:,.4g} {point.right.unit}"
            at = f" at {point.x:,g}" if point.x else ""
            yield f"{new.study}: {point.series}, {point.name}{at}: {values}, {ratio:.2f} x"


def compared(new: Recording, path: Path = RECORDING) -> Iterator[str]:
    """Yield a comparison with the recording; nothing without one."""
    old = recording_of(new.study, path)
    mark = "" if is_quiet(new.conditions) else f"; NOT QUIET, or --quick (load {new.conditions.load})"
    if old is None:
        return
    if not same_machine(old, new):
        yield f"{new.study}: recorded on another machine ({old.conditions.processor}), or otherwise compiled{mark}"
    else:
        found = list(worse(new, path))
        yield f"{new.study}: {len(found)} worse than on {old.conditions.time[:10]}{mark}"
        yield from found


if __name__ == "__main__":
    sys.exit(main())
