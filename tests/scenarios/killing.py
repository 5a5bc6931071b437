"""Proof that scenarios fail when they should: the library against the engine's mutants.

Run as a script, it prints which scenarios kill which mutant; the exit code is 1 if one survives them all.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxwire.scenarios import ScenarioOutcome, Script
    from tests.mutants import Mutant

ROOT = Path(__file__).parents[2]
SPECIFIED = tomllib.loads(Path(__file__).with_name("receiver_rules.toml").read_text(encoding="utf-8"))
"""The parts of the specification that the scenarios have to cover."""
SHOWN = 4
"""Killers that the table names."""

Found = list[tuple[str, str, str]]


@cache
def _scripts() -> list[Script]:
    from mxwire.scenarios import library

    return list(library())


def killers(mutants: Sequence[Mutant], *, every: bool = False) -> Iterator[Found]:
    """For each mutant the scenarios that do not pass with it, with the first dialect, and why; else the first of them.

    Those that name the mutant's rule are tried first.
    """
    from tests.mutants import changed

    for mutant in mutants:
        found = []
        with changed(mutant):
            for script in sorted(_scripts(), key=lambda each: mutant.rule not in each.rules):
                if failure := _failure(script):
                    found.append((script.name, *failure))
                    if not every:
                        break
        yield found


def _failure(script: Script) -> tuple[str, str] | None:
    """The first dialect in which a scenario does not pass, and why."""
    from mxwire.scenarios import run_simulated

    for dialect in script.played_in():
        try:
            outcome = run_simulated(script, dialect=dialect)
        except Exception as error:
            return dialect.name, repr(error)
        if (reason := failure_of(outcome)) is not None:
            return dialect.name, reason
    return None


def failure_of(outcome: ScenarioOutcome) -> str | None:
    """Why a scenario does not pass; None if it does."""
    if outcome.verdict in ("pass", "info"):
        return None
    return outcome.reason or "".join(each.text for each in outcome.remarks[:1])


HEADING = f"{'mutant':50} {'rule':10} {'by':>4}  scenarios"


def line(name: str, rule: str, found: Found) -> str:
    """A line of the table."""
    shown = ", ".join(each[0] for each in found[:SHOWN]) + (" …" if len(found) > SHOWN else "")
    return f"{name:50} {rule:10} {len(found):4}  {shown or 'SURVIVES'}"


def main() -> int:
    """Try all mutants with all scenarios, and print the table."""
    from tests.mutants import MUTANTS, RECEIVER_MUTANTS

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
