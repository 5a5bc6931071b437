"""Each cell of tables 1 and 2 is what the paper has, what the facts have, and what the code does."""

from __future__ import annotations

import pytest

from mxwire.bench.models.behaviour import LIBRARIES, ROWS
from mxwire.bench.models.catalogue import MODELS
from tests.bench.models.cell_mutants import CELL_MUTANTS, shown
from tests.mutants import Mutant

YES, NO, BOTH = True, False, "DMA + copy"
PAPER = {
    "model": ("RPC", "RPC", "send/recv", "send/recv", "send/recv", "send/recv", "direct deposit"),
    "transfer": ("combined", "combined", "data only", "combined", "combined", "combined", "separate"),
    "within": (YES, YES, NO, YES, YES, YES, YES),
    "between": (NO, YES, NO, NO, YES, YES, YES),
    "multiprogramming": (NO, YES, NO, NO, YES, YES, YES),
    "overflow": ("prevented", "prevented", "data loss", "prevented", "prevented", "tolerated", "impossible"),
    "errors": ("catastrophic", "tolerated", *["catastrophic"] * 4, "tolerated"),
    "management": ("static", "dynamic, full", *["static"] * 4, "dynamic, on demand"),
    "send": (BOTH, "PIO (WC)", "DMA + v2p", "PIO (WC)", "PIO (WC)", BOTH, "DMA + v2p"),
    "receive": (BOTH, BOTH, "DMA + v2p", BOTH, BOTH, BOTH, "DMA + v2p"),
    "protection": ("copy", "copy", "none", "PIO + copy", "PIO + copy", "gang scheduling", "v2p"),
    # The paper has "library + copy" for GAM, too, against its own table 1.
    "reliability": ("none", "library + copy", "none", "none", "none", "none", "firmware"),
    "notification": ("polling", "polling", "none", "polling", "polling", "polling", "n/a"),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_cell_is_that_of_the_paper_and_of_the_code(name, row):
    expected = PAPER[row][LIBRARIES.index(name)]
    assert getattr(MODELS[name].facts, row) == expected
    assert ROWS[row](name) == expected


def test_each_cell_has_one_mutant():
    assert sorted(each.name for each in CELL_MUTANTS) == sorted(f"{name}, {row}" for name in LIBRARIES for row in PAPER)


@pytest.mark.parametrize("mutant", CELL_MUTANTS, ids=lambda each: each.name)
def test_the_mutant_of_a_cell_is_detected(mutant: Mutant):
    name = mutant.name.partition(", ")[0]
    assert shown(mutant) != getattr(MODELS[name].facts, mutant.rule)
