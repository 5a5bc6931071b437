"""The simulator finds bugs: every mutant of the engine is killed by a few seeds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.rules.catalogue import CATALOGUE
from mxwire.simulation import INVARIANTS, Simulation, draw_scenario
from tests import mutants
from tests.mutants import MUTANTS, Mutant, verdict

HISTORIC = [each for each in MUTANTS if each.mended_in]


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


def test_the_unchanged_engine_passes_the_runs_that_kill_the_mutants() -> None:
    """Otherwise a scenario would be to blame, and no mutant."""
    for mutant in MUTANTS:
        for seed in range(2):
            outcome = Simulation(draw_scenario(seed, **mutant.fixed())).run()
            assert outcome.held, f"{mutant.name}, seed {seed}: {outcome.breaches[0]}"


def test_a_mutant_without_its_place_is_reported() -> None:
    with pytest.raises(LookupError, match=r"nowhere: node\.py has the text 0 times"):
        Mutant("nowhere", "R-GEN-01", "node.py", "no such text", "").source()


def test_the_table_lists_killed_and_surviving_mutants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = Mutant("harmless", "R-GEN-01", "node.py", "A host: ", "A host - ")
    deadly = next(each for each in MUTANTS if each.name == "libacks without counter")
    monkeypatch.setattr(mutants, "SEEDS", 2)
    monkeypatch.setattr(mutants, "MUTANTS", (deadly,))
    assert mutants.main() == 0
    words = capsys.readouterr().out.splitlines()[1].split()
    assert words[:6] == ["libacks", "without", "counter", "library/reliability.py", "0.1.0", "R-ACK-06"]
    assert words[6:8] == ["0", "rules:"]
    monkeypatch.setattr(mutants, "MUTANTS", (deadly, harmless))
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
