"""Defects of an engine that the wire shows are found in a capture: each mutant is run, captured and verified as by
``mxwire verify``. ``pytest -s`` prints the table of mutants and rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

from mxwire.analysis.verification import Verification
from mxwire.capture import create_capture, open_capture
from mxwire.rules import CAPTURE, CATALOGUE
from mxwire.wire.decoder import Decoder
from tests.mutants import MUTANTS, Mutant, engine, fixed_by

SEEDS = 120
"""Runs that are tried where the one that has shown a mutant before does not any more, since the engine has changed."""
LINES: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    yield
    print("", *(LINES[each.name] for each in MUTANTS if each.name in LINES), sep="\n")


def broken(
    simulation: ModuleType, mutant: Mutant, seed: int, from_start: bool, folder: Path, *places: int | None
) -> set[str]:
    """The rules that the captures of a run break: on the hosts of these numbers, or for None of all frames."""
    scenario = simulation.draw_scenario(seed, **fixed_by(mutant.options | {"judged": False}))
    if scenario.tamper or "rules" in simulation.invariants.unchecked(scenario):
        return set()
    run = simulation.Simulation(scenario)
    paths = {at: folder / f"{at}.pcap" for at in places}
    with ExitStack() as stack:
        run.world.taps.update({at: stack.enter_context(create_capture(path)).write for at, path in paths.items()})
        run.run()
    found = set()
    for path in paths.values():
        verification = Verification(replace(CAPTURE, from_start=from_start))
        with open_capture(path) as capture:
            findings = [each for batch in Decoder().decode_all(capture) for each in verification.observe(batch)]
        found |= {each.rule for each in findings if each.severity == "violation"}
    return found


def test_each_mutant_is_found_or_there_is_a_reason() -> None:
    assert all(bool(each.found) is not bool(each.unseen) for each in MUTANTS)
    assert {rule for each in MUTANTS if each.found for rule in each.found.rules} <= set(CATALOGUE)


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.found], ids=lambda each: each.name)
def test_visible_defects_are_found(mutant: Mutant, tmp_path: Path) -> None:
    seen = mutant.found
    assert seen is not None
    rest = [seed for seed in range(SEEDS) if seed != seen.seed]
    with engine(mutant) as simulation:
        for seed in chain([seen.seed], rest):
            found = broken(simulation, mutant, seed, seen.from_start, tmp_path, seen.at)
            if found >= {*seen.rules}:
                break
        else:
            pytest.fail(f"no capture of {SEEDS} shows {mutant.name}")
    LINES[mutant.name] = f"{mutant.name:50} {mutant.rule:9} found by {', '.join(sorted(found))}"
    with engine(None) as simulation:
        assert not broken(simulation, mutant, seed, seen.from_start, tmp_path, seen.at)


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.unseen], ids=lambda each: each.name)
def test_invisible_defects_cause_no_finding(mutant: Mutant, tmp_path: Path) -> None:
    LINES[mutant.name] = f"{mutant.name:50} {mutant.rule:9} not seen: {mutant.unseen}"
    with engine(mutant) as simulation:
        assert not broken(simulation, mutant, mutant.unseen_seed, True, tmp_path, None, 0, 1)
