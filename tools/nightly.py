"""Run the long tests of ``make nightly``: ``python tools/nightly.py [--quick] [PART ...]``.

Each part runs to its end or to its limit, whatever has failed before it. Its output is kept in ``build/nightly``, and
the end of it is shown if the part fails. The last lines are the result and the time of each part, and of all. The exit
code is 1 if a part has failed. With ``--quick`` the counts are small, to try in some minutes that all parts run.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mxwire.words import count_of

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "nightly"
SHOWN = 40
"""Lines of the output of a failed part."""
_COUNTS = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Part:
    """A program of Python that ends with 0 if nothing is wrong."""

    name: str
    words: str
    """Its arguments; ``600/10`` is a number, and that of ``--quick``, ``ON`` the workers."""
    minutes: float
    """Time after which it has failed: several times what two processors need."""
    variables: str = ""
    """Environment variables, in the form of ``words``."""
    resumes: bool = False
    """True if a run that was ended continues from a checkpoint."""

    def run(self, quick: bool, workers: str) -> str:
        """Run it, and return the reason why it has failed, or an empty text."""
        chosen = r"\2" if quick else r"\1"
        command = [sys.executable, *_COUNTS.sub(chosen, self.words).replace("ON", workers).split()]
        checkpoint = KEPT / f"{self.name}{'-quick' if quick else ''}.jsonl"
        command += ["--checkpoint", str(checkpoint)] if self.resumes else []
        # A skipped test fails.
        variables = dict(each.split("=") for each in ["CI=true", *_COUNTS.sub(chosen, self.variables).split()])
        with (KEPT / f"{self.name}.txt").open("w") as output:
            options = {"stdout": output, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
            with subprocess.Popen(
                command, cwd=ROOT, env=os.environ | variables, start_new_session=True, **options
            ) as process:
                try:
                    code = process.wait(self.minutes * 60)
                except BaseException as error:
                    os.killpg(process.pid, signal.SIGKILL)
                    if not isinstance(error, subprocess.TimeoutExpired):
                        raise
                    return f"not ended after {self.minutes:g} min"
        if code:
            return f"exit code {code}"
        checkpoint.unlink(missing_ok=True)
        return ""


PARTS = (
    Part("fuzz", "tools/fuzz.py --seconds 600/12 --records 1000000/5000", 90),
    Part(
        "dissector",
        "tools/run_tests.py --no-compile tests/dissector/test_fuzz.py",
        30,
        "MXWIRE_FUZZ_FRAMES=1000000/2000",
    ),
    Part("soak", "-m tests.live.soak --seconds 600/10", 20),
    Part("matrix", "-m mxwire interop", 30),
    Part("programs", "-m tests.library.schedules --seeds 0-799/9", 60),
    Part("faults", "-m tests.library.schedules --seeds 800-999/804 --faults all --limit 300", 60),
    Part("frames", "-m tests.wire.mutation_campaign --columns 100000000/20000 --both 1000000/2000 --on ON", 90),
    Part("seeds", "-m mxwire simulate --seeds 0-99999/99 --on ON", 120, resumes=True),
    Part("benchmarks", "benchmarks/record.py --compare", 90),
    Part("interpreted", "benchmarks/record.py --compare --interpreted analysis decode engine live", 60),
)


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] = PARTS) -> int:
    """Run all parts, or those named; return 1 if one has failed."""
    names = {each.name: each for each in parts}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)}; by default all")
    parser.add_argument("--quick", action="store_true", help="small counts; benchmarks are left out unless named")
    parser.add_argument("--on", default="local", metavar="WORKERS", help="as in mxwire simulate")
    given = parser.parse_args(arguments)
    for each in given.parts:
        if each not in names:
            parser.error(f"no part {each!r}: use one of {', '.join(names)}")
    chosen = [names[each] for each in given.parts or names]
    if given.quick and not given.parts:
        chosen = [each for each in chosen if "record.py" not in each.words]
    KEPT.mkdir(parents=True, exist_ok=True)
    lines, failed, begun = list[str](), list[str](), time.monotonic()
    for part in chosen:
        print(f"{part.name} ...", flush=True)
        before = time.monotonic()
        reason = part.run(given.quick, given.on)
        lines.append(f"{part.name}: {reason or 'passed'}, {_minutes(time.monotonic() - before)}")
        if reason:
            failed.append(part.name)
            path = KEPT / f"{part.name}.txt"
            with path.open(errors="replace") as output:
                print(*deque((line.rstrip("\n") for line in output), SHOWN), sep="\n")
            print(f"{part.name}: {reason}; see {path.relative_to(ROOT)}", flush=True)
    print(*lines, sep="\n")
    verdict = f"failed: {', '.join(failed)}" if failed else "all passed"
    print(f"{count_of(len(chosen), 'part')} in {_minutes(time.monotonic() - begun)}, {verdict}")
    return int(bool(failed))


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


if __name__ == "__main__":
    sys.exit(main())
