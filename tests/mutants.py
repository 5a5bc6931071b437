"""Proof that the simulator finds bugs: each of these one-place changes of the engine is killed by a few seeds.

Most are the interoperability defects that Open-MX had once (differences document, section 3). ``mutants.toml`` has
them, each with the smallest plan of faults that kills it in a small workload (found by ``--exhaustive 2``) and with its
traces in a capture; the tests repeat these runs, and the documentation lists them.

Run as a script, it prints a table of all mutants with the seed and the invariant that killed each; the exit code is 1
if one survives. With ``--cells``, the mutants are those of the models of libraries, one per cell of their tables.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.mutation.operators import PACKAGE, compiled, functions_in, functions_of, tree_of

SEEDS = 400
"""Number of seeds within which every mutant must be killed."""
PLANNED_OPTIONS = ("dialect", "profiles", "discovery", "resend_maximum", "local")
SEEDS_OF_PLANS = 12
"""Seeds whose plans of up to one fault are played: they differ in the calls of the applications."""


@dataclass(frozen=True)
class KillingPlan:
    """The smallest run of a small workload in which the mutant violates an invariant."""

    workload: str
    invariant: str
    faults: str = ""
    """As in ``--faults``."""
    seed: int = 0


@dataclass(frozen=True)
class FoundBreach:
    """A run whose capture shows the mutant."""

    rules: list[str]
    """Those that ``mxwire verify`` finds broken."""
    seed: int
    """Of the scenario."""
    at: int | None = None
    """The host that the capture is taken on; None: all frames as they are sent (``mxwire simulate --pcap``)."""
    from_start: bool = False
    """Only ``mxwire verify --from-start`` finds it."""


@dataclass(frozen=True)
class Mutant:
    """A change of the engine that must be noticed."""

    name: str
    rule: str
    """The rule that it breaks."""
    function: str
    """The qualified name of the function of the engine that is changed."""
    old: str
    """An expression or statements, which the function has once."""
    new: str
    options: dict[str, object] = field(default_factory=dict)
    """Fields of the scenarios that are not drawn from the seed; profiles and dialects by name."""

    fixed_in: str = ""
    """The release of Open-MX that fixed the defect; empty if no release is known to have had it."""
    plan: KillingPlan | None = None
    beyond_plans: str = ""
    """The reason why no plan of up to two faults kills it."""
    found: FoundBreach | None = None
    unseen: str = ""
    """The reason why no capture shows it."""
    unseen_seed: int = 0
    """Of a scenario in which the simulator notices a mutant that no capture shows."""
    room: str = "protocol"
    """Folder below ``mxwire`` with the function."""

    def fixed(self) -> dict[str, object]:
        """The fields of the scenarios that are not drawn, as :func:`mxwire.simulation.draw_scenario` takes them."""
        return fixed_by(self.options)

    def planned(self) -> dict[str, object]:
        """The fields that runs of plans have too: the others draw faults, or belong to other workloads."""
        one_host = {"hosts": 1, "processes": 2} if "local" in self.options else {}
        return one_host | {name: value for name, value in self.fixed().items() if name in PLANNED_OPTIONS}

    @property
    def file(self) -> str:
        """Path of the function below its room."""
        files = _files(self.room).get(self.function, [])
        if len(files) != 1:
            raise LookupError(f"{self.name}: {len(files)} files have the function {self.function}")
        return files[0]

    @property
    def module(self) -> str:
        """The module of the file."""
        return ".".join(("mxwire", *Path(self.room, self.file).with_suffix("").parts))

    def code(self) -> CodeType:
        """The code of the function that is changed."""
        tree = tree_of(f"{self.room}/{self.file}")
        function = next(found for name, found in functions_of(tree) if name == self.function)
        old, new = (ast.parse(text).body for text in (self.old, self.new))
        places = [*_places(function, old, new)]
        if len(places) != 1:
            raise LookupError(f"{self.name}: {self.function} has {len(places)} times: {self.old!r}")
        replace, *arguments = places[0]
        replace(*arguments)
        line = min(each.lineno for each in (function, *function.decorator_list))
        codes = functions_in(compiled(f"{self.room}/{self.file}", tree))
        return next(each for each in codes if (each.co_qualname, each.co_firstlineno) == (self.function, line))


@cache
def _files(room: str) -> dict[str, list[str]]:
    """The files below a room by the functions that they have."""
    folder = PACKAGE / room
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        file = str(path.relative_to(folder))
        for name, _ in functions_of(tree_of(f"{room}/{file}")):
            found.setdefault(name, []).append(file)
    return found


def _places(function: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[tuple[Any, ...]]:
    """The places where a function has statements, or a single expression, each as a call that replaces it."""
    match old, new:
        case [ast.Expr(value=before)], [ast.Expr(value=after)]:
            olds, news = [before], [after]
        case _:
            olds, news = old, new
    wanted = [*map(ast.dump, olds)]
    for parent in ast.walk(function):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST) and [ast.dump(value)] == wanted:
                yield setattr, parent, name, *news
            elif isinstance(value, list):
                dumped = [ast.dump(each) if isinstance(each, ast.AST) else "" for each in value]
                for place in range(len(value)):
                    if dumped[place : place + len(wanted)] == wanted:
                        yield value.__setitem__, slice(place, place + len(wanted)), news


@cache
def _loaded(path: Path) -> tuple[Mutant, ...]:
    """Return the mutants of a TOML file, whose tables are named after them and have the other fields."""
    kinds = {"plan": KillingPlan, "found": FoundBreach}
    tables = tomllib.loads(path.read_text(encoding="utf-8")).items()
    return tuple(
        Mutant(name, **{key: kinds[key](**value) if key in kinds else value for key, value in fields.items()})
        for name, fields in tables
    )


MUTANTS = _loaded(Path(__file__).with_suffix(".toml"))
RECEIVER_MUTANTS = _loaded(Path(__file__).parent / "scenarios" / "receiver_mutants.toml")
"""Those that only scenarios kill."""


def fixed_by(options: dict[str, object]) -> dict[str, object]:
    """Options with profiles and dialect in the place of their names."""
    from mxwire.protocol import profile_by_name
    from mxwire.wire.dialect import dialect_by_name

    fixed = dict(options)
    if "profiles" in fixed:
        fixed["profiles"] = tuple(map(profile_by_name, fixed["profiles"]))
    if "dialect" in fixed:
        fixed["dialect"] = dialect_by_name(fixed["dialect"])
    return fixed


@contextmanager
def changed(mutant: Mutant | None) -> Iterator[None]:
    """Give the loaded engine a mutant's change until the end; without a mutant leave it as it is."""
    if mutant is None:
        yield
        return
    module, code = import_module(mutant.module), mutant.code()
    found: object = module
    for name in code.co_qualname.split("."):
        found = vars(found)[name]
    function = found.fget if isinstance(found, property) else found
    assert isinstance(function, FunctionType), f"{mutant.name}: {code.co_qualname} is not a function"
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


@contextmanager
def engine(mutant: Mutant | None) -> Iterator[ModuleType]:
    """The simulation on an engine with a mutant's change, as a module; without a mutant on the engine as it is."""
    with changed(mutant):
        yield import_module("mxwire.simulation")


def verdict(mutant: Mutant | None, seeds: int = SEEDS, options: dict[str, object] | None = None) -> list | None:
    """Seed, invariant and text that killed a mutant, or None if it lives; without one, the engine as it is."""
    with engine(mutant) as simulation:
        fixed = fixed_by(mutant.options if mutant is not None else options or {})
        for seed in range(seeds):
            outcome = simulation.Simulation(simulation.draw_scenario(seed, **fixed)).run()
            if not outcome.held:
                return [seed, outcome.breaches[0].invariant, outcome.breaches[0].text]
    return None


def verdict_by_plans(mutant: Mutant, bound: int) -> list | None:
    """Seed, workload and plan, invariant and text that killed a mutant by ``bound`` faults; None if it lives."""
    with engine(mutant) as simulation:
        scenarios = [
            (faults, simulation.Scenario(seed, workload=workload, **mutant.planned()))
            for faults in range(bound + 1)
            for seed in range(SEEDS_OF_PLANS if faults < 2 else 1)
            for workload in simulation.SMALL_WORKLOADS
        ]
        for faults, scenario in scenarios:
            for outcome in simulation.ExhaustivePlay(scenario, faults).outcomes():
                if not outcome.held:
                    plan = ",".join(map(str, outcome.scenario.faults)) or "-"
                    address = f"{scenario.seed} {scenario.workload} {plan}"
                    return [address, outcome.breaches[0].invariant, outcome.breaches[0].text]
    return None


def _tried(mutant: Mutant, bound: int | None = None) -> tuple[int | str | None, str]:
    """The seed (or plan of up to ``bound`` faults) that killed a mutant, if one did, and the report of it.

    A mutant that no such plan can kill is not tried, since that takes 20 minutes.
    """
    if bound is not None and mutant.beyond_plans:
        return "-", f"not by plans: {mutant.beyond_plans}"
    try:
        killed = verdict(mutant) if bound is None else verdict_by_plans(mutant, bound)
    except LookupError as error:
        return None, f"CANNOT BE MADE: {error}"
    return (None, "SURVIVES") if killed is None else (killed[0], f"{killed[1]}: {killed[2]}")


def main(bound: int | None = None) -> int:
    """Try all mutants by random seeds, or by all plans of up to ``bound`` faults; print a line for each."""
    alive = 0
    columns = "{:50} {:24} {:10} {:10} {:>5}  {}" if bound is None else "{:50} {:24} {:10} {:10} {:26}  {}"
    print(columns.format("mutant", "file", "fixed in", "rule", "seed" if bound is None else "plan", "killed by"))
    with ProcessPoolExecutor() as pool:
        for mutant, (seed, found) in zip(MUTANTS, pool.map(partial(_tried, bound=bound), MUTANTS), strict=True):
            alive += seed is None
            shown = "-" if seed is None else seed
            line = columns.format(mutant.name, mutant.file, mutant.fixed_in or "-", mutant.rule, shown, found[:120])
            print(line, flush=True)
    historic = sum(bool(each.fixed_in) for each in MUTANTS)
    print(f"{len(MUTANTS)} mutants, {historic} of them defects of former releases of Open-MX")
    print(f"{len(MUTANTS) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--exhaustive", type=int, metavar="FAULTS")
    parser.add_argument("--cells", action="store_true", help="try those of the models of libraries instead")
    arguments = parser.parse_args()
    if arguments.cells:
        from tests.bench.models.cell_mutants import try_all

        sys.exit(try_all())
    sys.exit(main(arguments.exhaustive))
