"""One mutant per cell of tables 1 and 2: a change of a model after which the cell is no longer true.

``python tests/mutants.py --cells`` tries all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mxwire.bench.models.behaviour import ROWS
from mxwire.bench.models.catalogue import MODELS
from mxwire.bench.models.layer import CallError, CatastropheError
from tests.mutants import Mutant, changed

CELL_MUTANTS: Final = tuple(
    Mutant(f"{name}, {row}", row, change["function"], change["old"], change["new"], room="bench/models")
    for change in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["change"]
    for row, names in change["cells"].items()
    for name in names
)
"""Each change of the file, in the cells of the rows and libraries that it names."""


def shown(mutant: Mutant) -> Any:
    """The value of a mutant's cell as the behaviour of the changed model shows it; the error that ends the model."""
    name = mutant.name.partition(", ")[0]
    with changed(mutant):
        try:
            return ROWS[mutant.rule](name)
        except (AssertionError, CallError, CatastropheError, LookupError, ValueError) as error:
            return f"{type(error).__name__}: {error}"


def survivors() -> Iterator[Mutant]:
    """The mutants that no cell shows."""
    for each in CELL_MUTANTS:
        if shown(each) == getattr(MODELS[each.name.partition(", ")[0]].facts, each.rule):
            yield each


def try_all() -> int:
    """Try all mutants, and print a line for each; return 1 if one survives."""
    alive = {each.name for each in survivors()}
    for each in CELL_MUTANTS:
        found = "SURVIVES" if each.name in alive else str(shown(each)).partition("\n")[0][:80]
        print(f"{each.name:28} {each.function:34} {found}")
    print(f"{len(CELL_MUTANTS) - len(alive)} killed, {len(alive)} alive")
    return 1 if alive else 0
