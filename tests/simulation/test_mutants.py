"""The simulator finds bugs: every mutant of the engine is killed by a few seeds."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

from mxwire.rules.catalogue import CATALOGUE
from mxwire.simulation import INVARIANTS, Simulation, draw_scenario
from tests import mutants
from tests.mutants import MUTANTS, Mutant, engine, verdict
from tests.mutation import operators

HISTORIC = [each for each in MUTANTS if each.fixed_in]


def test_there_are_enough_and_most_have_been_in_real_hosts() -> None:
    assert len(MUTANTS) >= 20
    assert len(HISTORIC) * 2 > len(MUTANTS)
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_it_is_killed(mutant: Mutant) -> None:
    killed = verdict(mutant)
    assert killed is not None, f"{mutant.name} survives {mutants.SEEDS} seeds"
    assert killed[1] in INVARIANTS
    assert mutant.rule in CATALOGUE


def test_every_mutant_has_a_plan_or_a_reason_why_none_kills_it() -> None:
    assert all(each.plan or each.beyond_plans for each in MUTANTS)


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.plan], ids=lambda each: each.name)
def test_its_plan_kills_it_and_not_the_engine(mutant: Mutant) -> None:
    plan = mutant.plan
    assert plan is not None
    assert plan.faults.count(",") < 2 or mutant.beyond_plans, "at most two faults"
    for changed in (mutant, None):
        with engine(changed) as simulation:
            faults = import_module("mxwire.simulation.faults").parse_plan(plan.faults) if plan.faults else ()
            scenario = simulation.Scenario(plan.seed, workload=plan.workload, faults=faults, **mutant.planned())
            outcome = simulation.Simulation(scenario).run()
            assert [each.invariant for each in outcome.breaches][:1] == [plan.invariant] * (changed is not None)


def test_the_unchanged_engine_passes_the_runs_that_kill_the_mutants() -> None:
    """Mutants are killed by their defects, not by the scenarios, which many of them share."""
    for mutant in {repr(each.options): each for each in MUTANTS}.values():
        for seed in range(2):
            outcome = Simulation(draw_scenario(seed, **mutant.fixed())).run()
            assert outcome.held, f"{mutant.name}, seed {seed}: {outcome.breaches[0]}"


HARMLESS = Mutant("harmless", "R-GEN-01", "successor", "NUMBER_MASK", "NUMBER_MASK")


@pytest.mark.parametrize(
    ("function", "old", "reported"),
    [
        ("Node.nowhere", "pass", "0 files have the function Node.nowhere"),
        ("Window.place", "no_such_name", "Window.place has 0 times: 'no_such_name'"),
        ("Window.place", "ahead", r"Window.place has \d+ times: 'ahead'"),
    ],
)
def test_a_mutant_without_its_place_is_reported(function: str, old: str, reported: str) -> None:
    with pytest.raises(LookupError, match=f"anywhere: {reported}"):
        Mutant("anywhere", "R-GEN-01", function, old, "pass").code()


def test_a_mutant_keeps_its_place_in_other_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is part of the syntax tree: line breaks, comments and parentheses do not matter."""
    (tmp_path / "protocol" / "elsewhere").mkdir(parents=True)
    (tmp_path / "protocol" / "elsewhere" / "file.py").write_text(
        "class Window:\n    def place(self):\n        # why\n        if (self.a\n                < self.b): return 1\n"
    )
    monkeypatch.setattr(operators, "PACKAGE", tmp_path)
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    mutants._files.cache_clear()
    mutant = Mutant("moved", "R-GEN-01", "Window.place", "self.a < self.b", "True")
    assert mutant.module == "mxwire.protocol.elsewhere.file"
    assert FunctionType(mutant.code(), {})(None) == 1
    mutants._files.cache_clear()


def test_the_table_lists_killed_and_surviving_mutants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deadly = next(each for each in MUTANTS if each.name == "libacks without counter")
    monkeypatch.setattr(mutants, "SEEDS", 2)
    monkeypatch.setattr(mutants, "MUTANTS", (deadly,))
    assert mutants.main() == 0
    words = capsys.readouterr().out.splitlines()[1].split()
    assert words[:6] == ["libacks", "without", "counter", "library/reliability.py", "0.1.0", "R-ACK-06"]
    assert words[6:8] == ["0", "rules:"]
    monkeypatch.setattr(mutants, "MUTANTS", (deadly, HARMLESS))
    monkeypatch.setattr(mutants, "verdict", lambda mutant: [0, "rules", "…"] if mutant == deadly else None)
    assert mutants.main() == 1
    out = capsys.readouterr().out
    assert "SURVIVES" in out and out.endswith("1 killed, 1 alive\n")


def test_it_is_a_script() -> None:
    script = Path(mutants.__file__)
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy; print(len(runpy.run_path({str(script)!r})['MUTANTS']))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == len(MUTANTS)
