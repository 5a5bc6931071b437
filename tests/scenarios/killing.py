"""Proof that scenarios fail when they should: the library against the engine's mutants.

Run as a script, it prints which scenarios kill which mutant; the exit code is 1 if one survives them all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutants import Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mxwire"
LIBRARY = ROOT / "replay"
MUTATED = "protocol"
"""The room with the files that mutants change."""
SHOWN = 4
"""Killers that the table names."""

_CHILD = """
import gc, importlib, json, sys
from pathlib import Path

folder, mutants = Path(sys.argv[1]), json.loads(sys.stdin.read())
import mxwire.wire.packets, mxwire.rules.catalogue
assert Path(mxwire.__file__).is_relative_to(folder), mxwire.__file__
gc.freeze()
gc.set_threshold(50_000, 10, 10)
texts = {path: path.read_text(encoding="utf-8") for path in (folder / "replay").rglob("*.mxs")}


def fresh():
    ours = ("mxwire.protocol", "mxwire.scenarios", "mxwire.host")
    for name in [each for each in sys.modules if each.startswith(ours)]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("mxwire.scenarios")


def killers(rule, every):
    scenarios = fresh()
    found = []
    for path in sorted(texts, key=lambda path: (rule not in texts[path], path)):
        script = scenarios.load(path)
        for dialect in script.played_in():
            try:
                outcome = scenarios.run_simulated(script, dialect=dialect)
                text = outcome.reason or "".join(each.text for each in outcome.remarks[:1])
                well = outcome.verdict in ("pass", "info")
            except Exception as error:
                well, text = False, repr(error)
            if not well:
                found.append((script.name, dialect.name, text))
                break
        if found and not every:
            break
    return found


for file, source, rule, every in mutants:
    path = folder / "mxwire" / "protocol" / file
    as_it_is = path.read_text(encoding="utf-8") if file else ""
    if file:
        path.write_text(source, encoding="utf-8")
    print(json.dumps(killers(rule, every)), flush=True)
    if file:
        path.write_text(as_it_is, encoding="utf-8")
"""

Found = list[tuple[str, str, str]]


def killers(mutants: Sequence[Mutant | None], *, every: bool = False) -> Iterator[Found]:
    """For each mutant the scenarios that do not pass with it, with the first dialect, and why; else the first of them.

    Those that name the mutant's rule are tried first. None stands for the engine as it is.
    """
    with tempfile.TemporaryDirectory(prefix="mxwire-mutant-") as folder:
        copy = Path(folder).resolve() / "mxwire"
        copy.mkdir()
        for each in PACKAGE.iterdir():
            (copy / each.name).symlink_to(each)
        # With its bytecode, except files that are being written; the bytecode of mutants is not stored.
        (copy / MUTATED).unlink()
        shutil.copytree(PACKAGE / MUTATED, copy / MUTATED, ignore=shutil.ignore_patterns("*.pyc.*"))
        (copy.parent / "replay").symlink_to(LIBRARY)
        wanted = [(each.file, each.source(), each.rule, every) if each else ("", "", "", every) for each in mutants]
        environment = os.environ | {"PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _CHILD, str(copy.parent)]
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
        )
        with child:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(json.dumps(wanted))
            child.stdin.close()
            for text in child.stdout:
                yield [tuple(each) for each in json.loads(text)]
        if child.returncode:
            raise RuntimeError(f"the mutants could not all be tried: exit code {child.returncode}")


HEADING = f"{'mutant':50} {'rule':10} {'by':>4}  scenarios"


def line(name: str, rule: str, found: Found) -> str:
    """A line of the table."""
    shown = ", ".join(each[0] for each in found[:SHOWN]) + (" …" if len(found) > SHOWN else "")
    return f"{name:50} {rule:10} {len(found):4}  {shown or 'SURVIVES'}"


def main() -> int:
    """Try all mutants with all scenarios, and print the table."""
    from tests.mutants import MUTANTS
    from tests.scenarios.receiver_mutants import RECEIVER_MUTANTS

    alive = 0
    mutants = (*MUTANTS, *RECEIVER_MUTANTS)
    print(HEADING)
    for mutant, found in zip(mutants, killers(mutants, every=True), strict=True):
        alive += not found
        print(line(mutant.name, mutant.rule, found), flush=True)
    print(f"{len(mutants)} mutants, {len(mutants) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
