"""Run a seeded sample of automatic mutants against the tests that reach them.

    python -m tests.mutation [--rooms wire,rules] [--sample 60] [--first] [TESTS ...]

A mutant that was run before, with the same change, is not run again, so that a run which was interrupted continues.
The share killed leaves out the mutants in ``equivalents.toml``, which behave as the original.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import marshal
import os
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from math import inf
from pathlib import Path
from typing import IO, Any

from .operators import PACKAGE, AutomaticMutant, compiled, mutants_of, tree_of
from .player import ChangedModule
from .reach import ROOMS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDING = HERE / "recording.jsonl"
EQUIVALENTS = HERE / "equivalents.toml"
WORK = ROOT / "build" / "mutation"
RESULT = WORK / "result.jsonl"
TESTS = ("tests",)
LEFT_OUT = (
    *(f"tests/{room}" for room in ("benchmarks", "docs", "library", "live", "mutation", "tools")),
    *("tests/scenarios/test_killing.py", "tests/simulation/test_exhaustive.py", "tests/simulation/test_mutants.py"),
    *("tests/analysis/test_mutants_found.py", "tests/rules/test_mutations.py"),
)
"""Tests of other mutants, and those that need real interfaces, compilers or the documentation. Tests that need a clock
are left out too."""


@dataclass
class Reached:
    """The mutants that each test was measured to reach."""

    mutants: set[str] = field(default_factory=set)
    """Those that had a probe."""
    by_test: dict[str, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Reached:
        """Return the measurements of earlier runs."""
        if not (WORK / "reached.json").exists():
            return cls()
        fields = json.loads((WORK / "reached.json").read_text())
        by_test = {name: set(each) for name, each in fields["by_test"].items()}
        return cls(set(fields["mutants"]), by_test, fields["seconds"])

    def store(self) -> None:
        """Store it for further runs."""
        by_test = {name: sorted(each) for name, each in self.by_test.items()}
        fields = {"mutants": sorted(self.mutants), "by_test": by_test, "seconds": self.seconds}
        (WORK / "reached.json").write_text(json.dumps(fields))

    def measure(self, sample: list[AutomaticMutant], tests: list[str], jobs: int) -> None:
        """Run tests with probes at the mutants, and add what they reach; those that fail reach nothing."""
        folder = WORK / "reach"
        shutil.rmtree(folder, ignore_errors=True)
        by_file: dict[str, list[tuple[int, AutomaticMutant]]] = defaultdict(list)
        for number, each in enumerate(sample):
            by_file[each.file].append((number, each))
        (folder / "modules").mkdir(parents=True)
        for file, probed in by_file.items():
            (folder / "modules" / probed[0][1].module).write_bytes(marshal.dumps(_probed(file, probed)))
        places = {"MXWIRE_REACH_FOLDER": str(folder), "MXWIRE_REACHED": str(folder / "reached")}
        pytest("reach", tests, folder / "modules", jobs=jobs, **places)
        for path in folder.glob("tests*.jsonl"):
            for line in map(json.loads, path.read_text().splitlines()):
                if line["passed"]:
                    self.by_test[line["test"]] = {sample[number].name for number in line["mutants"]}
                    self.seconds[line["test"]] = line["seconds"]
        if not self.by_test:
            raise SystemExit(f"no test was run: see {WORK / 'reach.log'}")
        self.mutants |= {each.name for each in sample}
        self.store()

    def tests_of(self, mutant: AutomaticMutant, longest: float, budget: float) -> list[str]:
        """Return the tests that reach a mutant, within limits in seconds: those of its room and short ones first.

        If it is reached while modules are imported, every test of its room may notice it too.
        """
        tests = [test for test, reached in self.by_test.items() if test and mutant.name in reached]
        own = f"tests/{mutant.room}/"
        if mutant.name in self.by_test.get("", ()):
            tests = [*{*tests, *(test for test in self.by_test if test.startswith(own))}]
        tests = [test for test in tests if self.seconds[test] <= longest]
        tests.sort(key=lambda test: (not test.startswith(own), self.seconds[test], test))
        sums = accumulate(self.seconds[test] for test in tests)
        return [test for test, seconds in zip(tests, sums, strict=True) if seconds <= budget]


def _probed(file: str, mutants: list[tuple[int, AutomaticMutant]]) -> Any:
    """Return the code of a module with a probe before the statement of each mutant."""
    tree = tree_of(file)
    by_name = {each.name: each for each in mutants_of(file, tree)}
    for number, mutant in mutants:
        statement = by_name[mutant.name].statement
        probe = ast.parse(f"reached_mutant({number})").body[0]
        for each in ast.walk(probe):
            ast.copy_location(each, statement)
        for parent in ast.walk(tree):
            for _, body in ast.iter_fields(parent):
                if isinstance(body, list) and statement in body:
                    body.insert(body.index(statement), probe)
    return compiled(file, tree)


def pytest(plugin: str, tests: list[str], modules: Path | None, *, jobs: int = 1, **environment: str) -> None:
    """Run pytest with a plugin of this package."""
    path = f"{HERE / 'site'}:{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
    environment |= {"PYTHONPATH": path, "CI": "true"} | ({"MXWIRE_MUTATION": str(modules)} if modules else {})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "--tb=no",
        "--assert=plain",
        "-p",
        f"tests.mutation.{plugin}",
    ]
    command += ["-p", "no:cacheprovider", "-m", "not realtime", *(f"--ignore={each}" for each in LEFT_OUT)]
    command += ["-n", str(jobs)] if jobs > 1 and plugin == "reach" else []
    with (WORK / f"{plugin}.log").open("w") as log:
        subprocess.run([*command, *tests], cwd=ROOT, env=os.environ | environment, stdout=log, stderr=log, check=False)


def opened(path: Path, mode: str) -> IO[str]:
    """Open a recording, which is compressed if its name ends in ``.gz``."""
    return gzip.open(path, mode + "t") if path.suffix == ".gz" else path.open(mode)


def sample_of(room: str, size: int, seed: int) -> list[AutomaticMutant]:
    """Return a sample of a room; a larger one contains the smaller ones."""
    files = sorted((PACKAGE / room).rglob("*.py"))
    mutants = [each for path in files for each in mutants_of(str(path.relative_to(PACKAGE)))]
    return sorted(mutants, key=lambda each: hashlib.sha256(f"{seed} {each.name}".encode()).digest())[:size]


class Results:
    """The recording: for each mutant the tests that kill it."""

    def __init__(self, path: Path, first: bool) -> None:
        self.path = path
        self.first = first
        self.lines: dict[str, dict[str, Any]] = {}
        if path.exists():
            with opened(path, "r") as file:
                self.lines = {line["mutant"]: line for line in map(json.loads, file)}

    def has(self, mutant: AutomaticMutant) -> bool:
        """Return whether a mutant was run with its present change, and at least as completely."""
        line = self.lines.get(mutant.name)
        return line is not None and line["change"] == mutant.change and (self.first or line["all"])

    def line(self, mutant: AutomaticMutant, tests: list[str], killers: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
        """Return what is recorded of a mutant."""
        fields = {"mutant": mutant.name, "change": mutant.change, "tests": len(tests)}
        return fields | {"all": not self.first, "killed_by": killers}

    def take(self, path: Path) -> None:
        """Move the lines of a run, or of one that was interrupted, into the recording."""
        if path.exists():
            self.lines |= {line["mutant"]: line for line in map(json.loads, path.read_text().splitlines())}
            self.store()
            path.unlink()

    def store(self) -> None:
        """Write the recording, in order."""
        with opened(self.path, "w") as file:
            for _, line in sorted(self.lines.items()):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def play(results: Results, sample: list[AutomaticMutant], reached: Reached, options: argparse.Namespace) -> None:
    """Run mutants, and record the results."""
    together, alone = [], []
    for each in sample:
        tests = reached.tests_of(each, options.longest, options.budget)
        module = ChangedModule.of(each.file, each.name)
        if not tests:
            results.lines[each.name] = results.line(each, tests)
        elif not module.functions or each.name in reached.by_test[""]:
            alone.append((each, tests, module))
        else:
            together.append((each, tests))
    if together:
        _play_group(results, together, reached, options, None)
    for each, tests, module in alone:
        folder = WORK / "module"
        shutil.rmtree(folder, ignore_errors=True)
        module.store(folder)
        _play_group(results, [(each, tests)], reached, options, folder)
        if not results.has(each):
            results.lines[each.name] = results.line(each, tests, [["", "cannot be imported"]])


def _play_group(
    results: Results,
    group: list[tuple[AutomaticMutant, list[str]]],
    reached: Reached,
    options: argparse.Namespace,
    folder: Path | None,
) -> None:
    """Run mutants in one process of pytest; ``folder`` has the changed module if it must be imported."""
    names = {test for _, tests in group for test in tests}
    mutants = [
        {
            "name": each.name,
            "file": each.file,
            "tests": tests,
            "loaded": bool(folder),
            "line": results.line(each, tests),
        }
        for each, tests in group
    ]
    plan = {
        "mutants": mutants,
        "first": options.first,
        "jobs": options.jobs,
        "seconds": {test: reached.seconds[test] for test in names},
        "result": str(RESULT),
    }
    (WORK / "plan.json").write_text(json.dumps(plan))
    files = sorted({test.partition("::")[0] for test in names})
    try:
        pytest("player", files, folder, MXWIRE_MUTANTS=str(WORK / "plan.json"))
    finally:
        results.take(RESULT)


def known_equivalents() -> dict[str, str]:
    """Return the mutants that behave as the original, each with the reason."""
    return tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8"))


def report(results: Results, samples: dict[str, list[AutomaticMutant]], shown: bool) -> None:
    """Print the survivors, and the share killed per room."""
    equivalents = known_equivalents()
    for room, sample in samples.items():
        run = [each for each in sample if results.has(each) and each.name not in equivalents]
        alive = [each for each in run if not results.lines[each.name]["killed_by"]]
        for each in alive if shown else ():
            number = results.lines[each.name]["tests"]
            print(f"mxwire/{each.file}:{each.line}  {each.name.partition(':')[2]}  {each.change}  ({number} tests)")
        same = sum(each.name in equivalents for each in sample)
        killed = len(run) - len(alive)
        share = f"{100 * killed / len(run):.1f} %" if run else "-"
        print(f"{room}: {killed} of {len(run)} killed, {share}; {same} more are equivalent; sample of {len(sample)}")


def main() -> None:
    """Draw the sample, run what the recording does not have, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", metavar="TESTS", help="measure only these again, and keep what is known")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=600, help="mutants per room (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--first", action="store_true", help="stop each mutant at the first test that kills it")
    parser.add_argument("--longest", type=float, default=60, metavar="SECONDS", help="leave out tests that take longer")
    parser.add_argument("--budget", type=float, default=inf, metavar="SECONDS", help="bound on the tests per mutant")
    parser.add_argument("--survivors", action="store_true", help="run the survivors again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--recording", type=Path, default=RECORDING, help="default: recording.jsonl here")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    results, reached = Results(options.recording, options.first or options.report), Reached.load()
    results.take(RESULT)
    samples = {room: sample_of(room, options.sample, options.seed) for room in options.rooms.split(",")}
    # Rooms take turns, so that an interrupted run has something of each.
    whole = [each for turn in zip_longest(*samples.values()) for each in turn if each is not None]
    if options.survivors:
        results.lines = {name: line for name, line in results.lines.items() if line["killed_by"]}
    equivalents = known_equivalents()
    missing = [each for each in whole if not results.has(each) and each.name not in equivalents]
    if missing and not options.report:
        if {each.name for each in missing} - reached.mutants or options.tests:
            reached.measure(missing, options.tests or [*TESTS], options.jobs)
        play(results, missing, reached, options)
    report(results, samples, True)


if __name__ == "__main__":
    main()
