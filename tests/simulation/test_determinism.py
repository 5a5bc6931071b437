"""A run is a function of its scenario and of nothing else: not of the process, the machine or the observer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import pytest

from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_1_5
from mxwire.simulation import Scenario, Simulation, draw_scenario
from mxwire.wire.dialect import omx

EVERYTHING = {
    "seed": 7,
    "hosts": 3,
    "messages": 60,
    "profiles": (OPEN_MX_1_5, NATIVE_MX),
    "loss": 0.05,
    "duplicate": 0.02,
    "reorder": 0.05,
    "jitter": 5000,
    "discovery": "nameless",
    "kill": 1,
    "stall": 1,
    "partition": 1,
}
PINNED = {
    "plain": "15c9515dae020532d3bd4101ae0193c832d77ce72871fc3f0225be69bbbcdf82",
    "everything": "bd4961c848352a962d2107aaf581fb9bf1ff3f0cfa38e25e36d8102b941e7c98",
    "omx": "306bdeba7d4b050cb620679ff46fbe5cac6016eba411f985a7dedbd922241e24",
    "seeds 0 to 19": "aaec00132a9907ead2b9e4011401704840803cf88d097fb2523e1ee12e1cce74",
}
"""Reference digests. A change of the engine's or the simulation's behaviour changes them too; another machine or
another Python must not."""
_CHILD = """
import json
from tests.simulation.test_determinism import digests
print(json.dumps(digests()))
"""


def digests() -> dict[str, str]:
    """The digests of the pinned runs, as this process makes them."""
    seeds = sha256()
    for seed in range(20):
        seeds.update(digest(draw_scenario(seed)).encode())
    return {
        "plain": digest(Scenario()),
        "everything": digest(Scenario(**EVERYTHING)),
        "omx": digest(Scenario(dialect=omx(9000), workload="stream", largest=40_000)),
        "seeds 0 to 19": seeds.hexdigest(),
    }


def digest(scenario: Scenario, **options: Any) -> str:
    outcome = Simulation(scenario, **options).run()
    assert outcome.held, outcome.breaches
    return outcome.digest


def test_digests_are_those_of_every_machine_and_python() -> None:
    assert digests() == PINNED


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_another_process_with_other_hashes_makes_the_same_runs(hash_seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == PINNED


def test_observers_change_nothing() -> None:
    """Neither the judge, nor a tap, nor progress; nor a run before in the same process."""
    seen: list[int] = []
    once = digest(Scenario(**EVERYTHING))
    assert digest(Scenario(**EVERYTHING), tap=lambda batch: seen.append(len(batch))) == once
    assert digest(Scenario(**EVERYTHING), progress=lambda done, total: seen.append(done)) == once
    assert digest(Scenario(**EVERYTHING, judged=False)) == once
    assert seen


def test_another_seed_or_fault_makes_another_run() -> None:
    changes: list[dict[str, Any]] = [{}, {"seed": 8}, {"loss": 0.06}, {"messages": 61}, {"kill": 2}]
    assert len({digest(Scenario(**EVERYTHING | each)) for each in changes}) == len(changes)
