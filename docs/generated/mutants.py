"""The mutants of the engine, as used by the tests."""

from __future__ import annotations

import sys

from mxwire.report.document import Column, Row
from rendering.basics import ROOT
from rendering.tables import table_of_markdown


def made() -> str:
    """Return a table of the rules that detect each mutant, or the reason why none can."""
    sys.path.insert(0, str(ROOT))
    try:
        from tests.mutants import MUTANTS
    finally:
        sys.path.remove(str(ROOT))
    columns = (Column("defect"), Column("breaks"), Column("found by"))
    rows = []
    for mutant in MUTANTS:
        seen = mutant.found
        if seen is not None:
            found = ", ".join(f"`{rule}`" for rule in sorted(seen.rules))
            found += f" in a capture on host {seen.at}" if seen.at is not None else " in a capture of all frames"
            found += ", with `--from-start`" if seen.from_start else ""
        else:
            found = f"*{mutant.unseen}*"
        before = f" (Open-MX before {mutant.fixed_in})" if mutant.fixed_in else ""
        rows.append(Row((mutant.name + before, f"`{mutant.rule}`", found)))
    return table_of_markdown(columns, rows)
