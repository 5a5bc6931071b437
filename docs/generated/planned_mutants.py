"""The smallest plans of faults that kill the mutants of the engine, as used by the tests."""

from __future__ import annotations

import sys

from mxwire.report.document import Column, Row
from rendering.basics import ROOT
from rendering.tables import table_of_markdown


def made() -> str:
    """Return a table of the plan that kills each mutant, or the reason why none of up to two faults does."""
    sys.path.insert(0, str(ROOT))
    try:
        from tests.mutants import MUTANTS
    finally:
        sys.path.remove(str(ROOT))
    rows = []
    for mutant in MUTANTS:
        plan = mutant.plan
        if plan is not None:
            options = f"--workload {plan.workload}" + (f" --faults {plan.faults}" if plan.faults else "")
            seed = f" --seed {plan.seed}" if plan.seed else ""
            why = f"*{mutant.beyond_plans}:* " if mutant.beyond_plans else ""
            rows.append(Row((mutant.name, f"{why}`{options}{seed}`", plan.invariant)))
        else:
            rows.append(Row((mutant.name, f"*{mutant.beyond_plans}*", "")))
    return table_of_markdown((Column("defect"), Column("smallest plan"), Column("invariant")), rows)
